#!/usr/bin/env python3
"""Runs hang.cpp, each case in a job of its own and several jobs at a time: each waiting rank's report must name the cause,
the window, the ranks and what they do. The jobs are ended as soon as they have said it.

  hang.py [--mpiexec M] --env LD_PRELOAD=... [--only CASE]... [--repeat N] -- program
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import uuid

MARK = "HANG_MARK"
SECONDS = 20
WINDOW = 'in window "halo"'
LOCK = r"MPI_Win_lock has waited \d+\.\d s for the lock of rank {} " + WINDOW
LOCKED = r"rank {} \(pid \d+\) holds the lock exclusively: "
COMPUTES = "it computes outside MPI"
WAITS = r"it waits in MPI_Win_\w+ for .*, \d{1,3}\.\d s so far"
FENCE = r"MPI_Win_fence has waited .* for the other processes to enter it"
NOTIFICATION = r"OSC_Win_wait_notify has waited .* for its notification counter 3 to reach 2 \(it is {}\) " + WINDOW
PARTLY = "deadlock, a fence or free that only some processes have entered: "


# mpiexec ends a job of which a process was killed, so a shell stands between them.
SHELL = ["sh", "-c", 'trap : USR1; "$@"; sleep 60', "sh"]


class Case:
    def __init__(self, ranks, reports, program=None, signals=False, shell=False, never="", **settings):
        self.ranks = ranks
        self.reports = reports  # by rank: what its lines contain, as regular expressions
        self.never = never  # a word of no line
        self.program = program
        self.signals = signals  # rank 0 reports on SIGUSR1
        self.shell = shell
        self.settings = {"OSC_HANG_REPORT": "1", **settings}


CASES = {
    "lock_cycle": Case(2, {
        0: [LOCK.format(1), LOCKED.format(1) + "it waits in MPI_Win_lock for the lock of rank 0 " + WINDOW,
            "deadlock, a cycle of locks: rank 0 waits for rank 1, which waits for rank 0"],
        1: [LOCK.format(0), LOCKED.format(0) + "it waits in MPI_Win_lock for the lock of rank 1 " + WINDOW,
            "deadlock, a cycle of locks: rank 1 waits for rank 0, which waits for rank 1"]}),
    "holder_computes": Case(3, {rank: [LOCK.format(2), LOCKED.format(2) + COMPUTES] for rank in (0, 1)}),
    "holder_sleeps": Case(2, {0: [LOCKED.format(1) + "it sleeps in a system call outside MPI"]}),
    "holder_receives": Case(2, {0: [LOCKED.format(1) + "it is inside the host MPI, outside libosc"]}),
    "holder_stopped": Case(2, {0: [LOCKED.format(1) + "it is stopped by a signal"]}),
    # The wait ends with an error instead.
    "holder_killed": Case(2, {0: ["MPI_Win_lock: rank 1 died while it held a lock on rank 1"]},
                          shell=True),
    "shared_holder": Case(2, {0: [LOCK.format(1), r"rank 1 \(pid \d+\) holds the lock shared: " + COMPUTES]}),
    "missing_post": Case(2, {0: [r"MPI_Win_(start|put|complete) has waited .* for the post of rank 1 " + WINDOW,
                                 r"rank 1 \(pid \d+\) has not called MPI_Win_post: " + COMPUTES]}),
    "start_without_post": Case(2, {
        0: [r"for the post of rank 1 ", "has not called MPI_Win_post: it waits in MPI_Win_fence",
            "deadlock, a start without its post: rank 0 waits for rank 1, which waits for rank 0"],
        1: [FENCE, r"rank 0 \(pid \d+\) has not entered it: it waits in MPI_Win_", "deadlock, a start without its post"]}),
    "missing_start": Case(2, {1: ["MPI_Win_wait has waited .* for MPI_Win_complete of its origins " + WINDOW,
                                  r"rank 0 \(pid \d+\) has not called MPI_Win_start and MPI_Win_complete: " + COMPUTES]}),
    "missing_complete": Case(2, {1: ["MPI_Win_wait has waited",
                                     r"rank 0 \(pid \d+\) has not called MPI_Win_complete: it sleeps"]}),
    # Rank 0 has completed the epoch that rank 2 waits for, and starts the next one.
    "origin_ahead": Case(3, {
        0: ["for the post of rank 2 ", r"rank 2 \(pid \d+\) has not called MPI_Win_post: it waits in MPI_Win_wait",
            r"rank 1 \(pid \d+\) has not called MPI_Win_start and MPI_Win_complete: " + COMPUTES],
        2: [r"rank 1 \(pid \d+\) has not called MPI_Win_start and MPI_Win_complete: " + COMPUTES]}, never="deadlock"),
    "fence_skipped": Case(3, {rank: [FENCE, r"rank 2 \(pid \d+\) has not entered it: it is inside MPI_Finalize",
                                     PARTLY + "rank 2 has called MPI_Finalize"] for rank in (0, 1)}),
    "fence_late": Case(3, {rank: [FENCE, r"rank 2 \(pid \d+\) has not entered it: " + COMPUTES] for rank in (0, 1)}),
    "create_skipped": Case(3, {rank: ["MPI_Win_create has waited .* for the other processes of the communicator"]
                               for rank in (0, 1)}),
    # Rank 2 has got one notification of two.
    "no_notification": Case(3, {rank: [NOTIFICATION.format(int(rank == 2)),
                                       r"rank 1 \(pid \d+\) may notify it: " + COMPUTES,
                                       r"rank {} \(pid \d+\) may notify it: it waits in OSC_Win_wait_notify for its notification "
                                       "counter 3 to reach 2 ".format(2 - rank) + WINDOW] for rank in (0, 2)}),
    # Between nodes: OSC_DEBUG=fake_nodes=2.
    "nodes_lock_cycle": Case(2, {
        0: [r"has waited .* for (the lock of rank 1|its operations at rank 1 to complete) " + WINDOW,
            LOCKED.format(1) + WAITS, "deadlock, a cycle of locks: rank 0 waits for rank 1, which waits for rank 0"],
        1: [LOCKED.format(0) + WAITS, "deadlock, a cycle of locks: rank 1 waits for rank 0"]},
        program="lock_cycle", OSC_DEBUG="fake_nodes=2"),
    "nodes_holder_computes": Case(2, {0: [LOCKED.format(1) + COMPUTES]}, program="holder_computes", OSC_DEBUG="fake_nodes=2"),
    "nodes_shared_holder": Case(4, {rank: [r"rank 3 \(pid \d+\) holds the lock shared: " + COMPUTES] for rank in (0, 1, 2)},
                                program="shared_holder", OSC_DEBUG="fake_nodes=2"),
    "nodes_missing_start": Case(2, {1: [r"rank 0 \(pid \d+\) has not called MPI_Win_start and MPI_Win_complete: " + COMPUTES]},
                                program="missing_start", OSC_DEBUG="fake_nodes=2"),
    "nodes_missing_post": Case(2, {0: [r"rank 1 \(pid \d+\) has not called MPI_Win_post: " + COMPUTES]},
                               program="missing_post", OSC_DEBUG="fake_nodes=2"),
    "nodes_fence_late": Case(4, {rank: [FENCE, r"rank 3 \(pid \d+\) has not entered it: " + COMPUTES] for rank in (0, 1, 2)},
                             program="fence_late", OSC_DEBUG="fake_nodes=2"),
    "nodes_no_notification": Case(3, {rank: [NOTIFICATION.format(int(rank == 2)),
                                             r"rank 1 \(pid \d+\) may notify it: " + COMPUTES] for rank in (0, 2)},
                                  program="no_notification", OSC_DEBUG="fake_nodes=2"),
    "nodes_origin_ahead": Case(3, {
        rank: [r"rank 1 \(pid \d+\) has not called MPI_Win_start and MPI_Win_complete: " + COMPUTES] for rank in (0, 2)},
                               never="deadlock", program="origin_ahead", OSC_DEBUG="fake_nodes=2"),
    # Another process of its node sees that it is stopped.
    "nodes_flush_stopped": Case(4, {rank: [r"MPI_\w+ has waited .* for its operations at rank 3 to complete " + WINDOW,
                                           r"rank 3 \(pid \d+\) has not answered: it is stopped by a signal"]
                                    for rank in (0, 1)}, program="flush_stopped", OSC_DEBUG="fake_nodes=2"),
    # Nothing but its kernel answers.
    "nodes_alone_stopped": Case(2, {0: ["rank 1 has not answered: it does not answer, but its node does"]},
                                program="flush_stopped", OSC_DEBUG="fake_nodes=2"),
    "on_demand": Case(2, {0: [LOCK.format(1), LOCKED.format(1) + COMPUTES]}, program="holder_computes", signals=True,
                      OSC_HANG_REPORT="3600"),
}


class Job:
    """One run of a case. All that it starts has the mark in its environment."""

    def __init__(self, command, settings):
        self.mark = uuid.uuid4().hex
        self.lines = []
        self.times = []  # of the lines, in seconds
        self.changed = threading.Condition()
        self.process = subprocess.Popen(command, env={**os.environ, **settings, MARK: self.mark}, text=True,
                                        errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip())
                self.times.append(time.monotonic())
                self.changed.notify_all()

    def await_all(self, good, seconds, meanwhile=lambda lines: None):
        """Whether good(lines) becomes true in time."""
        end = time.monotonic() + seconds
        with self.changed:
            while not good(self.lines):
                left = end - time.monotonic()
                if left <= 0:
                    return False
                meanwhile(self.lines)
                self.changed.wait(min(left, 0.5))
        return True

    def end(self):
        """Kills what still runs of the job; stopped processes too, and the launcher last: it removes what Open MPI's job shares."""
        mark = f"{MARK}={self.mark}".encode()
        for attempt in range(100):
            found = 0
            for entry in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found += 1
                        if attempt >= 40 or int(entry.name) != self.process.pid:
                            os.kill(int(entry.name), signal.SIGKILL)
                except OSError:
                    pass  # another's, or gone
            if found == 0 and self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.reader.join(timeout=10)


