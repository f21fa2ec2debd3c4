"""Cost formulas of calls beside measured costs: the generated parts of docs/STRATEGIES.md."""

from .report import markdown
from .verdict import duration

HOSTS, NODE, DELAYED = "strategies_hosts", "strategies_node", "strategies_delayed"
SAME_HOSTS, SAME_NODE = "consistency_hosts", "consistency_node"
FILES = {name: name + ".json" for name in (HOSTS, NODE, DELAYED, SAME_HOSTS, SAME_NODE)}
KIB64 = 65536
PAIRS = (("put_is_rput_wait", "put", "rput, wait"), ("get_is_rget_wait", "get", "rget, wait"),
         ("put_is_accumulate_replace", "put", "accumulate with MPI_REPLACE"),
         ("get_is_get_accumulate_no_op", "get", "get_accumulate with MPI_NO_OP"),
         ("accumulate_is_get_accumulate", "accumulate", "get_accumulate"),
         ("fetch_and_op_is_get_accumulate", "fetch_and_op", "get_accumulate"),
         ("put64k_is_16_puts", "put of 64 KiB", "16 of 4 KiB"), ("get64k_is_16_gets", "get of 64 KiB", "16 of 4 KiB"),
         ("accumulate512_is_512_accumulates", "accumulate of 512 elements", "512 accumulates"),
         ("put_vector_is_its_elements", "put of a vector of 64 elements", "64 puts"),
         ("flush_is_flush_all", "flush", "flush_all"), ("flush_local_is_flush", "flush_local", "flush"),
         ("unlock_is_flush_unlock", "lock, put, unlock", "with a flush before the unlock"),
         ("lock_all_is_a_lock_each", "lock_all, put, unlock_all", "a shared lock for each process"),
         ("fences_are_barriers_and_locks", "pair of fences, put", "barriers, lock_all, put, unlock_all"),
         ("pscw_is_messages_and_a_lock", "post, start, put, complete, wait", "messages and a shared lock"))
# A function that is slower than the others by more than the noise of two medians.
SLOWER = 1.10
# Epochs for which `auto` is within this of the better strategy are counted, not shown.
NEAR = 1.05


def cell(ns):
    return duration({"median": ns})


def row(words, predicted, *measured):
    """A line of a table: `predicted` is a time, or a text where there is no prediction."""
    return list(words) + [predicted if isinstance(predicted, str) else cell(predicted), ", ".join(cell(m) for m in measured)]


class Read:
    """Times of one document, in ns."""

    def __init__(self, documents, name):
        self.document = documents[name]
        self.figures = self.document["figures"]

    def __call__(self, measure, variant="auto"):
        return self.figures[measure][variant]["ns"]

    def source(self):
        return "`%s`, at %s" % (self.document["command"], self.document["commit"][:10])


def between_hosts(documents):
    read, same = Read(documents, HOSTS), Read(documents, SAME_HOSTS)
    a, b = read("lock_get.n1.b8") / 2, read("fence.n0.b8") / 2
    beta = (read("lock_put.n1.b65536") - 4 * a) / KIB64
    constants = ("α = %s (half of a get under a lock), α' = %s (half of an empty pair of fences), β = %.2g ns (64 KiB put under a lock, less 4α)"
                 % (cell(a), cell(b), beta))

    lines = [["call, with s = 8 if not named", "messages", "formula", "predicted", "measured"],
             row(("put, get, alone; flush", "a write or read", "2α + sβ"), 2 * a,
                 same("put_is_rput_wait", "function"), same("get_is_rget_wait", "function")),
             row(("accumulate; fetch_and_op; flush", "2", "2α + sβ"), 2 * a, same("accumulate_is_get_accumulate", "function"),
                 same("fetch_and_op_is_get_accumulate", "function")),
             row(("lock, get, unlock (deferred)", "2", "2α + sβ"), "(gives α)", read("lock_get.n1.b8", "deferred")),
             row(("lock, put, fetch_and_op or accumulate, unlock (deferred)", "2", "2α + sβ"), 2 * a,
                 *[read("lock_%s.n1.b8" % op, "deferred") for op in ("put", "fop", "acc")]),
             row(("lock, put and get, unlock (deferred)", "2", "2α + sβ"), 2 * a, read("lock_put_get.n2.b8", "deferred")),
             row(("the same with an immediate lock", "4", "4α + sβ"), 4 * a, read("lock_put_get.n2.b8", "immediate")),
             row(("lock, put of 64 KiB, unlock", "4 and a write", "4α + sβ"), "(gives β)", read("lock_put.n1.b65536")),
             row(("lock_all, put of 64 KiB, unlock_all", "4 and a write", "4α + sβ"), 4 * a + KIB64 * beta,
                 read("lock_all.n1.b65536")),
             row(("lock_all, unlock_all", "0", "0"), "0", read("lock_all.n0.b8")),
             row(("lock_all, operations on k targets, unlock_all", "2k", "2α + ksβ, k = 1"), 2 * a, read("lock_all.n1.b8")),
             row(("post, start, put, complete, wait (each process both)", "3", "2α'"), 2 * b, read("pscw.n1.b8")),
             row(("pair of fences, nothing", "2 each", "2rα'"), "(gives α')", read("fence.n0.b8")),
             row(("pair of fences, a put; deferred", "2 each", "2rα' + sβ"), 2 * b, read("fence.n1.b8", "deferred")),
             row(("pair of fences, a put; immediate", "4 each", "2rα' + 2α' + sβ"), 4 * b, read("fence.n1.b8", "immediate")),
             row(("pair of fences, put of 64 KiB; immediate", "4 each", "2rα' + 2α + sβ"), 2 * b + 2 * a + KIB64 * beta,
                 read("fence.n1.b65536", "immediate")),
             row(("the same, deferred", "6 each", "2rα' + 4α + sβ"), 2 * b + 4 * a + KIB64 * beta,
                 read("fence.n1.b65536", "deferred")),
             row(("NOPRECEDE fence, put, NOSUCCEED fence; deferred", "2 each", "rα' + sβ"), b,
                 read("fence_asserted.n1.b8", "deferred"))]
    return "%s; %s: %s.\n\n%s" % (read.source(), same.source(), constants, markdown(lines))


