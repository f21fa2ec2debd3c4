"""The measures of net_compare on two hosts, the bars of libosc's figures, the starts of the programs there, and the
table.

A measure may have several bars, each against another implementation of the same round, a sum of such figures of other
measures, or an absolute one.
"""

import os
import shlex
import shutil

from . import rounds, stats
from .launch import HOST, LIBOSC, SOURCE, run
from .verdict import duration, layout

RAW = "raw"
IMPLEMENTATIONS = (HOST, LIBOSC, RAW)
PROVIDERS = ("tcp;ofi_rxm", "net")
HOSTS_SCRIPT = os.path.join(SOURCE, "tests", "multihost", "hosts.sh")
LIMIT_SECONDS = 60
BRIEF_LIMIT_SECONDS = 30

# How a figure is shown; all are kept as nanoseconds per operation.
TIME, RATE, BANDWIDTH, LATE = "time", "rate", "bandwidth", "late"


class Bar:
    """A ratio of libosc's figure and that of `by`, or with `by` None the figure itself in nanoseconds.

    `faster` turns the ratio round: how many times as fast libosc is, which must reach the limit.
    """

    def __init__(self, by, limit, aim=None, faster=False, note=""):
        self.by = by
        self.limit = limit
        self.aim = aim
        self.faster = faster
        self.note = note

    def text(self):
        if self.by is None:
            return "< " + duration({"median": self.limit})
        aim = ", aim %gx" % self.aim if self.aim else ""
        return "%s %gx %s%s%s" % (">=" if self.faster else "<=", self.limit, self.by, self.note, aim)

    def values(self, figures, measure):
        ours = figures.of(LIBOSC, measure)
        if self.by is None:
            return list(ours.values())
        other = figures.of(self.by, measure)
        return stats.ratios(other, ours) if self.faster else stats.ratios(ours, other)

    def met(self, median):
        if self.by is None:
            return median < self.limit
        return median >= self.limit if self.faster else median <= self.limit


class SumBar:
    """A ratio of libosc's figure and a sum: of each (implementation, measure) in `parts`, so many times."""

    by = "sum"

    def __init__(self, parts, limit, text):
        self.parts = parts
        self.limit = limit
        self.of = text

    def text(self):
        return "<= %gx %s" % (self.limit, self.of)

    def values(self, figures, measure):
        found = [(figures.of(implementation, name), times) for (implementation, name), times in self.parts.items()]
        rounds_of_all = set.intersection(*(set(by_round) for by_round, _ in found))
        return stats.ratios(figures.of(LIBOSC, measure),
                            {r: sum(by_round[r] * times for by_round, times in found) for r in rounds_of_all})

    def met(self, median):
        return median <= self.limit


class Measure:
    """`program` is the name in net_bench where it differs; net_raw has those measures that `raw` says, and net_bench
    those that `mpi` says.
    """

    def __init__(self, name, bars, program=None, raw=True, shown=TIME, size=0, mpi=True):
        self.name = name
        self.bars = bars
        self.program = program or name
        self.raw = raw
        self.mpi = mpi
        self.shown = shown
        self.size = size


def small(name, *bars, raw=True):
    return Measure(name, bars, name + ".allocate", raw)


def round_trips(number, limit):
    """libfabric's own fetch_and_op is the raw request and reply."""
    text = "raw fop" if number == 1 else "%g raw fop" % number
    return SumBar({(RAW, "fop"): number}, limit, text)


# A message each way at the same time, on endpoints on which a thread can sleep, as on libosc's.
EXCHANGE = "waitable.exchange.8"


def exchanges(number, limit):
    return SumBar({(RAW, EXCHANGE): number}, limit, "%g raw exchanges" % number)


def ways(number, limit, text):
    """A raw put and its acknowledgement are two ways."""
    return SumBar({(RAW, "put8"): number / 2}, limit, text)


def computing(operation):
    return Measure("computing." + operation, [Bar(RAW, 1.5, note=" thread")])


def cold(operation, raw=None):
    """One operation per computation, with the latest beside the median. `raw`: the raw measure that it is compared with."""
    bar = SumBar({(RAW, "cold." + raw): 1}, 1.5, "raw %s" % raw) if raw else Bar(RAW, 1.5, note=" thread")
    return Measure("cold." + operation, [bar], raw=raw is None, shown=LATE)


def stream(name):
    return Measure(name, [Bar(HOST, 10, aim=20, faster=True)], shown=RATE)


def blocks(name, size, program=None):
    return Measure(name, [Bar(RAW, 0.9, faster=True)], program, shown=BANDWIDTH, size=size)


