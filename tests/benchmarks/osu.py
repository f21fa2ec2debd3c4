"""The micro-benchmarks of benchmarks/osu: each runs briefly with its data validated, on the host MPI alone and with libosc
preloaded, so that every two of program, -w and -s meet with libosc, and every -w meets every -s on the host. What they print
must be complete, wrong data must be told (a library with a fault built in), and wrong arguments must end at once.

usage: osu.py --mpiexec MPIEXEC --programs FOLDER --preload LIBRARIES --faulty LIBRARIES"""
import argparse
import json
import os
import subprocess
import sys
import time

SECONDS = 20  # for one launch
CREATIONS = ["create", "allocate", "dynamic"]
PASSIVE = ["lock", "flush", "flush_local", "lock_all"]
SYNCS = PASSIVE + ["pscw", "fence"]
# What is chosen briefly: few iterations; a size below a word, one word, one across pages.
BRIEF = ["-i", "9", "-x", "2", "-c"]
SIZES = ["-m", "1:5000"]
ROWS = 13


class Program:
    """How a program is run: its synchronisations, its sizes if it has a choice of them, the rows that it then prints."""

    def __init__(self, name, syncs=SYNCS, sizes=SIZES, rows=ROWS, ranks=2, extra=()):
        self.name = name
        self.syncs = syncs
        self.sizes = list(sizes)
        self.rows = rows
        self.ranks = ranks
        self.extra = list(extra)

    def arguments(self, creation, sync):
        synchronisation = ["-s", sync] if sync else []
        return ["-w", creation] + synchronisation + BRIEF + self.sizes + self.extra


PROGRAMS = [
    Program("osc_put_latency"),
    Program("osc_get_latency"),
]


class Checker:
    """Launches, and remembers what went wrong."""

    def __init__(self, options):
        self.options = options
        self.wrong = []
        self.launches = 0

    def launch(self, name, arguments, ranks, libraries="", fault=""):
        settings = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
        if libraries:
            settings.update(LD_PRELOAD=libraries, OSC_FALLBACK="error")
        if fault:
            settings["OSC_TEST_FAULT"] = fault
        command = ["timeout", "-k", "2", str(SECONDS), self.options.mpiexec, "-n", str(ranks)]
        for key, value in settings.items():
            command += ["-genv", key, value]
        command += [os.path.join(self.options.programs, name)] + arguments
        self.launches += 1
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)

    def expect(self, what, holds, run):
        if not holds:
            self.wrong.append(f"{what}: exit {run.returncode}\n{run.stdout[-600:]}{run.stderr[-600:]}")

    def valid_table(self, program, creation, sync, libraries):
        arguments = program.arguments(creation, sync)
        run = self.launch(program.name, arguments, program.ranks, libraries)
        rows = [line.split() for line in run.stdout.splitlines() if not line.startswith("#")]
        good = run.returncode == 0 and len(rows) == program.rows and all(row[-1] == "Pass" for row in rows)
        where = "libosc" if libraries else "host"
        self.expect(f"{where}: {program.name} {' '.join(arguments)}", good, run)


def pairs_with_libosc(check):
    """Every two of program, -w and -s: a program's k-th synchronisation goes with a creation that moves on by one per
    program and per synchronisation."""
    for p, program in enumerate(PROGRAMS):
        syncs = program.syncs or CREATIONS  # without -s: once per creation
        for s, sync in enumerate(syncs):
            creation = CREATIONS[(p + s) % len(CREATIONS)]
            check.valid_table(program, creation, sync if program.syncs else None, check.options.preload)


def pairs_on_host(check):
    """Every -w with every -s, the programs taking turns, and those without -s."""
    choices = [(creation, sync) for creation in CREATIONS for sync in SYNCS]
    turn = 0
    for creation, sync in choices:
        while sync not in PROGRAMS[turn % len(PROGRAMS)].syncs:
            turn += 1
        check.valid_table(PROGRAMS[turn % len(PROGRAMS)], creation, sync, "")
        turn += 1
    for program in PROGRAMS:
        if not program.syncs:
            check.valid_table(program, "create", None, "")


def json_objects(check):
    for program in PROGRAMS:
        run = check.launch(program.name, ["--json"] + program.arguments("allocate", None), program.ranks)
        try:
            told = json.loads(run.stdout)
            rows = told["results"]
            figures = {key[:-3] for row in rows for key in row if key.endswith("_q1")}
            good = (run.returncode == 0 and told["benchmark"] == program.name and len(rows) == program.rows
                    and told["ranks"] == program.ranks and figures and all(row["valid"] for row in rows)
                    and all(row[f + "_q1"] <= row[f] <= row[f + "_q3"] for row in rows for f in figures))
        except (ValueError, KeyError):
            good = False
        check.expect(f"{program.name} --json", good, run)


def wrong_data(check):
    """Faults that change the data of a put, and the one whose data comes only when the lock below the flush is released."""
    for name, fault in [("osc_put_latency", "drop_put"), ("osc_put_latency", "last_byte_lost"),
                        ("osc_put_latency", "get_before_put")]:
        run = check.launch(name, BRIEF + ["-m", "64:64"], 2, check.options.faulty, fault)
        check.expect(f"{name} with {fault}", run.returncode == 1 and run.stdout.split()[-1:] == ["Fail"], run)


def wrong_arguments(check):
    """One line that names the program and what is wrong, and exit code 1."""
    for name, ranks, arguments, mentioned in [
            ("osc_put_latency", 2, ["-s", "sometimes"], "sometimes"),
            ("osc_put_latency", 2, ["-w"], "-w"),
            ("osc_put_latency", 2, ["-q"], "-q"),
            ("osc_put_latency", 2, ["--nonsense"], "--nonsense"),
            ("osc_put_latency", 2, ["-m", "16:8"], "16:8"),
            ("osc_put_latency", 2, ["-i", "0"], "0"),
            ("osc_put_latency", 2, ["more"], "more"),
            ("osc_put_latency", 3, [], "exactly 2 ranks"),
            ("osc_put_latency", 1, [], "exactly 2 ranks"),
    ]:
        run = check.launch(name, arguments, ranks)
        lines = [line for line in run.stderr.splitlines() if line.startswith(name + ":")]
        good = run.returncode == 1 and len(lines) == 1 and mentioned in lines[0] and run.stdout.strip() == ""
        check.expect(f"{ranks} ranks: {name} {' '.join(arguments)}", good, run)
    run = check.launch("osc_put_latency", ["--help"], 2)
    check.expect("--help", run.returncode == 0 and run.stdout.startswith("usage: osc_put_latency"), run)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("mpiexec", "programs", "preload", "faulty"):
        parser.add_argument("--" + name, required=True)
    check = Checker(parser.parse_args())
    for step in (wrong_arguments, wrong_data, json_objects, pairs_on_host, pairs_with_libosc):
        begin = time.monotonic()
        before = check.launches
        step(check)
        print(f"{step.__name__}: {check.launches - before} launches, {time.monotonic() - begin:.1f} s", flush=True)
    print("\n".join(check.wrong))
    return 1 if check.wrong else 0


sys.exit(main())
