"""The figures of compare: curves of the micro-benchmarks against message size and single figures of node_bench and
net_bench, on one node and on two hosts, and the starts of each implementation that give them.
"""

from . import bars, net, rounds
from .launch import HOST, LIBOSC, OPENMPI, SHM
from .taking import Start

NODE, HOSTS = "node", "hosts"
RAW = net.RAW
IMPLEMENTATIONS = (HOST, LIBOSC, OPENMPI, SHM, RAW)

# Kinds of figures: the first two are curves.
LATENCY, BANDWIDTH, SINGLE = "latency", "bandwidth", "single"
UNITS = {LATENCY: "us", BANDWIDTH: "MB/s", SINGLE: "ns"}
JSON_KEYS = {LATENCY: "latency_us", BANDWIDTH: "bandwidth_mb_s"}
SMALLEST = 8


class Mode:
    """How much is measured: options of the micro-benchmarks by place and kind, largest sizes, rounds, and the seconds
    after which no further round is begun.
    """

    def __init__(self, name, number_of_rounds, seconds, largest, options, brief_raw):
        self.name = name
        self.rounds = number_of_rounds
        self.seconds = seconds
        self.largest = largest
        self.options = options
        # Small batches for the curves of the bare network, whose ordinary ones would take most of the short set's time.
        self.brief_raw = brief_raw

    def sizes(self, where, kind):
        sizes = [SMALLEST]
        while sizes[-1] * 2 <= self.largest[where, kind]:
            sizes.append(sizes[-1] * 2)
        return sizes

    def words(self, where, kind):
        return ["--json", "-m", "%d:%d" % (SMALLEST, self.largest[where, kind])] + self.options[where, kind].split()


def mode(name, number_of_rounds, seconds, largest, options, brief_raw):
    keys = [(where, kind) for where in (NODE, HOSTS) for kind in (LATENCY, BANDWIDTH)]
    return Mode(name, number_of_rounds, seconds, dict(zip(keys, largest)), dict(zip(keys, options)), brief_raw)


# On the node the programs' own numbers of iterations.
SHORT = mode("short", 9, 540, (1 << 18, 1 << 18, 1 << 17, 1 << 17), ("", "", "-i 270 -x 20", "-i 9 -x 2"), True)
FULL = mode("full", 15, 4 * 3600, (1 << 22, 1 << 22, 1 << 22, 1 << 22),
            ("", "", "-i 900 -x 90", "-i 45 -x 5"), False)
# Shows that everything works; gives no figures.
TRIAL = mode("trial", 1, 60, (64, 64, 64, 64), ("-i 9 -x 2",) * 4, True)


class Measure:
    """`program` is a micro-benchmark for a curve, or a measure of node_bench or net_bench."""

    def __init__(self, where, name, kind, program):
        self.where = where
        self.name = where + "." + name
        self.kind = kind
        self.program = program


CURVES = (("put_latency", LATENCY), ("get_latency", LATENCY), ("acc_latency", LATENCY), ("put_bw", BANDWIDTH),
          ("get_bw", BANDWIDTH))
# Plain shared memory has no accumulates that are atomic by element and keep MPI's order.
REFERENCE_CURVES = {SHM: ("put_latency", "get_latency", "put_bw", "get_bw"),
                    RAW: ("put_latency", "get_latency", "acc_latency", "put_bw", "get_bw")}
NODE_SINGLE = ("put8", "get8", "fop", "cas", "acc8", "lock_put32", "vector64", "acc64k", "put64k", "get64k", "put4m", "get4m",
               "fence", "fence_put", "pscw_put", "create_free")
HOSTS_SINGLE = ("put8", "get8", "fop", "cas", "acc8", "lock_put32", "put8_stream", "acc8_stream", "put4m",
                "get4m", "fence", "fence_put", "fence_put_asserted", "pscw_put")


# Operations on shapes with so many pieces; one start has all of an operation and a flavour. They are in no set, because
# they take longer than all the rest.
SHAPES = [["%s_%s%d" % (operation, shape, pieces) for shape in ("vector", "pages", "indexed", "rows")
           for pieces in (4, 16, 64, 256, 1000)] for operation in ("put", "get", "acc")]
SHAPE_FLAVOURS = ("allocate", "malloc", "dynamic")


def shape_measures():
    on_node = [name + "." + flavour for flavour in SHAPE_FLAVOURS for names in SHAPES for name in names]
    between = [name for names in SHAPES for name in names]
    return [Measure(NODE, name, SINGLE, name) for name in on_node] + [Measure(HOSTS, n, SINGLE, n) for n in between]


