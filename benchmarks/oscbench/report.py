"""The generated parts of docs/PERFORMANCE.md and docs/performance/seeds.md, each made from the JSON files that the measuring commands wrote."""

import re

from . import comparison, curves, seed_001, seed_003, seed_004
from .comparison import ratio_text
from .launch import HOST, LIBOSC, OPENMPI, SHM
from .seeds import PLACES, points, time_cell

# In docs/performance.
FILES = {curves.NODE: "node/compare.json", curves.HOSTS: "hosts/compare.json", "seed_000": "seed_000.json",
         "seed_001": "seed_001.json", "seed_003": "seed_003.json", "seed_004": "seed_004.json", "instructions": "instructions.json"}
OTHERS = {HOST: "host MPI", OPENMPI: "Open MPI"}
LABELS = dict(OTHERS, **{LIBOSC: "libosc", SHM: "plain shared memory", curves.RAW: "bare libfabric", "shared": "by hand"})


def markdown(lines):
    rows = ["| " + " | ".join(cell or " " for cell in line) + " |" for line in lines]
    return "\n".join(rows[:1] + ["|" + "---|" * len(lines[0])] + rows[1:])


def losing(ratio):
    """Slower with all of the middle half of the rounds; equal figures are no loss."""
    return ratio["median"] > 1.02 and ratio["q1"] > 1


def size_range(sizes):
    if sizes[0] is None:
        return "-"
    return str(sizes[0]) if len(sizes) == 1 else "%d-%d" % (sizes[0], sizes[-1])


def worst(ratio, size, sizes):
    """The size is said where it is one of several."""
    return ratio if len(sizes) == 1 else "%s at %d" % (ratio, size)


def behind(document, wanted):
    """Figures of an experiment where the middle halves of the rounds do not meet: (ratio of the medians, measure, whose,
    size, ours, theirs) of those whose names are `wanted`.
    """
    of = points(document["figures"])
    for (name, implementation, size), theirs in of.items():
        ours = of.get((name, LIBOSC, size))
        if implementation in OTHERS and ours and wanted(name) and ours["q1"] > theirs["q3"]:
            yield ours["median"] / theirs["median"], name, implementation, size, ours, theirs


def named(measure, other):
    """The host is the other one where none is named."""
    return measure if other == HOST else "%s, %s" % (measure, OTHERS[other])


def slower_fences(documents):
    """Of seed 000's Figure 2."""
    for ratio, name, implementation, ranks, ours, theirs in behind(documents["seed_000"],
                                                                   lambda n: n.split(".")[1].startswith("fences")):
        asserts = ", asserts" if "asserted" in name else ""
        yield (ratio, [named("%s, empty, seed_000%s" % (name.replace("_asserted", ""), asserts), implementation), str(ranks),
                       "%.2f" % ratio, time_cell(ours), time_cell(theirs)])


def slower_functions(documents):
    """Of seeds 003 and 004, of each measure its worst size. Not messages, which are the host's own under libosc too, nor
    unlocking by itself, which between hosts does what libosc's lock leaves to it.
    """
    by_measure = {}
    for seed in ("seed_003", "seed_004"):
        for found in behind(documents[seed], lambda n: not n.endswith(".send") and ".unlock" not in n):
            by_measure.setdefault((seed, found[1], found[2]), []).append(found)
    for (seed, name, implementation), of in by_measure.items():
        ratio, _, _, size, ours, theirs = max(of, key=lambda f: f[0])
        sizes = sorted(f[3] for f in of)
        yield (ratio, [named("%s, %s" % (name, seed), implementation), size_range(sizes), worst("%.2f" % ratio, size, sizes),
                       time_cell(ours), time_cell(theirs)])


