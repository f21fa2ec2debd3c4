"""The scripts that repeat the seeds' experiments, with tiny loops: each ends well, with figures of libosc and the host for all
that it tells of, and complains of wrong arguments in one line.

usage: seeds.py --build BUILD --benchmarks FOLDER"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

SECONDS = 60
SCRIPTS = {"seed_000": ["--ranks", "2"], "seed_001": ["--most", "16", "--ranks", "2"], "seed_003": ["--ranks", "2"], "seed_004": ["--ranks", "2"]}
# Needs hosts: elsewhere it says so and ends.
BETWEEN_HOSTS = {"seed_001"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--benchmarks", required=True)
    options = parser.parse_args()
    failed = []

    def expect(holds, what):
        print(f"{'ok      ' if holds else 'FAILED  '}{what}", flush=True)
        if not holds:
            failed.append(what)

    def run(name, *arguments):
        command = ["timeout", "-k", "2", str(SECONDS), sys.executable, os.path.join(options.benchmarks, name), *arguments]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)

    sys.path.insert(0, options.benchmarks)
    sys.dont_write_bytecode = True
    from oscbench import seed_004
    for form, constants in ((seed_004.BYTES, (300, 0.5)), (seed_004.NEIGHBOURS, (70, 20)), (seed_004.LOG, (40, 0)),
                            (seed_004.CONSTANT, (9, 0))):
        times = {size: seed_004.predicted(form, *constants, size) for size in (2, 4, 8, 4096)}
        fitted = seed_004.fit(form, times)
        expect(all(abs(f - c) < 1e-6 for f, c in zip(fitted, constants)), f"constants of {form}: {fitted}")

    with tempfile.TemporaryDirectory() as folder:
        figures = os.path.join(os.path.dirname(os.path.abspath(options.benchmarks)), "docs", "performance")
        for name in SCRIPTS:
            shutil.copy(os.path.join(figures, name + ".json"), folder)
        draw = ("import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); "
                "from oscbench import seed_plots; seed_plots.draw(sys.argv[2])")
        pythons = [p for p in (sys.executable, "/usr/bin/python3")
                   if subprocess.run([p, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0]
        if pythons:
            done = subprocess.run([pythons[0], "-c", draw, options.benchmarks, folder], capture_output=True, text=True, check=False)
            expect(done.returncode == 0, f"the seeds' pictures: {done.stderr[-800:]}")
            for name in SCRIPTS:
                path = os.path.join(folder, name + ".svg")
                expect(os.path.exists(path) and "libosc" in open(path, encoding="utf-8").read(), f"{name}.svg")
        else:
            print("left out  pictures: needs python3-matplotlib")

    for name, small in SCRIPTS.items():
        wrong = run(name, "--rounds", "many")
        lines = wrong.stderr.splitlines()
        expect(wrong.returncode == 2 and len(lines) == 1 and "many" in lines[0], f"{name}, no number: {lines}")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "figures.json")
            done = run(name, "--trial", "--rounds", "1", *small, "--build", options.build, "--json", path)
            if name in BETWEEN_HOSTS and done.returncode == 1 and done.stderr.startswith(f"{name}: needs"):
                print(f"left out  {done.stderr.strip()}")
                continue
            expect(done.returncode == 0, f"{name}: {done.returncode}\n{done.stdout}{done.stderr[-800:]}")
            if done.returncode != 0:
                continue
            with open(path, encoding="utf-8") as text:
                document = json.load(text)
        figures = document["figures"]
        expect(all(0 < f["min"] <= f["median"] <= f["max"] for f in figures if f["unit"] == "ns"), f"{name}: {len(figures)} sane figures")
        times = [f for f in figures if f["unit"] == "ns"]
        of = {i: {(f["measure"], f["size"]) for f in times if f["implementation"] == i} for i in ("host", "libosc")}
        expect(of["host"] and of["host"] == of["libosc"], f"{name}: as many of libosc as of the host")
        expect("the seed" in done.stdout, f"{name}: tells what the seed reported")
    print("FAILED" if failed else "PASSED")
    return 1 if failed else 0


sys.exit(main())
