"""Draws the figures of compare: curves against message size and bars of ratios, each as SVG and as PNG."""

import os
import re

import matplotlib

matplotlib.use("Agg")
# Text stays text, and the same figures give the same file. The grid marks the ticks.
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "osc", "font.size": 9, "font.sans-serif": ["DejaVu Sans"],
                            "axes.grid": True, "grid.alpha": 0.3, "legend.frameon": False, "xtick.bottom": False,
                            "ytick.left": False})

from matplotlib import pyplot, ticker

from . import curves, shapes
from .launch import HOST, LIBOSC, OPENMPI, SHM

LABELS = {HOST: "host MPI", LIBOSC: "libosc", OPENMPI: "Open MPI", SHM: "plain shared memory", curves.RAW: "bare libfabric"}
COLOURS = {HOST: "tab:orange", LIBOSC: "tab:blue", OPENMPI: "tab:green", SHM: "tab:gray", curves.RAW: "tab:gray"}
STYLES = {SHM: "--", curves.RAW: "--"}
PLACES = {curves.NODE: "one node", curves.HOSTS: "two hosts"}
AXES = {curves.LATENCY: "time of one operation with its flush, us", curves.BANDWIDTH: "bandwidth, MB/s"}


def size_text(size, _=None):
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor:
            return "%g%s" % (size / factor, unit)
    return "%g" % size


def logarithmic(axes):
    """A logarithmic scale of figures, with more than its decades where there are few."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high / low < 1000 else (1,)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: "%g" % value))
    axes.minorticks_off()


def save(figure, folder, name, kinds=("svg", "png")):
    paths = []
    for kind in kinds:
        path = os.path.join(folder, "%s.%s" % (name, kind))
        figure.savefig(path, dpi=110, metadata={"Date": None} if kind == "svg" else None)
        if kind == "svg":
            with open(path, encoding="utf-8") as drawn:
                text = re.sub(r"\n\s*", "\n", drawn.read())
            with open(path, "w", encoding="utf-8") as shorter:
                shorter.write(re.sub(r"(\.\d\d)\d+", r"\1", text))
        paths.append(path)
    pyplot.close(figure)
    return paths


def curve(axes, row):
    """Medians as a line, the quartiles as a band around it."""
    for implementation, points in row["figures"].items():
        sizes = [p["size"] for p in points]
        colour = COLOURS[implementation]
        axes.plot(sizes, [p["median"] for p in points], STYLES.get(implementation, "-"), color=colour, marker=".",
                  markersize=4, linewidth=1.4 if implementation == LIBOSC else 1, label=LABELS[implementation])
        axes.fill_between(sizes, [p["q1"] for p in points], [p["q3"] for p in points], color=colour, alpha=0.2,
                          linewidth=0)
    axes.set_xscale("log", base=2)
    logarithmic(axes)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(size_text))
    axes.set_title(row["name"].split(".", 1)[1])
    axes.set_xlabel("bytes")


def curve_figure(rows, where, kind, folder):
    figure, panels = pyplot.subplots(1, len(rows), figsize=(3.6 * len(rows) + 0.6, 3.6), squeeze=False)
    for axes, row in zip(panels[0], rows):
        curve(axes, row)
    panels[0][0].set_ylabel(AXES[kind])
    panels[0][0].legend()
    figure.suptitle("%s; medians, quartiles shaded" % PLACES[where])
    figure.tight_layout()
    return save(figure, folder, "%s-%s" % (where, kind))


def ratio_figure(rows, where, folder):
    """libosc's time over that of each other one, a group of bars for each measure."""
    others = [i for i in curves.IMPLEMENTATIONS if any(row["ratios"].get(i) for row in rows)]
    if not others:
        return []
    figure, axes = pyplot.subplots(figsize=(0.62 * len(rows) + 2.2, 4))
    width = 0.8 / len(others)
    for k, implementation in enumerate(others):
        bars = [(x, row["ratios"][implementation][0]) for x, row in enumerate(rows) if row["ratios"].get(implementation)]
        medians = [r["median"] for _, r in bars]
        spread = [[r["median"] - r["q1"] for _, r in bars], [r["q3"] - r["median"] for _, r in bars]]
        # From 1, so that a bar that goes down is a gain and one that goes up a loss.
        axes.bar([x + (k - (len(others) - 1) / 2) * width for x, _ in bars], [m - 1 for m in medians], width, bottom=1,
                 yerr=spread, color=COLOURS[implementation], label="against " + LABELS[implementation], error_kw={"elinewidth": 0.8})
    axes.axhline(1, color="black", linewidth=0.8)
    logarithmic(axes)
    axes.set_xticks(range(len(rows)), [row["name"].split(".", 1)[1] for row in rows], rotation=60, ha="right")
    axes.set_ylabel("libosc's time / the other's")
    axes.set_title("%s; below 1 libosc is faster; quartiles as whiskers" % PLACES[where])
    axes.legend()
    figure.tight_layout()
    return save(figure, folder, "%s-ratios" % where)


