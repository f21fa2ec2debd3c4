#!/usr/bin/env python3
"""The fault campaign: runs the rows of a table (campaign_rows.py), each a fault with its place, its path and its outcome.

  campaign.py [--mpiexec M] [--env K=V]... [--all] [--times N] [--seconds S] [--only TEXT]... [--output FILE] [--list]
              [--fake LIBRARY] [--mutants] -- FOLDER

FOLDER has the programs, fault_NAME. Without --all a cover of the table: each fault, epoch, step and path occurs. With
OSC_TEST_FULL=1 all rows, 5 times each. --only: rows whose name has the text. --output: the table as JSON. --list: the
rows, without a run. --mutants: programs that are wrong, each of which must be found.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import campaign_rows
import left_behind
import run_fault

RANKS = 4
STOPPED = 3  # seconds
CALL, END, SETTLES = 1 / 4, 1 / 2, 1 / 8  # of a row's seconds: for a call, for the end of the job, for what stays behind
ONE = 'case "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" in 1) export "$0" ;; esac; exec "$@"'
# mpiexec's signal must not end unshare, below which the rank would live on.
OWN = ('only=$1; shift; [ "${only:-$PMI_RANK}" = "$PMI_RANK" ] || exec "$@"; trap "" USR1; '
       'exec $0 sh -c \'"$@"; code=$?; exit $code\' sh "$@"')
OTHER = b"9.9.9"


def other_version(preload, folder):
    """The setting that preloads libosc with another version's number in place of its own."""
    name, libraries = preload.split("=", 1)
    path = next(path for path in libraries.split(":") if os.path.basename(path).startswith("libosc"))
    with open(path, "rb") as file:
        text = file.read()
    versions = set(re.findall(rb"(?<=\0)\d\.\d\.\d(?=\0)", text))
    assert len(versions) == 1, versions
    copy = os.path.join(folder, os.path.basename(path))
    with open(copy, "wb") as file:
        file.write(text.replace(b"\0" + versions.pop() + b"\0", b"\0" + OTHER + b"\0"))
    return f"{name}={libraries.replace(path, copy)}"


def proxy_has_died(job):
    """Whether a child of the launcher has ended, and the launcher waits all the same."""
    def children(pid):
        return subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(pid)], text=True, capture_output=True, check=False).stdout.split()
    return any("Z" in state for launcher in children(job.pid)[::2] for state in children(launcher)[1::2])