def losses(documents):
    """Where another MPI is faster: of a curve one line, with the worst size."""
    found = []
    for row in documents[curves.NODE]["measures"] + documents[curves.HOSTS]["measures"]:
        for other in OTHERS:
            slower = [r for r in row["ratios"].get(other, []) if losing(r)]
            if not slower:
                continue
            slowest = max(slower, key=lambda r: r["median"])
            size = slowest["size"]
            sizes = [r["size"] for r in slower]
            found.append((slowest["median"], [
                named(row["name"], other), size_range(sizes), worst(ratio_text(slowest), size, sizes),
                comparison.cell(row, LIBOSC, size), comparison.cell(row, other, size)]))
    found += list(slower_fences(documents)) + list(slower_functions(documents))
    lines = [["measure", "bytes", "ratio (worst)", "libosc", "the other"]]
    return markdown(lines + [line for _, line in sorted(found, key=lambda f: -f[0])])


def missed(documents):
    """The bars of the other experiments that are not met."""
    lines = []
    for r in documents["seed_000"]["libosc_to_openmp4"]:
        if r["bar"] and r["median"] > r["bar"]:
            lines.append("- lock-put-unlock of %d longs: %s times the hand-written \"OpenMP 4\"; the bar is %g"
                         % (r["n"], ratio_text(r), r["bar"]))
    for bar in documents["seed_001"]["bars"]:
        if bar["measured"] < bar["limit"]:
            lines.append("- ghost cells, %s: %.1f; the bar is %g" % (bar["bar"], bar["measured"], bar["limit"]))
    for row in documents["instructions"]["counts"]:
        if row["verdict"] == "not met":
            lines.append("- instructions of %s, threads %s: %.0f; the bar is %g"
                         % (row["call"], row["threads"], row["instructions"][LIBOSC], row["bar"]))
    return "\n".join(lines) if lines else "None."


def conditions(documents):
    first = documents[curves.NODE]
    machine = first["machine"]
    lines = ["- machine: %s, %d cores, %s GiB, Linux %s, %s; the two hosts are network namespaces of it"
             % (machine["processor"], machine["cores"], machine["memory_gib"], machine["kernel"], machine["system"]),
             "- versions: " + ", ".join("%s %s" % item for item in first["versions"].items())]
    table = [["file", "command", "when", "commit", "rounds", "load"]]
    for name, d in documents.items():
        table.append(["[%s](performance/%s)" % (name, FILES[name]), "`%s`" % d["command"], d["when"],
                      d["commit"][:10] + (" and changes" if d["changed"] else ""), str(d.get("rounds", 1)),
                      str(d["machine"]["load_at_start"])])
    starts = (re.sub(r"round \d+", "every round", text) for name, d in documents.items() for text in d["trouble"])
    failed = ["- starts that failed: %s" % text for text in dict.fromkeys(starts)]
    return "\n".join(lines) + "\n\n" + markdown(table) + "\n\n" + ("\n".join(failed) if failed else "No start failed.")


# The rows of the short tables in PERFORMANCE.md, by measure and size; performance/compared.md has all.
SHORT = ("put_latency, 8", "put_bw, 262144", "put_bw, 131072", "put8", "put8_stream", "fop", "acc8", "acc64k", "lock_put32", "put4m",
         "fence_put", "fence_put_asserted", "pscw_put", "create_free")


def compared(documents, where, short=False):
    """The measures of `compare` at one place; if `short`, those of SHORT."""
    rows = [row for row in documents[where]["measures"] if row["where"] == where and row["figures"]]
    lines = [[cell.split(".", 1)[1] if column == 0 and "." in cell else cell for column, cell in enumerate(line)]
             for line in comparison.table_lines(rows, comparison.ends)]
    # A column of another place is empty. Most measures have one size, in their name.
    kept = [k for k in range(2, len(lines[0])) if any(line[k] != "-" for line in lines[1:])]
    named = [[", ".join(cell for cell in line[:2] if cell != "-")] + [line[k] for k in kept] for line in lines]
    return markdown(named[:1] + [line for line in named[1:] if not short or line[0] in SHORT])


