"""The micro-benchmarks of benchmarks/osu: each runs briefly with its data validated, on the host MPI alone and with libosc
preloaded, each program with one -w and one -s. With OSC_TEST_FULL=1 all three of program, -w and -s meet with libosc, and
every -w meets every -s on the host. What they print must be complete, wrong data must be told (a library with faults built
in), and wrong arguments must end at once.

usage: osu.py --mpiexec MPIEXEC --programs FOLDER --preload LIBOSC --faulty LIBOSC"""
import argparse
import itertools
import json
import os
import subprocess
import sys
import time

SECONDS = 20  # for one launch
FULL = os.environ.get("OSC_TEST_FULL", "0") not in ("", "0")
CREATIONS = ["create", "allocate", "dynamic"]
PASSIVE = ["lock", "flush", "flush_local", "lock_all"]
SYNCS = PASSIVE + ["pscw", "fence"]
BRIEF = ["-i", "9", "-x", "2", "-c"]
# 5, 10, 20 and 40 bytes: elements of every width.
SIZES = ["-m", "5:40"]
ROWS = 4


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


# Between two ranks, of any size.
TRANSFERS = ["osc_put_latency", "osc_get_latency", "osc_put_bw", "osc_get_bw", "osc_put_bibw", "osc_acc_latency",
             "osc_get_acc_latency", "osc_overlap"]
PROGRAMS = [
    *(Program(name) for name in TRANSFERS),
    Program("osc_put_mr"),
    Program("osc_fop_latency", sizes=[], rows=1),
    Program("osc_cas_latency", sizes=[], rows=1),
    Program("osc_passive", syncs=PASSIVE, extra=["-t", "2", "-o", "get"]),
    Program("osc_sync_latency", syncs=[], sizes=[], rows=1),
    Program("osc_window", syncs=[]),
    Program("osc_notify_latency", syncs=[]),
    Program("osc_notify_latency", syncs=[], extra=["-n", "3"]),
]


class Checker:
    """Launches programs and collects their errors."""

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


def with_libosc(check):
    """Every three of program, -w and -s; without OSC_TEST_FULL=1 every program once, each -w and each -s at least once."""
    for p, program in enumerate(PROGRAMS):
        syncs = program.syncs or [None]
        for sync in syncs if FULL else [syncs[p % len(syncs)]]:
            for creation in CREATIONS if FULL else [CREATIONS[p % len(CREATIONS)]]:
                check.valid_table(program, creation, sync, check.options.preload)


def large_with_libosc(check):
    for name in TRANSFERS if FULL else TRANSFERS[:1]:
        check.valid_table(Program(name, sizes=["-m", "100000:100000"], rows=1), "create", "flush", check.options.preload)


def more_ranks(check):
    """Several pairs; a row of 2 ranks and one of 3. Little, as the host's collectives are slow where ranks share cores."""
    for program in [Program("osc_put_mr", sizes=["-m", "8:8"], rows=1, ranks=4),
                    Program("osc_sync_latency", syncs=[], sizes=[], rows=2, ranks=3),
                    Program("osc_window", syncs=[], sizes=["-m", "4096:4096"], rows=1, ranks=3)]:
        check.valid_table(program, "allocate", "fence" if program.syncs else None, check.options.preload)


def on_host(check):
    """Every -w with every -s, the programs taking turns, and those without -s."""
    turns = itertools.cycle(PROGRAMS)
    for creation, sync in itertools.product(CREATIONS, SYNCS) if FULL else [("create", "fence"), ("dynamic", "lock")]:
        program = next(program for program in turns if sync in program.syncs)
        check.valid_table(program, creation, sync, "")
    for program in PROGRAMS if FULL else []:
        if not program.syncs:
            check.valid_table(program, "create", None, "")


def json_objects(check):
    for program in PROGRAMS if FULL else PROGRAMS[::4]:
        run = check.launch(program.name, ["--json"] + program.arguments("create", None), program.ranks)
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
    """Data that is lost or wrong, that comes only when the lock below the flush is released, or after the target's epoch."""
    one_size = ["-m", "64:64"]
    often = ["-m", "4096:4096", "-i", "900"]
    faults = [
        ("osc_put_latency", "drop_put", one_size),
        ("osc_put_latency", "last_byte_lost", one_size),
        ("osc_put_latency", "get_before_put", one_size),
        ("osc_put_latency", "fence_unsynchronised", often + ["-s", "fence"]),
        ("osc_put_latency", "wait_early", often + ["-s", "pscw"]),
        ("osc_put_mr", "last_byte_lost", one_size),
        ("osc_acc_latency", "drop_accumulate", one_size),
        ("osc_get_acc_latency", "fetch_returns_new", one_size),
        ("osc_fop_latency", "fetch_returns_new", []),
        ("osc_cas_latency", "swap_uncompared", []),
        ("osc_sync_latency", "exclusive_skipped", []),
        ("osc_window", "drop_put", one_size),
        ("osc_notify_latency", "drop_put", one_size),
    ]
    for name, fault, arguments in faults if FULL else faults[::3]:
        run = check.launch(name, BRIEF + arguments, 2, check.options.faulty, fault)
        check.expect(f"{name} with {fault}", run.returncode == 1 and run.stdout.split()[-1:] == ["Fail"], run)


def wrong_arguments(check):
    """One line that names the program and the error, and exit code 1."""
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
            ("osc_put_mr", 3, [], "even number of ranks"),
            ("osc_sync_latency", 1, [], "at least 2 ranks"),
            ("osc_passive", 2, ["-s", "fence"], "fence"),
            ("osc_cas_latency", 2, ["-m", "8"], "-m"),
            ("osc_notify_latency", 2, ["-n", "0"], "0"),
            ("osc_put_latency", 2, ["-n", "2"], "-n"),
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
    for step in (wrong_arguments, wrong_data, json_objects, on_host, with_libosc, large_with_libosc, more_ranks):
        begin = time.monotonic()
        before = check.launches
        step(check)
        print(f"{step.__name__}: {check.launches - before} launches, {time.monotonic() - begin:.1f} s", flush=True)
    print("\n".join(check.wrong))
    return 1 if check.wrong else 0


sys.exit(main())
