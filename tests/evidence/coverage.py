"""Counts the lines of src that only one test covers, by gcov:
  nice python3 tests/evidence/coverage.py [--jobs 2] [--minutes M] [-- CTEST SELECTION...]
builds the tree as it is, with counters, in build/evidence/coverage, and runs each selected test once; measure.py says which
are selected without arguments. GCOV_PREFIX gives each test counters of its own. A process that dies by a signal or ends by
_exit leaves no counts. build/evidence/coverage.json has the covered lines of each test as ranges, and `unique`, how many
of them no other test covers; a stopped run goes on."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import launch
import measure

TOP = pathlib.Path(__file__).resolve().parents[2]
OPTIONS = ["-DCMAKE_BUILD_TYPE=MinSizeRel", "-DCMAKE_CXX_FLAGS_MINSIZEREL=-O1 -DNDEBUG", "-DOSC_UNITY=ON",
           "-DCMAKE_C_FLAGS_MINSIZEREL=-O1 -DNDEBUG", "-DCMAKE_Fortran_FLAGS_MINSIZEREL=-O3", "-DOSC_BUILD_BENCHMARKS=OFF",
           f"-DCMAKE_PROJECT_INCLUDE={TOP}/tests/evidence/coverage.cmake"]
LIMIT = 600


def ranges(numbers):
    out = []
    for number in sorted(numbers):
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return out


def covered(folder):
    """file: lines that the counters below the folder count, of src."""
    lines = {}
    for counters in pathlib.Path(folder).rglob("*.gcda"):
        notes = pathlib.Path("/", counters.relative_to(folder)).with_suffix(".gcno")
        if not notes.is_file():
            continue
        counters.with_suffix(".gcno").symlink_to(notes)
        text = subprocess.run(["gcov", "--json-format", "--stdout", counters.name], cwd=counters.parent, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for part in text.splitlines():
            for file in json.loads(part)["files"]:
                name = os.path.relpath(os.path.join(measure.worker["build"], file["file"]), TOP)
                if name.startswith("src/"):
                    lines.setdefault(name, set()).update(x["line_number"] for x in file["lines"] if x["count"] > 0)
    return {name: ranges(numbers) for name, numbers in lines.items() if numbers}


def cover(name):
    place = tempfile.mkdtemp(dir=measure.worker["folder"], prefix="counters-")
    done = launch.run(measure.worker["tests"][name], {"GCOV_PREFIX": place}, LIMIT, measure.worker["folder"])
    lines = covered(place)
    shutil.rmtree(place, ignore_errors=True)
    return name, done["verdict"], lines


def unique(tests):
    """test: how many lines only it covers."""
    seen = {}
    for test, files in tests.items():
        for file, pairs in files.items():
            for first, last in pairs:
                for line in range(first, last + 1):
                    seen[file, line] = test if (file, line) not in seen else None
    counts = dict.fromkeys(tests, 0)
    for test in seen.values():
        if test is not None:
            counts[test] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", type=pathlib.Path, default=TOP / "build/evidence")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("selection", nargs="*", help="for ctest, after --")
    options = parser.parse_args()
    folder, end = options.folder.resolve(), time.monotonic() + 60 * options.minutes
    build, path = folder / "coverage", folder / "coverage.json"
    subprocess.run(["cmake", "-S", str(TOP), "-B", str(build), *OPTIONS], stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["cmake", "--build", str(build), "-j", str(options.jobs)], stdout=subprocess.DEVNULL, check=True)
    tests = launch.listed(build, options.selection or measure.SELECTION)
    revision = subprocess.run(["git", "rev-parse", "HEAD:src"], cwd=TOP, stdout=subprocess.PIPE, check=True, text=True).stdout
    results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if results.get("revision") != revision:
        results = {"revision": revision, "tests": {}}
    known = {"tests": tests, "folder": str(folder / "runs"), "build": str(build)}
    os.makedirs(known["folder"], exist_ok=True)
    ahead = [n for n in tests if n not in results["tests"]]
    with launch.workers(options.jobs, measure.worker.update, known) as pool:
        for at, (name, verdict, lines) in enumerate(pool.imap_unordered(cover, ahead), 1):
            results["tests"][name] = lines
            count = sum(b - a + 1 for pairs in lines.values() for a, b in pairs)
            print(f"[{at}/{len(ahead)}] {name}: {verdict}, {count} lines", flush=True)
            late = time.monotonic() > end
            if at % 20 == 0 or at == len(ahead) or late:
                results["unique"] = unique(results["tests"])
                launch.save(path, results)
            if late:
                launch.stop("coverage: out of time; the next call goes on")


if __name__ == "__main__":
    main()
