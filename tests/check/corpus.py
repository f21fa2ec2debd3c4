"""Runs the corpus of the usage checker and compares the reports with the marks in its sources, exactly.

A line of wrong.cpp with the comment "// reported: NAME" must be named by a report of that name, once. The marks of one
case with one name are the lines of one report. No other report may come, and none at all about the right cases."""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

FIRST = re.compile(r"^libosc: rank (\d+): OSC_CHECK: ([a-z ]+) \(MPI 4\.1, [\d.]+\)")
CALLED = re.compile(r"^    called by .*\(.*?([a-z_]+\.cpp):(\d+)\)$")
SUMMARY = re.compile(r"^libosc: rank \d+: OSC_CHECK: (\d+) reports? of \d+ kinds?$")
CASE = re.compile(r"^void (\w+)\(\) \{")
MARK = re.compile(r"// reported: ([a-z ]+)$")


def expected_reports(source):
    """The reports of wrong.cpp: a counter of (name, lines)."""
    reports = collections.Counter()
    lines = collections.defaultdict(list)
    for number, text in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        if text == "}":
            for name, marked in lines.items():
                reports[name, tuple(sorted(marked))] += 1
            lines.clear()
        elif mark := MARK.search(text):
            lines[mark[1]].append(number)
    return reports


def printed_reports(text):
    """The reports on stderr, the sum of the summaries, and the lines that are none of the checker's."""
    reports = collections.Counter()
    summed = 0
    others = []
    current = None

    def close():
        if current:
            reports[current[0], tuple(sorted(current[1]))] += 1

    for line in text.splitlines():
        if first := FIRST.match(line):
            close()
            current = (first[2], [])
        elif summary := SUMMARY.match(line):
            close()
            current = None
            summed += int(summary[1])
        elif called := CALLED.match(line):
            current[1].append(int(called[2]))
        elif not line.startswith("  "):
            close()
            current = None
            others.append(line)
    close()
    return reports, summed, others


def run(arguments, cases):
    command = [arguments.mpiexec, "-n", "2"]
    for setting in arguments.env + ["OSC_CHECK=1"]:
        command += ["-genv", *setting.split("=", 1)]
    done = subprocess.run(command + [arguments.program, *cases], capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"})
    if done.returncode != 0 or "all cases have run" not in done.stdout:
        sys.exit(f"{' '.join(cases)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


def compare(text, expected):
    reports, summed, others = printed_reports(text)
    wrong = [f"printed but not expected: {name}, lines {lines} ({count} times)"
             for (name, lines), count in sorted((reports - expected).items())]
    wrong += [f"expected but not printed: {name}, lines {lines}" for (name, lines) in sorted(expected - reports)]
    wrong += [f"not a report: {line}" for line in others]
    if summed != sum(reports.values()):
        wrong.append(f"the summaries count {summed} reports, {sum(reports.values())} were printed")
    if wrong:
        sys.exit("\n".join(wrong) + "\nThe output:\n" + text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("program")
    arguments = parser.parse_args()
    expected = expected_reports(pathlib.Path(__file__).with_name("wrong.cpp"))
    compare(run(arguments, ["right"]), collections.Counter())
    compare(run(arguments, ["wrong"]), expected)
    print(f"corpus: {sum(expected.values())} reports as expected, none about right programs")


if __name__ == "__main__":
    main()
