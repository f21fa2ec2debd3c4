"""Measures what each test costs and which mutants it kills:
  nice python3 tests/evidence/measure.py [--jobs 2] [--budget 120] [--minutes M] [--faults] [-- CTEST SELECTION...]
The selection is ctest's (-R name, -L label, -E, -LE); without it, all tests but those that need root or a quiet machine,
and those that read the source or build it anew.

After a build of what mutate.py made, each test runs once without a mutant: that gives its cost, its time limit, and which
mutants it reaches. Then every mutant is on in the tests that reach it, cheapest first, until one fails or hangs: that test
kills it. Tests of the first label of --levels come first, then those of the next one, so that the kills of each level are
known. A test that has killed runs once more without a mutant, to show that it still passes there. --budget bounds the
seconds for a mutant in one call. --faults does the same for the built-in faults, in the tests that preload libosc, with
the library osc_faulty in its place.

A kill can be luck where the machine has other work: --confirm first runs each known kill again, and forgets those that do
not come again.

build/evidence/results.json keeps everything, after each mutant: a stopped run goes on, a greater budget, more tests and
other labels add what is missing. Results of another text of the tree are put aside."""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

import launch

TOP = pathlib.Path(__file__).resolve().parents[2]
SELECTION = ["-LE", "multihost|benchmarks|commands|docs|hosts|rdma|apps", "-E", "^(sanitize_.*|clang|format|structure.*)$"]
FIRST_LIMIT = 300  # seconds for a test whose cost is not known
ROOM = 10000  # see mutate.py: numbers of mutants and faults are below twice this
# What a worker knows beside its task.
worker = {}


def replaced(name, is_fault):
    return (worker["library"], worker["faulty"]) if is_fault else None


def measure_cost(task):
    """(test, whether with osc_faulty): the run without a mutant, and the numbers that it reaches."""
    name, is_fault = task
    with tempfile.NamedTemporaryFile(dir=worker["folder"], prefix="reached-") as file:
        file.truncate(2 * ROOM)
        done = launch.run(worker["tests"][name], {"MUTANT_REACHED": file.name}, FIRST_LIMIT, worker["folder"],
                          replaced(name, is_fault))
        done["reached"] = [n for n, byte in enumerate(file.read()) if byte]
    if done["verdict"] == "passed":
        del done["output"]
    return name, is_fault, done


def attack(task):
    """(mutant, [(test, limit)...]): runs the tests until one kills it. The verdicts, seconds, and how many are left."""
    mutant, tests = task
    is_fault = mutant["kind"] == "fault"
    setting = {"OSC_TEST_FAULT": mutant["name"]} if is_fault else {"MUTANT": str(mutant["number"])}
    begin, verdicts, clean = time.monotonic(), {}, {}
    for at, (name, limit) in enumerate(tests):
        if time.monotonic() - begin > worker["budget"] or time.monotonic() > worker["end"]:
            return mutant, verdicts, clean, time.monotonic() - begin, len(tests) - at
        test = worker["tests"][name]
        verdict = launch.run(test, setting, limit, worker["folder"], replaced(name, is_fault))["verdict"]
        if verdict in ("failed", "hang"):
            again = launch.run(test, {}, 2 * limit, worker["folder"], replaced(name, is_fault))["verdict"]
            clean[name] = again
            if again != "passed":
                continue
        verdicts[name] = verdict
        if verdict in ("failed", "hang"):
            break
    return mutant, verdicts, clean, time.monotonic() - begin, 0


def confirm(task):
    """(mutant, [(test, limit)]): whether the test that killed the mutant does so again."""
    mutant, [(name, limit)] = task
    is_fault = mutant["kind"] == "fault"
    setting = {"OSC_TEST_FAULT": mutant["name"]} if is_fault else {"MUTANT": str(mutant["number"])}
    done = launch.run(worker["tests"][name], setting, limit, worker["folder"], replaced(name, is_fault))
    return mutant, name, done["verdict"]


def level(test, levels):
    labels = test["properties"].get("LABELS", [])
    return next((i for i, name in enumerate(levels) if name in labels), len(levels))


def limit_of(cost, test):
    """Seconds after which a test hangs: other work of the machine can make it a few times slower."""
    return min(5 + 5 * cost["wall"], float(test["properties"].get("TIMEOUT", 1500)))


