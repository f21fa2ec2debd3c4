"""Shared by the measuring scripts: the command line, and the head and the form of the JSON document.
"""

import argparse
import fnmatch
import json
import re
import sys

from . import machine
from .launch import DEFAULT_BUILD


def tell(text):
    print(text, file=sys.stderr, flush=True)


class Parser(argparse.ArgumentParser):
    """Complains in one line."""

    def error(self, message):
        tell("%s: %s (--help lists the options)" % (self.prog, message))
        sys.exit(2)


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError("'%s' is not a number from 1 on" % text)
    return int(text)


def add_build_options(parser):
    parser.add_argument("--build", default=DEFAULT_BUILD, help="build directory (default build/release)")
    parser.add_argument("--libosc", metavar="PATH", help="the library (default BUILD/src/libosc.so)")


def add_over_openmpi(parser):
    parser.add_argument("--over-openmpi", action="store_true", help="run libosc over Open MPI instead of MPICH")


def comparing(description, implementations):
    """The options of node_compare and net_compare."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default %(default)s)")
    parser.add_argument("--only", action="append", metavar="MEASURE",
                        help="measures to take: names, shell patterns or parts of names; may be repeated")
    parser.add_argument("--impl", action="append", choices=implementations, help="implementations to run")
    parser.add_argument("--short", action="store_true", help="tiny batches: shows that all works, gives no figures")
    parser.add_argument("--json", metavar="FILE", help="write every figure and verdict there")
    parser.add_argument("--list", action="store_true", help="list the measures and their bars")
    add_build_options(parser)
    return parser


def is_chosen(name, patterns):
    return not patterns or any(p in name or fnmatch.fnmatch(name, p) for p in patterns)


def usable(implementations, why_not):
    """Those that can run; tells why others cannot."""
    reasons = {i: why_not(i) for i in implementations}
    for implementation, reason in reasons.items():
        if reason:
            tell("%s is left out: %s" % (implementation, reason))
    return [i for i, reason in reasons.items() if not reason]


def head(name, tools, build):
    """The head of every document; call before the first measurement."""
    command = ["benchmarks/" + name] + sys.argv[1:]
    document = {"command": machine.portable(command, build), "when": machine.now()}
    document.update(machine.commit())
    document.update({"machine": machine.machine(), "versions": machine.versions(tools, build)})
    return document


def rounded(summary):
    return {k: float("%.4g" % v) if isinstance(v, float) else v for k, v in summary.items()}


def write(document, path):
    # One line for each point, so that a change of a figure is a change of a line.
    text = json.dumps(document, indent=1)
    text = re.sub(r"\{[^{}]*\}", lambda found: re.sub(r"\s*\n\s*", " ", found.group()), text)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text + "\n")
