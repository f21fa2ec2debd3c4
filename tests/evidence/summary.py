"""Says what measure.py and coverage.py have found:
  python3 tests/evidence/summary.py             the table of levels and kinds for docs/CONTRIBUTING.md, in Markdown
  python3 tests/evidence/summary.py --holes     the mutants and faults that no test kills
  python3 tests/evidence/summary.py --unneeded  the tests that kill nothing that a cheaper one does not kill
  python3 tests/evidence/summary.py --csv FILE  every test: seconds, lines that only it covers, what it is the cheapest killer of

A level is a label of --levels and contains the levels before it; the last one is all measured tests. Kills per minute are
those of a level for each minute of processor time that its tests take together, compilation left out."""
import argparse
import csv
import json
import pathlib

import launch

TOP = pathlib.Path(__file__).resolve().parents[2]
KILLS = ("failed", "hang")


class Evidence:
    """The files' content, and what follows for each test and mutant."""

    def __init__(self, folder, levels):
        def read(name):
            path = folder / name
            return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

        self.mutants, self.results = read("mutants.json"), read("results.json")
        self.lines = read("coverage.json").get("unique", {})
        self.costs = {n: c for n, c in self.results["costs"].items() if c["verdict"] == "passed"}
        self.faulty = {n: c for n, c in self.results["faulty_costs"].items() if c["verdict"] == "passed"}
        self.levels = [*levels, "all"]
        self.targets = self.mutants["mutants"] + (self.mutants["faults"] if self.faulty else [])

    def level(self, test):
        """The index of the first level that has the test."""
        labels = self.results["labels"].get(test, [])
        return next((i for i, name in enumerate(self.levels[:-1]) if name in labels), len(self.levels) - 1)

    def runs(self, mutant):
        return self.results["kills"].get(mutant["address"], {}).get("runs", {})

    def killers(self, mutant):
        """The tests that kill it, of those that have run, the cheapest first."""
        return sorted((n for n, v in self.runs(mutant).items() if v in KILLS and n in self.costs),
                      key=lambda n: (launch.cost(self.costs[n]), n))

    def reaching(self, mutant):
        costs = self.faulty if mutant["kind"] == "fault" else self.costs
        return [n for n, c in costs.items() if mutant["number"] in c["reached"]]

    def unrun(self, mutant, level=None):
        """How many tests of the level reach the mutant and have not run with it."""
        known = self.runs(mutant)
        return sum(n not in known and (level is None or self.level(n) <= level) for n in self.reaching(mutant))

    def cheapest(self):
        """test: the mutants that it is the cheapest killer of."""
        found = {}
        for mutant in self.targets:
            for name in self.killers(mutant)[:1]:
                found.setdefault(name, []).append(mutant)
        return found


def markdown(evidence):
    all_kills = [m for m in evidence.targets if evidence.killers(m)]
    faults = sum(m["kind"] == "fault" for m in evidence.targets)
    out = [f"{len(evidence.targets) - faults} mutants" + (f" and {faults} built-in faults" if faults else "") +
           f"; {len(all_kills)} killed", "",
           "| level | tests | minutes of CPU | kills | of all kills | kills per minute | undecided |", "|---|---|---|---|---|---|---|"]
    for index, name in enumerate(evidence.levels):
        tests = {n for n in evidence.costs if evidence.level(n) <= index}
        minutes = sum(evidence.costs[n]["cpu"] for n in tests) / 60
        kills = [m for m in all_kills if tests.intersection(evidence.killers(m))]
        undecided = sum(1 for m in evidence.targets if m not in kills and evidence.unrun(m, index))
        if tests:
            out.append(f"| {name} | {len(tests)} | {minutes:.1f} | {len(kills)} | {100 * len(kills) / max(1, len(all_kills)):.0f} % | "
                       f"{len(kills) / max(minutes, 1e-9):.0f} | {undecided} |")
    out += ["", "| kind | sites | mutants | reached | killed | by a hang |", "|---|---|---|---|---|---|"]
    for kind in dict.fromkeys(m["kind"] for m in evidence.targets):
        here = [m for m in evidence.targets if m["kind"] == kind]
        killed = [m for m in here if evidence.killers(m)]
        hangs = sum(evidence.runs(m)[evidence.killers(m)[0]] == "hang" for m in killed)
        out.append(f"| {kind} | {evidence.mutants['sites'].get(kind, len(here))} | {len(here)} | "
                   f"{sum(bool(evidence.reaching(m)) for m in here)} | {len(killed)} | {hangs} |")
    return out


def holes(evidence):
    out = []
    for mutant in evidence.targets:
        if evidence.killers(mutant):
            continue
        reaching, left = len(evidence.reaching(mutant)), evidence.unrun(mutant)
        state = "reached by no test" if not reaching else f"lives in {reaching - left} tests" + (f", {left} not run" if left else "")
        place = f"{mutant['file']}:{mutant['line']}: " if "file" in mutant else ""
        becomes = f" becomes {mutant['becomes']}" if mutant.get("becomes") else ""
        out.append(f"{state}: {mutant['address']}: {place}{mutant['text']}{becomes}")
    return sorted(out)


def unneeded(evidence):
    needed = evidence.cheapest()
    spare = sorted((n for n in evidence.costs if n not in needed), key=lambda n: -evidence.costs[n]["cpu"])
    seconds = sum(evidence.costs[n]["cpu"] for n in spare)
    out = [f"{evidence.costs[n]['cpu']:8.2f} s  {evidence.lines.get(n, '-'):>5} lines of its own  {n}" for n in spare]
    return [f"{len(spare)} of {len(evidence.costs)} tests, {seconds / 60:.1f} of "
            f"{sum(c['cpu'] for c in evidence.costs.values()) / 60:.1f} minutes of CPU", *out]


def table(evidence, path):
    needed = evidence.cheapest()
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["test", "level", "verdict", "cpu_s", "wall_s", "unique_lines", "reached", "mutants", "faults", "kills"])
        for name, cost in sorted(evidence.results["costs"].items()):
            mine = needed.get(name, [])
            faults = [m for m in mine if m["kind"] == "fault"]
            rows.writerow([name, evidence.levels[evidence.level(name)], cost["verdict"], cost["cpu"], cost["wall"],
                           evidence.lines.get(name, ""), len(cost["reached"]), len(mine) - len(faults), len(faults),
                           "; ".join(m["address"] for m in mine)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", type=pathlib.Path, default=TOP / "build/evidence")
    parser.add_argument("--levels", default="short")
    parser.add_argument("--holes", action="store_true")
    parser.add_argument("--unneeded", action="store_true")
    parser.add_argument("--csv", type=pathlib.Path)
    options = parser.parse_args()
    evidence = Evidence(options.folder, options.levels.split(","))
    if options.csv:
        table(evidence, options.csv)
    elif options.holes:
        print("\n".join(holes(evidence)))
    elif options.unneeded:
        print("\n".join(unneeded(evidence)))
    else:
        print("\n".join(markdown(evidence)))


if __name__ == "__main__":
    main()
