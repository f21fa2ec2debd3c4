#!/usr/bin/env python3
"""Runs a program of a foreign MPI library with libosc preloaded: it must succeed, print "all right", and libosc must
print exactly one line, which names the library.

    stands_aside.py --names TEXT [--refuses N] [--seconds S] -- command...

--refuses: libosc refuses N calls of functions that the library lacks, each with a line that names the library too.
"""
import argparse
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", required=True)
    parser.add_argument("--refuses", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=50)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    run = subprocess.run(options.command, capture_output=True, text=True, timeout=options.seconds)
    print(run.stdout + run.stderr)
    lines = [line for line in run.stderr.splitlines() if "libosc" in line]
    wrong = []
    expected = [options.names] * (1 + options.refuses)
    if len(lines) != len(expected):
        wrong.append("libosc printed %d lines, not %d" % (len(lines), len(expected)))
    wrong += ["no '%s' in '%s'" % (text, line) for text, line in zip(expected, lines) if text not in line]
    if run.returncode != 0:
        wrong.append("the command ended with %d" % run.returncode)
    if run.stdout.split("\n").count("all right") != 1:
        wrong.append("the program did not print 'all right' once")
    for line in wrong:
        print("WRONG: " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