def missing(reports, lines):
    """What no line of a rank contains, by rank."""
    left = []
    for rank, patterns in reports.items():
        own = [line for line in lines if f"libosc: rank {rank}: " in line]
        left += [f"rank {rank}: {pattern}" for pattern in patterns if not any(re.search(pattern, line) for line in own)]
    return left


def lateness(case, job):
    """Seconds from the limit until the last rank's report was complete, at most: a rank's wait begins after its RANK line."""
    if case.signals:
        return 0
    latest = 0
    for rank, patterns in case.reports.items():
        lines = list(zip(job.times, job.lines))
        begun = next(at for at, line in lines if line.startswith(f"RANK {rank} "))
        own = [(at, line) for at, line in lines if f"libosc: rank {rank}: " in line]
        reported = max(next(at for at, line in own if re.search(pattern, line)) for pattern in patterns)
        latest = max(latest, reported - begun - float(case.settings["OSC_HANG_REPORT"]))
    return latest


def run_case(name, case, options):
    settings = dict(setting.split("=", 1) for setting in options.env)
    command = [options.mpiexec, "-n", str(case.ranks)]
    for key, value in {**settings, **case.settings}.items():
        command += ["-genv", key, value]
    job = Job(command + (SHELL if case.shell else []) + [options.program, case.program or name], {})

    def demand(lines):
        for line in lines:
            if found := re.match(r"RANK 0 PID (\d+)", line):
                os.kill(int(found[1]), signal.SIGUSR1)

    try:
        explains = job.await_all(lambda lines: not missing(case.reports, lines), SECONDS,
                                 demand if case.signals else lambda lines: None)
        late = lateness(case, job) if explains else 0
        wrong = [line for line in job.lines if case.never and case.never in line]
        left = missing(case.reports, job.lines) + [f"never: {line}" for line in wrong]
        return explains and not wrong, left, list(job.lines), late
    finally:
        job.end()


