"""osc_info --check PROGRAM says whether libosc takes effect in a program, and why not.

usage: program.py --preload LIBOSC --folder FOLDER OSC_INFO"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--preload", required=True)
parser.add_argument("--folder", required=True)
parser.add_argument("info")
options = parser.parse_args()
LAUNCHERS = ("PMI", "MPI_LOCAL", "SLURM", "OMPI_")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("OSC_", "LD_", *LAUNCHERS))}
wrong = []


def run(program, settings):
    if "/" not in program and not settings.get("PATH"):
        program = os.path.join(options.folder, program)
    return subprocess.run([options.info, "--check", "--json", program], env={**ENVIRONMENT, **settings}, capture_output=True,
                          text=True, timeout=30)


def check(name, program, state, *words, **settings):
    """One finding of that state has all words; the exit status tells problems."""
    done = run(program, settings)
    try:
        found = [f for node in json.loads(done.stdout)["nodes"] for f in node["findings"]]
    except ValueError:
        found = []
    right = any(f["state"] == state and all(word in f["text"] + f["advice"] for word in words) for f in found)
    problems = any(f["state"] == "problem" for f in found)
    if not right or done.returncode != (1 if problems else 0) or "the program ran" in done.stdout:
        wrong.append(f"{name}: exit {done.returncode}: {done.stdout}{done.stderr}")


PRELOAD = options.preload
check("preloaded", "tools_calls_plain", "ok", PRELOAD, "comes before", "stub_mpi", LD_PRELOAD=PRELOAD)
check("linked", "tools_calls_linked", "ok", "comes before")
check("not there", "tools_calls_plain", "problem", "loads no libosc.so", "LD_PRELOAD")
check("a path that does not exist", "tools_calls_plain", "problem", "/nonsense/libosc.so", "cannot open",
      LD_PRELOAD="/nonsense/libosc.so")
check("one of two paths", "tools_calls_plain", "ok", "comes before", LD_PRELOAD=f"/nonsense/libx.so:{PRELOAD}")
check("one of two paths, the other", "tools_calls_plain", "problem", "/nonsense/libx.so", LD_PRELOAD=f"/nonsense/libx.so:{PRELOAD}")
check("the wrong order", "tools_calls_behind", "problem", "before", "-losc before")
check("the wrong order, preloaded", "tools_calls_behind", "ok", "comes before", LD_PRELOAD=PRELOAD)
check("static", "tools_calls_static", "problem", "linked statically", LD_PRELOAD=PRELOAD)
check("static MPI", "tools_calls_own", "problem", "contains the MPI library", LD_PRELOAD=PRELOAD)
if os.path.exists(os.path.join(os.path.dirname(PRELOAD), "libosc_ompi.so")):
    check("another MPI", "tools_calls_foreign", "ok", "libosc_ompi.so serves it", LD_PRELOAD=PRELOAD)
with tempfile.TemporaryDirectory() as folder:
    alone = shutil.copy(PRELOAD, folder)
    check("another MPI, libosc.so alone", "tools_calls_foreign", "problem", "there is no", "libosc_ompi.so", LD_PRELOAD=alone)
check("turned off", "tools_calls_plain", "problem", "OSC_DISABLE", LD_PRELOAD=PRELOAD, OSC_DISABLE="yes")
check("no file", "tools_calls_nonsense", "problem", "cannot be read")
check("by PATH", "tools_calls_plain", "ok", "comes before", LD_PRELOAD=PRELOAD, PATH=options.folder + ":/usr/bin:/bin")
with tempfile.TemporaryDirectory() as folder:
    script = os.path.join(folder, "script")
    with open(script, "w", encoding="utf-8") as file:
        file.write("#!/usr/bin/env sh\necho the program ran\n")
    os.chmod(script, 0o755)
    check("a script", script, "note", "no MPI library at its start", LD_PRELOAD=PRELOAD)
    check("a script without libosc", script, "problem", "loads no libosc.so")
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="utf-8") as file:
        file.write("nothing")
    check("no program", text, "problem", "no program")
# In a job the first process of each other node prints problems only.
second = {"PMI_RANK": "2", "MPI_LOCALRANKID": "0"}
check("another node", "tools_calls_plain", "problem", "/nonsense/libosc.so", LD_PRELOAD="/nonsense/libosc.so", **second)
for name, settings in (("another node without problems", {"LD_PRELOAD": PRELOAD}),
                       ("not the first of a node", {"MPI_LOCALRANKID": "1", "LD_PRELOAD": "/nonsense/libosc.so"})):
    done = run("tools_calls_plain", {**second, **settings})
    if done.returncode != 0 or done.stdout:
        wrong.append(f"{name}: exit {done.returncode}: {done.stdout}")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
