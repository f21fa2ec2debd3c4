#!/usr/bin/env python3
"""Runs a program in which ranks are killed: every survivor must report no failure, all in a few seconds, and nothing may
stay behind (left_behind.py).

  run_fault.py --ranks 4 --dead 1 --seconds 60 [--pid-namespaces] [--env K=V]... -- program [argument]...

With --pid-namespaces each rank lives in one of its own; the exit code is 77 where that cannot be arranged.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import typing

import left_behind

# MPICH's mpiexec takes the job down, or breaks down itself, when a process that it started dies, even with
# -disable-auto-cleanup. So it starts shells, which ignore its signal; the ranks below them write to files, and the
# shells say there when their rank has ended.
SHELL = ('trap : USR1; "$@" > "$FAULT_OUTPUT/$$" 2>&1; code=$?; [ $code = 0 ] || echo "exit $code" >> "$FAULT_OUTPUT/$$"; '
         'echo ended >> "$FAULT_OUTPUT/$$"')
# The first process of a PID namespace cannot kill itself, so it is a shell. mpiexec's signal must not end unshare, which the
# outer shell waits for: the rank would still run, and write over "ended".
NAMESPACE = ["sh", "-c", 'trap "" USR1; exec "$@"', "sh",
             "unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", '"$@"; code=$?; exit $code', "sh"]


def outputs(folder):
    return [path.read_text(errors="replace") for path in sorted(pathlib.Path(folder).iterdir())]


class Job(typing.NamedTuple):
    text: str
    good: bool
    ended: int  # ranks
    content: int  # ranks
    left: list


def run_job(mpiexec, ranks, dead, seconds, settings, program, settles=left_behind.SETTLES):
    """Runs the program and prints its output. It is good if all survivors are content, no more processes than `dead` have
    failed, and nothing is left."""
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "output")
        meeting = os.path.join(place, "meeting")
        os.mkdir(folder)
        os.mkdir(meeting)
        watch = left_behind.Watch(place, mpiexec)
        command = [mpiexec, "-disable-auto-cleanup", "-n", str(ranks)]
        for setting in settings + [f"FAULT_OUTPUT={folder}", f"FAULT_MEETING={meeting}"]:
            command += ["-genv", *setting.split("=", 1)]
        begin = time.monotonic()
        with subprocess.Popen(["timeout", "-k", "5", str(seconds)] + command
                              + ["sh", "-c", SHELL, "sh"] + program, env=watch.environment()) as job:
            ended = 0
            while ended < ranks and time.monotonic() - begin < seconds:
                time.sleep(0.02)
                ended = sum(text.rstrip().endswith("ended") for text in outputs(folder))
            took = time.monotonic() - begin
            if ended == ranks:
                job.wait()
            else:
                job.terminate()
        texts = outputs(folder)
        left, of_host = watch.left(settles)

    text = "\n".join(texts)
    print(text)
    reports = re.findall(r"^survivor (\d+): (\d+) checks, (\d+) failures$", text, re.MULTILINE)
    failed = len(re.findall(r"^exit \d+$", text, re.MULTILINE))
    good = [rank for rank, checks, failures in reports if int(checks) > 0 and failures == "0"]
    wanted = ranks - dead
    print(f"{len(good)} of {wanted} survivors report no failure, {ended} of {ranks} ranks ended, {took:.1f} s, "
          f"left behind: {left}, by the host: {of_host}", flush=True)
    return Job(text, len(good) == wanted and failed <= dead and ended == ranks and not left, ended, len(good), left)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--dead", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--pid-namespaces", action="store_true")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()

    program = options.program
    if options.pid_namespaces:
        if subprocess.run(NAMESPACE + ["true"], capture_output=True, check=False).returncode != 0:
            print("SKIPPED: no PID namespaces here (needs root)")
            return 77
        program = NAMESPACE + program
    job = run_job(options.mpiexec, options.ranks, options.dead, options.seconds, options.env, program)
    return 0 if job.good else 1


if __name__ == "__main__":
    sys.exit(main())
