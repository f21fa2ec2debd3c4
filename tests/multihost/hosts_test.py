#!/usr/bin/env python3
"""Tests the hosts themselves: hosts_test.py bridge|tap --across PROGRAM --preload LIBRARIES. The
environment's FORWARDER is the one for tap."""

import argparse
import os
import pathlib
import signal
import sys
import time

import testbed

failures = []


def check(good, what):
    print(f"{'ok      ' if good else 'FAILED  '}{what}", flush=True)
    if not good:
        failures.append(what)


def across(options, hosts, ranks, *cases, network=(), expect=(), seconds=20):
    """Cases of across.cpp."""
    settings = [("LD_PRELOAD", options.preload), ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1"), ("MULTIHOST_HOSTS", str(hosts)),
                *expect]
    command = testbed.mpi_command(ranks, [options.across, *cases], settings)
    status, _ = testbed.run(hosts, command, seconds, link=options.link, settings=network)
    check(status == 0, f"{' '.join(cases)}: {hosts} hosts, {ranks} ranks, {options.link}, {dict(network)}")


def nothing_is_shared(link):
    """Names, processes and shared memory of two hosts are apart; exit statuses come back."""
    inside = r"""
        [ "$(hostname) $($ON h0 hostname) $($ON h1 hostname)" = "h0 h0 h1" ] || exit 10
        $ON h0 'echo here >/dev/shm/name' && $ON h1 '[ ! -e /dev/shm/name ]' && $ON h0 'cat /dev/shm/name' || exit 11
        $ON h1 'sleep 77 & echo $! >/dev/shm/pid; grep -q sleep /proc/$(cat /dev/shm/pid)/cmdline' || exit 12
        $ON h0 '! cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -q "sleep 7[7]"' || exit 13
        $ON h1 'exit 5'
        [ $? = 5 ] || exit 14
        set -- $HOST_PIDS
        kill -9 $2
        for i in 1 2 3 4 5 6 7 8 9; do
            timeout 5 $ON h1 true 2>/dev/null || exit 42
            sleep 0.2
        done
        exit 15"""
    status, _ = testbed.run(2, ["sh", "-c", inside], 20, link=link)
    check(status == 42, f"hosts share nothing, and one can be taken away: exit status {status}")


def spaces(paths):
    """The namespaces behind paths; without processes that end meanwhile."""
    found = set()
    for path in paths:
        try:
            found.add(os.stat(path).st_ino)
        except OSError:
            pass
    return found


def nothing_stays_after(number, link):
    """A signal to hosts.sh ends all that was started on the hosts."""
    job = testbed.Job(2, ["sh", "-c", "$ON h1 'sleep 500' & setsid sleep 501 & $ON h0 'setsid sleep 502 & sleep 503'"],
                      link=link)
    wanted = {f"sleep\0{n}\0".encode() for n in (500, 501, 502, 503)}
    running = set()
    end = time.monotonic() + 15
    while not wanted <= running and time.monotonic() < end:
        time.sleep(0.05)
        running = set()
        for pid in job.processes():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    running.add(file.read())
            except OSError:
                pass
    check(wanted <= running, "programs run on both hosts")
    made = spaces(f"/proc/{pid}/ns/net" for pid in job.processes()) - spaces(["/proc/self/ns/net"])
    named = made & spaces(pathlib.Path("/run").glob("netns/*"))
    check(len(made) == 3 and not named, f"the hosts and what is between them have networks without names: {named}")
    job.stop(number)
    left = job.left_behind()
    check(not left, f"signal {int(number)} to hosts.sh leaves nothing: {left}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("link", choices=["bridge", "tap"])
    parser.add_argument("--across", required=True)
    parser.add_argument("--preload", required=True)
    options = parser.parse_args()
    link = options.link

    status, _ = testbed.run(2, ["true"], 20, link=link)
    if status == testbed.SKIPPED:
        return status
    check(status == 0, "hosts start and end")
    nothing_is_shared(link)
    for number in (signal.SIGTERM, signal.SIGKILL):
        nothing_stays_after(number, link)
    for hosts, ranks in ((2, 2), (2, 4), (3, 3)):
        across(options, hosts, ranks, "hosts_have_names", "messages_arrive_whole")
    if link == "tap":
        # Each way takes the delay.
        across(options, 2, 2, "a_round_trip_takes_its_time", network=[("DELAY_US", "20000")],
               expect=[("MULTIHOST_ROUND_TRIP_US", "40000")])
        across(options, 2, 2, "messages_arrive_whole", "frames_were_dropped",
               network=[("DROP_PERCENT", "5"), ("SEED", "7")], seconds=50)
        for hosts in (2, 3):
            across(options, hosts, hosts, "a_cut_stops_all_until_it_is_healed", seconds=40)
    print(f"{'FAILED' if failures else 'PASSED'}: {failures}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
