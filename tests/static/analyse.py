#!/usr/bin/env python3
"""Static analysis of src: a finding is a failure.

  analyse.py cppcheck PROGRAM BUILD            all sources; BUILD keeps what cppcheck finds out of files that stay as they are
  analyse.py tidy PROGRAM BUILD CLANG [--record] [FILE...]   clang-tidy by the checks of .clang-tidy

clang-tidy takes long. verified.txt has the hash of each file, with .clang-tidy, that clang-tidy has found clean. Without files or
OSC_TEST_FULL=1, tidy takes the files that have no hash or another one, and of a header a source that includes it; it begins none after
a minute, and names the files left with the exit status 77. --record takes its time, and writes the hashes of what is clean.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(HERE, "verified.txt")
SECONDS = 60
SKIPPED = 77
# Macros of libraries that cppcheck does not see.
MACROS = ("NLOHMANN_JSON_SERIALIZE_ENUM(...)=", "NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(...)=")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def cppcheck(program, build):
    os.makedirs(build, exist_ok=True)
    command = [program, "--enable=warning,performance,portability", "--inline-suppr", "--std=c++20", "--language=c++", "-j", "2", "-Isrc",
               "-Iinclude", *("-D" + macro for macro in MACROS), "--suppressions-list=" + os.path.join(HERE, "cppcheck.txt"),
               "--cppcheck-build-dir=" + build, "--quiet", "--error-exitcode=1", "--template={file}:{line}: {severity}: {message} [{id}]", "src"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def commands(build, clang):
    """The compile command of each source, by clang, one a source."""
    subprocess.run(["cmake", "--preset", "release", "-B", build, "-DOSC_UNITY=OFF", "-DOSC_LTO=OFF", "-DOSC_BUILD_TESTS=OFF",
                    "-DOSC_BUILD_BENCHMARKS=OFF"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, CC=clang.replace("clang++", "clang"), CXX=clang))
    found = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            found.setdefault(os.path.relpath(entry["file"], ROOT), entry)
    folder = os.path.join(build, "once")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as file:
        json.dump(list(found.values()), file)
    return folder, found


def source_of(header, texts):
    """A source that includes the header, by other headers perhaps: its own source first."""
    seen, near = {header}, [header]
    while near:
        own = [os.path.splitext(name)[0] + ".cpp" for name in near]
        users = [name for name in texts if name not in seen
                 and any('#include "%s"' % included[len("src/"):] in texts[name] for included in near)]
        for name in own + users:
            if name in texts and name.endswith(".cpp"):
                return name
        seen.update(users)
        near = users
    return None


def tidy(program, build, clang, record, wanted):
    texts = {}
    for folder, _, names in os.walk(os.path.join(ROOT, "src")):
        for name in names:
            if name.endswith((".cpp", ".h")):
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                texts[path] = read(path)
    checks = read(".clang-tidy")
    hashes = {path: hashlib.sha256((checks + text).encode()).hexdigest() for path, text in texts.items()}
    verified = {}
    if os.path.exists(TABLE):
        verified = dict(line.split() for line in read(os.path.relpath(TABLE, ROOT)).splitlines())
    everything = bool(os.environ.get("OSC_TEST_FULL"))
    sources = {path: path if path.endswith(".cpp") else source_of(path, texts) for path in texts}
    due = wanted or sorted(path for path in texts if sources[path] and (everything or verified.get(path) != hashes[path]))
    if not due:
        print("clang-tidy has found all files of src clean")
        return 0
    folder, known = commands(build, clang)
    stands_for = {}  # source: the files that its run analyses
    for path in due:
        if sources[path] in known:
            stands_for.setdefault(sources[path], []).append(path)
        else:
            print(f"{path}: not compiled here")
    end = time.monotonic() + SECONDS

    def run(source):
        if not (everything or wanted or record) and time.monotonic() > end:
            return source, None
        return source, subprocess.run([program, "-p", folder, "--quiet", source], cwd=ROOT, check=False, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)

    left, failed = [], False
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for source, done in pool.map(run, sorted(stands_for)):
            if done is None:
                left += stands_for[source]
            elif done.returncode != 0:
                failed = True
                print(f"{source}: clang-tidy ended with {done.returncode}\n{done.stdout}", flush=True)
            else:
                verified.update((path, hashes[path]) for path in stands_for[source])
    if record:
        with open(TABLE, "w", encoding="utf-8") as file:
            file.writelines(f"{path} {value}\n" for path, value in sorted(verified.items()) if path in texts)
    print(f"{len(due) - len(left)} of {len(due)} files analysed, by {len(stands_for)} sources")
    if left:
        print(f"SKIPPED: no time for {' '.join(left)}; `{re.sub('^.*/tests/', 'tests/', __file__)} tidy ... --record` analyses and notes them")
    return 1 if failed else SKIPPED if left else 0


def main():
    tool, program, build, *rest = sys.argv[1:]
    if tool == "cppcheck":
        return cppcheck(program, build)
    return tidy(program, build, rest[0], "--record" in rest, [path for path in rest[1:] if path != "--record"])


if __name__ == "__main__":
    sys.exit(main())
