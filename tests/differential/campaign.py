#!/usr/bin/env python3
"""The random campaign: runs programs of test_differential in random worlds, for a time, and shrinks each that fails.

  campaign.py [--seed N] [--minutes M | --rounds K | --round N] [--host MPIEXEC,PROGRAM]... [--library L] [--fault F]
              [--at-most N]

A round is one job of several programs in one world: a host, a number of ranks, strategies, nodes, ways to memory, thread level.
The seed of the campaign and the round's number decide both, so --round N with the same seed runs round N again, and nothing else.
--host: a launcher and a test_differential that is built for its MPI; each round draws one of them. --fault: osc_faulty makes this
error (tests/support/faults), in the plain world, to test the campaign. A failing program is run again alone, and shrunk to the
fewest of its steps that fail in the same way; the campaign prints the command and these steps.
The last line has the numbers of rounds, programs and failures; a failure is the exit status 1. With --at-most N the status is 0 if
there was a failure, and each was shrunk to one step at least and N at most.
"""
import argparse
import itertools
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import textwrap
import time
import typing

WATCHDOG = 60  # seconds without progress, for the program itself
LIMIT = 240  # seconds of a job
FAULT_WATCHDOG = 8
FAULT_LIMIT = 40
SHRINK_WATCHDOG = 20  # seconds without progress of a single program
CONFIRM = 3  # runs of the whole program alone
RETRIES = 6  # runs of a part of a program that fails by chance
SHRINK_SECONDS = 1200
OUTPUT_LINES = 30  # of a job that fails
PLAIN_RANKS = 3
PROGRAMS_OF_RANKS = 240  # programs of a round times the square of its ranks: some 10 s on two cores
# What a failure is for shrinking. The launcher may lose the line of a mismatch.
GROUPS = {"mismatch": "ends", "crash": "ends", "hang": "hang", "stopped": "hang", "report": "report"}
# What OSC_CHECK may report: programs access elements at odd addresses, and compare bytes.
TRUE_REPORTS = "misaligned access|invalid argument"
STRATEGIES = ["auto", "auto", "immediate", "deferred"]


class World(typing.NamedTuple):
    ranks: int
    settings: dict  # the environment
    threads: bool = False


class Host(typing.NamedTuple):
    mpiexec: list
    program: str


class Outcome(typing.NamedTuple):
    kind: str  # "", or one of GROUPS; stopped: by the job's limit
    how: str
    seed: int  # of the program that failed, if it said so
    output: str
    seconds: float


def plain(fault=""):
    """On a node, with nothing chosen."""
    return World(PLAIN_RANKS, {"OSC_TEST_FAULT": fault} if fault else {})


