"""Seed 004 (foMPI): a cost formula for each function, its constants fitted to what the script measured, and what the seed
says of the function.
"""

import math

from . import seeds, stats, verdict
from .document import rounded
from .seeds import LABELS, MPI, PLACES

# Forms: constant in all; a + b s; a times the rounds of log2 p; a + b k.
CONSTANT, BYTES, LOG, NEIGHBOURS = "a", "a + b s", "a ceil(log2 p)", "a + b k"


class Function:
    """A measure of seed_004_mpi under the function's name. `seed`: the seed's statement about its cost."""

    def __init__(self, measure, name, form, seed):
        self.measure = measure
        self.name = name
        self.form = form
        self.seed = seed


NATIVE = "the network's own, O(1) and s"
FUNCTIONS = (
    Function("put", "put, flush", BYTES, NATIVE),
    Function("get", "get, flush", BYTES, NATIVE),
    Function("accumulate_sum", "accumulate (sum of 8-byte integers), flush", BYTES, "native atomics of 8 bytes"),
    Function("accumulate_min", "accumulate (min), flush", BYTES, "lock, get, compute, put, unlock"),
    Function("fetch_and_op", "fetch_and_op, flush", CONSTANT, "native atomic"),
    Function("compare_and_swap", "compare_and_swap, flush", CONSTANT, "native atomic"),
    Function("fence", "fence", LOG, "2.9 us log2 p"),
    Function("post", "post, k = 1", CONSTANT, "350 ns k"),
    Function("start", "start, k = 1", CONSTANT, "0.7 us"),
    Function("complete", "complete, k = 1", CONSTANT, "350 ns k"),
    Function("wait", "wait, k = 1", CONSTANT, "1.8 us"),
    Function("pscw", "post, start, complete, wait", NEIGHBOURS, "2.5 us + 700 ns k"),
    Function("lock_exclusive", "lock, exclusive, free", CONSTANT, "5.4 us: global and local word"),
    Function("unlock_exclusive", "unlock, exclusive", CONSTANT, "4.0 us"),
    Function("lock_shared", "lock, shared", CONSTANT, "2.7 us: one atomic"),
    Function("unlock_shared", "unlock, shared", CONSTANT, "0.4 us"),
    Function("lock_all", "lock_all", CONSTANT, "2.7 us: one atomic"),
    Function("unlock_all", "unlock_all", CONSTANT, "0.4 us"),
    Function("flush", "flush, nothing outstanding", CONSTANT, "76 ns"),
    Function("sync", "sync", CONSTANT, "17 ns"),
    Function("win_create", "win_create", LOG, "two allgathers, O(p) memory"),
    Function("win_allocate", "win_allocate", LOG, "O(log p) time, O(1) memory"),
    Function("win_dynamic", "win_create_dynamic", LOG, "-"),
    Function("attach", "attach", CONSTANT, "O(1) memory for each region"),
    Function("detach", "detach", CONSTANT, "O(1) memory for each region"),
    Function("win_shared", "win_allocate_shared", LOG, "as win_allocate"),
    Function("win_free", "win_free", LOG, "-"),
)

# How the seed's column is to be read.
SOURCE = (
    "the seed: Gerstenberger, Besta, Hoefler, Enabling Highly-Scalable Remote Memory Access Programming with MPI-3 One Sided "
    "(SC 2013, doi 10.1145/2503210.2503286; again in CACM 61(10), October 2018), on a Cray XE6 (Gemini, DMAPP; XPMEM on a node). "
    "The constants of synchronisation are those of the latter's page 111; those of put, get, accumulate and windows are in figures "
    "that no text at hand has, so only their forms are shown")


def variable(form, size):
    """The factor of b, or of a of the logarithm."""
    return math.ceil(math.log2(size)) if form == LOG else size


def fit(form, times):
    """(a, b) of {size: time}, by least squares of relative errors, so that every size has the same weight; b is 0 where the
    form has none.
    """
    if form == CONSTANT:
        return next(iter(times.values())), 0.0
    of = [(variable(form, size), t, 1 / (t * t)) for size, t in times.items()]

    def total(value):
        return sum(w * value(x, t) for x, t, w in of)

    weight, xs, ts = total(lambda x, t: 1), total(lambda x, t: x), total(lambda x, t: t)
    xxs, xts = total(lambda x, t: x * x), total(lambda x, t: x * t)
    if form == LOG:
        return xts / xxs, 0.0
    below = weight * xxs - xs * xs
    b = (weight * xts - xs * ts) / below if len(of) > 1 else 0.0
    return (ts - b * xs) / weight, b


