#!/usr/bin/env python3
"""Run Debian's prebuilt OpenCoarrays programs, with or without libosc preloaded.

    python3 opencoarrays.py --preload /path/to/libosc.so     libosc must pass every row marked pass or host-bug
    python3 opencoarrays.py                                  the host alone: rows marked pass must pass

The programs come from the package libcoarrays-mpich-dev; what each needs is in opencoarrays.tsv beside this file.
A row passes when the job exits with 0 and its output matches the row's success text, in every repetition.
From MPICH 4.2 on MPI_Comm_free aborts a job that has not received all messages, and OpenCoarrays leaves some. A row that
ends so after its success text, or without one where the host alone ends so too, is listed as "host" and is no failure.
Exit status: 0 all as required, 1 something failed, 77 the package or the launcher is missing, or the programs are
not MPICH's.
"""
import argparse
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time

PACKAGE = "libcoarrays-mpich-dev"
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "opencoarrays.tsv")
SKIPPED = 77


def program_folder():
    """The folder of prebuilt tests, asked of dpkg so that nothing here knows where the package puts them."""
    try:
        listing = subprocess.run(["dpkg", "-L", PACKAGE], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    for path in listing.splitlines():
        if re.search(r"/OpenCoarrays-[^/]*-tests$", path) and os.path.isdir(path):
            return path
    return None


def needs_other_mpi(program):
    """Whether the program is linked with Open MPI's library: Debian forky's package for MPICH has such programs."""
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.search(r"\blibmpi\.so\.40\b", libraries) is not None


def read_table(path):
    with open(path, newline="") as f:
        lines = [line for line in f if line.strip() and not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def stop(job):
    """End a job that ran out of time: first ask its launcher, which cleans up its ranks, then kill the remaining processes."""
    job.send_signal(signal.SIGTERM)
    try:
        return job.communicate(timeout=5)[0]
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(job.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        return job.communicate(timeout=5)[0]
    except subprocess.TimeoutExpired:
        return b""


def run_once(row, folder, options):
    """One run; returns (passed, why it did not, seconds, output)."""
    command = [options.mpiexec, "-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1"]
    if options.preload:
        command += ["-genv", "LD_PRELOAD", options.preload, "-genv", "OSC_FALLBACK", "error"]
    for setting in options.env:
        command += ["-genv", *setting.split("=", 1)]
    command += ["-n", row["images"], os.path.join(folder, row["program"])] + row["args"].split()
    start = time.monotonic()
    job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           start_new_session=True)
    timed_out = False
    try:
        out = job.communicate(timeout=options.timeout)[0]
    except subprocess.TimeoutExpired:
        timed_out = True
        out = stop(job)
    seconds = time.monotonic() - start
    text = out.decode("utf-8", "replace")
    if timed_out:
        return False, "no end within %g s" % options.timeout, seconds, text
    if "cannot be preloaded" in text:
        return False, "the library was not loaded", seconds, text
    if job.returncode != 0:
        return False, "exit status %d" % job.returncode, seconds, text
    if not re.search(row["success"], text):
        return False, "exit 0, but no success text", seconds, text
    return True, "", seconds, text


def ends_by_host_check(row, folder, options, text):
    """Whether the job has ended by MPICH's check for unreceived messages, and not by a fault of the program before it."""
    check = r"being freed has \d+ unmatched message"
    if not re.search(check, text):
        return False
    if re.search(row["success"], text):
        return True
    alone = argparse.Namespace(**{**vars(options), "preload": None})
    return bool(re.search(check, run_once(row, folder, alone)[3]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preload", help="the libosc.so to preload into every rank")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each program, all of which must pass")
    parser.add_argument("--timeout", type=float, default=60, help="hard limit of one run, in seconds")
    parser.add_argument("--only", default="", help="regular expression of the programs to run")
    parser.add_argument("--all", action="store_true", help="also run the rows marked outside, for information")
    parser.add_argument("--short-unless-full", action="store_true",
                        help="each row once and without those marked full, unless OSC_TEST_FULL is set: then three times")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="set in every rank")
    parser.add_argument("--mpiexec", default=shutil.which("mpiexec.mpich") or shutil.which("mpiexec.hydra"))
    parser.add_argument("--folder", default=program_folder(), help="the programs (default: asked of dpkg)")
    parser.add_argument("--out", help="write the results to this file, tab-separated")
    options = parser.parse_args()
    full = bool(os.environ.get("OSC_TEST_FULL"))
    short = options.short_unless_full and not full
    if options.short_unless_full and full:
        options.repeat = 3
    if not options.folder or not options.mpiexec:
        print("skipped: needs the package %s and MPICH's launcher" % PACKAGE)
        return SKIPPED
    programs = sorted(os.listdir(options.folder))
    if needs_other_mpi(os.path.join(options.folder, programs[0])):
        print("skipped: the programs of the package %s are linked with Open MPI" % PACKAGE)
        return SKIPPED
    if options.preload:
        options.preload = os.path.abspath(options.preload)
        if not os.path.exists(options.preload):
            print("no such library: " + options.preload)
            return 1

    rows = read_table(TABLE)
    missing = sorted(set(programs) - {row["program"] for row in rows})
    failed = ["%s is installed but not in the table" % name for name in missing]
    counts = {"passed": 0, "failed": 0, "host": 0, "known": 0, "left": 0}
    record = []
    for row in rows:
        name = " ".join(filter(None, [row["program"], row["args"]]))
        if not re.search(options.only, name):
            continue
        if short and row["when"] == "full":
            counts["left"] += 1
            continue
        required = row["host"] == "pass" or (row["host"] == "host-bug" and bool(options.preload))
        if row["host"] == "outside" and not options.all:
            counts["known"] += 1
            print("outside  %-50s %s" % (name, row["reason"]))
            continue
        passes, why, seconds, text = 0, "", 0.0, ""
        for _ in range(options.repeat):
            ok, reason, took, output = run_once(row, options.folder, options)
            passes += ok
            seconds = max(seconds, took)
            if not ok:
                why, text = reason, output
        if passes == options.repeat:
            counts["passed"] += 1
            state = "pass"
        elif ends_by_host_check(row, options.folder, options, text):
            counts["host"] += 1
            state = "host"
        elif required:
            counts["failed"] += 1
            state = "FAIL"
            failed.append("%s: %s" % (name, why))
        else:
            counts["known"] += 1
            state = "known"
        print("%-8s %-50s n=%s %d/%d %6.2f s  %s" % (state, name, row["images"], passes, options.repeat, seconds, why),
              flush=True)
        if state == "FAIL":
            print("".join("    | %s\n" % line for line in text.splitlines()[-15:]), end="", flush=True)
        record.append([name, row["images"], state, "%d/%d" % (passes, options.repeat), "%.2f" % seconds, why])
    if options.out:
        with open(options.out, "w") as f:
            for line in record:
                f.write("\t".join(line) + "\n")
    print("OpenCoarrays: %(passed)d passed, %(failed)d failed, %(host)d ended by the host's check, %(known)d not required, "
          "%(left)d left to OSC_TEST_FULL=1" % counts)
    for line in failed:
        print("  " + line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