def draw(seed, number, hosts):
    """The host, the world, the first program and the number of programs of a round."""
    dice = random.Random(f"{seed}/{number}")
    host = hosts[dice.randrange(len(hosts))]
    ranks = dice.choice([2, 2, 3, 3, 3, 4, 4, 4, 5, 6, 7, 8, 12, 16])
    settings, debug = {}, []
    for kind in ("FENCE", "PSCW", "LOCK"):
        strategy = dice.choice(STRATEGIES)
        if strategy != "auto":
            settings[f"OSC_{kind}"] = strategy
    if dice.random() < 0.6:
        nodes = dice.choice([2, 2, 3, 4, ranks])
        debug.append(f"fake_nodes={min(nodes, ranks)}")
        settings["OSC_OFI_PROVIDER"] = dice.choice(["net", "tcp;ofi_rxm"])
        debug += dice.choice([[], ["net_protocol=direct"], ["net_protocol=messages"], ["net_protocol=buffered"]])
        debug += dice.choice([[], [], [], ["lock_scheme=two_level"]])
        debug += dice.choice([[], [], [], ["atomics=provider"]])
        debug += dice.choice([[], [], [], ["host_progress_hook=0"]])
    debug += dice.choice([[], [], ["cma=off"]])
    debug += dice.choice([[], [], [], ["attend=0"]])
    debug += dice.choice([[], [], [], ["spin=0"], ["spin=100000"]])
    debug += dice.choice([[], [], [], ["sleep_ms=0"]])
    debug += dice.choice([[], [], [], ["reuse_mib=0"]])
    if debug:
        settings["OSC_DEBUG"] = ",".join(debug)
    adopt = dice.choice(["off", "off", "auto", "always"])
    if adopt != "off":
        settings["OSC_ADOPT"] = adopt
    check = dice.choice(["0", "0", "0", "1", "2"])
    if check != "0":
        settings["OSC_CHECK"] = check
    world = World(ranks, settings, threads=dice.random() < 0.25)
    return host, world, dice.randrange(1, 1 << 30), max(2, PROGRAMS_OF_RANKS // ranks**2)


def command(host, library, world, arguments):
    settings = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    if library:
        settings |= {"OSC_FALLBACK": "error", "LD_PRELOAD": library} | world.settings
    return host.mpiexec + ["-n", str(world.ranks), "env"] + [f"{k}={v}" for k, v in settings.items()] + [
        host.program, *arguments] + (["--threads"] if world.threads else [])


def verdict(code, output):
    """The kind of a failure ("": none), what it says, and the program's seed, or 0."""
    line = re.search(r"^differential: seed (\d+) .*rank \d+: (.*)$", output, re.MULTILINE)
    if line:
        hang = "no progress" in line[2]
        return "hang" if hang else "mismatch", ("hang: " if hang else "") + line[0][14:], int(line[1])
    if code == 0:
        report = re.search(rf"OSC_CHECK: (?!\d+ reports? of)(?!{TRUE_REPORTS}).*\n.*", output)
        return ("report", report[0], 0) if report else ("", "", 0)
    if code in (124, 137):
        return "stopped", "stopped by its limit", 0
    # The launcher may lose the line of a job that ends itself.
    crash = re.search(r"EXIT CODE: (\d+)|exit(?:ed)? (?:code|status) (\d+)|signal (\d+)", output)
    return "crash", "crash: " + (crash[0] if crash else f"exit {code}"), 0


def launch(host, library, world, arguments, limit):
    """Runs a job; `limit` seconds are its hard limit."""
    environment = {k: v for k, v in os.environ.items() if k != "OSC_TEST_FULL" and not k.startswith("OSC_")}
    begin = time.monotonic()
    try:
        job = subprocess.run(["timeout", "-k", "5", str(limit)] + command(host, library, world, arguments),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                             text=True, errors="replace", check=False)
    except OSError as error:
        sys.exit(f"campaign: cannot launch: {error}")
    return Outcome(*verdict(job.returncode, job.stdout), job.stdout, time.monotonic() - begin)


def shrink(steps, fails):
    """The delta debugging of Zeller and Hildebrandt: a list without a step that fails() can do without."""
    parts = 2
    while len(steps) > 1:
        bounds = [len(steps) * i // parts for i in range(parts + 1)]
        ranges = list(zip(bounds, bounds[1:]))
        candidates = [steps[a:b] for a, b in ranges] + [steps[:a] + steps[b:] for a, b in ranges if parts > 2]
        for number, candidate in enumerate(candidates):
            if fails(candidate):
                steps, parts = candidate, 2 if number < parts else parts - 1
                break
        else:
            if parts == len(steps):
                break
            parts = min(2 * parts, len(steps))
    return steps


class Failure:
    """A failing program, and its shrinking."""

    def __init__(self, host, library, world, seed, kind):
        self.host, self.library, self.world, self.seed, self.kind = host, library, world, seed, kind
        self.watchdog = FAULT_WATCHDOG if "OSC_TEST_FAULT" in world.settings else SHRINK_WATCHDOG
        self.tries, self.runs, self.end = 1, 0, time.monotonic() + SHRINK_SECONDS

    def arguments(self, keep=None):
        return ["--seed", str(self.seed), "--programs", "1"] + ([] if keep is None else ["--keep", ",".join(map(str, keep))])

    def once(self, keep=None):
        """Whether one run fails in the same way."""
        self.runs += 1
        outcome = launch(self.host, self.library, self.world, [*self.arguments(keep), "--watchdog", str(self.watchdog)],
                         4 * self.watchdog)
        return GROUPS.get(outcome.kind) == GROUPS[self.kind]

    def fails(self, keep):
        return time.monotonic() < self.end and any(self.once(keep) for _ in range(self.tries))

    def listed(self, keep=None):
        """Lines of the program's steps, or of these, from the host alone."""
        output = launch(self.host, "", self.world, [*self.arguments(keep), "--list"], FAULT_LIMIT).output
        return re.findall(r"^step (\d+): (.*)$", output, re.MULTILINE)

    def report(self):
        """Shrinks the program and prints what is left. The number of steps left, or None if these, or all, do not fail alone."""
        always = all([self.once() for _ in range(CONFIRM)])
        self.tries = 1 if always else RETRIES
        if not always and not any(self.once() for _ in range(RETRIES)):
            print(f"  seed {self.seed} alone: no failure in the last {RETRIES} runs", flush=True)
            return None
        steps = [int(number) for number, _ in self.listed()]
        left = [] if self.fails([]) else shrink(steps, self.fails)
        whole = "" if time.monotonic() < self.end else ", out of time"
        again = sum(self.once(left) for _ in range(CONFIRM))
        print(f"  {len(steps)} steps shrunk to {len(left)} in {self.runs} runs{whole}; these fail in {again} of {CONFIRM} runs:")
        for number, what in self.listed(left):
            print(f"    {number}: {what}")
        print("  again: " + shlex.join(command(self.host, self.library, self.world, self.arguments(left))), flush=True)
        return len(left) if again else None


def culprit(host, library, world, first, programs, outcome):
    """The failure of one program: the one that said so, or the first that fails alone in the same way."""
    seeds = [outcome.seed] if outcome.seed else range(first, first + programs)
    failures = [Failure(host, library, world, seed, outcome.kind) for seed in seeds]
    if not outcome.seed:
        failures = [next((failure for failure in failures if failure.once()), failures[0])]
    return failures[0]


def run_round(options, number):
    """Runs a round. The number of programs that ran, and of each failing one the steps that are left."""
    host, world, first, programs = draw(options.seed, number, options.hosts)
    if options.fault:
        host, world, programs = options.hosts[0], plain(options.fault), PROGRAMS_OF_RANKS // PLAIN_RANKS**2
    watchdog, limit = (FAULT_WATCHDOG, FAULT_LIMIT) if options.fault else (WATCHDOG, LIMIT)
    arguments = ["--seed", str(first), "--programs", str(programs), "--watchdog", str(watchdog)]
    outcome = launch(host, options.library, world, arguments, limit)
    what = f"{world.ranks} ranks{', threads' if world.threads else ''} " + " ".join(f"{k}={v}" for k, v in world.settings.items())
    print(f"round {number}: {programs} programs from {first}, {what}: {outcome.how or 'agree'}, {outcome.seconds:.1f} s", flush=True)
    if not outcome.kind:
        return programs, []
    print(textwrap.indent("\n".join(outcome.output.splitlines()[:OUTPUT_LINES]), "  | "))
    print("  whole round: "
          + shlex.join(command(host, options.library, world, arguments[:-2])), flush=True)
    failure = culprit(host, options.library, world, first, programs, outcome)
    left = failure.report()
    return failure.seed - first + 1, [left]


def host_of(text):
    mpiexec, _, program = text.rpartition(",")
    if not mpiexec or not os.access(program, os.X_OK):
        raise argparse.ArgumentTypeError(f"{text}: not a launcher, a comma and an executable program")
    return Host(shlex.split(mpiexec), str(pathlib.Path(program).resolve()))


def main():
    build = pathlib.Path(__file__).resolve().parents[2] / "build/release"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=10)
    length.add_argument("--rounds", type=int, help="so many rounds")
    length.add_argument("--round", type=int, help="this round alone")
    parser.add_argument("--host", type=host_of, action="append", dest="hosts", metavar="MPIEXEC,PROGRAM")
    parser.add_argument("--library", help="libosc.so of the build folder, or with --fault libosc_faulty.so")
    parser.add_argument("--fault", default="")
    parser.add_argument("--at-most", type=int)
    options = parser.parse_args()
    options.hosts = options.hosts or [host_of(f"mpiexec.mpich,{build}/tests/differential/test_differential")]
    options.library = options.library or str(
        build / ("tests/support/faults/libosc_faulty.so" if options.fault else "src/libosc.so"))
    begin = time.monotonic()
    rounds = programs = 0
    failures = []
    for number in itertools.count(options.round or 0):
        done, failed = run_round(options, number)
        rounds, programs = rounds + 1, programs + done
        failures += failed
        if rounds == (options.rounds or (options.round is not None)) or time.monotonic() - begin > 60 * options.minutes:
            break
    print(f"campaign: seed {options.seed}, {rounds} rounds, {programs} programs, {len(failures)} failures, "
          f"{time.monotonic() - begin:.0f} s")
    if options.at_most is None:
        return 1 if failures else 0
    return 0 if failures and all(left and left <= options.at_most for left in failures) else 1


if __name__ == "__main__":
    sys.exit(main())
