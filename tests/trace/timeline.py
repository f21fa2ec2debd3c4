#!/usr/bin/env python3
"""Runs a program with OSC_TRACE=FILE and checks the timeline: it is JSON in the trace event format, the slices of each
track nest, arrows go forward in time, epochs begin and end in pairs, and the calls are those that the program says it made
("did WINDOW KIND|SYNC CALLS BYTES", see tests/stats/counted.cpp).

  timeline.py [--mpiexec M] --info OSC_INFO [--env K=V]... --ranks N [option]... -- program [argument]...

--arrows: messages have arrows. --puts N: each rank has made so many puts. --crash: the job ends without MPI_Finalize, and
osc_info --merge writes the timeline. --full: OSC_DEBUG=trace_mib has no room for all puts. --unwritable: FILE is in no folder.
--apart: each rank has a folder of its own, as on hosts without a common file system. --gone: the program removes the file
of rank 0. --moves: the program changes its folder, and OSC_STATS=statistics.json.
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
    parser.add_argument("--info", required=True)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--puts", type=int)
    for flag in ("--arrows", "--notified", "--crash", "--full", "--unwritable", "--apart", "--gone", "--moves"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("program", nargs="+")
    return parser.parse_args()


def did(output):
    """{(window, what): [calls, bytes]}, summed over the ranks."""
    sums = collections.defaultdict(lambda: [0, 0])
    for line in output.split("\n"):
        if line.startswith("did\t"):
            _, window, what, calls, size = line.split("\t")
            sums[window, what][0] += int(calls)
            sums[window, what][1] += int(size)
    return sums


def made(events):
    """The same, by what was recorded; names of the wrong kind keep their prefix."""
    sums = collections.defaultdict(lambda: [0, 0])
    for event in events:
        if event["ph"] == "X" and event["cat"] in ("operation", "synchronisation"):
            name = event["name"].removesuffix("_c")
            prefix = ("OSC_" if name.endswith(("notify", "notify_value")) else "MPI_") \
                + ("Win_" if event["cat"] == "synchronisation" else "")
            entry = sums[event["args"]["window"], name.removeprefix(prefix).lower()]
            entry[0] += 1
            entry[1] += event["args"].get("bytes", 0)
    return sums


def ns(microseconds):
    return round(microseconds * 1000)


def check_slices(events, wrong):
    """The slices of one thread nest."""
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            begin = ns(event["ts"])
            if ns(event["dur"]) < 0 or begin < 0:
                wrong.append("slice %s" % event)
            tracks[event["pid"], event["tid"]].append((begin, begin + ns(event["dur"]), event["name"]))
    for track, slices in tracks.items():
        open_slices = []
        for slice_ in sorted(slices, key=lambda it: (it[0], -it[1])):
            while open_slices and open_slices[-1][1] <= slice_[0]:
                open_slices.pop()
            if open_slices and slice_[1] > open_slices[-1][1]:
                wrong.append("track %s: %s overlaps %s" % (track, slice_, open_slices[-1]))
            open_slices.append(slice_)
    return tracks


def check_arrows(events, tracks, merged_at_end, wrong):
    """Each arrow begins and ends at a message's slice, and goes forward."""
    begins = {(track, slice_[0]) for track, slices in tracks.items() for slice_ in slices}
    ends = {"s": {}, "f": {}}
    for event in events:
        if event["ph"] in ends:
            if event["id"] in ends[event["ph"]]:
                wrong.append("arrow %s twice" % event)
            if ((event["pid"], event["tid"]), ns(event["ts"])) not in begins:
                wrong.append("arrow %s at no slice" % event)
            ends[event["ph"]][event["id"]] = event
    if set(ends["s"]) != set(ends["f"]):
        wrong.append("arrows with one end")
        return 0
    # The time-stamp counters of two cores differ by some ticks, and a core may read its counter before the loads in front
    # of the read have ended: an arrow between two cores may go back by tens of nanoseconds, more under a hypervisor.
    for number, start in ends["s"].items():
        if ns(ends["f"][number]["ts"]) < ns(start["ts"]) - 1000:
            wrong.append("arrow goes back: %s to %s" % (start, ends["f"][number]))
    handled = sum(event["ph"] == "X" and event["name"] in ("handle request", "serve") for event in events)
    arrived = {((event["pid"], event["tid"]), ns(event["ts"])) for event in ends["f"].values()}
    without = sum(event["ph"] == "X" and event["name"] in ("handle request", "serve") and
                  ((event["pid"], event["tid"]), ns(event["ts"])) not in arrived for event in events)
    # A thread may be between sending a message and recording it when its process ends: at most one a thread.
    if merged_at_end and without > 16:
        wrong.append("%d of %d requests have no arrow" % (without, handled))
    return len(ends["s"])


def check_notifications(events, args, wrong):
    """Each notified operation names its counter, and each wait that it ended has an arrow from it or from its message."""
    flows = collections.defaultdict(set)
    for event in events:
        if event["ph"] in "sf":
            flows[event["ph"], event["pid"], event["tid"], ns(event["ts"])].add(event["id"])
    notified = 0
    for event in events:
        if event["ph"] != "X":
            continue
        name = event["name"]
        if event["cat"] == "operation" and name.startswith("OSC_") and event["args"]["counter"] not in range(8):
            wrong.append("counter of %s" % event)
        if name.startswith("notified on counter "):
            notified += 1
            if not flows["f", event["pid"], event["tid"], ns(event["ts"])]:
                wrong.append("%s has no arrow" % event)
    if notified < args.ranks * 8:
        wrong.append("%d notifications seen" % notified)


