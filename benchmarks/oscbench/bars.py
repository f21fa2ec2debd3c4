"""The measures of node_compare, their launches, and the bar of each of libosc's figures.

A measure's name is OPERATION.FLAVOUR[.rot], as node_bench prints it; "@N" is appended when it ran with N ranks other
than two. References ("shm", "cma") have no flavour.
"""

from .launch import HOST, LIBOSC, OPENMPI, SHM

SMALL = ("put8", "get8", "fop", "cas", "acc8", "get_acc8", "rput_wait", "rget_wait", "lock_put32", "vector64",
         "vector64_packed")
BULK = ("acc64k", "acc1m", "put64k", "get64k", "put4m", "get4m")
SYNC = ("fence", "fence_put", "pscw_put")
FLAVOURS = ("allocate", "alloc_mem", "malloc", "dynamic")
BUSY = ("put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap", "lock_put")
# A busy target may cost twice the idle figure and this many nanoseconds.
BUSY_GRACE_NS = 5000.0


class Bar:
    """libosc's figure, divided by `below` of implementation `by`, must not exceed `limit`; `aim` is the hope.

    `within` marks bars of the form "within x %": they hold as soon as the interquartile range reaches the limit.
    """

    def __init__(self, by, below, limit, aim=None, within=False):
        self.by = by
        self.below = below
        self.limit = limit
        self.aim = aim
        self.within = within

    def text(self):
        what = {OPENMPI: "osc/sm", HOST: "the host", SHM: "memcpy", LIBOSC: "(2x idle + 5 us)"}[self.by]
        aim = ", aim %gx" % self.aim if self.aim else ""
        return "<= %gx %s%s" % (self.limit, what, aim)


class Launch:
    """Measures that one start of node_bench takes together."""

    def __init__(self, ranks, measures, oscsm):
        self.ranks = ranks
        self.measures = measures
        self.oscsm = oscsm

    def key(self, measure):
        return measure if self.ranks == 2 else "%s@%d" % (measure, self.ranks)


def both(operation, flavour):
    name = operation + "." + flavour
    return [name, name + ".rot"]


def launches():
    found = []
    for flavour in FLAVOURS:
        on_allocate = flavour == "allocate"
        found.append(Launch(2, [m for op in SMALL for m in both(op, flavour)], on_allocate))
        found.append(Launch(2, ["busy.%s.%s" % (op, flavour) for op in BUSY], on_allocate))
    found.append(Launch(2, [m for op in BULK for m in both(op, "allocate")], True))
    found.append(Launch(2, [m for op in BULK for m in both(op, "malloc")], False))
    found.append(Launch(2, ["acc64k_contended.allocate"], True))
    for ranks in (2, 4, 8):
        operations = SYNC if ranks == 2 else ("fence", "fence_put")
        found.append(Launch(ranks, [m for op in operations for m in both(op, "allocate")], True))
    found.append(Launch(2, both("create_free", "allocate"), True))
    return found


def reference_name(measure):
    """The name of a measure in the references, which have no flavour."""
    parts = measure.split("@")[0].split(".")
    return ".".join([parts[0]] + parts[2:])


def bar_of(measure):
    """The bar of libosc's figure, or None where the figure is only shown."""
    name, _, ranks = measure.partition("@")
    parts = name.split(".")
    operation, flavour, rot = parts[0], parts[1], parts[2:]
    suffix = "".join("." + part for part in rot)
    if operation == "busy":
        return Bar(LIBOSC, "idle." + ".".join(parts[1:]), 1.0)
    on_allocate = ".".join([operation, "allocate"] + rot)
    if flavour in ("malloc", "dynamic"):
        return Bar(HOST, name, 0.7 if operation in ("put8", "fop") else 1.0)
    if operation in ("put64k", "get64k", "put4m", "get4m"):
        return Bar(SHM, operation + suffix, 1.05, within=True)
    if operation in ("get_acc8", "rput_wait"):
        return Bar(OPENMPI, on_allocate, 0.5)
    if operation in ("put8", "get8", "fop", "cas", "acc8"):
        return Bar(OPENMPI, on_allocate, 1.0, aim=0.5)
    if operation == "lock_put32":
        return Bar(OPENMPI, on_allocate, 0.75)
    if operation == "acc64k_contended":
        # The test is that every sum is right; the two sides' speeds depend on each other.
        return None
    if operation == "acc64k":
        return Bar(OPENMPI, on_allocate, 1.15, within=True)
    if operation == "create_free":
        return Bar(OPENMPI, on_allocate, 0.6)
    if operation in SYNC:
        return Bar(OPENMPI, on_allocate + ("@" + ranks if ranks else ""), 1.0, aim=None if ranks else 0.5)
    return Bar(OPENMPI, on_allocate, 1.0)
