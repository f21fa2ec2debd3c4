"""Runs the differential test against the library with faults built in, one fault at a time: each must be found, and
without a fault nothing may be. Found is a mismatch that the test prints, an error of an MPI call, a crash, or its own
watchdog's line; a launch that this driver has to stop counts as missed."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support/faults"))
import fault_table

RANKS = 3
SHORT_STEP = 3  # without OSC_TEST_FULL=1 every third fault of the table is tried
WATCHDOG = 8  # seconds without progress
LIMIT = 40  # seconds per fault
THREADS = ("lock_blocks_process",)  # faults that need several threads


def launch(options, fault, programs):
    command = [options.mpiexec, "-n", str(RANKS), "-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1",
               "-genv", "OSC_FALLBACK", "error", "-genv", "LD_PRELOAD", options.library,
               "-genv", "OSC_TEST_FAULT", fault, options.program, "--programs", str(programs),
               "--watchdog", str(WATCHDOG)] + (["--threads"] if fault in THREADS else [])
    environment = {k: v for k, v in os.environ.items() if k != "OSC_TEST_FULL"}
    begin = time.monotonic()
    try:
        run = subprocess.run(["timeout", "-k", "2", str(LIMIT)] + command, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, env=environment, text=True, errors="replace")
    except OSError as error:
        sys.exit(f"faults: cannot launch: {error}")
    return run.returncode, run.stdout, time.monotonic() - begin


def verdict(code, output):
    """How the fault showed, or None."""
    mismatch = re.search(r"^differential: seed .*rank \d+: (.*)$", output, re.MULTILINE)
    if mismatch and "no progress" in mismatch[1]:
        return "hang: " + mismatch[0][14:100]
    if mismatch:
        return mismatch[0][14:150]
    if code in (0, 124, 137):
        return None
    crash = re.search(r"EXIT CODE: (\d+)|exit(?:ed)? (?:code|status) (\d+)", output)
    return "crash: " + (crash[0] if crash else f"exit {code}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("mpiexec", "library", "program"):
        parser.add_argument("--" + name, required=True)
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
        code, output, seconds = launch(options, "", 25)
        print(f"no fault: exit {code}, {seconds:.1f} s", flush=True)
        if code != 0:
            print(output)
            missed.append("(found something without a fault)")
    for fault in faults:
        for _ in range(3 if fault in THREADS else 1):  # threads meet there or not
            code, output, seconds = launch(options, fault, 60)
            how = verdict(code, output)
            if how is not None:
                break
        print(f"{fault:24} {seconds:5.1f} s  {how or 'MISSED'}", flush=True)
        if how is None:
            missed.append(fault)
    print(f"faults: {len(faults)} tried, {len(missed)} not as they should be, {time.monotonic() - begin:.0f} s")
    if missed:
        print("faults: " + ", ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
