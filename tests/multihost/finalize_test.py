#!/usr/bin/env python3
"""MPI_Finalize under libosc ends over three hosts, in a program without windows: finalize_test.py --program P
--preload LIBRARIES [--times N] [--argument ARGUMENT]. The plain host hangs in most runs."""

import argparse
import sys

import testbed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--preload", default="")
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--argument", action="append", default=[])
    options = parser.parse_args()
    settings = [("LD_PRELOAD", options.preload)] if options.preload else []
    command = testbed.mpi_command(3, [options.program, *options.argument], settings)
    ended = 0
    for _ in range(options.times):
        status, _ = testbed.run(3, command, 18)
        if status == testbed.SKIPPED:
            return status
        ended += status == 0
    print(f"{ended} of {options.times} runs ended well")
    return 0 if ended == options.times else 1


if __name__ == "__main__":
    sys.exit(main())
