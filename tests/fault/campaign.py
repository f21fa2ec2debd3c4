#!/usr/bin/env python3
"""The fault campaign: runs campaign.cpp for the rows of a table fault x moment x path, each with its expected outcome.

  campaign.py [--mpiexec M] [--env K=V]... [--all] [--times N] [--only TEXT]... [--output FILE] -- program

Without --all a cover of the table: each fault, epoch, step and path occurs. With OSC_TEST_FULL=1 all rows, 5 times each.
--only: rows whose name has the text. --output: the table as JSON.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import left_behind
import run_fault

# The steps of an epoch, and the rank that meets the fault there: 1 is an origin, 2 the target.
STEPS = {
    "lock": [("lock", 1), ("put", 1), ("accumulate", 1), ("flush", 1), ("unlock", 1), ("compute", 2)],
    "fence": [("fence", 1), ("put", 1), ("last_fence", 2)],
    "pscw": [("start", 1), ("put", 1), ("complete", 1), ("post", 2), ("wait", 2)],
    "window": [("create", 1), ("free", 2)],
}
MOMENTS = ["before", "in", "after"]
PATHS = {
    "node": ([], []),
    "process_vm": ([], ["private"]),
    "agent": (["OSC_DEBUG=cma=off"], ["private"]),
    "net": (["OSC_DEBUG=fake_nodes=2", "OSC_OFI_PROVIDER=net"], []),
    "tcp": (["OSC_DEBUG=fake_nodes=2", "OSC_OFI_PROVIDER=tcp;ofi_rxm"], []),
}
OUTCOMES = {
    "kill": "survivors' calls succeed with the right bytes or report the death, each within 10 s",
    "stop": "every call succeeds with the right bytes",
    "abort": "the job ends within 20 s",
    "pause": "the job ends within 20 s of the launcher's SIGINT",
}
RANKS = 4
SECONDS = 40


def table():
    return [(fault, path, epoch, str(victim), moment, step) for fault in OUTCOMES for path in PATHS
            for epoch, steps in STEPS.items() for step, victim in steps for moment in MOMENTS
            # These two end the whole job: the moment in a call is the same as before the next one.
            if moment != "in" or fault in ("kill", "stop")]


def cover(rows):
    """Rows in which each fault x epoch, fault x path, and each step occurs."""
    chosen, seen = [], set()
    for place in range(len(rows)):
        row = rows[place * 37 % len(rows)]
        fault, path, epoch, _, moment, step = row
        pairs = {(fault, epoch), (fault, path), (epoch, step), (moment, path)} - seen
        if len(pairs) > 1:
            chosen.append(row)
            seen |= pairs
    return chosen


def ends(mpiexec, settings, program, fault):
    """True if the job ends in time, by MPI_Abort or by the launcher's SIGINT, and nothing is left."""
    with tempfile.TemporaryDirectory() as place:
        meeting = os.path.join(place, "meeting")
        os.mkdir(meeting)
        watch = left_behind.Watch(place)
        command = [mpiexec, "-n", str(RANKS)]
        for setting in settings + [f"FAULT_MEETING={meeting}"]:
            command += ["-genv", *setting.split("=", 1)]
        with subprocess.Popen(["timeout", "-k", "5", str(2 * SECONDS)] + command + program, text=True, env=watch.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as job:
            begin = time.monotonic()
            reached = fault == "abort"
            while not reached and job.poll() is None and time.monotonic() - begin < SECONDS:
                reached = any(name.startswith("reached") for name in os.listdir(meeting))
                time.sleep(0.02)
            if fault == "pause":
                os.killpg(job.pid, signal.SIGINT)
            begin = time.monotonic()
            try:
                text = job.communicate(timeout=20)[0]
            except subprocess.TimeoutExpired:
                job.terminate()
                text = job.communicate()[0]
            took = time.monotonic() - begin
        left, of_host = watch.left()
    print(text, f"reached: {reached}, exit {job.returncode}, {took:.1f} s, left behind: {left}, by the host: {of_host}", flush=True)
    return reached and job.returncode != 0 and took < 20 and not left and "not 1" not in text


def run(options, row):
    fault, path, epoch, victim, moment, step = row
    settings, arguments = PATHS[path]
    settings = options.env + settings
    program = [options.program, epoch, victim, fault, moment, step] + arguments
    if fault in ("abort", "pause"):
        return ends(options.mpiexec, settings, program, fault)
    return run_fault.run_job(options.mpiexec, RANKS, int(fault == "kill"), SECONDS, settings, program)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--times", type=int)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--output")
    parser.add_argument("program")
    options = parser.parse_args()
    full = bool(os.environ.get("OSC_TEST_FULL"))
    times = options.times or (5 if full else 1)
    rows = table() if options.all or full or options.only else cover(table())
    rows = [row for row in rows if not options.only or any(text in ".".join(row) for text in options.only)]
    results = []
    for row in rows:
        print(f"== {'.'.join(row)}: {OUTCOMES[row[0]]}", flush=True)
        failed = sum(not run(options, row) for _ in range(times))
        results.append({"row": ".".join(row), "expected": OUTCOMES[row[0]], "times": times, "failed": failed})
    bad = [result["row"] for result in results if result["failed"]]
    print(f"{len(rows)} rows of {len(table())}, {times} times each, failures in: {bad}")
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
