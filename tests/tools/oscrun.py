"""oscrun gives libosc's variables to the processes of a launcher, not to the launcher, and refuses where libosc has no effect.

usage: oscrun.py --folder FOLDER --mpiexec MPIEXEC --program MPI_PROGRAM OSCRUN
FOLDER has the programs of tests/tools that call a stand-in for an MPI library."""
import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--folder", required=True)
parser.add_argument("--mpiexec", required=True)
parser.add_argument("--program", required=True)
parser.add_argument("oscrun")
options = parser.parse_args()
LIBOSC = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(options.oscrun))), "libosc.so")
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("OSC_", "PMI", "MPI_LOCAL", "LD_PRELOAD", "SLURM"))}
PLAIN = os.path.join(options.folder, "tools_calls_plain")
EARLIER = "libm.so.6"  # a library that the user preloads
wrong = []


def run(arguments, **settings):
    return subprocess.run([options.oscrun, *arguments], env={**ENVIRONMENT, **settings}, capture_output=True, text=True,
                          timeout=60, check=False)


def expect(name, condition, done):
    if not condition:
        wrong.append(f"{name}: exit {done.returncode}: {done.stdout}{done.stderr}")


def prints(name, command, expected, **settings):
    """--print prints the words `expected`, in which @ stands for LD_PRELOAD's value."""
    done = run(["--print", *shlex.split(command)], **settings)
    words = [word.replace("@", LIBOSC) for word in shlex.split(expected)]
    expect(name, done.returncode == 0 and shlex.split(done.stdout) == words, done)


def refuses(name, command, *parts, status=1, **settings):
    done = run(shlex.split(command), **settings)
    lines = done.stderr.splitlines()
    right = len(lines) == 1 and lines[0].startswith("oscrun: ") and all(part in lines[0] for part in parts)
    expect(name, done.returncode == status and right and "the program ran" not in done.stdout, done)


