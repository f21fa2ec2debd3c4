"""Seed 001 (Barrett, the one-sided components of Open MPI): the names of its measures, and the tables."""

from . import stats, verdict
from .launch import HOST, LIBOSC
from .seeds import points, slices, time_cell

FENCE = "fence_epoch"
EXCHANGES = ("one.fence", "many.fence", "one.pscw", "many.pscw")
# Libosc's column is that of its own choice; the others carry the protocol: messages is the seed's send/recv, direct its rdma.
COLUMNS = (HOST, "messages", "buffered", "direct", LIBOSC)
HEADS = ("host MPI", "messages", "buffered", "direct", "libosc's choice")
FIGURES = {"latency.put": "Figure 2a: put", "bandwidth.put": "Figure 2b: put, 64 in an epoch", "latency.get": "Figure 3a: get",
           "bandwidth.get": "Figure 3b: get, 64 in an epoch", "latency.acc": "Figure 4: accumulate, a sum"}
SEED = """the seed's figures (drawn, no numbers in its text; Open MPI 1.3, MVAPICH2 0.9.8, up to 32 nodes, InfiniBand SDR, 2.0 GHz Opteron,
2009). 1: 98 % of a fence is its reduce-scatter. 2: buffered has the best put latency of the three and, where many are in an epoch,
the best bandwidth; large ones are alike. 3: rdma has the lower get latency and less bandwidth than the others. 4: accumulates are
slightly slower than MVAPICH2's. 6 and 7: with one put the protocols are close for large buffers; with many, send/recv and rdma fall behind
buffered, which injects "over two orders of magnitude" fewer messages."""


def rate_cell(found, size):
    """The bandwidth of a time of one operation."""
    if not found:
        return "-"
    return "%.4g MB/s%s" % (size / found["median"] * 1e3, "~" if stats.unstable(found) else "")


def fences(of):
    ranks = sorted({size for name, _, size in of if name == FENCE})
    return [["processes", "host MPI", "libosc"]] + [[str(n)] + [time_cell(of.get((FENCE, i, n))) for i in (HOST, LIBOSC)]
                                                    for n in ranks]


def transfers(of, name, whole):
    cell = rate_cell if name.startswith("bandwidth") else lambda found, _: time_cell(found)
    sizes = sorted({size for measure, _, size in of if measure == name})
    if not whole:
        sizes = sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})
    return [["bytes"] + list(HEADS)] + [[str(size)] + [cell(of.get((name, c, size)), size) for c in COLUMNS] for size in sizes]


def tables(document, whole=True):
    """Title, lines and remark of Figures 1 to 4; the ghost cells have tables of their own. If not `whole`, latencies at
    three sizes."""
    of = points(document["figures"])
    found = [("Figure 1: a fence that ends an empty epoch", fences(of), slices(document))]
    return found + [("%s, by post, start, complete and wait" % title, transfers(of, name, whole), "")
                    for name, title in FIGURES.items() if whole or name.startswith("latency")]


def exchange_times(of, kind):
    sizes = sorted({size for name, _, size in of if name == kind})
    return [["n"] + list(HEADS)] + [[str(n)] + [time_cell(of.get((kind, c, n))) for c in COLUMNS] for n in sizes]


def exchange_messages(of, kind):
    columns = [(c, h) for c, h in zip(COLUMNS, HEADS) if c != HOST]
    lines = [["n"] + [h + w for _, h in columns for w in ("", ", writes")]]
    for n in sorted({size for name, _, size in of if name == kind}):
        cells = []
        for column, _ in columns:
            for what in (".messages", ".writes"):
                found = of.get((kind + what, column, n))
                cells.append("%.1f" % found["median"] if found else "-")
        lines.append([str(n)] + cells)
    return lines


def printed(document):
    """All tables as text."""
    of = points(document["figures"])
    found = ["%s\n\n%s%s" % (title, verdict.layout(lines), "\n\n" + remark if remark else "")
             for title, lines, remark in tables(document)]
    found += ["%s: time of one exchange, n doubles to each of two neighbours\n\n%s" % (kind, verdict.layout(exchange_times(of, kind)))
              for kind in EXCHANGES]
    found += ["%s: messages and direct writes of one process in one exchange\n\n%s"
              % (kind, verdict.layout(exchange_messages(of, kind))) for kind in EXCHANGES]
    return "\n\n".join(found + [SEED])
