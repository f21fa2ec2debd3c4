"""Where strategies and consistency run their programs: one node, two hosts, or two hosts behind a forwarder that delays;
with libosc or without.
"""

import fnmatch
import os
import shlex
import sys

from . import launch, net, verdict
from .document import head, write

LIMIT_SECONDS = 240


def add_arguments(parser):
    parser.add_argument("--hosts", type=int, choices=(1, 2), default=1, help="1: one node (default); 2 needs root")
    parser.add_argument("--ranks", type=int, default=2, help="in all (default %(default)s)")
    parser.add_argument("--delay", type=int, metavar="US", help="two hosts behind a forwarder that delays so long")
    parser.add_argument("--provider", choices=net.PROVIDERS, default=net.PROVIDERS[0], help="default %(default)s")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="measures: names or shell patterns")
    parser.add_argument("--host", action="store_true", help="without libosc: the host MPI")
    parser.add_argument("--short", action="store_true", help="tiny batches: shows that all works, gives no figures")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    parser.add_argument("--build", default=launch.DEFAULT_BUILD, help="build directory (default build/release)")


class Place:
    """Where one program runs. `lacking`: None, or why it cannot."""

    def __init__(self, args, program):
        self.args = args
        self.build = os.path.abspath(args.build)
        self.tools = launch.Tools(self.build, None)
        self.program = program
        self.hosts = 2 if args.delay is not None else args.hosts
        self.lacking = net.missing() if self.hosts == 2 else None
        self.lacking = self.lacking or self.tools.available(launch.HOST if args.host else launch.LIBOSC, program)
        if args.ranks < 2 or args.ranks % self.hosts:
            self.lacking = "--ranks must be 2 or more, and the same number on each host"

    def names(self):
        """The program's measures that are wanted."""
        names = launch.run([self.tools.program(self.program), "--list"], 20).output.split()
        return [n for n in names if not self.args.only or any(fnmatch.fnmatch(n, p) for p in self.args.only)]

    def command(self, names):
        args = self.args
        program = [self.tools.program(self.program)] + (["--short"] if args.short else []) + names
        options = []
        if not args.host:
            options = ["-genv", "LD_PRELOAD", self.tools.libosc, "-genv", "OSC_FALLBACK", "error"]
        if self.hosts == 1:
            return [self.tools.mpich] + options + ["-n", str(args.ranks)] + program
        if not args.host:
            options += ["-genv", "OSC_OFI_PROVIDER", args.provider]
        hosts = net.Hosts(net.HOSTS_SCRIPT, self.tools, args.provider)
        parts = [["-n", str(args.ranks // 2)] + pin + program for pin in hosts.pins()]
        return ["bash", net.HOSTS_SCRIPT, "2", "sh", "-c", "$MPIRUN " + shlex.join(options + parts[0] + [":"] + parts[1])]

    def environment(self):
        if self.args.delay is None:
            return {}
        return {"LINK": "tap", "DELAY_US": str(self.args.delay),
                "FORWARDER": os.path.join(self.build, "tests", "multihost", "multihost_forwarder")}

    def figures(self):
        """{measure: {variant: line}} in the program's order, each measure in a start of its own; and the errors."""
        figures, troubles = {}, []
        for name in self.names():
            outcome = launch.run(self.command([name]), LIMIT_SECONDS, self.environment())
            lines = outcome.json_lines()
            for line in lines:
                if "measure" in line:
                    measure, variant = line["measure"].rsplit(".", 1)
                    figures.setdefault(measure, {})[variant] = line
            if outcome.trouble and not any("finalize" in line for line in lines):
                troubles.append("%s: %s" % (name, outcome.trouble))
        return figures, troubles

    def title(self):
        text = "%d ranks on %d host%s" % (self.args.ranks, self.hosts, "s" if self.hosts > 1 else "")
        if self.args.host:
            return text + ", the host MPI"
        return text + (", %s" % self.args.provider if self.hosts > 1 else "")

    def conditions(self):
        """For JSON."""
        return {"ranks": self.args.ranks, "hosts": self.hosts, "delay_us": self.args.delay,
                "provider": None if self.args.host or self.hosts == 1 else self.args.provider,
                "implementation": launch.HOST if self.args.host else launch.LIBOSC}


def compare(name, args, program, variants, heads, judge):
    """The whole of a script: runs, prints the table and writes JSON. `judge`: the last cells of a row, by the variants'
    times. The exit status."""
    place = Place(args, program)
    if place.lacking:
        print("%s: %s" % (name, place.lacking), file=sys.stderr)
        return 1
    document = head(name, place.tools, place.build)
    figures, troubles = place.figures()
    rows = [["measure"] + list(variants) + heads]
    for measure, found in figures.items():
        if all(variant in found for variant in variants):
            times = [found[variant]["ns"] for variant in variants]
            rows.append([measure] + [verdict.duration({"median": t}) for t in times] + judge(times))
    if len(rows) == 1 and not troubles:
        print("%s: no measure of that name; %s --list shows them" % (name, program), file=sys.stderr)
        return 1
    print(place.title() + "; medians\n\n" + verdict.layout(rows))
    for trouble in troubles:
        print(trouble, file=sys.stderr)
    if args.json:
        document.update(place.conditions(), figures=figures)
        write(document, args.json)
    return 1 if troubles else 0