# Each group is one start of a program. Waiting for a target that computes is the host's slowest case, and what sleeps
# must not have been disturbed before: these are alone.
GROUPS = (
    [small("put8", Bar(RAW, 1.25), Bar(HOST, 0.7)),
     small("get8", Bar(RAW, 1.25), Bar(HOST, 0.7)),
     small("fop", Bar(HOST, 1.1)),
     small("cas", Bar(HOST, 1.1)),
     small("acc8", Bar(HOST, 1.1)),
     small("lock_put32", Bar(HOST, 0.4), round_trips(1, 1.2), raw=False),
     small("lock_get8", round_trips(1, 1.2), raw=False),
     small("lock_fop", round_trips(1, 1.2), raw=False),
     small("lock_acc8", round_trips(1, 1.2), raw=False),
     small("lock_put_get", round_trips(2, 1.0), raw=False)],
    [computing(operation) for operation in ("put8", "get8", "fop", "cas", "acc8")],
    [cold("put8"), cold("fop"), cold("acc8"), cold("lock_put", "fop")],
    [stream("put8_stream"),
     stream("acc8_stream"),
     blocks("put64k_stream", 65536),
     blocks("get64k_stream", 65536),
     blocks("put4m", 4 << 20, "put4m.allocate"),
     blocks("get4m", 4 << 20, "get4m.allocate")],
    [small("reduce_scatter", raw=False),
     Measure(EXCHANGE, [], mpi=False),
     small("fence", Bar(HOST, 1.0), exchanges(2, 1.25), raw=False),
     small("fence_put", Bar(HOST, 1.0), raw=False),
     small("fence_put_asserted", Bar(HOST, 1.0),
           SumBar({(HOST, "reduce_scatter"): 1, (RAW, "put8"): 0.5}, 1.15, "host reduce_scatter + raw way"), raw=False),
     small("pscw_put", Bar(HOST, 0.6), ways(3, 1.0, "3 raw ways"), raw=False)],
    [Measure("idle_cpu", [Bar(None, 10e6)])],
)

MEASURES = [measure for group in GROUPS for measure in group]


def missing(script=HOSTS_SCRIPT):
    """The missing prerequisite for making hosts on this machine, or None."""
    if os.geteuid() != 0:
        return "needs root: the two hosts are network namespaces"
    if not shutil.which("ip"):
        return "needs the command ip (package iproute2)"
    if not os.path.exists(script):
        return "%s not found; --hosts-script names another" % script
    return None


class Hosts:
    """Two hosts on this machine, made for one start and gone after it, so that nothing outlives a start that hangs."""

    def __init__(self, script, tools, provider, share_cores=False):
        self.script = script
        self.tools = tools
        self.provider = provider
        self.share_cores = share_cores

    def available(self, implementation):
        """None if it can be run, else why not."""
        path = self.tools.program("net_raw" if implementation == RAW else "net_bench")
        if not os.access(path, os.X_OK):
            return "not built: " + path
        if implementation == LIBOSC and not os.path.exists(self.tools.libosc):
            return "not built: " + self.tools.libosc
        return None

    def command(self, implementation, names, brief, environment=None):
        words = self.raw_words() if implementation == RAW else [self.tools.program("net_bench")]
        return self.start(implementation, words + (["--short"] if brief else []) + names, environment)

    def raw_words(self):
        return [self.tools.program("net_raw"), self.provider, "--server", "h0"]

    def start(self, implementation, words, environment=None, preload=(), ranks=2):
        """Ranks on the two hosts in turn run `words`; libraries in `preload` go below libosc, or alone."""
        libraries = ([self.tools.libosc] if implementation == LIBOSC else []) + list(preload)
        options = ["-genv", "LD_PRELOAD", ":".join(libraries)] if libraries else []
        if implementation == LIBOSC:
            options += ["-genv", "OSC_FALLBACK", "error", "-genv", "OSC_OFI_PROVIDER", self.provider]
        for name, value in (environment or {}).items():
            options += ["-genv", name, value]
        pins = self.pins()
        each = options
        for rank in range(ranks):
            each = each + ([":"] if rank else []) + ["-n", "1"] + pins[rank % 2] + words
        # The script sets MPIRUN, a launcher with its options.
        return ["bash", self.script, "2", "sh", "-c", "$MPIRUN " + shlex.join(each)]

    def pins(self):
        """A prefix for each rank that gives every host cores of its own, as hosts have: two ranks that poll on one core
        measure its time slices.
        """
        cores = sorted(os.sched_getaffinity(0))
        half = len(cores) // 2
        if self.share_cores or half == 0 or not shutil.which("taskset"):
            return [[], []]
        return [["taskset", "-c", ",".join(map(str, part))] for part in (cores[:half], cores[half:])]


def needed(wanted, implementation):
    """The names of the measures that an implementation is started with: those wanted, and what their bars add up."""
    parts = [part for m in MEASURES if m.name in wanted for bar in m.bars for part in getattr(bar, "parts", ())]
    return wanted | {name for by, name in parts if by == implementation}