def print_unexplained(name, left, lines):
    print(f"== {name}: not explained within {SECONDS} s. Missing or wrong:", *left, "The output:", *lines, sep="\n  ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--repeat", type=int, default=1)
    # A report is made once. On a machine so full that a process gets no core for a second, it says "does not answer".
    parser.add_argument("--attempts", type=int, default=1, help="runs of a case, of which one must be explained")
    parser.add_argument("--jobs", type=int, default=5, help="at a time")
    parser.add_argument("program")
    options = parser.parse_args()
    chosen = options.only or list(CASES)
    explained = dict.fromkeys(chosen, 0)
    latest = dict.fromkeys(chosen, 0)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [(name, pool.submit(run_case, name, CASES[name], options)) for name in chosen * options.repeat]
        for name, run in runs:
            explains, left, lines, late = run.result()
            for _ in range(options.attempts - 1):
                if explains:
                    break
                print_unexplained(name, left, lines)
                explains, left, lines, late = run_case(name, CASES[name], options)
            explained[name] += explains
            latest[name] = max(latest[name], late)
            if not explains:
                print_unexplained(name, left, lines)
    for name, times in explained.items():
        print(f"{name}: explained {times} of {options.repeat} times, at most {latest[name]:.1f} s after the limit")
    return 0 if all(times == options.repeat for times in explained.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
