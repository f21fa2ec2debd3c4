#!/usr/bin/env python3
"""Hold standard.tsv, the rules of the standard, against the tests: every test that it names must exist. The table of
docs/CONFORMANCE.md that counts the rules must be what --markdown prints.

    python3 standard.py             check; says how many rules have no test yet
    python3 standard.py --open      also list those rules
    python3 standard.py --markdown  print the table of docs/CONFORMANCE.md
"""
import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
RULES = os.path.join(HERE, "standard.tsv")
PAGE = os.path.join(os.path.dirname(TESTS), "docs", "CONFORMANCE.md")
PART = re.compile(r"<!-- standard.py --markdown -->\n\n(.*?)\n\n<!-- end -->", re.DOTALL)
# The sections of the table, by the beginning of a rule's section.
SECTIONS = (("12.2", "windows: creation, attributes, info, free"), ("12.3", "communication calls"), ("12.4", "memory model"),
            ("12.5", "synchronisation and asserts"), ("12.6", "errors"), ("12.7", "semantics: atomicity, order, progress"),
            ("", "other chapters: languages, memory, threads, sessions, finalize"))


def known_tests():
    found = {}
    for folder, _, names in os.walk(TESTS):
        for name in names:
            stem, extension = os.path.splitext(name)
            if extension not in (".cpp", ".c", ".f90", ".F90", ".f", ".py", ".sh"):
                continue
            with open(os.path.join(folder, name), errors="replace") as f:
                text = f.read()
            cases = set(re.findall(r"\bCASE(?:_BY_KIND)?\((\w+)\)", text))
            cases.update(re.findall(r"\bTEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)", text))
            found.setdefault(stem, set()).update(cases)
    return found


def missing(tests, shown):
    """What of "program: case, case; program" is not there."""
    for part in shown.split("; "):
        program, _, cases = part.partition(": ")
        if program not in tests:
            yield "a program that is not there: %s" % program
            continue
        for case in filter(None, cases.split(", ")):
            if case not in tests[program]:
                yield "a case that is not there: %s: %s" % (program, case)


def read_rules():
    """(section, rule, text, tests) of each row, and the rows that are none."""
    rules, wrong, seen = [], [], set()
    with open(RULES, encoding="utf-8") as f:
        for line in f:
            if line.startswith("#"):
                continue
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 4 or not re.fullmatch(r"[A-Z]+\d+", fields[1]) or not fields[3]:
                wrong.append("not a rule with its test: %s" % line.strip())
                continue
            if fields[1] in seen:
                wrong.append("%s stands twice" % fields[1])
            seen.add(fields[1])
            rules.append(fields)
    return rules, wrong


def kind(shown):
    return "duty" if shown.startswith("duty: ") else "open" if shown == "open" else "tested"


def markdown(rules):
    counts = {name: {"tested": 0, "duty": 0, "open": 0} for _, name in SECTIONS}
    for section, _, _, shown in rules:
        name = next(name for begins, name in SECTIONS if section.startswith(begins))
        counts[name][kind(shown)] += 1
    rows = ["| section of MPI 4.1 | rules with a test | the program's duty | without a test |", "|---|---|---|---|"]
    for begins, name in SECTIONS:
        rows.append("| %s%s | %d | %d | %d |" % (begins + " " if begins else "", name, *counts[name].values()))
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--open", action="store_true", help="list the rules without a test")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/CONFORMANCE.md")
    options = parser.parse_args()
    rules, wrong = read_rules()
    table = markdown(rules)
    if options.markdown:
        print(table)
        return 0
    tests = known_tests()
    without = [rule for rule in rules if kind(rule[3]) == "open"]
    duties = [rule for rule in rules if kind(rule[3]) == "duty"]
    for _, rule, _, shown in rules:
        if kind(shown) == "tested":
            wrong.extend("%s names %s" % (rule, what) for what in missing(tests, shown))
    with open(PAGE, encoding="utf-8") as f:
        part = PART.search(f.read())
    if not part or part.group(1) != table:
        wrong.append("the table of docs/CONFORMANCE.md is not what standard.py --markdown prints")
    if options.open:
        print("\n".join("%s %s" % (rule, text) for _, rule, text, _ in without))
    print("standard.tsv: %d rules, %d with a test, %d the program's duty, %d open"
          % (len(rules), len(rules) - len(duties) - len(without), len(duties), len(without)))
    for line in wrong:
        print("  " + line)
    return 1 if wrong or not rules else 0


if __name__ == "__main__":
    sys.exit(main())
