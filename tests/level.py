"""Chooses tests of a configured build, and the targets that build what they need. tests/run.sh is its user.

usage: level.py BUILD [AREA...]

Without an AREA: the tests with the label short (tests/cmake/Level.cmake). With areas: of these and of the unit tests those with
that label, or from that folder of tests/. Prints the targets in one line and a regular expression for ctest -R in the next.
"""
import json
import os
import re
import subprocess
import sys

LEVELS = {"short", "gate", "full"}


def configured(build):
    """The tests: a list of (name, labels, folder, command)."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    tests = []
    for test in json.loads(shown.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        folder = os.path.relpath(properties["WORKING_DIRECTORY"], os.path.join(os.path.realpath(build), "tests"))
        tests.append((test["name"], properties.get("LABELS", []), folder.split(os.sep)[0], test.get("command", [])))
    return tests


def targets(build, commands):
    """The targets whose files the commands name, by the names that CMake gives to files."""
    known = subprocess.run(["cmake", "--build", build, "--target", "help"], check=True, capture_output=True, text=True)
    names = set(re.findall(r"^\.\.\. (\S+)", known.stdout, re.MULTILINE))
    needed = set()
    for command in commands:
        for path in re.findall(re.escape(os.path.realpath(build)) + r"/[^:\s=]+", "\n".join(command)):
            stem = os.path.basename(path)
            needed |= {stem, re.sub(r"^lib(.*)\.so$", r"\1", stem)} & names
    return sorted(needed)


def main():
    build, areas = sys.argv[1], set(sys.argv[2:])
    tests = configured(build)
    if areas:
        chosen = [t for t in tests if areas & {*t[1], t[2]} - LEVELS and {"short", "unit"} & {*t[1]}]
    else:
        chosen = [t for t in tests if "short" in t[1]]
    if not chosen:
        known = sorted({word for t in tests for word in (*t[1], t[2])} - LEVELS)
        sys.exit(f"level.py: no test in {' '.join(sorted(areas))}; areas are {' '.join(known)}")
    print(*targets(build, [t[3] for t in chosen]))
    print("^(" + "|".join(re.escape(t[0]) for t in chosen) + ")$")


main()