def table1(documents):
    of = points(documents["seed_000"]["figures"])
    ratios = {r["n"]: r for r in documents["seed_000"]["libosc_to_openmp4"]}
    lines = [["n"] + ["OpenMP %d" % v for v in range(1, 5)] + ["host MPI", "libosc", "Open MPI", "libosc / OpenMP 4", "bar"]]
    for n, ratio in ratios.items():
        cells = [of.get(("node.openmp%d" % v, "shared", n)) for v in range(1, 5)]
        cells += [of.get(("node.lock_put_unlock", i, n)) for i in (HOST, LIBOSC, OPENMPI)]
        lines.append([str(n)] + [time_cell(c) for c in cells]
                     + [ratio_text(ratio), "<= %g" % ratio["bar"] if ratio["bar"] else "-"])
    return markdown(lines)


def figure2(documents):
    of = points(documents["seed_000"]["figures"])
    lines = [["where", "processes", "MPI", "2 barriers", "1 reduce-scatter", "2 fences, asserts", "2 fences"]]
    for where, place in PLACES.items():
        sizes = sorted({s for m, _, s in of if m == where + ".fences"})
        for size in sorted({sizes[0], sizes[-1]}):  # the picture has the others
            for i in (HOST, LIBOSC, OPENMPI):
                cells = [of.get((where + "." + c, i, size))
                         for c in ("barriers", "reduce_scatter", "fences_asserted", "fences")]
                if any(cells):
                    lines.append([place, str(size), LABELS[i]] + [time_cell(c) for c in cells])
    return markdown(lines)


def ghost_cells(documents):
    of = points(documents["seed_001"]["figures"])
    lines = [["exchange", "n"] + list(seed_001.HEADS) + ["messages sent by messages", "by buffered"]]
    for kind in seed_001.EXCHANGES:
        sizes = sorted({s for m, _, s in of if m == kind})
        for n in sorted({sizes[0], sizes[-1]}):
            sent = [of.get((kind + ".messages", c, n)) for c in ("messages", "buffered")]
            lines.append([kind, str(n)] + [time_cell(of.get((kind, c, n))) for c in seed_001.COLUMNS]
                         + ["%.1f" % s["median"] if s else "-" for s in sent])
    standing = ["- %s: %.1f, bar >= %g" % (b["bar"], b["measured"], b["limit"]) for b in documents["seed_001"]["bars"]]
    return markdown(lines) + "\n\n" + "\n".join(standing)


def instructions(documents):
    """A line for each call; two figures are MPI_THREAD_SINGLE's and MPI_THREAD_MULTIPLE's, one is both's."""
    calls = {}
    for row in documents["instructions"]["counts"]:
        calls.setdefault((row["call"], row["bar"]), []).append(row["instructions"])
    lines = [["call", "host MPI", "libosc", "Open MPI", "bar"]]
    for (call, bar), rows in calls.items():
        cells = []
        for i in (HOST, LIBOSC, OPENMPI):
            counts = ["%.0f" % row[i] if i in row else "-" for row in rows]
            cells.append(counts[0] if len(set(counts)) == 1 else "; ".join(counts))
        lines.append([call] + cells + ["<= %d" % bar])
    return markdown(lines)


def titled(tables):
    """Tables with their titles and remarks."""
    return "\n\n".join("%s:\n\n%s%s" % (title, markdown(lines), "\n\n" + remark + "." if remark else "")
                       for title, lines, remark in tables)


PARTS = {"losses": losses, "missed": missed, "conditions": conditions,
         "node": lambda d: compared(d, curves.NODE, True), "hosts": lambda d: compared(d, curves.HOSTS, True),
         "instructions": instructions}
# Of docs/performance/compared.md.
COMPARED = {"node": lambda d: compared(d, curves.NODE), "hosts": lambda d: compared(d, curves.HOSTS)}
# Of docs/performance/seeds.md.
SEEDS = {"table1": table1, "figure2": figure2, "ghost_cells": ghost_cells,
         "seed_001": lambda d: titled(seed_001.tables(d["seed_001"], whole=False)),
         "seed_003": lambda d: titled(seed_003.tables(d["seed_003"], whole=False)),
         "seed_004": lambda d: titled(seed_004.tables(d["seed_004"], beyond=False))}
