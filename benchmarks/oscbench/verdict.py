"""Judges figures against bars and lays the result out, as a table for people and as a dictionary for JSON."""

from . import bars, stats
from .launch import IMPLEMENTATIONS, LIBOSC, SHM, CMA


def busy_ratios(figures, measure, idle):
    above = figures.of(LIBOSC, measure)
    below = {r: 2 * ns + bars.BUSY_GRACE_NS for r, ns in figures.of(LIBOSC, idle).items()}
    return stats.ratios(above, below)


def needs_rerun(row):
    return stats.unstable(row["ratio"]) if row["ratio"] else bool(row["unstable"])


def judge(figures, measure, first=None):
    """A row with its instability said aloud; `first` is the row of the run that this one repeats."""
    row = judge_values(figures, measure)
    if needs_rerun(row):
        row["verdict"] = "unstable" if row["verdict"] == "-" else row["verdict"] + ", unstable"
    if first is not None:
        row["first_run"] = first
    return row


def judge_values(figures, measure):
    """One row: every implementation's figure, the ratio that the bar is about, and the verdict."""
    row = {"measure": measure, "ns": {}, "wrong": [], "unstable": []}
    for implementation in IMPLEMENTATIONS:
        name = bars.reference_name(measure) if implementation in (SHM, CMA) else measure
        if implementation in (SHM, CMA) and "@" in measure:
            continue
        found = stats.summary(list(figures.of(implementation, name).values()))
        if found:
            row["ns"][implementation] = found
            if stats.unstable(found):
                row["unstable"].append(implementation)
        if (implementation, name) in figures.wrong:
            row["wrong"].append(implementation)
    bar = bars.bar_of(measure)
    row["bar"] = bar.text() if bar else None
    row["ratio"] = None
    row["verdict"] = "-"
    if bar is None:
        return row
    if bar.by == LIBOSC:
        values = busy_ratios(figures, measure, bar.below)
    else:
        values = stats.ratios(figures.of(LIBOSC, measure), figures.of(bar.by, bar.below))
        late = [figures.p90.get(of, {}) for of in ((LIBOSC, measure), (bar.by, bar.below))]
        row["p90"] = stats.summary(stats.ratios(*late))
    row["ratio"] = stats.summary(values)
    if LIBOSC in row["wrong"]:
        row["verdict"] = "WRONG DATA"
    elif row["ratio"] is not None:
        reached = row["ratio"]["q1"] if bar.within else row["ratio"]["median"]
        row["verdict"] = "met" if reached <= bar.limit else "not met"
    return row


def duration(found):
    if found is None:
        return "-"
    ns = found["median"]
    # The remainder of a difference may be negative.
    if abs(ns) < 1e3:
        return "%.1f ns" % ns
    if abs(ns) < 1e6:
        return "%.2f us" % (ns / 1e3)
    return "%.2f ms" % (ns / 1e6)


def figure(row, implementation):
    text = duration(row["ns"].get(implementation))
    if implementation in row["wrong"]:
        return "WRONG"
    return text + ("~" if implementation in row["unstable"] else "")


def table(rows):
    head = ["measure"] + list(IMPLEMENTATIONS) + ["ratio [quartiles]", "bar", "verdict"]
    lines = [head]
    for row in rows:
        ratio = row["ratio"]
        shown = "%.2f [%.2f-%.2f]" % (ratio["median"], ratio["q1"], ratio["q3"]) if ratio else "-"
        lines.append([row["measure"]] + [figure(row, i) for i in IMPLEMENTATIONS]
                     + [shown, row["bar"] or "-", row["verdict"]])
    return layout(lines)


def layout(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
