"""Runs the differential test against the library with faults built in, one fault at a time: each must be found, and
without a fault nothing may be. Found is a mismatch that the test prints, an error of an MPI call, a crash, or its own
watchdog's line; a launch that campaign.py has to stop counts as missed."""
import argparse
import os
import pathlib
import sys
import time

import campaign

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support/faults"))
import fault_table

SHORT_STEP = 3  # without OSC_TEST_FULL=1 every third fault of the table is tried
THREADS = ("lock_blocks_process",)  # faults that need several threads


def launch(options, fault, programs):
    arguments = ["--programs", str(programs), "--watchdog", str(campaign.FAULT_WATCHDOG)]
    world = campaign.plain(fault)._replace(threads=fault in THREADS)
    return campaign.launch(options.host, options.library, world, arguments, campaign.FAULT_LIMIT)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", type=campaign.host_of, required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--only", help="one fault")
    options = parser.parse_args()
    faults = [fault.name for fault in fault_table.FAULTS]
    if not options.only and not os.environ.get("OSC_TEST_FULL"):
        faults = faults[::SHORT_STEP]
    if options.only:
        faults = [fault for fault in faults if fault == options.only]
    begin = time.monotonic()
    missed = []
    if not options.only:
        outcome = launch(options, "", 25)
        print(f"no fault: {outcome.how or 'agrees'}, {outcome.seconds:.1f} s", flush=True)
        if outcome.kind:
            print(outcome.output)
            missed.append("(found something without a fault)")
    for fault in faults:
        for _ in range(3 if fault in THREADS else 1):  # threads meet there or not
            outcome = launch(options, fault, 60)
            found = outcome.kind not in ("", "stopped")
            if found:
                break
        print(f"{fault:24} {outcome.seconds:5.1f} s  {outcome.how[:136] if found else 'MISSED'}", flush=True)
        if not found:
            missed.append(fault)
    print(f"faults: {len(faults)} tried, {len(missed)} not as they should be, {time.monotonic() - begin:.0f} s")
    if missed:
        print("faults: " + ", ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
