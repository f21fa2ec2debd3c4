"""Interleaved rounds: every round starts each group of measures once per implementation, in an order that turns from
round to round, and keeps every figure under its round.
"""

from . import bars
from .launch import CMA, HOST, LIBOSC, OPENMPI, SHM, run

LIMIT_SECONDS = 120


class Figures:
    """All figures by implementation, measure and round; and the errors."""

    def __init__(self):
        self.ns = {}
        self.p90 = {}
        self.wrong = set()
        self.trouble = []

    def add(self, implementation, measure, number, line):
        self.ns.setdefault((implementation, measure), {})[number] = line["ns"]
        self.p90.setdefault((implementation, measure), {})[number] = line["p90_single"]
        if not line["valid"]:
            self.wrong.add((implementation, measure))

    def of(self, implementation, measure):
        return self.ns.get((implementation, measure), {})


BIND = ["sh", "-c", 'exec taskset -c "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" "$@"', "sh"]


def commands(tools, launch, wanted, implementations, brief, bind=False):
    """The starts that one group of measures needs: (implementation, command, name -> key)."""
    flags = ["--short"] if brief else []
    names = [m for m in launch.measures if launch.key(m) in wanted]
    if not names:
        return []
    found = []
    for implementation in (HOST, LIBOSC, OPENMPI):
        if implementation not in implementations:
            continue
        command = tools.mpiexec(implementation)
        if implementation == OPENMPI and launch.oscsm:
            command = command + ["--mca", "osc", "sm"]
        command = command + ["-n", str(launch.ranks)] + (BIND if bind else []) + [tools.program("node_bench", implementation)] + flags + names
        found.append((implementation, command, launch.key))
    return found


def reference_commands(tools, wanted, implementations, brief):
    """The references' starts: the names that a wanted measure is compared with or shown beside."""
    flags = ["--short"] if brief else []
    names = set()
    for measure in wanted:
        if "@" not in measure:
            names.add(bars.reference_name(measure))
        bar = bars.bar_of(measure)
        if bar is not None and bar.by in (SHM, CMA):
            names.add(bar.below)
    return [(way, [tools.program("node_reference"), way] + flags + sorted(names), lambda name: name)
            for way in (SHM, CMA) if way in implementations and names]


def measure(tools, wanted, implementations, args, tell):
    """Runs the rounds of the command line's `args` and returns their Figures. `tell` shows progress."""
    figures = Figures()
    groups = [commands(tools, launch, wanted, implementations, args.short, args.bind) for launch in bars.launches()]
    groups.append(reference_commands(tools, wanted, implementations, args.short))
    groups = [group for group in groups if group]
    for number in range(args.rounds):
        tell("round %d of %d" % (number + 1, args.rounds))
        for group in groups:
            turn = number % len(group)
            for implementation, command, key in group[turn:] + group[:turn]:
                outcome = run(command, LIMIT_SECONDS)
                for line in outcome.json_lines():
                    figures.add(implementation, key(line["measure"]), number, line)
                if outcome.trouble:
                    shown = " ".join(command[-3:])
                    figures.trouble.append("%s, round %d, ... %s: %s" % (implementation, number + 1, shown,
                                                                         outcome.trouble))
    return figures
