"""Ranks without libosc, or with settings that differ: the job ends, by the host, and one line says what differs.

usage: settings.py --mpiexec MPIEXEC --preload LIBRARIES PROGRAM"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("--mpiexec", required=True)
parser.add_argument("--preload", required=True)
parser.add_argument("program")
options = parser.parse_args()
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("OSC_")}
RUN = options.program
SERVED = "the host MPI serves this window, because the processes differ: "
wrong = []


def ranks(count, *words, libosc=True, **settings):
    """A part of mpiexec's command."""
    if libosc:
        settings["LD_PRELOAD"] = options.preload
    return ["-n", str(count), *(word for pair in settings.items() for word in ("-env", *pair)), *(words or (RUN,))]


def job(name, lines, *parts, ends=True, **settings):
    """Runs the job; each text is in as many lines of stderr as `lines` says. `ends`: with status 0;
    else it may stop when they are there."""
    words = [options.mpiexec]
    for key, value in {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1", **settings}.items():
        words += ["-genv", key, value]
    for part in parts:
        words += [*part, ":"]
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(words[:-1], env=ENVIRONMENT, stdout=output, stderr=subprocess.STDOUT)
        latest = time.monotonic() + 30
        running, found = True, {}
        while running and time.monotonic() < latest and (ends or found != lines):
            time.sleep(0.05)
            running = child.poll() is None
            said = os.pread(output.fileno(), 1 << 20, 0).decode(errors="replace")
            found = {text: sum(text in line for line in said.splitlines()) for text in lines}
        if running:
            child.terminate()
        ended = child.wait() == 0 and not running
    if not ends and not said:  # mpiexec loses the output of some jobs that abort
        return job(name, lines, *parts, ends=ends, **settings)
    if ended != ends or found != lines:
        wrong.append(f"{name}: ended {ended}, {found} instead of {lines}:\n{said}")


# Each window on the whole job is the host's; those on halves of it are libosc's where the halves agree.
job("one rank without", {SERVED + "ranks 0, 2-3: libosc": 1, "; rank 1: no libosc": 2, "rank 1: no libosc; ": 0},
    ranks(1), ranks(1, libosc=False), ranks(2))
job("rank 0 without", {SERVED + "rank 0: no libosc; ranks 1-2: libosc": 1}, ranks(1, libosc=False), ranks(2))
job("only one with it", {SERVED + "rank 0: no libosc; rank 1: libosc": 1, SERVED: 1}, ranks(1, libosc=False), ranks(1))
job("the halves agree", {SERVED: 1}, ranks(2), ranks(2, libosc=False))
job("disabled on one", {SERVED + "rank 0: libosc": 1, "rank 1: libosc 0.1.0 with OSC_DISABLE": 1}, ranks(1),
    ranks(1, OSC_DISABLE="yes"))
job("made-up nodes", {"rank 1: libosc 0.1.0 with OSC_DEBUG=fake_nodes=2": 1}, ranks(1), ranks(1, OSC_DEBUG="fake_nodes=2"))
job("statistics", {"rank 0: libosc 0.1.0 with OSC_STATS; rank 1: libosc 0.1.0": 2,
                   "OSC_STATS: no statistics, because": 1}, ranks(1, OSC_STATS="1"), ranks(1))
job("a timeline", {"OSC_TRACE: the processes differ: rank 0: libosc 0.1.0; rank 1: libosc 0.1.0 with OSC_TRACE": 1},
    ranks(1), ranks(1, OSC_TRACE="/dev/null"))
job("equal by other words", {SERVED: 0}, ranks(1, OSC_STATS="off", OSC_DISABLE="no"), ranks(1))
job("a shell around one", {SERVED: 0}, ranks(1, "sh", "-c", 'exec "$0"', RUN), ranks(1, "sh", "-c", '"$0"; exit', RUN))
job("an error instead", {"OSC_FALLBACK=error forbids": 1}, ranks(1, OSC_FALLBACK="error"), ranks(1, libosc=False), ends=False)

# Ranks that believe to be on several nodes: their first exchange finds settings that differ.
APART = ("sh", "-c", 'MPI_LOCALNRANKS=1 exec "$0"', RUN)
job("made-up nodes on one of two nodes", {"rank 1: libosc 0.1.0 with OSC_DEBUG=fake_nodes=2": 1}, ranks(1, *APART),
    ranks(1, *APART, OSC_DEBUG="fake_nodes=2"))
job("statistics on one of two nodes", {"no statistics, because the processes differ: rank 0: libosc 0.1.0; rank 1: libosc 0.1.0 with OSC_STATS": 1},
    ranks(1, *APART), ranks(1, *APART, OSC_STATS="1"))
job("a timeline on one of two nodes", {"OSC_TRACE: the processes differ: rank 0: libosc 0.1.0 with OSC_TRACE; rank 1": 1},
    ranks(1, *APART, OSC_TRACE="/dev/null"), ranks(1, *APART))
job("no libosc on one of two nodes", {"never comes": 1}, ranks(1, *APART), ranks(1, *APART, libosc=False), ends=False,
    OSC_HANG_REPORT="1")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
