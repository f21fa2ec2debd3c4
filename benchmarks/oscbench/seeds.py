"""Shared by the scripts that repeat the seeds' experiments: their options, the starts of a program on one node and between
two hosts, and what becomes of the figures.
"""

import argparse
import os
import sys
import time

from . import launch, net, stats, taking, verdict
from .document import Parser, add_build_options, head, positive, rounded, tell, write
from .launch import HOST, LIBOSC, OPENMPI

CORES = len(os.sched_getaffinity(0))
# If processes share cores, MPICH must yield between polls, or it would measure time slices; Open MPI does so itself.
YIELDING = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
NODE, HOSTS = "node", "hosts"
PLACES = {NODE: "one node", HOSTS: "two hosts"}
MPI = (HOST, LIBOSC)
LABELS = {HOST: "host MPI", LIBOSC: "libosc"}


def parser_of(name, text, rounds, seconds):
    parser = Parser(prog=name, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=positive, default=rounds, help="interleaved rounds (default %(default)s)")
    parser.add_argument("--ranks", type=positive, default=8, help="most processes (default %(default)s)")
    parser.add_argument("--seconds", type=positive, default=seconds, help="begin no round that would end after (%(default)s)")
    parser.add_argument("--trial", action="store_true", help="tiny batches: shows that all works, gives no figures")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    add_build_options(parser)
    return parser


def add_places(parser):
    parser.add_argument("--hosts", type=int, choices=(1, 2), help="1: on one node only; 2: only between two hosts (needs "
                        "root); default: both, one node where hosts cannot be made")
    parser.add_argument("--provider", default=net.PROVIDERS[0], choices=net.PROVIDERS, help="default %(default)s")


class Start(taking.Start):
    """Figures are named by place, measure and, as their size, the number at the end of the measure's name or `size`."""

    def __init__(self, implementation, command, where, names, size=None):
        super().__init__(implementation, command, self.figures, len(names))
        self.where = where
        self.size = size

    def figures(self, outcome):
        for line in outcome.json_lines():
            if "measure" in line:
                name, _, count = line["measure"].rpartition(".")
                size = int(count) if count.isdigit() else self.size
                yield self.where + "." + (name if count.isdigit() else line["measure"]), size, line["ns"], line["valid"]


def mpi_start(args, tools, hosts, implementation, where, program, names, ranks):
    """A start of the program's measures `names`."""
    flags = ["--short"] if args.trial else []
    words = [tools.program(program, implementation)] + flags + list(names)
    yielding = YIELDING if ranks > CORES and implementation != OPENMPI else {}
    if where == HOSTS:
        command = hosts.start(implementation, words, environment=yielding, preload=[tools.finalize], ranks=ranks)
    else:
        command = tools.mpiexec(implementation, variables=yielding) + ["-n", str(ranks)] + words
    return Start(implementation, command, where, names, ranks)


def rank_counts(most):
    """2, 4, 8 and so on."""
    found = [2]
    while 2 * found[-1] <= most:
        found.append(2 * found[-1])
    return found


def rows(figures, unit="ns"):
    """All figures for JSON."""
    found = []
    for name, implementation in sorted({(n, i) for n, i, _ in figures.values}):
        for size in figures.sizes(name, implementation):
            summary = stats.summary(list(figures.of(name, implementation, size).values()))
            found.append(dict(measure=name, implementation=implementation, size=size, unit=unit, **rounded(summary)))
    return found


def points(figures):
    """Rows by measure, implementation and size."""
    return {(f["measure"], f["implementation"], f["size"]): f for f in figures}


def time_cell(found):
    """A dash where nothing was measured."""
    return verdict.duration(found) + ("~" if stats.unstable(found) else "")


def failures(figures):
    """Prints the errors; returns the exit status."""
    for line in figures.trouble:
        print("FAILED  " + line)
    for name, implementation in sorted(figures.wrong):
        print("WRONG DATA  %s %s" % (implementation, name))
    return 1 if figures.trouble or figures.wrong else 0


def slices(document):
    return "the machine has {0} cores: above {0} processes time slices rule".format(document["machine"]["cores"])


class Experiment:
    """A script that measures the host and libosc at each place. `starts(args, place, names)` says in which starts: names
    of measures and numbers of processes; `made(figures)` what the document has of the figures; `tables(document)` gives
    titles, tables and remarks.
    """

    def __init__(self, name, starts, made, tables):
        self.name = name
        self.program = name + "_mpi"
        self.starts = starts
        self.made = made
        self.tables = tables

    def places(self, args, tools):
        """The places to measure; and which are left out and why."""
        lacking = net.missing() or (None if os.path.exists(tools.finalize) else "not built: " + tools.finalize)
        wanted = {None: (NODE, HOSTS), 1: (NODE,), 2: (HOSTS,)}[args.hosts]
        if lacking and HOSTS in wanted:
            return [p for p in wanted if p != HOSTS], ["two hosts: " + lacking]
        return list(wanted), []

    def groups(self, args, tools, places):
        names = launch.run([tools.program(self.program), "--list"], 20).output.split()
        if args.trial:
            names = [n for n in names if not n.rpartition(".")[2].isdigit() or int(n.rpartition(".")[2]) <= 64]
        hosts = net.Hosts(net.HOSTS_SCRIPT, tools, args.provider)
        return [[mpi_start(args, tools, hosts, i, place, self.program, some, ranks) for i in MPI]
                for place in places for some, ranks in self.starts(args, place, names)]

    def run(self, args):
        """The whole of a script. The exit status."""
        args.build = os.path.abspath(args.build)
        tools = launch.Tools(args.build, args.libosc)
        for implementation in MPI:
            lacking = tools.available(implementation, self.program)
            if lacking:
                tell("%s: %s; build with the release preset, or name another --build" % (self.name, lacking))
                return 2
        places, left_out = self.places(args, tools)
        for line in left_out:
            tell("LEFT OUT  " + line)
        if not places:
            tell("%s: %s" % (self.name, left_out[0]))
            return 1
        document = head(self.name, tools, args.build)
        begin = time.monotonic()
        figures = taking.take(self.groups(args, tools, places), args.rounds, begin + args.seconds, tell)
        document.update({"provider": args.provider if HOSTS in places else None, "left_out": left_out,
                         "rounds": figures.rounds, "seconds": round(time.monotonic() - begin)})
        document.update(self.made(figures))
        document["trouble"] = figures.trouble
        for title, lines, remark in self.tables(document):
            print("%s\n\n%s\n%s" % (title, verdict.layout(lines), "\n" + remark + "\n" if remark else ""))
        print("medians of %d interleaved rounds; ~ marks a spread above 30 %%" % figures.rounds)
        if args.json:
            write(document, args.json)
        return failures(figures)