def end(mpiexec, seconds, settings, program, fault):
    """True if the job ends in time, by MPI_Abort or by the launcher's SIGINT, and nothing is left. None if the launcher has
    lost the job: if the clock's second changes while Hydra (MPICH 4.0.2, 5.0.2) handles an MPI_Abort, it kills its own proxy, and
    the job's processes live on."""
    with tempfile.TemporaryDirectory() as place:
        meeting = os.path.join(place, "meeting")
        os.mkdir(meeting)
        watch = left_behind.Watch(place, mpiexec)
        command = [mpiexec, "-n", str(RANKS)]
        for setting in settings + [f"FAULT_MEETING={meeting}"]:
            command += ["-genv", *setting.split("=", 1)]
        with subprocess.Popen(["timeout", "-k", "5", str(2 * seconds)] + command + program, text=True, env=watch.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as job:
            begin = time.monotonic()
            reached = fault == "abort"
            while not reached and job.poll() is None and time.monotonic() - begin < seconds:
                reached = any(name.startswith("reached") for name in os.listdir(meeting))
                time.sleep(0.02)
            if fault == "pause" and job.poll() is None:
                os.killpg(job.pid, signal.SIGINT)
            begin = time.monotonic()
            lost = False
            try:
                text = job.communicate(timeout=END * seconds)[0]
            except subprocess.TimeoutExpired:
                lost = proxy_has_died(job)
                job.terminate()
                text = job.communicate()[0]
            took = time.monotonic() - begin
        left, of_host = watch.left(SETTLES * seconds)
    print(text, f"reached: {reached}, exit {job.returncode}, {took:.1f} s, left behind: {left}, by the host: {of_host}", flush=True)
    if lost:
        for number in re.findall(r"process (\d+)", str(left)):
            os.kill(int(number), signal.SIGKILL)
        return None
    ended = fault == "pause" or job.returncode != 0  # Hydra exits with 0 now and then after a SIGINT
    return reached and ended and took < END * seconds and not left and "not 1" not in text


class Pulse:
    """How long this process was kept from running: the job was too then, if the machine stopped all or is overloaded."""

    def __enter__(self):
        self.gap = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()

    def _beat(self):
        last = time.monotonic()
        while not self._ends.wait(0.1):
            self.gap = max(self.gap, time.monotonic() - last)
            last = time.monotonic()


def run(options, row):
    """True if the row has its outcome. A failure says nothing if this process could not run either."""
    for _ in range(5):
        with Pulse() as pulse:
            good = run_once(options, row)
        if good or (good is not None and pulse.gap < STOPPED):
            break
        print("the launcher has lost the job" if good is None else f"this process did not run for {pulse.gap:.1f} s",
              "once more", sep=": ", flush=True)
    return bool(good)


def find_mutants(options):
    """Whether each fault of a program is found, and taken for nothing else."""
    missed = []
    for row in campaign_rows.mutants():
        print(f"== {row.name}: {row.outcome}", flush=True)
        program = [os.path.join(options.folder, f"fault_{row.program[0]}"), *row.program[1:]]
        job = run_fault.run_job(options.mpiexec, RANKS, 0, 10, options.env + row.settings, program)
        found = {"hang": job.ended < RANKS, "corrupt": job.content < job.ended == RANKS and not job.left,
                 "litter": job.content == job.ended == RANKS and bool(job.left)}
        if job.good or not found[row.fault]:
            missed.append(row.name)
    print(f"not found: {missed}")
    return 1 if missed else 0


def run_once(options, row):
    settings = options.env + row.settings + [f"FAULT_PATIENCE={CALL * options.seconds}"]
    preload = [setting for setting in settings if setting.startswith("LD_PRELOAD=")]
    if row.fake:
        settings = settings + [f"{preload[-1]}:{options.fake}"]
    program = [os.path.join(options.folder, f"fault_{row.program[0]}"), *row.program[1:]]
    if row.wrap:
        own = ["unshare", "--fork", "--kill-child", *row.wrap]
        program = ["sh", "-c", OWN, " ".join(own), "" if row.epoch == "all" else "1", *program]
    if row.other_version:
        program = ["sh", "-c", ONE, other_version(preload[-1], options.others), *program]
    if row.one:
        program = ["sh", "-c", ONE, row.one, *program]
    if row.ends:
        return end(options.mpiexec, options.seconds, settings, program, row.fault)
    job = run_fault.run_job(options.mpiexec, RANKS, row.dead, options.seconds, settings, program, SETTLES * options.seconds)
    if "the fault's moment" in job.text:
        return False  # a victim of a kill may fail, but not so
    found = [len(re.findall(line, job.text)) for line in row.lines]
    said = len(re.findall("^libosc: ", job.text, re.MULTILINE)) if row.silent else 0
    if said or found != [1] * len(row.lines):
        print(f"wrong lines: {found} of {row.lines}, {said} of libosc too many")
        return False
    return job.good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--times", type=int)
    parser.add_argument("--seconds", type=int, default=40, help="for a row; a fourth of it for a call")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--output")
    parser.add_argument("--fake", help="libosc_fake_libfabric.so; without it its rows are left out")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("folder")
    options = parser.parse_args()
    if options.mutants:
        return find_mutants(options)
    full = bool(os.environ.get("OSC_TEST_FULL"))
    times = options.times or (5 if full else 1)
    table = [row for row in campaign_rows.table() if options.fake or not row.fake]
    if "openmpi" in options.mpiexec:  # it does not start in namespaces
        table = [row for row in table if not row.wrap]
    if os.geteuid() != 0:
        print(f"SKIPPED: {sum(row.root for row in table)} rows need root")
        table = [row for row in table if not row.root]
    rows = table if options.all or full or options.only else campaign_rows.cover(table)
    rows = [row for row in rows if not options.only or any(text in row.name for text in options.only)]
    results = []
    others = tempfile.TemporaryDirectory()
    options.others = others.name
    for row in rows:
        print(f"== {row.name}: {row.outcome}", flush=True)
        failed = sum(not run(options, row) for _ in range(0 if options.list else times))
        results.append({"row": row.name, "expected": row.outcome, "times": times, "failed": failed})
        if options.output:
            with open(options.output, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
    bad = [result["row"] for result in results if result["failed"]]
    print(f"{len(rows)} rows of {len(table)}, {times} times each, failures in: {bad}")
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
