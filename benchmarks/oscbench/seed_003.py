"""Seed 003 (Hassani and others, MPI 3.0 on Portals 4.0): what is made of the figures that its script takes, the tables, and
whether what the seed says of its Figures 2 to 5 holds here.
"""

from . import seeds, stats, verdict
from .launch import HOST, LIBOSC
from .seeds import LABELS, MPI, PLACES, points, time_cell
from .taking import Figures

KINDS = ("flush", "lock_shared", "lock_exclusive", "pscw", "fence")
SYNCS = ("lock", "pscw", "fence", "flush")
HEADS = {"flush": "flush", "lock_shared": "lock shared", "lock_exclusive": "lock exclusive, contended", "pscw": "PSCW",
         "fence": "fence", "lock": "lock"}
EPOCHS = {"sync": "empty", "sync_put": "one put"}
WHERE = ("the seed's machine: up to 8 processes, 24-core Intel Xeon E5-2620 of 2.0 GHz, Mellanox MT27500 InfiniBand, Portals 4 "
         "over Verbs, Open MPI, 2013; its figures are drawn, without numbers in its text")
# Alike: medians of calls that do the same differ by so much between two runs here.
ALIKE = 1.5


def split(name):
    """Place, kind and the rest of a measure's name."""
    place, kind, rest = name.split(".", 2)
    return place, kind, rest


def derived(figures):
    """Bandwidths in MB/s; and times in ns that are left of an epoch when an empty one of the same round is taken off it."""
    rates, times = Figures(), Figures()
    for (name, i, size), by_round in figures.values.items():
        place, kind, rest = split(name)
        if kind == "bandwidth":
            rates.values[name, i, size] = {n: size / ns * 1e3 for n, ns in by_round.items()}
        sync, _, operation = rest.partition(".") if kind == "latency" else ("lock", "", "put")
        if kind == "puts" or kind == "latency" and operation not in ("empty", "send"):
            empty = figures.of("%s.latency.%s.empty" % (place, sync), i, 2)
            parts = size if kind == "puts" else 1
            left = {n: (ns - empty[n]) / parts for n, ns in by_round.items() if n in empty}
            new = "%s.per_put.%s" % (place, rest) if kind == "puts" else "%s.transfer.%s" % (place, rest)
            if left:
                times.values[new, i, size] = left
    return rates, times


def made(figures):
    """The body of the document."""
    rates, times = derived(figures)
    document = {"figures": seeds.rows(figures), "derived": seeds.rows(rates, "MB/s") + seeds.rows(times)}
    document["claims"] = claims(Read(document))
    return document


class Read:
    """A document's figures."""

    def __init__(self, document):
        # Of bandwidths the rates.
        self.of = points(document["figures"])
        self.of.update(points(document["derived"]))
        self.places = [p for p in PLACES if any(name.startswith(p + ".") for name, _, _ in self.of)]

    def sizes(self, start):
        return sorted({s for name, _, s in self.of if name.startswith(start)})

    def median(self, name, i, size):
        """KeyError where it was not measured."""
        return self.of[name, i, size]["median"]

    def time(self, name, i, size):
        return time_cell(self.of.get((name, i, size)))

    def rate(self, name, i, size):
        found = self.of.get((name, i, size))
        return "%.4g MB/s%s" % (found["median"], "~" if stats.unstable(found) else "") if found else "-"


def some(sizes, whole):
    return sizes if whole else sorted({sizes[0], sizes[-1]})


def figure2(read, whole):
    lines = [["where", "processes", "MPI", "epoch"] + [HEADS[k] for k in KINDS]]
    for place in read.places:
        for ranks in some(read.sizes(place + ".sync."), whole):
            for kind, epoch in EPOCHS.items():
                for i in MPI:
                    lines.append([PLACES[place], str(ranks), LABELS[i], epoch]
                                 + [read.time("%s.%s.%s" % (place, kind, k), i, ranks) for k in KINDS])
    return lines


def figure3(read):
    lines = [["where", "bytes", "MPI", "put", "get", "send"]]
    for place in read.places:
        for size in read.sizes(place + ".bandwidth."):
            for i in MPI:
                lines.append([PLACES[place], str(size), LABELS[i]]
                             + [read.rate("%s.bandwidth.%s" % (place, o), i, size) for o in ("put", "get", "send")])
    return lines


