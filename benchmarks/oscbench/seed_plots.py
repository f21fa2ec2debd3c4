"""Draws the seeds' experiments from their JSON files, one SVG each, in the arrangement of the seed's figures."""

import json
import os

from . import plots
from .launch import HOST, LIBOSC
from .plots import pyplot
from .seed_001 import COLUMNS, FENCE, FIGURES
from .seeds import PLACES

DASHES = {HOST: "--", LIBOSC: "-"}
BYTES, PROCESSES, COUNT = "bytes", "processes", "number of puts"


class Panel:
    """One set of axes: its title, its lines as (label, measure, implementation), and the quantity of its x axis."""

    def __init__(self, title, lines, against, unit="us"):
        self.title, self.lines, self.against, self.unit = title, lines, against, unit


def both(where, measures, suffix="%s"):
    """Each measure by libosc and by the host, a colour each."""
    return [("%s, %s" % (label, plots.LABELS[implementation]), "%s.%s" % (where, suffix % measure), implementation)
            for label, measure in measures for implementation in (LIBOSC, HOST)]


def seed_000():
    names = (("two barriers", "barriers"), ("reduce-scatter", "reduce_scatter"), ("two fences", "fences"),
             ("two fences, asserts", "fences_asserted"))
    return "Figure 2: what two fences cost", [Panel(PLACES[where], both(where, names), PROCESSES)
                                              for where in ("node", "hosts")]


def seed_001():
    def lines(measure):
        return [(plots.LABELS.get(i, i), measure, i) for i in COLUMNS]

    exchanges = {"one.fence": "Figure 6, one put, fence", "many.fence": "Figure 6, many puts, fence",
                 "one.pscw": "Figure 7, one put, PSCW", "many.pscw": "Figure 7, many puts, PSCW"}
    panels = [Panel("Figure 1: a fence", [(plots.LABELS[i], FENCE, i) for i in (HOST, LIBOSC)], PROCESSES)]
    panels += [Panel(title, lines(name), BYTES, "MB/s" if name.startswith("bandwidth") else "us")
               for name, title in FIGURES.items()]
    panels += [Panel(title, lines(measure), "doubles to each neighbour") for measure, title in exchanges.items()]
    return "Figures 1 to 4, 6 and 7, two hosts, put, get and accumulate by PSCW", panels


def seed_003():
    syncs = [(s.replace("_", " "), s) for s in ("fence", "pscw", "lock_shared", "flush")]
    epochs = [(e, e) for e in ("fence", "pscw", "lock", "flush")]
    counts = [("%s bytes" % size, size) for size in ("8", "512", "4096", "32768")]
    panels = []
    for where in ("node", "hosts"):
        place = PLACES[where]
        panels += [Panel("Figure 2, %s: synchronisation" % place, both(where, syncs, "sync.%s"), PROCESSES),
                   Panel("Figure 3, %s: bandwidth" % place,
                         both(where, [(b, b) for b in ("put", "get", "send")], "bandwidth.%s"), BYTES, "MB/s"),
                   Panel("Figure 4, %s: a put with its whole epoch" % place, both(where, epochs, "latency.%s.put"), BYTES),
                   Panel("Figure 5, %s: a put of many, less the empty epoch" % place, both(where, counts, "per_put.%s"), COUNT)]
    return "Figures 2 to 5", panels


def seed_004():
    calls = (("put", "put"), ("get", "get"), ("accumulate, sum", "accumulate_sum"))
    return "communication functions, each with its flush", [Panel(PLACES[where], both(where, calls), BYTES)
                                                           for where in ("node", "hosts")]


SEEDS = {"seed_000": seed_000, "seed_001": seed_001, "seed_003": seed_003, "seed_004": seed_004}


def draw_panel(axes, panel, figures):
    colours = {}
    for label, measure, implementation in panel.lines:
        found = sorted(figures.get((measure, implementation, panel.unit), []), key=lambda f: f["size"])
        if not found:
            raise ValueError("no figures of %s by %s" % (measure, implementation))
        key = measure if len({m for _, m, _ in panel.lines}) > 1 else implementation
        colour = colours.setdefault(key, "C%d" % len(colours))
        sizes = [f["size"] for f in found]
        axes.plot(sizes, [f["median"] for f in found], DASHES.get(implementation, "-"), color=colour, marker=".",
                  markersize=4, linewidth=1, label=label)
        axes.fill_between(sizes, [f["q1"] for f in found], [f["q3"] for f in found], color=colour, alpha=0.15, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(plots.ticker.FuncFormatter(plots.size_text))
    plots.logarithmic(axes)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.against)
    axes.set_ylabel(panel.unit)
    axes.legend(fontsize=6)


def by_line(document):
    """Figures by (measure, implementation, unit); times in us, those of bandwidths as such."""
    found = {}
    for figure in document["figures"] + document.get("derived", []):
        size, unit, change = figure["size"], figure["unit"], float
        if unit == "ns" and figure["measure"].split(".")[-2:-1] == ["bandwidth"]:
            unit, change = "MB/s", lambda ns, size=size: size / ns * 1e3
        elif unit == "ns":
            unit, change = "us", lambda ns: ns / 1e3
        elif figure["measure"].split(".")[-2:-1] == ["bandwidth"]:
            continue
        changed = dict(figure, **{key: change(figure[key]) for key in ("median", "q1", "q3")})
        found.setdefault((figure["measure"], figure["implementation"], unit), []).append(changed)
    return found


def draw(folder):
    """Draws all seeds from the files in `folder`, into it."""
    for name, arrangement in SEEDS.items():
        with open(os.path.join(folder, name + ".json"), encoding="utf-8") as source:
            figures = by_line(json.load(source))
        title, panels = arrangement()
        columns = min(len(panels), 4)
        rows = (len(panels) + columns - 1) // columns
        picture, places = pyplot.subplots(rows, columns, figsize=(3.9 * columns, 3.5 * rows), squeeze=False)
        for axes, panel in zip(places.flat, panels):
            draw_panel(axes, panel, figures)
        picture.suptitle("%s, %s; medians, quartiles shaded" % (name.replace("_", " "), title))
        picture.tight_layout()
        plots.save(picture, folder, name, kinds=("svg",))
