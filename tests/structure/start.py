"""What the preloaded library costs a program without windows: start.py LIBRARY PROGRAM VALGRIND
Memory of the program with the library less that without it, in kB: `private` is the process's own (written), `resident` also has
the pages of files, which processes of a node share. Instructions of the loader and of libosc until main() ends. Time is printed
and fails nothing."""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

PRIVATE = 300  # kB
# kB of each library's file. The kernel maps 64 KiB around a page, and more where its cache has larger pieces of the file.
RESIDENT = {"libosc.so": 1000, "libosc_ompi.so": 1000}
INSTRUCTIONS = 6_000_000
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("OSC_", "LD_PRELOAD"))}
library, program, valgrind = sys.argv[1:]
wrong = []


def run(*command, preload=True):
    return subprocess.run(command, env={**ENVIRONMENT, **({"LD_PRELOAD": library} if preload else {})}, capture_output=True,
                          check=True, text=True, timeout=100)


def memory(preload):
    """The pages that the process has written; the resident kB and the files of libosc."""
    private, libosc, file = 0, {}, ""
    for line in run(program, "starts", preload=preload).stdout.splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            words = line.split(maxsplit=5)
            file, shared = os.path.basename(words[5]) if len(words) == 6 else "", words[1].endswith("s")
        elif line.startswith("Rss:") and file.startswith("libosc"):
            name = re.sub(r"\.so.*", ".so", file)
            libosc[name] = libosc.get(name, 0) + int(line.split()[1])
        # Pages of a file that has just been built count as dirty until the system has written them.
        elif line.startswith("Anonymous:") and not shared:
            private += int(line.split()[1])
    return private, libosc


def instructions(preload):
    with tempfile.TemporaryDirectory() as folder:
        said = run(valgrind, "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, preload=preload).stderr
    return int(re.search(r"Collected : (\d+)", said)[1])


def seconds(preload):
    began = time.perf_counter()
    run(program, preload=preload)
    return time.perf_counter() - began


def check(what, value, bound):
    print(f"{what}: {value} (at most {bound})")
    if value > bound:
        wrong.append(what)


alone, _ = memory(False)
private, libosc = memory(True)
check("private kB", private - alone, PRIVATE)
if "libosc.so" not in libosc or not set(libosc) <= set(RESIDENT):
    wrong.append(f"the program maps {', '.join(libosc) or 'nothing'} of libosc")
for name, resident in libosc.items():
    check(f"resident kB of {name}", resident, RESIDENT.get(name, 0))
check("instructions", instructions(True) - instructions(False), INSTRUCTIONS)
differences = [seconds(True) - seconds(False) for _ in range(15)]
print(f"time: {statistics.median(differences) * 1e3:.2f} ms")
for line in wrong:
    print("too much:", line)
sys.exit(1 if wrong else 0)
