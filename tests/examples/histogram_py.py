#!/usr/bin/env python3
"""Runs examples/histogram.py with libosc preloaded, by mpi4py over the host MPI. Debian's mpi4py is built for Open MPI, so a
virtual environment in the build folder has PyPI's: its wheels run over any library with MPICH's ABI, by the name libmpi.so.12.

  histogram_py.py FOLDER PROGRAM MPIEXEC PRELOAD HISTOGRAM

FOLDER: of the environment, which the first run makes; PROGRAM: one that is linked to the host MPI. Ends with 77 where no
environment can be made.
"""
import os
import re
import subprocess
import sys


def run(words, seconds):
    """Whether the command succeeds, and what it prints."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=seconds)
    except subprocess.TimeoutExpired:
        return False, "no end after %d s" % seconds
    return done.returncode == 0, done.stdout


def environment(folder):
    """The environment's Python."""
    python = os.path.join(folder, "bin", "python")
    if os.path.exists(python) and run([python, "-c", "import mpi4py, numpy"], 60)[0]:
        return python
    for words in ([sys.executable, "-m", "venv", "--clear", folder],
                  [python, "-m", "pip", "install", "--quiet", "--retries", "1", "--only-binary", ":all:", "mpi4py>=4.1", "numpy"]):
        works, output = run(words, 120)
        if not works:
            print(output)
            print("SKIPPED: no environment with mpi4py and NumPy: '%s' failed" % " ".join(words))
            sys.exit(77)
    return python


def main():
    folder, program, mpiexec, preload, histogram = sys.argv[1:]
    python = environment(folder)
    shown = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    library = re.search(r"libmpi(?:ch)?\.so\.\S+ => (\S+)", shown)[1]
    libraries = os.path.join(folder, "host")
    os.makedirs(libraries, exist_ok=True)
    name = os.path.join(libraries, "libmpi.so.12")
    if os.path.lexists(name):
        os.remove(name)
    os.symlink(library, name)
    settings = {"LD_PRELOAD": preload, "LD_LIBRARY_PATH": libraries, "MPI4PY_MPIABI": "mpich", "OSC_FALLBACK": "error",
                "OSC_VERBOSE": "windows"}
    words = ["timeout", "-k", "5", "60", mpiexec, "-n", "2"]
    for name, value in settings.items():
        words += ["-genv", name, value]
    right, output = run(words + [python, histogram], 90)
    print(output)
    served = output.count("libosc: rank 1: MPI_Win_allocate")
    if right and served != 1:
        print("libosc served %d windows, not 1" % served)
    return 0 if right and served == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
