#!/usr/bin/env python3
"""Runs an MPI program with its ranks spread over several hosts (hosts.sh); prints why and ends with 77 where there can be
none.

  run_program.py --hosts N --ranks N [--per-host N] [--link bridge|tap] [--provider tcp|net] [--seconds S] [--env K=V]...
                 [--expect REGEX]... -- program [argument]...

Ranks go to the hosts in turn, or in blocks of --per-host. Each --expect must match a line of the output.
"""

import argparse
import re
import sys

import testbed

# The names that libosc takes, and those that libfabric 1 and 2 know (2 has net under the name tcp).
PROVIDERS = {"tcp": ("tcp;ofi_rxm", "tcp"), "net": ("net", "net,tcp")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--per-host", type=int)
    parser.add_argument("--link", choices=["bridge", "tap"], default="bridge")
    parser.add_argument("--provider", choices=PROVIDERS)
    parser.add_argument("--seconds", type=int, default=50)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--expect", action="append", default=[])
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    settings = [tuple(setting.split("=", 1)) for setting in options.env]
    if options.provider:
        # libosc asks for it by name, and libfabric has no other.
        name, known = PROVIDERS[options.provider]
        settings += [("OSC_OFI_PROVIDER", name), ("FI_PROVIDER", known)]
    command = testbed.mpi_command(options.ranks, options.program, settings, options.per_host)
    status, output = testbed.run(options.hosts, command, options.seconds, link=options.link)
    if status == 0 and (missing := [expected for expected in options.expect if not re.search(expected, output)]):
        print("FAILED: no line matches", *missing, sep="\n  ")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
