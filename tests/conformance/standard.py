#!/usr/bin/env python3
"""Hold docs/STANDARD.md against the tests: every test that it names must exist.

    python3 standard.py            check; says how many rules have no test yet
    python3 standard.py --open     also list those rules

A rule is an item "- **NUMBER** text `program: case, case; program: case`"; the program is a source file of tests/, the case a
CASE or TEST in it. "*User's duty*: ..." in place of tests marks a rule that binds the program alone, or promises nothing, and
says what libosc does; "*open*" marks a rule without a test.
"""
import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
ITEM = re.compile(r"- \*\*([A-Z]+\d+)\*\*(?: \([\d.]+\))? (.+?) (?:`([^`]+)`|\*User's duty\*: (\w.+)|\*open\*)$")
DOCS = os.path.join(os.path.dirname(TESTS), "docs")
PAGE = os.path.join(DOCS, "STANDARD.md")


def known_tests():
    found = {}
    for folder, _, names in os.walk(TESTS):
        for name in names:
            stem, extension = os.path.splitext(name)
            if extension not in (".cpp", ".c", ".f90", ".F90", ".f", ".py", ".sh"):
                continue
            with open(os.path.join(folder, name), errors="replace") as f:
                text = f.read()
            cases = set(re.findall(r"\bCASE\((\w+)\)", text))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--open", action="store_true", help="list the rules without a test")
    options = parser.parse_args()
    tests = known_tests()
    rules, duties, without, wrong, seen = 0, 0, [], [], set()
    with open(PAGE) as f:
        for line in f:
            if not line.startswith("- "):
                continue
            item = ITEM.match(line)
            if not item:
                wrong.append("not a rule with its test: %s" % line.strip())
                continue
            rules += 1
            rule, text, shown, duty = item.groups()
            if rule in seen:
                wrong.append("%s stands twice" % rule)
            seen.add(rule)
            if duty:
                duties += 1
                continue
            if not shown:
                without.append("%s %s" % (rule, text))
                continue
            wrong.extend("%s names %s" % (rule, what) for what in missing(tests, shown))
    if options.open:
        print("\n".join(without))
    print("STANDARD.md: %d rules, %d with a test, %d the user's duty, %d open"
          % (rules, rules - duties - len(without), duties, len(without)))
    for line in wrong:
        print("  " + line)
    return 1 if wrong or not rules else 0


if __name__ == "__main__":
    sys.exit(main())
