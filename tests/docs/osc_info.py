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
check("no arguments: defaults", "\nOSC_SPIN=-1\n" in plain.stdout)
check("the environment: value in use", "\nOSC_SPIN=7  (set)\n" in run(OSC_SPIN="7").stdout)
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
