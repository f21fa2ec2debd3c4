#!/usr/bin/env python3
"""Runs an MPI program with libosc where the system is tight. Prints why and ends with 77 where it cannot be arranged.

  confined.py WORLD --ranks N [--env K=V]... -- program [argument]...

Worlds: descriptors (64 of them), small_shm, pid_namespaces (one for each rank), pid_namespaces_below (for each but the
first), net_namespaces (one of both kinds for each rank).
"""

import argparse
import shlex
import subprocess
import sys


SKIPPED = 77
NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc"]


def can(command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("world", choices=["descriptors", "small_shm", "pid_namespaces", "pid_namespaces_below",
                                           "net_namespaces"])
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()

    limit = ["timeout", "-k", "5", str(options.seconds)]
    command = [options.mpiexec]
    for setting in options.env:
        command += ["-genv", *setting.split("=", 1)]
    program = options.program
    ranks = ["-n", str(options.ranks)]
    mount = "mount -t tmpfs -o size=1m tmpfs /dev/shm"
    if options.world == "descriptors":
        command += ranks + ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"] + program
    elif options.world != "small_shm":
        own = NAMESPACE + (["--net"] if options.world == "net_namespaces" else [])
        if not can(own + ["true"]):
            print(f"SKIPPED: no {options.world} here (needs root)")
            return SKIPPED
        if options.world == "pid_namespaces_below":
            # Over shared memory the host does not start between such ranks.
            command += ["-genv", "UCX_TLS", "tcp,self", "-n", "1"] + program + [":", "-n", str(options.ranks - 1)] + own + program
        else:
            command += ranks + own + program
    else:
        if not can(["unshare", "-m", "sh", "-c", mount]):
            print("SKIPPED: no mount namespace here (needs root)")
            return SKIPPED
        # The host's own shared memory does not fit; its other ways do.
        command += ["-genv", "UCX_TLS", "tcp,self"] + ranks
        inner = f"{mount} && exec {shlex.join(command + program)}"
        command = ["unshare", "-m", "sh", "-c", inner]
    result = subprocess.run(limit + command, check=False)
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