def waiting(mutant, costs, tests, levels, known):
    """The tests still to be run for the mutant, in order, up to the first that is known to kill it."""
    reaching = [n for n, c in costs.items() if n in tests and c["verdict"] == "passed" and mutant["number"] in c["reached"]]
    reaching.sort(key=lambda n: (level(tests[n], levels), launch.cost(costs[n]), n))
    out = []
    for name in reaching:
        if known.get(name) in ("failed", "hang"):
            break
        if name not in known:
            out.append((name, limit_of(costs[name], tests[name])))
    return out


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", type=pathlib.Path, default=TOP / "build/evidence")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--budget", type=float, default=120, help="seconds for a mutant")
    parser.add_argument("--minutes", type=float, default=1e6, help="for the whole call")
    parser.add_argument("--levels", default="short", help="labels, the cheapest level first")
    parser.add_argument("--faults", action="store_true", help="the built-in faults too")
    parser.add_argument("--only", default="", help="mutants whose address has this text")
    parser.add_argument("--confirm", action="store_true", help="run each known kill again")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("selection", nargs="*", help="for ctest, after --")
    return parser.parse_args()


def main():
    options = arguments()
    folder, build = options.folder.resolve(), options.folder.resolve() / "build"
    end = time.monotonic() + 60 * options.minutes
    if not options.no_build:
        subprocess.run(["cmake", "--build", str(build), "-j", str(options.jobs)], check=True, stdout=subprocess.DEVNULL)
    mutants = json.loads((folder / "mutants.json").read_text(encoding="utf-8"))
    tests = launch.listed(build, options.selection or SELECTION)
    levels = options.levels.split(",")
    path = folder / "results.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if results.get("revision") != mutants["revision"]:
        if results:
            path.replace(folder / "results.old.json")
        results = {"revision": mutants["revision"], "costs": {}, "faulty_costs": {}, "kills": {}}
    results["labels"] = {n: t["properties"].get("LABELS", []) for n, t in launch.listed(build, []).items()}

    known = {"tests": tests, "folder": str(folder / "runs"), "budget": options.budget, "end": end,
             "library": str(build / "src/libosc.so"), "faulty": str(build / "tests/support/faults/libosc_faulty.so")}
    os.makedirs(known["folder"], exist_ok=True)
    with launch.workers(options.jobs, worker.update, known) as pool:
        tasks = [(n, False) for n in tests if n not in results["costs"]]
        if options.faults:
            tasks += [(n, True) for n, t in tests.items() if n not in results["faulty_costs"] and
                      any(known["library"] in word for word in t["command"])]
        for at, (name, is_fault, done) in enumerate(pool.imap_unordered(measure_cost, tasks), 1):
            results["faulty_costs" if is_fault else "costs"][name] = done
            print(f"[{at}/{len(tasks)}] {name}: {done['verdict']}, {done['wall']} s, {done['cpu']} s of CPU, reaches "
                  f"{len(done['reached'])}", flush=True)
            launch.save(path, results)
            if time.monotonic() > end:
                launch.stop("measure: out of time; the next call goes on")

        attacked = sorted(mutants["mutants"], key=lambda m: hashlib.sha256(m["address"].encode()).digest())
        targets = [m for m in attacked + (mutants["faults"] if options.faults else []) if options.only in m["address"]]
        again = [(m, [(n, limit_of(results["costs"][n], tests[n]))]) for m in targets if options.confirm
                 for n, v in results["kills"].get(m["address"], {}).get("runs", {}).items() if v != "passed" and n in tests]
        for at, (mutant, name, verdict) in enumerate(pool.imap_unordered(confirm, again), 1):
            results["kills"][mutant["address"]]["runs"][name] = verdict
            print(f"[{at}/{len(again)}] {mutant['address']}: {verdict} again in {name}", flush=True)
            launch.save(path, results)

        tasks = []
        for mutant in targets:
            costs = results["faulty_costs" if mutant["kind"] == "fault" else "costs"]
            ahead = waiting(mutant, costs, tests, levels, results["kills"].get(mutant["address"], {}).get("runs", {}))
            if ahead:
                tasks.append((mutant, ahead))
        tasks.sort(key=lambda t: t[0]["address"] in results["kills"])  # those that live so far come last
        for at, (mutant, verdicts, clean, seconds, left) in enumerate(pool.imap_unordered(attack, tasks), 1):
            entry = results["kills"].setdefault(mutant["address"], {"runs": {}})
            entry["runs"].update(verdicts)
            entry["left"] = left
            for name, verdict in clean.items():
                if verdict != "passed":
                    results.setdefault("unsteady", {}).setdefault(name, []).append(mutant["address"])
            killer = next((n for n, v in verdicts.items() if v != "passed"), None)
            print(f"[{at}/{len(tasks)}] {mutant['address']}: " + (f"{verdicts[killer]} in {killer}" if killer else "lives") +
                  f"; {len(verdicts)} tests in {seconds:.1f} s" + (f", {left} left" if left else ""), flush=True)
            launch.save(path, results)
            if time.monotonic() > end:
                launch.stop("measure: out of time; the next call goes on")


if __name__ == "__main__":
    main()
