#!/usr/bin/env python3
"""Runs killed.cpp for one kind of epoch: each role dies once, the worlds and the turns of the roles going round so that
all kinds together pair every role with every world. With OSC_TEST_FULL=1 each role dies in each world, and all kinds
together turn each such pair in every way.

  killed.py --kind fence [--mpiexec M] [--env K=V]... [--only ROLE.WORLD.SHIFT]... [--repeat N] [--seconds S]
            [--xpmem LIBRARY] -- program

Each case ends within S seconds. With --repeat each case runs N times, and the last lines say how often each of them failed.
"""

import argparse
import os
import sys

import run_fault

ROLES = ["origin", "target", "third"]
KINDS = ["fence", "pscw", "exclusive", "shared", "lock_all", "request", "create", "free"]
# How the processes reach each other, and the arguments of the program for it. Only the machine of tests/rdma has verbs.
# xpmem needs --xpmem: the stand-in of tests/support, or "module" where the kernel has it.
WORLDS = {
    "node": ([], []),
    "tcp": (["OSC_DEBUG=fake_nodes=2", "OSC_OFI_PROVIDER=tcp;ofi_rxm"], []),
    "net": (["OSC_DEBUG=fake_nodes=2", "OSC_OFI_PROVIDER=net"], []),
    "verbs": (["OSC_DEBUG=fake_nodes=2", "OSC_OFI_PROVIDER=verbs;ofi_rxm"], []),
    "two_level": (["OSC_DEBUG=fake_nodes=4,lock_scheme=two_level", "OSC_OFI_PROVIDER=tcp;ofi_rxm"], []),
    "cma": ([], ["private"]),
    "agent": (["OSC_DEBUG=cma=off"], ["private"]),
    "xpmem": ([], ["private"]),
}


def selection(kind):
    """(role, world, shift) of the short run."""
    number = KINDS.index(kind)
    worlds = ["node", "tcp", "net"]
    chosen = [(role, worlds[(number + place) % 3], (number + 2 * place) % 4) for place, role in enumerate(ROLES)]
    more = {"fence": "net", "shared": "cma", "lock_all": "agent", "request": "agent"}
    if kind in more:
        chosen.append(("target", more[kind], number % 4))
    # Rank 0, which all need for their locks, and another one.
    locks = {"exclusive": [("origin", 1), ("target", 2)], "shared": [("origin", 3)], "lock_all": [("origin", 2), ("third", 3)]}
    chosen += [(role, "two_level", shift) for role, shift in locks.get(kind, [])]
    return chosen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", required=True, choices=KINDS)
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--xpmem", default="")
    parser.add_argument("program")
    options = parser.parse_args()

    cases = selection(options.kind)
    if options.xpmem:
        cases.append(("target", "xpmem", KINDS.index(options.kind) % 4))
    if os.environ.get("OSC_TEST_FULL"):
        worlds = [world for world in WORLDS if world != "verbs" and (world != "xpmem" or options.xpmem)]
        shift = KINDS.index(options.kind) % 4
        cases = [(role, world, (shift + place) % 4) for place, role in enumerate(ROLES) for world in worlds]
    if options.only:
        cases = [(role, world, int(shift)) for role, world, shift in (case.split(".") for case in options.only)]
    failed = {}
    for role, world, shift in cases * options.repeat:
        print(f"== {options.kind}: the {role} dies, {world}, turned by {shift}", flush=True)
        settings, arguments = WORLDS[world]
        program = [options.program, options.kind, role, str(shift)] + arguments
        if world == "xpmem" and options.xpmem != "module":
            # Not below the shells around the program, which fork: the stand-in's heap is for one process.
            preload = [setting for setting in options.env if setting.startswith("LD_PRELOAD=")]
            program = ["env", f"{preload[0]}:{options.xpmem}"] + program
        if not run_fault.run_job(options.mpiexec, 4, 1, options.seconds, options.env + settings, program).good:
            case = f"{role}.{world}.{shift}"
            failed[case] = failed.get(case, 0) + 1
    print(f"{len(cases)} cases, {options.repeat} times each, failures by case: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