def figure4(read):
    heads = ["%s, %s" % (o, HEADS[s]) for o in ("put", "get") for s in SYNCS]
    lines = [["where", "bytes", "MPI"] + heads + ["send"]]
    for place in read.places:
        for i in MPI:
            empties = [read.time("%s.latency.%s.empty" % (place, s), i, 2) for s in SYNCS]
            lines.append([PLACES[place], "taken off", LABELS[i]] + empties + empties + ["-"])
        for size in read.sizes(place + ".transfer."):
            for i in MPI:
                lines.append([PLACES[place], str(size), LABELS[i]]
                             + [read.time("%s.transfer.%s.%s" % (place, s, o), i, size) for o in ("put", "get") for s in SYNCS]
                             + [read.time("%s.latency.two_sided.send" % place, i, size)])
    return lines


def figure5(read):
    counts = read.sizes("node.per_put.") or read.sizes("hosts.per_put.")
    lines = [["where", "bytes", "MPI"] + ["%d put%s" % (n, "" if n == 1 else "s") for n in counts]]
    for place in read.places:
        sizes = sorted({int(n.rsplit(".", 1)[1]) for n, _, _ in read.of if n.startswith(place + ".per_put.")})
        for size in sizes:
            for i in MPI:
                lines.append([PLACES[place], str(size), LABELS[i]]
                             + [read.time("%s.per_put.%d" % (place, size), i, n) for n in counts])
    return lines


def by_kind(read, place, i):
    """Numbers of processes, and times of empty epochs by kind."""
    counts = read.sizes(place + ".sync.")
    return counts, {k: [read.median("%s.sync.%s" % (place, k), i, n) for n in counts] for k in KINDS}


def flush_is_constant_and_low(read, place, i):
    counts, of = by_kind(read, place, i)
    growth = of["flush"][-1] / of["flush"][0]
    # More processes than cores have their turns one after the other.
    share = max(1, counts[-1] / seeds.CORES)
    lowest = all(of["flush"][n] <= min(of[k][n] for k in KINDS) for n in range(len(counts)))
    return lowest and growth / share <= ALIKE, "%.1f times from %d to %d processes, %s" % (
        growth, counts[0], counts[-1], "the lowest at each" if lowest else "not the lowest at each")


def shared_lock_is_like_pscw(read, place, i):
    counts, of = by_kind(read, place, i)
    ratios = [p / s for p, s in zip(of["pscw"], of["lock_shared"])]
    return all(1 / ALIKE <= r <= ALIKE for r in ratios), "PSCW / lock: " + ", ".join(
        "%.3g (%d)" % (r, n) for r, n in zip(ratios, counts))


def fence_is_high(read, place, i):
    counts, of = by_kind(read, place, i)
    ratios = [f / max(l, p) for f, l, p in zip(of["fence"], of["lock_shared"], of["pscw"])]
    return all(r > 1 for r in ratios), "fence / the higher of lock shared and PSCW: " + ", ".join(
        "%.3g (%d)" % (r, n) for r, n in zip(ratios, counts))


def exclusive_lock_grows_most(read, place, i):
    counts, of = by_kind(read, place, i)
    if len(counts) == 1:
        return None, "one number of processes"
    growth = {k: of[k][-1] / of[k][0] for k in KINDS}
    most = max(growth, key=growth.get)
    return most == "lock_exclusive", "from %d to %d processes %.3g times; the most: %s, %.3g times" % (
        counts[0], counts[-1], growth["lock_exclusive"], HEADS[most], growth[most])


def synchronisation_does_not_matter(read, place, i):
    alike, worst = [], 0
    for operation in ("put", "get"):
        for size in read.sizes(place + ".transfer."):
            of = [read.of["%s.transfer.%s.%s" % (place, s, operation), i, size] for s in SYNCS]
            low, high = min(f["median"] for f in of), max(f["median"] for f in of)
            noise = max(f["q3"] - f["q1"] for f in of)
            alike.append(high - low <= max((ALIKE - 1) * low, noise))
            worst = max(worst, high - low)
    return all(alike), "at %d of %d; the most between two kinds: %s" % (
        sum(alike), len(alike), verdict.duration({"median": worst}))


