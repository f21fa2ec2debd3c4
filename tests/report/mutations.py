#!/usr/bin/env python3
"""Gives osc_report files that are nearly right: it makes a whole page of them, or refuses them.

  mutations.py [--mpiexec M] [--env K=V]... --report OSC_REPORT [--seconds N] [--seed N] PROGRAM

Two processes of PROGRAM write the statistics and the timeline that are changed. A failure names the seed of its files. Exit
status 77 without matplotlib.
"""
import argparse
import html
import importlib.machinery
import importlib.util
import json
import os
import random
import sys
import tempfile
import time
import unittest.mock

import page as pages

MOST_LINES = 300  # of the timeline
DRAWN = 40  # seeds to one whose page has its figures
VALUES = (None, True, False, 0, -1, 1, 1 << 31, 1 << 63, 10 ** 40, 0.5, -0.0, 1e29, 1e308, float("nan"), float("inf"), "", "x", "<b>&\"'",
          "\x00\u202e\ud800", "1" * 5000, "any", "others", "-1", "more", "to 8", [], {}, [[]], {"": {}}, [{}], {"0": 1})


class Undrawn:
    """Stands for a figure: drawing takes most of the time of a page, so most seeds go without."""

    def __init__(self, _):
        self.axes = unittest.mock.MagicMock()

    def tip(self, _, text):
        html.escape(text)

    def svg(self, label):
        return '<svg role="img" aria-label="%s"></svg>' % html.escape(label)


def places(value):
    """Every container with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def change(dice, document):
    """One value replaced, removed, renamed, doubled or exchanged with another."""
    all_places = list(places(document))
    if not all_places:
        return
    holder, key = dice.choice(all_places)
    what = dice.randrange(6)
    if what < 2:
        holder[key] = dice.choice(VALUES)
    elif what == 2:
        del holder[key]
    elif what == 3 and isinstance(holder, dict):
        holder[dice.choice(("x", "", "-1", "999999", "more", "to 0", "<i>", key + "\n"))] = holder.pop(key)
    elif what == 3:
        holder.append(holder[key])
    elif what == 4:
        other, place = dice.choice(all_places)
        if place in other if isinstance(other, dict) else place < len(other):
            holder[key] = json.loads(json.dumps(other[place]))
    elif isinstance(holder[key], (int, float)):
        holder[key] = dice.choice((holder[key] + 1, -holder[key], holder[key] * 1000, str(holder[key]), float(holder[key])))


def spoil(dice, text):
    """Bytes changed, removed or repeated."""
    data = bytearray(text.encode(errors="surrogatepass"))
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(data) + 1)
        what = dice.randrange(3)
        if what == 0:
            data[at:at + 1] = bytes([dice.randrange(256)])
        elif what == 1:
            del data[at:at + dice.choice((1, 1, 8, 1000))]
        else:
            data[at:at] = data[at:at + dice.choice((1, 8, 100))]
    return bytes(data)


def changed(dice, statistics, timeline):
    """The bytes of both files; at least one differs."""
    document = json.loads(statistics)
    lines = timeline.split("\n")
    which = dice.randrange(3)
    for _ in range(dice.randrange(1, 4)):
        if which != 1:
            change(dice, document)
        if which != 0:
            # An event is a line.
            at = dice.randrange(1, len(lines) - 1)
            text = lines[at].rstrip(",")
            try:
                head, event = ('"otherData":', json.loads(text[12:])) if at == 1 else ("", json.loads(text))
                change(dice, event)
                lines[at] = head + json.dumps(event, separators=(",", ":")) + ","
            except ValueError:
                del lines[at]
    texts = [json.dumps(document), "\n".join(lines)]
    return [spoil(dice, text) if dice.randrange(8) == 0 else text.encode(errors="surrogatepass") for text in texts]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--report", required=True)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--seed", type=int, default=61)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    args = parser.parse_args()
    with open(args.report, encoding="utf-8") as file:
        interpreter = file.readline()[2:].strip()
    if os.path.realpath(interpreter) != os.path.realpath(sys.executable):
        os.execv(interpreter, [interpreter, *sys.argv])  # the one that has what the report imports
    loader = importlib.machinery.SourceFileLoader("osc_report", args.report)
    loader.cache_bytecode = False
    report = importlib.util.module_from_spec(importlib.util.spec_from_loader("osc_report", loader))
    loader.exec_module(report)
    try:
        report.import_matplotlib()
    except report.Unusable as error:
        print(error)
        return 77
    drawn = report.Figure
    counts = {"pages": 0, "refused": 0}
    with tempfile.TemporaryDirectory() as folder:
        job = pages.Check(args, folder).run_job("right", 2, *args.programs)
        with open(job[0], encoding="utf-8") as statistics, open(job[1], encoding="utf-8") as timeline:
            lines = timeline.read().split("\n")
            right = (statistics.read(), "\n".join(lines[:MOST_LINES] + lines[max(MOST_LINES, len(lines) - 3):]))
        names = [os.path.join(folder, name) for name in ("statistics.json", "timeline.json")]
        end = time.monotonic() + args.seconds
        seed = args.seed
        while time.monotonic() < end:
            seed += 1
            report.Figure = drawn if seed % DRAWN == 0 else Undrawn
            for name, data in zip(names, changed(random.Random(seed), *right)):
                with open(name, "wb") as file:
                    file.write(data)
            try:
                document, windows = report.read_statistics(names[0])
                lines = report.Timeline(names[1], windows)
                text = report.page("statistics.json", document, windows, lines)
                text.encode("utf-8")
                wrong = pages.Page(text).wrong
                counts["pages"] += 1
            except report.Unusable as error:
                wrong = [] if "\n" not in str(error) else ["a refusal of several lines"]
                counts["refused"] += 1
            except Exception as error:  # pylint: disable=broad-except
                raise SystemExit("files of --seed %d: %s" % (seed - 1, repr(error)[:400])) from error
            if wrong:
                raise SystemExit("files of --seed %d: %s" % (seed - 1, wrong[:3]))
    print("%d files: %s" % (seed - args.seed, counts))
    if not all(counts.values()):
        raise SystemExit("nothing was %s" % min(counts, key=counts.get))
    return 0


if __name__ == "__main__":
    sys.exit(main())