def starts(hosts, wanted, implementations, brief, bars=False, of=GROUPS):
    """One list per group of measures in `of`: (implementation, command, {name in the program: measure}). With `bars` also what
    the measures' bars add up."""
    found = []
    for group in of:
        of_group = []
        for implementation in implementations:
            raw = implementation == RAW
            chosen = needed(wanted, implementation) if bars else wanted
            names = {m.name if raw else m.program: m.name for m in group if m.name in chosen and (m.raw if raw else m.mpi)}
            if names:
                of_group.append((implementation, hosts.command(implementation, list(names), brief), names))
        if of_group:
            found.append(of_group)
    return found


class Figures(rounds.Figures):
    """Also how many starts had all their figures and then did not get out of MPI_Finalize, by implementation."""

    def __init__(self):
        super().__init__()
        self.unfinished = {}
        self.late = {}

    def add(self, implementation, measure, number, line):
        super().add(implementation, measure, number, line)
        self.late.setdefault((implementation, measure), []).append((line["p99"], line["max"]))


def measure(hosts, wanted, implementations, number_of_rounds, brief, tell):
    """Runs the interleaved rounds and returns their figures. `tell` shows progress."""
    figures = Figures()
    groups = starts(hosts, wanted, implementations, brief, bars=True)
    for number in range(number_of_rounds):
        tell("round %d of %d" % (number + 1, number_of_rounds))
        for group in groups:
            turn = number % len(group)
            for implementation, command, names in group[turn:] + group[:turn]:
                outcome = run(command, BRIEF_LIMIT_SECONDS if brief else LIMIT_SECONDS)
                lines = outcome.json_lines()
                found = [line for line in lines if line.get("measure") in names]
                for line in found:
                    figures.add(implementation, names[line["measure"]], number, line)
                if any("finalize" in line for line in lines) and len(found) == len(names):
                    figures.unfinished[implementation] = figures.unfinished.get(implementation, 0) + 1
                elif outcome.trouble:
                    figures.trouble.append("%s, round %d, %s: %s" % (implementation, number + 1, " ".join(names),
                                                                     outcome.trouble))
    return figures


def judge_bar(figures, name, bar):
    found = stats.summary(bar.values(figures, name))
    verdict = "-"
    if (LIBOSC, name) in figures.wrong:
        verdict = "WRONG DATA"
    elif found is not None:
        verdict = "met" if bar.met(found["median"]) else "not met"
        if stats.unstable(found):
            verdict += ", unstable"
    return {"bar": bar.text(), "ratio": found if bar.by else None, "value": None if bar.by else found,
            "verdict": verdict}


def judge(figures, of):
    """One row: every implementation's figure, and a ratio and a verdict for each bar."""
    row = {"measure": of.name, "shown": of.shown, "size": of.size, "ns": {}, "wrong": []}
    for implementation in IMPLEMENTATIONS:
        found = stats.summary(list(figures.of(implementation, of.name).values()))
        if found:
            row["ns"][implementation] = found
            if of.shown == LATE:
                p99, most = zip(*figures.late[implementation, of.name])
                row["ns"][implementation] = {**found, "p99": stats.summary(p99)["median"], "most": max(most)}
        if (implementation, of.name) in figures.wrong:
            row["wrong"].append(implementation)
    row["bars"] = [judge_bar(figures, of.name, bar) for bar in of.bars]
    return row


def figure(row, implementation):
    found = row["ns"].get(implementation)
    if implementation in row["wrong"]:
        return "WRONG"
    if found is None:
        return "-"
    ns = found["median"]
    if row["shown"] == RATE:
        text = "%.3f M/s" % (1e3 / ns)
    elif row["shown"] == BANDWIDTH:
        text = "%.2f GB/s" % (row["size"] / ns)
    else:
        text = duration(found)
    if row["shown"] == LATE:
        text += " (%s, %s)" % tuple(duration({"median": found[key]}) for key in ("p99", "most"))
    return text + ("~" if stats.unstable(found) else "")


def table(rows):
    lines = [["measure"] + list(IMPLEMENTATIONS) + ["ratio [quartiles]", "bar", "verdict"]]
    for row in rows:
        cells = [row["measure"]] + [figure(row, i) for i in IMPLEMENTATIONS]
        for bar in row["bars"] or [{"ratio": None, "bar": "-", "verdict": "-"}]:
            ratio = bar["ratio"]
            shown = "%.2f [%.2f-%.2f]" % (ratio["median"], ratio["q1"], ratio["q3"]) if ratio else "-"
            lines.append(cells + [shown, bar["bar"], bar["verdict"]])
            cells = [""] * len(cells)
    return layout(lines)
