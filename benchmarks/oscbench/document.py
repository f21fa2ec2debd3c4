"""Shared by compare and the scripts of the seeds: the command line, and the head and the form of the JSON document.
"""

import argparse
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