with tempfile.TemporaryDirectory() as folder:
    # Launchers that print their arguments and their LD_PRELOAD.
    def launcher(name, says):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\n[ "$1" = --version ] && echo "{says}" && exit\n'
                       'echo "[${LD_PRELOAD:-}] [${OSC_VERBOSE:-}] $*"\nexit 7\n')
        os.chmod(path, 0o755)

    launcher("mpiexec", "HYDRA build details:")
    launcher("mpirun", "mpirun (Open MPI) 5.0.11")
    launcher("mpiexec.other", "a launcher")
    launcher("srun", "slurm 22")
    launcher("node", "")
    PATH = f"{folder}:{options.folder}:/usr/bin:/bin"

    def in_folder(name, command, expected, **settings):
        prints(name, command, expected, PATH=PATH, **settings)

    in_folder("Hydra", "-v mpiexec -n 2 tools_calls_plain -x", "mpiexec -genv LD_PRELOAD @ -genv OSC_VERBOSE 1 -n 2 tools_calls_plain -x")
    in_folder("Hydra, options that name programs", "mpiexec -host node -genv A node -launcher sh -zz 3 -n 2 tools_calls_plain : -n 1 tools_calls_linked",
              "mpiexec -genv LD_PRELOAD @ -host node -genv A node -launcher sh -zz 3 -n 2 tools_calls_plain : -n 1 tools_calls_linked")
    in_folder("Open MPI", "--stats=a,b --trace 'x y' mpirun --mca btl node -n 2 tools_calls_plain : -n 1 tools_calls_linked",
              "mpirun -x LD_PRELOAD=@ -x OSC_STATS=a,b -x 'OSC_TRACE=x y' --mca btl node -n 2 tools_calls_plain : "
              "-x LD_PRELOAD=@ -x OSC_STATS=a,b -x 'OSC_TRACE=x y' -n 1 tools_calls_linked")
    in_folder("Slurm", "--check=2 srun -n4 -J node tools_calls_plain", "env OSC_CHECK=2 srun --export=ALL,LD_PRELOAD=@,OSC_CHECK -n4 -J node tools_calls_plain")
    in_folder("Slurm with a list", "-v srun --export=A,B -n 4 tools_calls_plain",
              "env OSC_VERBOSE=1 srun --export=A,B,LD_PRELOAD=@,OSC_VERBOSE -n 4 tools_calls_plain")
    in_folder("Slurm with a list of its own word", "srun --export NONE -n 4 tools_calls_plain", "srun --export LD_PRELOAD=@ -n 4 tools_calls_plain")
    in_folder("Slurm with a list of the environment", "srun -n 4 tools_calls_plain", "srun --export=A,LD_PRELOAD=@ -n 4 tools_calls_plain",
              SLURM_EXPORT_ENV="A")
    in_folder("a launcher behind another command", "timeout 9 mpiexec -n 2 tools_calls_plain", "timeout 9 mpiexec -genv LD_PRELOAD @ -n 2 tools_calls_plain")
    in_folder("a program", "--off tools_calls_plain", "env LD_PRELOAD=@ OSC_DISABLE=1 tools_calls_plain")
    in_folder("variables of the environment", "mpiexec tools_calls_plain", "mpiexec -genv LD_PRELOAD " + EARLIER + ":@ -genv OSC_DEBUG spin=0,cma=off tools_calls_plain",
              OSC_DEBUG="spin=0,cma=off", LD_PRELOAD=EARLIER)
    in_folder("libosc is preloaded already", "mpiexec tools_calls_plain", "mpiexec -genv LD_PRELOAD @ tools_calls_plain", LD_PRELOAD=LIBOSC)
    in_folder("the shared heap", "mpiexec tools_calls_plain", "mpiexec -genv LD_PRELOAD @:" + LIBOSC.replace("osc.so", "osc_heap.so") +
              " -genv OSC_SHARE_HEAP 64 tools_calls_plain", OSC_SHARE_HEAP="64")
    in_folder("a program of another host", "mpiexec -n 2 ./nowhere 3", "mpiexec -genv LD_PRELOAD @ -n 2 ./nowhere 3")
    in_folder("a script", f"mpiexec -n 2 {folder}/node", f"mpiexec -genv LD_PRELOAD @ -n 2 {folder}/node")

    done = run(["-v", "mpirun", PLAIN], PATH=PATH)
    expect("the launcher itself", done.returncode == 7 and done.stdout.startswith("[] [] -x LD_PRELOAD="), done)
    done = run(["-v", "srun", PLAIN], PATH=PATH)
    expect("srun itself", done.returncode == 7 and done.stdout.startswith("[] [1] --export="), done)

    refuses("a static program", "mpiexec -n 2 tools_calls_static", "linked statically", PATH=PATH)
    refuses("the second program", "mpirun -n 2 tools_calls_plain : tools_calls_own", "contains the MPI library", PATH=PATH)
    refuses("the second program, Hydra", "mpiexec -n 2 tools_calls_plain : tools_calls_own", "contains the MPI library", PATH=PATH)
    refuses("no MPI in the program", "mpiexec tools_without_mpi", "uses no MPI library", PATH=PATH)
    refuses("a program alone", "tools_calls_static", "linked statically", PATH=PATH)
    refuses("a set LD_PRELOAD", "mpiexec -genv LD_PRELOAD x tools_calls_plain", "set LD_PRELOAD", PATH=PATH)
    refuses("another launcher", "mpiexec.other -n 2 tools_calls_plain", "does not know", "oscrun PROGRAM", PATH=PATH)
    refuses("no launcher", "mpiexec.nothing -n 2 tools_calls_plain", "mpiexec.nothing", status=127, PATH=PATH)
    refuses("no command", "./nothing", "./nothing", status=127)

    foreign = shutil.copy(PLAIN, os.path.join(folder, "foreign"))
    with open(foreign, "r+b") as file:
        file.seek(18)  # e_machine
        file.write(b"\x16\x00")
    refuses("another architecture", f"mpiexec {foreign}", "no program of this machine", PATH=PATH)
    if os.geteuid() == 0:
        mighty = shutil.copy(PLAIN, os.path.join(folder, "mighty"))
        os.chown(mighty, 65534, 65534)
        os.chmod(mighty, 0o4755)
        refuses("a set-uid program", f"mpiexec {mighty}", "gains rights", PATH=PATH)

    for arguments in ([], ["--nonsense", "x"], ["--trace"], ["-v"]):
        done = run(arguments)
        expect(f"wrong arguments {arguments}", done.returncode == 2 and "usage: oscrun" in done.stderr, done)

    stats = os.path.join(folder, "stats.json")
    done = run(["-v", f"--stats={stats}", *options.mpiexec.split(";"), "-n", "2", options.program])
    expect("a job", done.returncode == 0 and done.stderr.count("libosc: rank 0: libosc ") == 1 and os.path.exists(stats), done)
    done = run(["-v", "--off", *options.mpiexec.split(";"), "-n", "2", options.program])
    expect("a job without libosc", done.returncode == 0 and "libosc:" not in done.stderr, done)
    done = run(["-v", options.program])
    expect("a process", done.returncode == 0 and "libosc: rank 0: libosc " in done.stderr, done)
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