def check_epochs(events, calls, crash, wrong):
    """The epochs of one track do not overlap, and calls that open epochs have one each."""
    counts = collections.Counter()
    groups = collections.defaultdict(list)
    for event in events:
        if event["ph"] in "be":
            groups[event["pid"], event["id2"]["local"]].append(event)
    for group in groups.values():
        group.sort(key=lambda event: ns(event["ts"]))  # keeps the order of the file where times are equal
        for number, event in enumerate(group):
            if event["ph"] != "be"[number % 2]:
                wrong.append("epoch %s out of turn" % event)
            if event["ph"] == "b":
                counts[event["name"].split(" epoch")[0]] += 1
                if "unfinished" in event["args"] and not crash:
                    wrong.append("epoch %s has no end" % event)
    total = collections.Counter()
    for (_, name), (number, _) in calls.items():
        total[name] += number
    for kinds, name in ((("exclusive lock", "shared lock"), "lock"), (("lock_all",), "lock_all"),
                        (("access",), "start"), (("exposure",), "post")):
        if sum(counts[kind] for kind in kinds) != total[name]:
            wrong.append("%s: %d epochs of %d calls" % (name, sum(counts[kind] for kind in kinds), total[name]))
    if total["fence"] and not 0 < counts["fence"] <= total["fence"]:
        wrong.append("%d fence epochs of %d fences" % (counts["fence"], total["fence"]))


def check(document, args, output, errors, wrong):
    facts = document["otherData"]
    events = document["traceEvents"]
    if facts["processes"] != args.ranks or facts["processes_found"] != args.ranks - args.gone:
        wrong.append("%s processes" % facts)
    if args.gone and errors.count("lacks 1 of %d processes: their files are gone" % args.ranks) != 1:
        wrong.append(errors)
    if {event["pid"] for event in events} != set(range(args.gone, args.ranks)):
        wrong.append("ranks %s" % {event["pid"] for event in events})
    tracks = check_slices(events, wrong)
    arrows = check_arrows(events, tracks, not args.crash, wrong)
    if arrows != facts["arrows"] or (arrows > 0) != args.arrows:
        wrong.append("%d arrows, %s" % (arrows, facts["arrows"]))
    if args.notified:
        check_notifications(events, args, wrong)
    calls = made(events)
    if not args.full:
        check_epochs(events, calls, args.crash, wrong)
        if facts["dropped"] != 0:
            wrong.append("%d dropped" % facts["dropped"])
    wanted = did(output)
    named = {window for window, _ in wanted}
    found = {key: counts for key, counts in calls.items() if key[0] in named}
    if found != dict(wanted):
        wrong.append("calls %s, not %s" % (sorted(found.items()), sorted(wanted.items())))
    if args.puts is not None:
        puts = collections.Counter(event["pid"] for event in events if event["ph"] == "X" and event["name"] == "MPI_Put")
        lacking = args.ranks * args.puts - sum(puts.values())
        if not args.full and (lacking != 0 or len(set(puts.values())) != 1):
            wrong.append("puts %s" % puts)
        if args.full and not (0 < lacking <= facts["dropped"] and "lacks %d records" % facts["dropped"] in errors):
            wrong.append("puts %s, dropped %s, stderr: %s" % (puts, facts["dropped"], errors))


def run(args, folder, wrong):
    name = os.path.join("none" if args.unwritable else "", "timeline.json")
    path = os.path.join(folder, name)
    command = [args.mpiexec]
    for setting in args.env + ["OSC_TRACE=" + name]:
        command += ["-genv"] + setting.split("=", 1)
    if args.apart:
        for rank in range(args.ranks):
            place = os.path.join(folder, str(rank))
            os.mkdir(place)
            command += [":"] * (rank > 0) + ["-n", "1", "-wdir", place] + args.program
    else:
        command += ["-n", str(args.ranks)] + args.program
    job = subprocess.run(["timeout", "-k", "5", "60"] + command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                         cwd=folder)
    output = job.stdout.decode(errors="replace")
    errors = job.stderr.decode(errors="replace")
    if args.apart:
        for rank in range(1, args.ranks):
            os.rmdir(os.path.join(folder, str(rank)))  # refused if a file is left
        folder = os.path.join(folder, "0")
        path = os.path.join(folder, "timeline.json")
    if args.unwritable:
        if job.returncode != 0 or "passed" not in output or errors.count("libosc:") != 1 or \
                "cannot record the timeline beside " + path not in errors:
            wrong.append("status %d: %s%s" % (job.returncode, output, errors))
        return
    if args.crash:
        if os.path.exists(path):
            wrong.append("the crashed job has written the timeline")
        merge = subprocess.run([args.info, "--merge", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if merge.returncode != 0:
            wrong.append("osc_info --merge: " + merge.stdout.decode(errors="replace"))
    elif job.returncode != 0 or sorted(os.listdir(folder)) != ["statistics.json"] * args.moves + ["timeline.json"]:
        wrong.append("status %d, files %s" % (job.returncode, os.listdir(folder)))
    if not os.path.exists(path):
        wrong.append(output + errors)
        return
    with open(path, encoding="utf-8") as file:
        check(json.load(file), args, output, errors, wrong)


def main():
    args = arguments()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        run(args, folder, wrong)
    print("\n".join(line[:2000] for line in wrong[:20]) if wrong else "passed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