def predicted(form, a, b, size):
    return a * variable(form, size) if form == LOG else a + b * (size or 0)


def fitted(figures, place, function, implementation):
    """Constants of each round, and how far the medians' formula is from the medians; None where nothing was measured."""
    name = "%s.%s" % (place, function.measure)
    sizes = figures.sizes(name, implementation)
    # Where processes share cores, time slices hide the cost of a call; only neighbours need so many of them.
    shared = [s for s in sizes if s > seeds.CORES] if function.form in (CONSTANT, LOG) else []
    sizes = [s for s in sizes if s not in shared]
    by_size = {s: figures.of(name, implementation, s) for s in sizes}
    if not by_size:
        return None
    numbers = [n for n in by_size[sizes[0]] if all(n in of for of in by_size.values())]
    if not numbers:
        return None
    found = [fit(function.form, {s: by_size[s][n] for s in sizes}) for n in numbers]
    medians = {s: stats.summary(list(of.values()))["median"] for s, of in by_size.items()}
    a, b = fit(function.form, medians)
    row = {"function": function.name, "form": function.form, "where": place, "implementation": implementation,
           "worst": float("%.3g" % max(abs(predicted(function.form, a, b, s) / t - 1) for s, t in medians.items())),
           "a": rounded(stats.summary([f[0] for f in found]))}
    if function.form in (BYTES, NEIGHBOURS):
        row["b"] = rounded(stats.summary([f[1] for f in found]))
    if function.form == LOG:
        row["beyond"] = [dict(size=s, **rounded(stats.summary(list(figures.of(name, implementation, s).values()))))
                         for s in shared]
    return row


def made(figures):
    """The body of the document."""
    found = [fitted(figures, place, function, i) for function in FUNCTIONS for place in PLACES for i in MPI]
    return {"figures": seeds.rows(figures), "formulas": [row for row in found if row]}


def constants(row, beyond):
    """The formula with its constants, and its distance from the measurements."""
    a = verdict.duration(row["a"])
    text = {CONSTANT: a, LOG: a + " ceil(log2 p)"}.get(row["form"]) or "%s + %s %s" % (
        a, "%.3g ns" % row["b"]["median"] if row["form"] == BYTES else verdict.duration(row["b"]), row["form"][-1])
    unstable = any(stats.unstable(row[c]) for c in ("a", "b") if c in row)
    text += "~" if unstable else ""
    if row["form"] == LOG and beyond:
        return text + "".join("; %d: %s" % (p["size"], seeds.time_cell(p)) for p in row["beyond"])
    return text if row["form"] in (CONSTANT, LOG) else "%s, within %.0f %%" % (text, 100 * row["worst"])


def cost_lines(document, beyond):
    of = {(r["function"], r["where"], r["implementation"]): r for r in document["formulas"]}
    columns = [(place, i) for place in PLACES for i in MPI if any((f.name, place, i) in of for f in FUNCTIONS)]
    lines = [["function", "formula"] + ["%s, %s" % (LABELS[i], PLACES[place]) for place, i in columns] + ["the seed"]]
    for function in FUNCTIONS:
        rows = [of.get((function.name, place, i)) for place, i in columns]
        if any(rows):
            lines.append([function.name, function.form] + [constants(r, beyond) if r else "-" for r in rows] + [function.seed])
    return lines


READING = {more: "s: bytes; p: processes, the formula fitted where each has a core%s; k: 1, 2 and 4 neighbours, of the most "
                 "processes; within: so near is the formula to each median" % (", then what more of them take" if more else "")
           for more in (True, False)}


def tables(document, beyond=True):
    """Title, lines and remark; with or without what more processes than cores take."""
    return [("what functions cost: formulas, constants fitted here", cost_lines(document, beyond),
             "%s. %s.\n%s" % (READING[beyond], seeds.slices(document), SOURCE))]