def put_is_fastest(read, place, i):
    sizes = read.sizes(place + ".transfer.")
    of = [[read.median("%s.%s" % (place, n), i, s)
           for n in ("transfer.lock.put", "transfer.lock.get", "latency.two_sided.send")] for s in sizes]
    get = sum(p <= g for p, g, _ in of)
    send = sum(max(p, g) < s for p, g, s in of)
    return get == send == len(sizes), "under a lock put <= get at %d and both < send at %d of %d sizes" % (get, send, len(sizes))


def one_sided_has_more_bandwidth(read, place, i):
    sizes = read.sizes(place + ".bandwidth.")
    of = [[read.median("%s.bandwidth.%s" % (place, o), i, s) for o in ("put", "get", "send")] for s in sizes]
    put, get = sum(p > s for p, _, s in of), sum(g > s for _, g, s in of)
    return put == get == len(sizes), "put at %d, get at %d of %d sizes" % (put, get, len(sizes))


CLAIMS = (("Figure 2: a flush is constant and low", flush_is_constant_and_low),
          ("Figure 2: lock shared and PSCW cost alike", shared_lock_is_like_pscw),
          ("Figure 2: a fence is high, being collective", fence_is_high),
          ("Figure 2: a contended exclusive lock grows most with the processes", exclusive_lock_grows_most),
          ("Figure 3: one-sided has more bandwidth than two-sided", one_sided_has_more_bandwidth),
          ("Figure 4: the kind of synchronisation does not affect a transfer", synchronisation_does_not_matter),
          ("Figure 4: put has the lowest latency, two-sided a higher one", put_is_fastest))


def claims(read):
    found = []
    for text, judge in CLAIMS:
        for place in read.places:
            for i in MPI:
                try:
                    holds, detail = judge(read, place, i)
                except KeyError:
                    # A figure is missing; the document lists that under its problems.
                    continue
                found.append({"claim": text, "where": place, "implementation": i, "holds": holds, "found": detail})
    return found


JUDGED = {True: "holds: ", False: "does not hold: ", None: "not judged: "}


def claim_lines(document):
    """One line for each claim and place."""
    lines = [["the seed says", "where", "host MPI", "libosc"]]
    of = {(c["claim"], c["where"], c["implementation"]): c for c in document["claims"]}
    for text, _ in CLAIMS:
        for place, label in PLACES.items():
            cells = [of.get((text, place, i)) for i in (HOST, LIBOSC)]
            if any(cells):
                lines.append([text, label] + [JUDGED[c["holds"]] + c["found"] if c else "-" for c in cells])
    return lines


def verdict_lines(document):
    """One line for each claim."""
    columns = [(place, i) for place in PLACES for i in MPI]
    lines = [["the seed says"] + ["%s, %s" % (LABELS[i], PLACES[place]) for place, i in columns]]
    of = {(c["claim"], c["where"], c["implementation"]): c["holds"] for c in document["claims"]}
    for text, _ in CLAIMS:
        cells = [of.get((text, place, i)) for place, i in columns]
        lines.append([text] + ["-" if holds is None else "yes" if holds else "no" for holds in cells])
    return lines


def tables(document, whole=True):
    """Title, lines and remark of each figure; if not `whole`, of synchronisation and of claims only, in short."""
    read = Read(document)
    told = "what the seed says of its figures, and whether it holds here"
    alike = "alike: within %g times or the rounds' quartiles. %s" % (ALIKE, WHERE)
    sync = ("Figure 2: time of an epoch, every process in a ring, locks on the first", figure2(read, whole), seeds.slices(document))
    if not whole:
        return [sync, (told, verdict_lines(document), alike)]
    return [sync, ("Figure 3: bandwidth, 64 operations in an epoch of a lock", figure3(read), ""),
            ("Figure 4: time of an epoch with one operation less that of an empty one; send: half of a round trip", figure4(read), ""),
            ("Figure 5: time of a put, as many in an epoch of a lock, less the empty epoch", figure5(read), ""),
            (told, claim_lines(document), alike)]