def measures():
    found = []
    for where in (NODE, HOSTS):
        found += [Measure(where, name, kind, "osc_" + name) for name, kind in CURVES]
        for name in NODE_SINGLE if where == NODE else HOSTS_SINGLE:
            found.append(Measure(where, name, SINGLE, name + ".allocate" if where == NODE else name))
    return found


def read_curve(name, kind):
    def read(outcome):
        for line in outcome.json_lines():
            for row in line.get("results", []):
                yield name, row["size"], row[JSON_KEYS[kind]], True
    return read


def read_reference_curve(name, kind):
    def read(outcome):
        for line in outcome.json_lines():
            if "measure" in line:
                size = int(line["measure"].rsplit(".", 1)[1])
                figure = line["ns"] / 1e3 if kind == LATENCY else size / line["ns"] * 1e3
                yield name, size, figure, line["valid"]
    return read


def read_single(names):
    def read(outcome):
        for line in outcome.json_lines():
            if line.get("measure") in names:
                yield names[line["measure"]], None, line["ns"], line["valid"]
    return read


def curve_starts(measure, implementations, tools, hosts, how):
    """The starts of one curve, one for each implementation that has it."""
    short = measure.name.split(".", 1)[1]
    sizes = how.sizes(measure.where, measure.kind)
    words = how.words(measure.where, measure.kind)
    on_node = measure.where == NODE
    found = []
    for implementation in implementations:
        reader = read_curve
        if implementation in (SHM, RAW):
            if short not in REFERENCE_CURVES[implementation] or (implementation == SHM) != on_node:
                continue
            reader = read_reference_curve
            names = ["%s.%d" % (short, size) for size in sizes]
            if on_node:
                command = [tools.program("node_reference"), SHM] + names
            else:
                command = hosts.start(RAW, hosts.raw_words() + (["--short"] if how.brief_raw else []) + names)
        elif on_node:
            program = tools.micro(measure.program, implementation)
            command = tools.mpiexec(implementation)
            command += ["--mca", "osc", "sm"] if implementation == OPENMPI else []
            command += ["-n", "2", program] + words
        elif implementation == OPENMPI:
            continue
        else:
            command = hosts.start(implementation, [tools.micro(measure.program)] + words, preload=[tools.finalize])
        found.append(Start(implementation, command, reader(measure.name, measure.kind), len(sizes)))
    return found


def node_single_starts(wanted, implementations, tools, brief):
    """Groups of starts of node_bench and, last, of the plain shared-memory reference."""
    names = {m.program: m.name for m in wanted}
    groups = []
    shapes = [bars.Launch(2, [name + "." + flavour for name in of], flavour == "allocate")
              for flavour in SHAPE_FLAVOURS for of in SHAPES]
    for launch in bars.launches() + shapes:
        if launch.ranks != 2:
            continue
        keys = [m for m in launch.measures if m in names]
        groups.append([Start(i, command, read_single({k: names[k] for k in keys}), len(keys))
                       for i, command, _ in rounds.commands(tools, launch, keys, implementations, brief)])
    if SHM in implementations:
        # The reference has no flavours, and not all measures.
        plain = {bars.reference_name(program): name for program, name in names.items()}
        command = [tools.program("node_reference"), SHM] + (["--short"] if brief else []) + sorted(plain)
        groups.append([Start(SHM, command, read_single(plain), 0)] if plain else [])
    return groups


def hosts_single_starts(wanted, implementations, hosts, brief):
    names = {m.program: m.name for m in wanted}
    groups = []
    shapes = tuple([net.small(name, raw=False) for name in of] for of in SHAPES)
    on_hosts = [i for i in implementations if i in net.IMPLEMENTATIONS]
    for group in net.starts(hosts, set(names), on_hosts, brief, of=net.GROUPS + shapes):
        groups.append([Start(i, command, read_single({k: names[v] for k, v in of.items()}), 0 if i == RAW else len(of))
                       for i, command, of in group])
    return groups


def groups_of(wanted, implementations, tools, hosts, how):
    """All groups of starts, each to be run once for every implementation in each round."""
    found = [curve_starts(m, implementations, tools, hosts, how) for m in wanted if m.kind != SINGLE]
    single = [m for m in wanted if m.kind == SINGLE]
    brief = how.name == "trial"
    found += node_single_starts([m for m in single if m.where == NODE], implementations, tools, brief)
    found += hosts_single_starts([m for m in single if m.where == HOSTS], implementations, hosts, brief)
    return [group for group in found if group]
