#!/usr/bin/env python3
"""Runs the corpus of right and wrong programs with OSC_CHECK=1 and compares the reports with what each case says.

  races.py [--mpiexec M] [--ranks N] [--env K=V]... -- program [argument]...

Each conflict must be reported once, with these ranks, operations and bytes, and nothing else may be reported.
"""
import argparse
import collections
import re
import subprocess
import sys


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("program", nargs="+")
    return parser.parse_args()


def run(options):
    command = ["timeout", "-k", "5", "60", options.mpiexec, "-n", options.ranks, "-genv", "OSC_CHECK", "1", "-genv", "OSC_FALLBACK",
               "error"]
    for setting in options.env:
        command += ["-genv", *setting.split("=", 1)]
    return subprocess.run(command + options.program, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def reports_of(output):
    """{window: [[line, call site, ...]]}, and the other lines of the checker that are not its summary."""
    reports = collections.defaultdict(list)
    other = []
    current = None
    for line in output.split("\n"):
        head = re.match(r'libosc: rank \d+: OSC_CHECK: conflicting accesses \(MPI 4\.1, 12\.7\), window 0x[0-9a-f]+ "(.*)"$',
                        line)
        if head:
            current = []
            reports[head[1]].append(current)
        elif current is not None and line.startswith("  "):
            current.append(line.strip())
        else:
            current = None
            # Two of the accesses are misaligned on purpose; tests/check shows those reports.
            if line.startswith("libosc: ") and not re.search(
                    r"OSC_CHECK: (\d+ reports? of \d kinds?$|misaligned access .*(acc_elements|rows_put))", line):
                other.append(line)
    return reports, other


def compare(name, expected, reports):
    """What is wrong with the reports of one case."""
    if not expected:
        return ["%s: reported: %s" % (name, report) for report in reports]
    if len(reports) != 1:
        return ["%s: %d reports instead of one" % (name, len(reports))]
    lines = reports[0]
    wrong = []
    if len(lines) != 4:
        return ["%s: not two accesses with their call sites: %s" % (name, lines)]
    for line, site, wanted in zip(lines[0::2], lines[1::2], expected):
        if line != wanted and not line.startswith(wanted + ": "):
            wrong.append("%s: '%s' instead of '%s'" % (name, line, wanted))
        if not site.startswith("called by ") or "corpus" not in site:
            wrong.append("%s: no call site of the program: %s" % (name, site))
    return wrong


def main():
    options = arguments()
    done = run(options)
    reports, wrong = reports_of(done.stderr)
    cases = [line.split("\t")[1:] for line in done.stdout.split("\n") if line.startswith("case\t")]
    if done.returncode != 0:
        wrong.append("exit status %d\n%s" % (done.returncode, done.stderr[-4000:]))
    for name, *expected in cases:
        wrong += compare(name, expected, reports.pop(name, []))
    wrong += ["a report about no case: %s" % name for name in reports]
    conflicts = sum(1 for case in cases if len(case) > 1)
    if conflicts < 40 or len(cases) - conflicts < 40:
        wrong.append("only %d wrong and %d right programs" % (conflicts, len(cases) - conflicts))
    print("\n".join(wrong))
    print("%d wrong programs, %d right ones: %s" % (conflicts, len(cases) - conflicts, "failed" if wrong else "passed"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
