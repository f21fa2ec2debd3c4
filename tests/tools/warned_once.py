"""A job prints each of libosc's warnings once, whatever the number of ranks and of windows.

usage: warned_once.py --mpiexec MPIEXEC --preload LIBRARIES PROGRAM"""
import argparse
import os
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--mpiexec", required=True)
parser.add_argument("--preload", required=True)
parser.add_argument("program")
options = parser.parse_args()
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("OSC_", "PMI", "MPI_LOCAL"))}
UNKNOWN = "libosc: unknown option OSC_FENSE; did you mean OSC_FENCE?"
wrong = []


def genv(**settings):
    return [word for item in settings.items() for word in ("-genv", *item)]


def expect(name, lines, command):
    """The command succeeds, and for each text of `lines` prints so many lines with it."""
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    printed = done.stderr.splitlines()
    found = {text: sum(text in line for line in printed) for text in lines}
    if done.returncode != 0 or found != lines:
        wrong.append(f"{name}: exit {done.returncode}, {found} instead of {lines}:\n{done.stdout}{done.stderr}")


def job(*words, **settings):
    return [options.mpiexec, *genv(LD_PRELOAD=options.preload, MPIR_CVAR_POLLS_BEFORE_YIELD="1", **settings), *words]


RUN = options.program
SHELL = ["sh", "-c", 'exec "$0"', RUN]
expect("a shell around each rank",
       {UNKNOWN: 1, "libosc: unknown option OSC_QQQQQQ; osc_info lists the options": 1,
        "libosc: OSC_DEBUG: spin=many is not an integer": 1},
       job("-n", "2", RUN, ":", "-n", "2", *SHELL, OSC_FENSE="deferred", OSC_QQQQQQ="1", OSC_DEBUG="spin=many"))
expect("only ranks 1 and 2 have it", {UNKNOWN: 1}, job("-n", "1", RUN, ":", "-n", "2", "-env", "OSC_FENSE", "deferred", RUN))
# Ranks that believe to be on several nodes, each with one of them.
SEVERAL = ["sh", "-c", 'MPI_LOCALNRANKS=1 exec "$0"', RUN]
expect("several nodes", {UNKNOWN: 1}, job("-n", "3", *SEVERAL, OSC_FENSE="deferred"))
expect("several nodes, the first rank lacks it", {UNKNOWN: 0},
       job("-n", "1", *SEVERAL, ":", "-n", "1", "-env", "OSC_FENSE", "deferred", *SEVERAL))
# Six windows on three communicators.
expect("windows of the host",
       {"libosc: rank 0: MPI_Win_allocate: the host MPI serves this window, because the network cannot be used": 1},
       job("-n", "4", RUN, OSC_DEBUG="fake_nodes=2", OSC_OFI_PROVIDER="nonsense"))
expect("no shared heap", {"libosc: OSC_SHARE_HEAP=64: libosc_heap.so is not loaded": 1}, job("-n", "2", RUN, OSC_SHARE_HEAP="64"))
expect("no launcher", {UNKNOWN: 1}, ["env", f"LD_PRELOAD={options.preload}", "OSC_FENSE=deferred", RUN])
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