def shape_figure(document, folder, kinds=("svg", "png")):
    """libosc's time over the host's against the number of pieces, a panel for each window and operation."""
    found = {shapes.split(row["name"]): row for row in shapes.kept(document)["measures"]}
    places = [place for place in shapes.PLACES if any(key[0] == place for key in found)]
    figure, panels = pyplot.subplots(len(places), len(shapes.OPERATIONS), figsize=(9.2, 2.3 * len(places) + 0.9),
                                     sharex=True, sharey="row", squeeze=False)
    for place, row in zip(places, panels):
        for (kind, operation), axes in zip(shapes.OPERATIONS.items(), row):
            for (shape, datatype), style in zip(shapes.SHAPES.items(), ("-", "--", "-.", ":")):
                of = [(int(pieces), found.get((place, kind, shape, pieces), {}).get(HOST)) for pieces in shapes.PIECES]
                points = [point for point in of if point[1] is not None]
                if points:
                    axes.plot(*zip(*points), style, linewidth=1.5, label=datatype)
            axes.axhline(1, color="black", linewidth=0.8)
            axes.set_title("%s: %s" % (shapes.PLACES[place], operation))
    ticks = [int(pieces) for pieces in shapes.PIECES]
    panels[0][0].set_xscale("log")
    panels[0][0].set_xticks(ticks, ["%d" % tick for tick in ticks])
    for axes in panels[-1]:
        axes.set_xlabel("pieces at the target")
    for row in panels:
        logarithmic(row[0])
        row[0].set_ylabel("libosc's time / the host's")
    figure.suptitle("operations on derived datatypes; below 1 libosc is faster; medians")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="lower center", ncols=len(shapes.SHAPES))
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    return save(figure, folder, "shapes", kinds)


def draw(document, folder):
    """The paths of all files drawn."""
    if {row["name"] for row in document["measures"]} <= {measure.name for measure in curves.shape_measures()}:
        return shape_figure(document, folder)
    paths = []
    for where in (curves.NODE, curves.HOSTS):
        for kind in (curves.LATENCY, curves.BANDWIDTH):
            rows = [r for r in document["measures"] if r["where"] == where and r["kind"] == kind and r["figures"]]
            paths += curve_figure(rows, where, kind, folder) if rows else []
        rows = [r for r in document["measures"] if r["where"] == where and r["kind"] == curves.SINGLE and r["ratios"]]
        paths += ratio_figure(rows, where, folder) if rows else []
    return paths


def draw_scale(document, folder):
    """The curves of simulated large jobs."""
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.8), sharey=True)
    for axes, per_node in zip(panels, sorted({row["per_node"] for row in document["curves"]}, reverse=True)):
        rows = [row for row in document["curves"] if row["per_node"] == per_node]
        for scenario in dict.fromkeys(row["scenario"] for row in rows):
            points = [(row["processes"], row["ns"] / 1e3) for row in rows if row["scenario"] == scenario]
            axes.plot(*zip(*points), marker=".", markersize=4, linewidth=1, label=scenario)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("processes")
        axes.set_title("%d on a node" % per_node if per_node > 1 else "one on a node")
        axes.legend(fontsize=7)
    panels[0].set_ylabel("simulated time, us")
    figure.tight_layout()
    return save(figure, folder, "scale")
