"""osc_info prints version, options and counters, reads values in use from the environment, and refuses arguments it does not know.

usage: osc_info.py OSC_INFO VERSION"""
import os
import subprocess
import sys

INFO, VERSION = sys.argv[1:]
wrong = []


def run(*arguments, **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OSC_")}
    return subprocess.run([INFO, *arguments], env={**environment, **settings}, capture_output=True, text=True)


def check(what, holds):
    if not holds:
        wrong.append(what)


plain = run()
check("no arguments: exit 0", plain.returncode == 0)
check("no arguments: the version", plain.stdout.startswith(f"libosc {VERSION}\n"))
check("no arguments: defaults", "\n  OSC_FALLBACK=host " in plain.stdout and "\n* " not in plain.stdout)
check("no arguments: no keys", "spin=" not in plain.stdout)
changed = run(OSC_LOCK="deferred", OSC_STATS="on", OSC_FENCE="auto").stdout.splitlines()
check("the environment: changed options first", [line[:17] for line in changed[3:6]] == ["* OSC_STATS=1    ", "* OSC_LOCK=deferr", "  OSC_DISABLE=0  "])
check("--debug-options", run("--debug-options", OSC_DEBUG="cma=off").stdout.splitlines()[3:5]
      == ["* cma=off                access to memory that is not shared",
          "  spin=-1                polls before a waiting process yields its core"])
check("--version", run("--version").stdout == VERSION + "\n")
counters = run("--counters").stdout
check("--counters: a statistic", " windows.live " in counters)
check("--counters: the entry points", " MPI_Put\n" in counters and " MPI_Win_free\n" in counters)
check("--help on stdout", run("--help").stdout.startswith("usage:"))
for arguments in (["--nonsense"], ["--help", "--help"], [""]):
    refused = run(*arguments)
    check(f"{arguments}: exit 2, usage on stderr only",
          refused.returncode == 2 and "usage:" in refused.stderr and refused.stdout == "")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
