"""benchmarks/compare on a few measures: the JSON file holds sane figures of every implementation that there is, the plots
exist and are drawn again from it, and wrong arguments end with one line.

usage: compare.py --build BUILD --compare SCRIPT"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

SECONDS = 60
MEASURES = ["node.put_latency", "node.get_bw", "node.fop", "hosts.acc_latency", "hosts.lock_put32"]


class Checker:
    def __init__(self, options):
        self.options = options
        self.failed = []

    def expect(self, holds, what):
        print(f"{'ok      ' if holds else 'FAILED  '}{what}", flush=True)
        if not holds:
            self.failed.append(what)

    def compare(self, *arguments):
        command = ["timeout", "-k", "2", str(SECONDS), sys.executable, self.options.compare, *arguments]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)

    def one_line(self, what, status, mentioned, *arguments):
        run = self.compare(*arguments)
        lines = run.stderr.splitlines()
        good = run.returncode == status and len(lines) == 1 and lines[0].startswith("compare: ") and mentioned in lines[0]
        self.expect(good, f"{what}: {run.returncode} {lines}")


def can_draw():
    pythons = [sys.executable, shutil.which("python3", path=os.defpath)]
    return any(python and subprocess.run([python, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0
               for python in pythons)


def sane(points):
    return points and all(0 < p["min"] <= p["q1"] <= p["median"] <= p["q3"] <= p["max"] for p in points)


def figures_are_sane(check, document):
    rows = {row["name"]: row for row in document["measures"]}
    hosts = not any("hosts" in line for line in document["left_out"])
    expected = [name for name in MEASURES if hosts or name.startswith("node.")]
    check.expect(sorted(rows) == sorted(expected), f"the measures that were asked for: {sorted(rows)}")
    check.expect(document["trouble"] == [], f"no trouble: {document['trouble']}")
    for key in ("command", "when", "machine", "versions", "rounds", "commit"):
        check.expect(key in document, f"told: {key}")
    for name, row in rows.items():
        figures = row["figures"]
        check.expect({"host", "libosc"} <= set(figures), f"{name}: of {sorted(figures)}")
        check.expect(all(sane(points) for points in figures.values()), f"{name}: figures are in order")
        check.expect(set(row["commands"]) == set(figures) and not row["wrong"], f"{name}: commands, right data")
        for implementation, points in figures.items():
            sizes = [8, 16, 32, 64] if row["kind"] != "single" else [None]
            check.expect([p["size"] for p in points] == sizes, f"{name}: sizes of {implementation}")
    ours, host = (rows["node.fop"]["figures"][i][0]["median"] for i in ("libosc", "host"))
    ratio = rows["node.fop"]["ratios"]["host"][0]["median"]
    check.expect(abs(ratio - ours / host) < 0.01 * ratio, f"node.fop: {ours} / {host} = {ratio}")


def plots_exist(check, folder, document):
    for row in document["measures"]:
        kind = "ratios" if row["kind"] == "single" else row["kind"]
        for end in ("svg", "png"):
            path = os.path.join(folder, f"{row['where']}-{kind}.{end}")
            check.expect(os.path.exists(path) and os.path.getsize(path) > 2000, os.path.basename(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--compare", required=True)
    check = Checker(parser.parse_args())
    build = ["--build", check.options.build]
    check.one_line("an unknown option", 2, "--nonsense", "--nonsense")
    check.one_line("no number", 2, "many", "--rounds", "many")
    check.one_line("an unknown measure", 2, "no measure", "--measures", "nothing")
    with tempfile.TemporaryDirectory() as folder:
        check.one_line("no build", 2, "not built", "--build", folder)
        check.one_line("no file", 1, "none.json", "--from", os.path.join(folder, "none.json"), "--out", folder)
        drawing = can_draw()
        wanted = [word for name in MEASURES for word in ("--measures", name)]
        run = check.compare("--trial", "--out", folder, *build, *wanted, *([] if drawing else ["--no-plots"]))
        check.expect(run.returncode == 0, f"the comparison: {run.returncode}\n{run.stderr[-800:]}")
        print(run.stdout)
        with open(os.path.join(folder, "compare.json"), encoding="utf-8") as text:
            document = json.load(text)
        figures_are_sane(check, document)
        if drawing:
            plots_exist(check, folder, document)
            record = os.path.join(os.path.dirname(check.options.compare), "..", "docs", "performance", "shapes", "compare.json")
            drawn = check.compare("--from", record, "--out", folder).stdout.split()
            check.expect([os.path.basename(path) for path in drawn] == ["shapes.svg", "shapes.png"], f"the shapes: {drawn}")
    print("FAILED" if check.failed else "PASSED")
    return 1 if check.failed else 0


sys.exit(main())
