#!/usr/bin/env python3
"""Wrong arguments of an example: one line that names the argument, and exit status 2; --help: its options, and status 0.

  usage.py MPIEXEC PROGRAM...
"""
import os
import subprocess
import sys
import tempfile


def run(words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if line]


def wrong(name, words, status, errors, expected):
    """Prints what is wrong; returns how much."""
    lines = [line for line in errors if line.startswith(name + ":")]
    if status == 2 and len(lines) == 1 and expected in lines[0]:
        return 0
    print("%s: status %d, %s; expected 2 and a line with %s" % (" ".join(words), status, lines, expected))
    return 1


def main():
    mpiexec, programs = sys.argv[1], sys.argv[2:]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        broken = os.path.join(folder, "broken.mtx")
        with open(broken, "w", encoding="utf-8") as file:
            file.write("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n4 1\n")
        for program in programs:
            name = os.path.basename(program)
            # One process starts fastest; of more, one alone must speak.
            launch = [mpiexec, "-n", "2"] if program == programs[0] else []
            cases = [(["--nonsense"], "--nonsense: no such option")] if launch else []
            more = {"gups": [(["--table", "-1"], "--table must be a number"), (["--updates"], "its value is missing")],
                    "stencil": [(["--exchange=telepathy"], "must be fence|pscw|notify|messages"), (["--steps=0"], "--steps must be a number")],
                    "components": [(["--file", broken], "broken.mtx:4: not two vertices")],
                    "pagerank": [(["--file", broken + ".not"], "No such file"), (["--graph", "ugly"], "er|nice|nasty")]}
            for words, expected in cases + more.get(name, []):
                status, _, errors = run(launch + [program] + words)
                failures += wrong(name, [name] + words, status, errors, expected)
        status, output, _ = run([programs[0], "--help"])
        if status != 0 or "--messages" not in output:
            print("--help: status %d: %s" % (status, output))
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
