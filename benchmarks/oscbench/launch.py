"""Starts the measuring programs: which implementations there are on this machine, how each is launched, and a hard
time limit on every launch. Owns the process groups that it starts.
"""

import json
import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
DEFAULT_BUILD = os.path.join(SOURCE, "build", "release")

HOST, LIBOSC, OPENMPI, SHM, CMA = "host", "libosc", "openmpi", "shm", "cma"
IMPLEMENTATIONS = (HOST, LIBOSC, OPENMPI, SHM, CMA)

# More ranks than cores is an ordinary case here, also for launchers that refuse it or root by default.
OPENMPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


# A process that is asked to end also ends the processes that it has started.
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


class Tools:
    """Where the programs, launchers and the library are. In a build tree it first builds `target`, which is up to date
    in a moment. libosc runs over MPICH, over Open MPI if `over_openmpi`, or over the host of `mpiexec`, a launcher that
    understands MPICH's options."""

    def __init__(self, build, libosc, target="benchmarks", over_openmpi=False, mpiexec=None):
        if os.path.exists(os.path.join(build, "CMakeCache.txt")):
            done = subprocess.run(["cmake", "--build", build, "--target", target, "-j", str(os.cpu_count())],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode != 0:
                sys.exit("%scould not build the target %s in %s" % (done.stdout, target, build))
        self.bench = os.path.join(build, "benchmarks")
        self.libosc = os.path.abspath(libosc or os.path.join(build, "src", "libosc.so"))
        # Makes the host's MPI_Finalize end between hosts (tests/multihost); programs without MPI do not need it.
        self.finalize = os.path.join(build, "tests", "multihost", "libmultihost_finalize.so")
        self.mpich = mpiexec or shutil.which("mpiexec.mpich") or shutil.which("mpiexec")
        self.openmpi = shutil.which("mpiexec.openmpi")
        self.of_openmpi = (OPENMPI, LIBOSC) if over_openmpi else (OPENMPI,)

    def program(self, name, implementation=None):
        """A program; `implementation`: as it is built for its MPI library."""
        return os.path.join(self.bench, name + ("_ompi" if implementation in self.of_openmpi else ""))

    def micro(self, name, implementation=None):
        """One of the micro-benchmarks."""
        return self.program(os.path.join("osu", name), implementation)

    def available(self, implementation, program):
        """None if it can be run, else why not."""
        path = self.program("node_reference" if implementation in (SHM, CMA) else program, implementation)
        if not os.access(path, os.X_OK):
            return "not built: " + path
        if implementation in self.of_openmpi and not self.openmpi:
            return "mpiexec.openmpi not found"
        if implementation in (HOST, LIBOSC) and implementation not in self.of_openmpi and not self.mpich:
            return "mpiexec.mpich not found"
        if implementation == LIBOSC and not os.path.exists(self.libosc):
            return "not built: " + self.libosc
        return None

    def mpiexec(self, implementation, preload_here=True, variables=None):
        """The launcher with its options, ready for "-n RANKS PROGRAM"; `variables`: for the environment of the ranks."""
        variables = dict(variables or {})
        if implementation == LIBOSC and preload_here:
            variables.update(LD_PRELOAD=self.libosc, OSC_FALLBACK="error")
        if implementation in self.of_openmpi:
            return [self.openmpi, "--oversubscribe"] + [w for n, v in variables.items() for w in ("-x", n + "=" + v)]
        return [self.mpich] + [w for n, v in variables.items() for w in ("-genv", n, v)]


class Outcome:
    """The result of a launch: its standard output, and the error, if any."""

    def __init__(self, output, trouble):
        self.output = output
        self.trouble = trouble

    def json_lines(self):
        found = []
        for line in self.output.splitlines():
            if line.startswith("{"):
                try:
                    found.append(json.loads(line))
                except json.JSONDecodeError:
                    continue
        return found


def run(command, seconds, environment=None):
    """Runs a command in a process group of its own and ends the group when the time is up."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=dict(os.environ, **OPENMPI_ENVIRONMENT, **(environment or {})),
                               stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        output, errors = process.communicate(timeout=seconds)
    except (KeyboardInterrupt, SystemExit):
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        raise
    except subprocess.TimeoutExpired:
        # The launcher gets the chance to end its ranks, which may live in sessions of their own.
        os.killpg(process.pid, signal.SIGTERM)
        try:
            output, _ = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        return Outcome(output, "no end after %d s" % seconds)
    if process.returncode != 0:
        said = [line for line in errors.strip().splitlines() if line.strip()]
        # A launcher and an MPI library say much about an end, libosc why it came.
        said = [line for line in said if line.startswith("libosc:")] or said
        detail = ": " + said[-1][:160] if said else ""
        return Outcome(output, "exit status %d%s" % (process.returncode, detail))
    return Outcome(output, None)
