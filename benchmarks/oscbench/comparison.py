"""From compare's figures to its JSON file and its table."""

from . import curves, stats
from .document import rounded
from .launch import LIBOSC
from .machine import portable
from .verdict import layout


def ratios_to(figures, measure, other, size):
    """libosc's time over the other's, round by round: below 1 libosc is faster."""
    ours, theirs = figures.of(measure.name, LIBOSC, size), figures.of(measure.name, other, size)
    return stats.ratios(theirs, ours) if measure.kind == curves.BANDWIDTH else stats.ratios(ours, theirs)


def row_of(figures, measure, build):
    """All that is known of one measure."""
    row = {"name": measure.name, "where": measure.where, "kind": measure.kind, "unit": curves.UNITS[measure.kind],
           "rounds": figures.rounds, "commands": {}, "figures": {}, "ratios": {}, "wrong": []}
    for implementation in curves.IMPLEMENTATIONS:
        sizes = figures.sizes(measure.name, implementation)
        if not sizes:
            continue
        row["commands"][implementation] = portable(figures.commands[measure.name, implementation], build)
        row["figures"][implementation] = [
            dict(size=size, **rounded(stats.summary(list(figures.of(measure.name, implementation, size).values()))))
            for size in sizes]
        if (measure.name, implementation) in figures.wrong:
            row["wrong"].append(implementation)
        if implementation != LIBOSC:
            found = [(size, stats.summary(ratios_to(figures, measure, implementation, size))) for size in sizes]
            row["ratios"][implementation] = [dict(size=size, **rounded(s)) for size, s in found if s]
    row["unstable"] = any(stats.unstable(p) for points in row["ratios"].values() for p in points)
    return row


def repeated(first, second):
    """Of a measure's two runs that with more rounds, the later one if they are equal; it says what the other one gave."""
    kept, other = (first, second) if second["rounds"] < first["rounds"] else (second, first)
    kept["other_run"] = {key: other[key] for key in ("rounds", "figures", "ratios", "wrong")}
    kept["wrong"] = sorted(set(first["wrong"] + second["wrong"]))
    return kept


def duration(us):
    if us < 1:
        return "%.0f ns" % (us * 1e3)
    return "%.2f us" % us if us < 1e3 else "%.2f ms" % (us / 1e3)


def shown_figure(row, point):
    if row["unit"] == "MB/s":
        text = "%.0f MB/s" % point["median"]
    else:
        text = duration(point["median"] / (1 if row["unit"] == "us" else 1e3))
    return text + ("~" if stats.unstable(point) else "")


def at(points, size):
    return next((p for p in points if p["size"] == size), None)


def shown_sizes(row):
    """Of a curve, the ends and the middle."""
    sizes = [p["size"] for p in row["figures"].get(LIBOSC) or next(iter(row["figures"].values()), [])]
    return sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]}) if sizes and sizes[0] is not None else sizes


def cell(row, implementation, size):
    if implementation in row["wrong"]:
        return "WRONG"
    point = at(row["figures"].get(implementation, []), size)
    return shown_figure(row, point) if point else "-"


def short(ratio):
    return ("%.2f" if ratio >= 0.1 else "%.2g") % ratio


def ratio_text(ratio):
    return "%s [%s-%s]" % tuple(short(ratio[k]) for k in ("median", "q1", "q3"))


def ratio_cell(row, implementation, size):
    ratio = at(row["ratios"].get(implementation, []), size)
    return ratio_text(ratio) if ratio else "-"


def ends(row):
    sizes = shown_sizes(row)
    return sorted({sizes[0], sizes[-1]}) if sizes and sizes[0] is not None else sizes


def table_lines(rows, sizes_of=shown_sizes):
    """Medians of every implementation, and libosc's time over each other's with quartiles."""
    there = [i for i in curves.IMPLEMENTATIONS if any(i in row["figures"] for row in rows)]
    others = [i for i in there if i != LIBOSC]
    lines = [["measure", "bytes"] + there + ["libosc / " + i for i in others]]
    for row in rows:
        for size in sizes_of(row):
            lines.append([row["name"], "-" if size is None else str(size)]
                         + [cell(row, i, size) for i in there] + [ratio_cell(row, i, size) for i in others])
    return lines


def table(rows):
    return layout(table_lines(rows))
