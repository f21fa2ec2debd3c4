"""Every source of the library compiles with clang too, without a warning. Clang reads the sources as the build groups them.

usage: check_clang.py CLANG COMPILE_COMMANDS SOURCES"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

# Words of GCC's command that decide what the source means; the others concern code, or GCC only.
KEPT = ("-I", "-D", "-std=", "-m")
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wpointer-arith", "-Wcast-qual", "-Wundef", "-Wnon-virtual-dtor",
            "-Woverloaded-virtual", "-Wextra-semi", "-Werror"]


def command_of(entry, clang):
    words = shlex.split(entry["command"])
    command = [clang, "-c", "-O0", "-o", os.devnull, "-fPIC", *WARNINGS]
    for at, word in enumerate(words):
        if word == "-isystem":
            command += words[at:at + 2]
        elif word.startswith(KEPT):
            command.append(word)
    return [*command, entry["file"]]


def main():
    clang, commands, sources = sys.argv[1:]
    with open(commands, encoding="utf-8") as file:
        entries = json.load(file)
    objects = os.path.join(os.path.dirname(commands), "src", "")
    ours = [e for e in entries if e["file"].endswith((".cpp", ".cxx")) and e["file"].startswith((sources, objects))]

    def check(entry):
        return subprocess.run(command_of(entry, clang), cwd=entry["directory"], capture_output=True, text=True, check=False)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failed = [done.stderr for done in pool.map(check, ours) if done.returncode != 0]
    print("\n".join(failed))
    print(f"{len(ours)} sources, {len(failed)} wrong to clang")
    return 1 if failed or not ours else 0


sys.exit(main())
