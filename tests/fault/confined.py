#!/usr/bin/env python3
"""Runs an MPI program with libosc where the system is tight. Prints why and succeeds where it cannot be arranged.

  confined.py descriptors|small_shm --ranks N [--env K=V]... -- program [argument]...
"""

import argparse
import shlex
import subprocess
import sys


def can(command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("world", choices=["descriptors", "small_shm"])
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()

    limit = ["timeout", "-k", "5", str(options.seconds)]
    command = [options.mpiexec, "-n", str(options.ranks)]
    for setting in options.env:
        command += ["-genv", *setting.split("=", 1)]
    program = options.program
    mount = "mount -t tmpfs -o size=1m tmpfs /dev/shm"
    if options.world == "descriptors":
        command += ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"] + program
    else:
        if not can(["unshare", "-m", "sh", "-c", mount]):
            print("SKIPPED: no mount namespace here (needs root)")
            return 0
        # The host's own shared memory does not fit; its other ways do.
        command += ["-genv", "UCX_TLS", "tcp,self"]
        inner = f"{mount} && exec {shlex.join(command + program)}"
        command = ["unshare", "-m", "sh", "-c", inner]
    result = subprocess.run(limit + command, check=False)
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
