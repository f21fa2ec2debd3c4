"""measure.py and summary.py over a made-up build of five shell commands: which test kills which mutant, what the hanging
one and the orphans cost, what a second call adds, and what the summary says."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import launch

HERE = pathlib.Path(__file__).resolve().parent
REACH = 'reach() { [ -z "$MUTANT_REACHED" ] || for n; do printf "\\\\1" | dd of="$MUTANT_REACHED" bs=1 seek=$n conv=notrunc status=none; done; }; '
BURN = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; "
# name: labels, command, properties. `kill` is for the tests' own children only.
TESTS = {
    "cheap": ("short", REACH + 'reach 1 5; [ "$MUTANT" != 1 ]', ""),
    "dear": ("gate", REACH + BURN + 'reach 1 2 4; [ "$MUTANT" != 1 ] && [ "$MUTANT" != 2 ]', ""),
    "hangs": ("gate", REACH + 'reach 3; [ "$MUTANT" != 3 ] || { sleep 60 & sleep 60; }', "TIMEOUT 1"),
    "says": ("", REACH + 'reach 4; echo "fine $MUTANT"', 'PASS_REGULAR_EXPRESSION "fine"'),
    "broken": ("short", REACH + "reach 4; exit 1", ""),
    "skips": ("short", REACH + "reach 4; exit 77", "SKIP_RETURN_CODE 77"),
}
KILLS = {"a one 1": {"cheap": "failed"}, "a two 1": {"dear": "failed"}, "a three 1": {"hangs": "hang"},
         "a four 1": {"dear": "passed", "says": "passed"}, "a five 1": {"cheap": "passed"}}


def call(script, folder, *arguments):
    return subprocess.run([sys.executable, HERE / script, "--folder", folder, "--levels", "short,gate", *arguments], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=50).stdout


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "build").mkdir()
        lines = []
        for name, (labels, command, properties) in TESTS.items():
            (folder / f"{name}.sh").write_text(command, encoding="utf-8")
            lines += [f'add_test({name} sh "{folder}/{name}.sh")',
                      f'set_tests_properties({name} PROPERTIES LABELS "{labels}" {properties})']
        (folder / "build/CTestTestfile.cmake").write_text("\n".join(lines), encoding="utf-8")
        mutants = [{"number": n, "address": f"a {word} 1", "kind": "bound", "file": "src/a.cpp", "line": n, "text": "x < y",
                    "becomes": "<="} for n, word in enumerate(("one", "two", "three", "four", "five", "six"), 1)]
        listed = {"revision": "r", "sites": {"bound": 9}, "mutants": mutants, "faults": []}
        launch.save(folder / "mutants.json", listed)
        wrong = []

        first = call("measure.py", folder, "--no-build", "--jobs", "2", "--", "-R", "cheap|dear|broken|skips")
        second = call("measure.py", folder, "--no-build", "--jobs", "2")
        if "dear: passed" not in first or "dear: passed" in second or "says: passed" not in second:
            wrong.append("the second call measures again:\n" + first + second)
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        kills = {a: k["runs"] for a, k in results["kills"].items()}
        if kills != KILLS:
            wrong.append(f"the kills are {kills}")
        verdicts = {n: c["verdict"] for n, c in results["costs"].items()}
        if verdicts != {"cheap": "passed", "dear": "passed", "hangs": "passed", "says": "passed", "broken": "failed",
                        "skips": "skipped"}:
            wrong.append(f"the verdicts are {verdicts}")
        table = call("summary.py", folder)
        for row in ("| short | 1 |", "| gate | 3 |", "| all | 4 |", "| bound | 9 | 6 | 5 | 3 | 1 |"):
            if row not in table:
                wrong.append(f"no {row} in:\n{table}")
        holes = call("summary.py", folder, "--holes").splitlines()
        if holes != ["lives in 1 tests: a five 1: src/a.cpp:5: x < y becomes <=",
                     "lives in 2 tests: a four 1: src/a.cpp:4: x < y becomes <=",
                     "reached by no test: a six 1: src/a.cpp:6: x < y becomes <="]:
            wrong.append(f"the holes are {holes}")
        if "1 of 4 tests" not in call("summary.py", folder, "--unneeded").splitlines()[0]:
            wrong.append("the unneeded tests are others")

        # An orphan's processor time counts, and no process outlives its test.
        launch.adopt_orphans()
        orphan = {"command": ["sh", "-c", f"(({BURN * 4}) &)"], "properties": {}}
        done = launch.run(orphan, {}, 10, str(folder))
        stays = launch.run({"command": ["sh", "-c", "(sleep 77 &) ; exit 0"], "properties": {}}, {}, 10, str(folder))
        if done["cpu"] < 0.02 or stays["verdict"] != "passed" or os.getpid() in launch.descendants() or launch.descendants():
            wrong.append(f"orphans: {done} {stays}")
    print("\n".join(wrong) if wrong else "the kills, the costs and the summary are as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