def on_a_node(documents):
    read, same = Read(documents, NODE), Read(documents, SAME_NODE)
    sigma = same("put_is_rput_wait", "function") / 2
    locked = read("lock_put.n1.b8") - sigma
    barrier = read("fence.n0.b8") / 2
    kappa = (same("put64k_is_16_puts", "function") - 2 * sigma) / KIB64
    off = read("lock_put.n10000.b8", "deferred") / 1e4, read("fence.n10000.b8", "deferred") / 1e4
    constants = ("σ = %s (half of a put and its flush), λ = %s (lock, put, unlock less σ), b = %s (half of an empty pair of fences), κ = %.2g ns "
                 "(64 KiB put and flushed, in cache)" % (cell(sigma), cell(locked), cell(barrier), kappa))

    lines = [["call", "formula", "predicted", "measured"],
             row(("put, flush", "2σ"), "(gives σ)", same("put_is_rput_wait", "function")),
             row(("get, flush", "2σ"), 2 * sigma, same("get_is_rget_wait", "function")),
             row(("accumulate; fetch_and_op; flush", "2σ and an atomic"), "", same("accumulate_is_get_accumulate", "function"),
                 same("fetch_and_op_is_get_accumulate", "function")),
             row(("lock, put, unlock", "λ + σ"), "(gives λ)", read("lock_put.n1.b8")),
             row(("lock, get, unlock", "λ + σ"), locked + sigma, read("lock_get.n1.b8")),
             row(("10,000 puts under a lock; between fences", "kσ"), 1e4 * sigma, read("lock_put.n10000.b8"), read("fence.n10000.b8")),
             row(("put of 64 KiB, flush", "2σ + sκ"), "(gives κ)", same("put64k_is_16_puts", "function")),
             row(("get of 64 KiB, flush; put under a lock", "2σ + sκ; λ + σ + sκ"),
                 cell(2 * sigma + KIB64 * kappa) + ", " + cell(locked + sigma + KIB64 * kappa),
                 same("get64k_is_16_gets", "function"), read("lock_put.n1.b65536")),
             row(("pair of fences, nothing", "2b"), "(gives b)", read("fence.n0.b8")),
             row(("pair of fences, a put", "2b + σ"), 2 * barrier + sigma, read("fence.n1.b8")),
             row(("post, start, put, complete, wait", "2b: two meetings of two"), 2 * barrier, read("pscw.n1.b8")),
             row(("a queued put, of 10,000 under a lock; between fences", "q"), "", *off)]
    return "%s; %s: %s.\n\n%s" % (read.source(), same.source(), constants, markdown(lines))


def choice(documents):
    lines = [["where", "epoch", "immediate", "deferred", "auto / better"]]
    left_out = 0
    for name, place in ((HOSTS, "two hosts"), (DELAYED, "two hosts, +%d us each way"), (NODE, "one node")):
        read = Read(documents, name)
        if name == DELAYED:
            place %= read.document["delay_us"]
        for measure, found in read.figures.items():
            each = [found[variant]["ns"] for variant in ("immediate", "deferred", "auto")]
            ratio = each[2] / min(each[:2])
            if ratio <= NEAR:
                left_out += 1
                continue
            lines.append([place, measure] + [cell(t) for t in each[:2]] + ["%.2f" % ratio])
    return ("Medians of the runs of `benchmarks/strategies` above, and of %s. A row is named by its epoch, the number of its operations and "
            "their bytes. Shown are those above %g; for the other %d `auto` is within that.\n\n%s"
            % (Read(documents, DELAYED).source(), NEAR, left_out, markdown(lines)))


def consistent(documents):
    node, hosts = Read(documents, SAME_NODE), Read(documents, SAME_HOSTS)
    lines = [["function", "built from", "one node", "two hosts"]]
    slower = []
    for name, function, others in PAIRS:
        cells = []
        for read, place in ((node, "on a node"), (hosts, "between hosts")):
            ratio = read(name, "function") / read(name, "built")
            cells.append("**%.2f**" % ratio if ratio > SLOWER else "%.2f" % ratio)
            if ratio > SLOWER:
                slower.append("%s %s: %s against %s" % (function, place, cell(read(name, "function")), cell(read(name, "built"))))
        lines.append([function, others] + cells)
    told = "Slower are: %s." % "; ".join(slower) if slower else "None is slower by more than %g." % SLOWER
    return ("Time of the function / of the others, of the runs of `benchmarks/consistency` above.\n\n%s\n\n%s"
            % (markdown(lines), told))


PARTS = {"between_hosts": between_hosts, "on_a_node": on_a_node, "choice": choice, "consistent": consistent}
