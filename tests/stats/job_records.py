#!/usr/bin/env python3
"""Runs a program with OSC_STATS=FILE and compares the JSON, exactly, with what the program says that it did.

  job_records.py [--mpiexec M] [--env K=V]... --ranks N --path NAME=PATH[,PATH]... -- program [argument]...

--path created=process_vm: all operations on the window of this name went by these paths. The table on stderr must
name every window.
  --put-path PATH: the path of all puts on windows with a name.
  --waits RANK=WHAT:RANK: in each window of several ranks the first one waited for the lock, the post, ... of the second.
  --advice TEXT, --no-advice: findings that contain it must exist, or none may.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--path", action="append", default=[])
    parser.add_argument("--put-path")
    parser.add_argument("--waits", action="append", default=[])
    parser.add_argument("--advice", action="append", default=[])
    parser.add_argument("--no-advice", action="store_true")
    parser.add_argument("program", nargs="+")
    return parser.parse_args()


def did(output):
    """{window: {what: [calls, bytes]}}, summed over the ranks."""
    sums = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for line in output.split("\n"):
        if line.startswith("did\t"):
            _, window, what, calls, size = line.split("\t")
            sums[window][what][0] += int(calls)
            sums[window][what][1] += int(size)
    return sums


def size_class(size):
    limit = 8
    while limit < size and limit < 1 << 21:
        limit *= 8
    return "to_%d" % limit if size <= limit else "more"


def compare(window, wanted, paths, wrong):
    """The figures of one window."""
    name = window["name"]
    kinds = {what: tuple(counts) for what, counts in wanted.items() if what in window["kinds"]}
    syncs = {what: counts[0] for what, counts in wanted.items() if what not in kinds}
    found = {kind: (of["operations"], of["bytes"]) for kind, of in window["kinds"].items()}
    if found != kinds:
        wrong.append("%s: operations %s, not %s" % (name, found, kinds))
    calls = {sync: of["calls"] for sync, of in window["synchronisation"].items()}
    if calls != syncs:
        wrong.append("%s: calls %s, not %s" % (name, calls, syncs))
    if paths and not set(window["paths"]) == paths:
        wrong.append("%s: paths %s, not %s" % (name, set(window["paths"]), paths))
    for key in ("operations", "bytes"):
        sums = {window[key], sum(of[key] for of in window["kinds"].values()),
                sum(of[key] for of in window["paths"].values()), sum(rank[key] for rank in window["ranks"])}
        if len(sums) != 1:
            wrong.append("%s: %s add up to %s" % (name, key, sums))
    for kind, of in window["kinds"].items():
        for path in of["paths"].values():
            if not 0 <= path["waiting_seconds"] <= path["seconds"] or path["timed_operations"] > path["operations"]:
                wrong.append("%s: %s %s" % (name, kind, path))
            if kind not in ("put", "get") and path["timed_operations"] != path["operations"]:
                wrong.append("%s: not each %s was timed: %s" % (name, kind, path))
            if sum(path["sizes"].values()) != path["operations"]:
                wrong.append("%s: sizes of %s add up to %s" % (name, kind, path["sizes"]))
            if of["operations"] == path["operations"] == 1 and path["sizes"] != {size_class(path["bytes"]): 1}:
                wrong.append("%s: size class %s of %d bytes" % (name, path["sizes"], path["bytes"]))
    for sync, of in window["synchronisation"].items():
        if not 0 <= of["waiting_seconds"] <= of["seconds"] or of["timed_calls"] > of["calls"]:
            wrong.append("%s: %s %s" % (name, sync, of))


def judge_waits(window, wanted, wrong):
    """What each rank waited for."""
    for rank in window["ranks"]:
        waits = rank["waits"]
        if any(seconds <= 0 for peers in waits.values() for seconds in peers.values()):
            wrong.append("%s: rank %d waited %s" % (window["title"], rank["rank"], waits))
        if not 0 <= rank["operations_waiting_seconds"] <= rank["operations_seconds"]:
            wrong.append("%s: operations of rank %d" % (window["title"], rank["rank"]))
    for waiter, what, peer in wanted if window["processes"] > 1 else ():
        if peer not in window["ranks"][waiter]["waits"].get(what, {}):
            wrong.append("%s: rank %d waited for %s" % (window["title"], waiter, window["ranks"][waiter]["waits"]))


def main():
    args = arguments()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        command = [args.mpiexec, "-n", args.ranks]
        for setting in args.env + ["OSC_STATS=" + path, "TEST_SERVED=1"]:
            command += ["-genv"] + setting.split("=", 1)
        job = subprocess.run(["timeout", "-k", "5", "60"] + command + args.program, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, check=False)
        output = job.stdout.decode(errors="replace")
        table = job.stderr.decode(errors="replace")
        if job.returncode != 0 or not os.path.exists(path):
            print(output + table)
            return 1
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    wanted = did(output)
    windows = {window["name"]: window for window in document["windows"] if window["name"]}
    paths = {name: set(where.split(",")) for name, where in (entry.split("=") for entry in args.path)}
    if document["reporting"] != document["processes"] or document["processes"] != int(args.ranks):
        wrong.append("%s of %s processes" % (document["reporting"], document["processes"]))
    if wanted and set(windows) != set(wanted):
        wrong.append("windows %s, not %s" % (set(windows), set(wanted)))
    waits = [(int(waiter), *of.split(":")) for waiter, of in (entry.split("=") for entry in args.waits)]
    for window in document["windows"]:
        judge_waits(window, waits, wrong)
    for name, window in windows.items():
        if len(window["ranks"]) != int(args.ranks) or [rank["rank"] for rank in window["ranks"]] != list(range(int(args.ranks))):
            wrong.append("%s: ranks %s" % (name, window["ranks"]))
        if name in wanted:
            compare(window, wanted[name], next((paths[key] for key in paths if key in name), None), wrong)
        if args.put_path and set(window["kinds"]["put"]["paths"]) != {args.put_path}:
            wrong.append("%s: puts went by %s" % (name, window["kinds"]["put"]["paths"]))
        if "fence" in window["synchronisation"] and not any("fake_nodes" in setting for setting in args.env):
            last = sum(rank["fences_last"] for rank in window["ranks"])
            if last * int(args.ranks) != window["synchronisation"]["fence"]["calls"]:
                wrong.append("%s: %d last arrivals" % (name, last))
    # One process each: no name, and the ranks of the job that made them.
    if wanted and len(document["windows"]) - len(windows) != sum(range(int(args.ranks))):
        wrong.append("%d windows" % len(document["windows"]))
    if table.count("statistics (OSC_STATS)") != 1:
        wrong.append("no table, or several: " + table)
    findings = [finding["finding"] + " -> " + finding["remedy"] for finding in document["advice"]]
    for text in args.advice:
        if not any(text in finding for finding in findings) or text not in table:
            wrong.append("no advice '%s': %s" % (text, findings))
    if args.no_advice and findings:
        wrong.append("advice: %s" % findings)
    print("\n".join(wrong) if wrong else "as the program says")
    if wrong:
        print(output + table)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
