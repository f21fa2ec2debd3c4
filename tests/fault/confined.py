#!/usr/bin/env python3
"""Runs an MPI program with libosc where the system is tight. Prints why and ends with 77 where it cannot be arranged.

  confined.py WORLD --ranks N [--env K=V]... -- program [argument]...

Worlds: descriptors (64 of them), addresses (2 GB of address space, and an OSC_DEBUG=pool_mib beyond it), small_shm, pid_namespaces (one for each rank), pid_namespaces_below (for each but the
first), net_namespaces (one of both kinds for each rank), host_names (another name of the host for each rank).

In small_shm and pid_namespaces_below the host goes over TCP, where its MPI_Finalize sometimes does not end: with and
without libosc. There the program's own verdict, which it prints before, decides when the end does not come.
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import threading
import time


SKIPPED = 77
NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
NAMED = ["unshare", "--uts", "sh", "-c", 'hostname "rank-$PMI_RANK"; exec "$@"', "sh"]
OVER_TCP = ("small_shm", "pid_namespaces_below")
FINALIZE_SECONDS = 10


def can(command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def end(process):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=5)
            return
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def run(command, seconds, over_tcp):
    """The exit status of the command, within its time."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    passed = threading.Event()

    def show():
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith("PASSED:"):
                passed.set()

    reader = threading.Thread(target=show, daemon=True)
    reader.start()
    try:
        begin = time.monotonic()
        while over_tcp and process.poll() is None and time.monotonic() < begin + seconds:
            if passed.wait(timeout=0.1):
                begin, seconds = time.monotonic(), FINALIZE_SECONDS
                break
        return process.wait(timeout=max(0.1, begin + seconds - time.monotonic()))
    except subprocess.TimeoutExpired:
        end(process)
        if over_tcp and passed.is_set():
            print(f"NOTE: all passed; the host's MPI_Finalize over TCP took more than {FINALIZE_SECONDS} s and was ended")
            return 0
        print(f"no end after {seconds} s")
        return 124
    finally:
        reader.join(timeout=5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("world", choices=["descriptors", "addresses", "small_shm", "pid_namespaces", "pid_namespaces_below",
                                           "net_namespaces", "host_names"])
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()

    command = [options.mpiexec]
    for setting in options.env:
        command += ["-genv", *setting.split("=", 1)]
    program = options.program
    ranks = ["-n", str(options.ranks)]
    mount = "mount -t tmpfs -o size=1m tmpfs /dev/shm"
    if options.world == "descriptors":
        command += ranks + ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"] + program
    elif options.world == "addresses":
        command += ranks + ["sh", "-c", 'ulimit -v 2000000; OSC_DEBUG=pool_mib=4000 exec "$@"', "sh"] + program
    elif options.world != "small_shm":
        own = NAMED if options.world == "host_names" else NAMESPACE + ["--net"] * (options.world == "net_namespaces")
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
    return run(command, options.seconds, options.world in OVER_TCP)


if __name__ == "__main__":
    sys.exit(main())
