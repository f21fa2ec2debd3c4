"""Makes the copy of the tree in which all mutants are compiled in, and configures its build:
  python3 tests/evidence/mutate.py [--seed 1] [--number 300]
measure.py then builds it, and runs the tests over it.

build/evidence/tree is the copy: the tracked files as they are in the work tree. sites.py finds where a mutant can be, and
the seed draws --number of the sites: each kind has its share, and each room of src within a kind by its number of lines.
The draw ranks addresses by a hash, so an edit of one function replaces no mutants of others. The compiler then reads every
source; a mutant that it refuses is replaced by the next one of the ranking. build/evidence/mutants.json lists the result:
number, address, file, line and text of each. Only files that change are written, so a second build is short.

The built-in faults (tests/support/faults) get numbers from 10001, by which a run records that it reaches them. A site that
lies in a text that they replace has no mutant."""
import argparse
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import sites

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests/support/faults"))
import fault_table

INJECT = "tests/support/faults/inject.h"
# Of 300 mutants.
SHARES = {"error": 55, "condition": 50, "equality": 25, "bound": 40, "junction": 30, "arithmetic": 40, "bits": 15, "order": 15, "wake": 30}
OTHERS = ("src/tools/",)
FAULTS = 10000
# MinSizeRel has Release's assertions, and neither its link-time optimisation nor its -O3.
OPTIONS = ["-DCMAKE_BUILD_TYPE=MinSizeRel", "-DCMAKE_CXX_FLAGS_MINSIZEREL=-O1 -DNDEBUG",
           "-DCMAKE_C_FLAGS_MINSIZEREL=-O1 -DNDEBUG", "-DCMAKE_Fortran_FLAGS_MINSIZEREL=-O3", "-DOSC_UNITY=ON", "-DOSC_BUILD_BENCHMARKS=OFF"]


def tracked():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, stdout=subprocess.PIPE, check=True).stdout
    names = [n for n in listing.decode().split("\0") if n and (TOP / n).is_file()]
    return {n: (TOP / n).read_bytes() for n in names}


def is_mutated(name):
    return name.startswith("src/") and name.endswith((".cpp", ".h")) and not name.startswith(OTHERS)


def write(path, content):
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_tree(tree, files):
    old = {str(p.relative_to(tree)) for p in tree.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    for name in old - set(files):
        (tree / name).unlink()
    for name, content in files.items():
        write(tree / name, content)
        if os.access(TOP / name, os.X_OK) and (TOP / name).is_file():
            (tree / name).chmod(0o755)


def commands(build):
    """The compiler's calls for the sources of the libraries."""
    with open(build / "compile_commands.json", encoding="utf-8") as file:
        entries = json.load(file)
    for entry in entries:
        output = re.search(r" -o (\S+)", entry["command"])[1]
        if re.match(r"(src/)?CMakeFiles/osc(_(core|cold|core_cold|ofi|heap|check|(adopt|reports|verify)(_core)?))?\.dir/", output) and "/tools/" not in entry["file"]:
            yield entry


def find(build, tree, files):
    """All sites, by clang, which reads the original text of each file in the place of the copy's."""
    texts = {str(tree / n): c.decode("latin-1") for n, c in files.items() if n.startswith("src/")}
    finder = sites.Finder({n: t for n, t in texts.items() if is_mutated(os.path.relpath(n, tree))})
    index = sites.cindex.Index.create()
    users = {}
    for entry in commands(build):
        words = shlex.split(entry["command"])
        arguments = [w for i, w in enumerate(words) if w.startswith(("-I", "-D", "-std=", "-m")) or
                     w == "-isystem" or words[i - 1] == "-isystem"]
        unit = index.parse(entry["file"], arguments, unsaved_files=[(n, files[os.path.relpath(n, tree)].decode())
                                                                    for n in texts])
        for problem in unit.diagnostics:
            if problem.severity >= sites.cindex.Diagnostic.Error:
                sys.exit(f"mutate: clang: {problem}")
        finder.read(unit)
        for include in unit.get_includes():
            users.setdefault(include.include.name, set()).add(entry["file"])
        print(f"mutate: {len(finder.sites)} sites after {os.path.basename(entry['file'])}", flush=True)
    return finder.result(), {n: sorted(u) for n, u in users.items()}


def is_replaced(site, tree, files):
    """Whether the site overlaps a text that the table of faults replaces."""
    name = os.path.relpath(site.file, tree)
    for _, edit in fault_table.edits():
        if name == "src/" + edit.file:
            start = files[name].decode("latin-1").find(edit.text)
            if start >= 0 and site.start < start + len(edit.text) and start < site.end:
                return True
    return False


def room(name):
    return name.split("/")[1]


def draw(found, tree, files, options, broken):
    """The sites by kind and room, in the order of a hash."""
    def rank(site):
        return hashlib.sha256(f"{options.seed} {site.address}".encode()).digest()

    lines = {}
    for name, content in files.items():
        if is_mutated(name):
            lines[room(name)] = lines.get(room(name), 0) + content.count(b"\n")
    all_lines, chosen, spare = sum(lines.values()), [], []
    for kind, share in SHARES.items():
        wanted = share * options.number // sum(SHARES.values())
        ranked = sorted((s for s in found if s.kind == kind and s.address not in broken), key=rank)
        of_room, taken, debt = {}, [], {r: wanted * n / all_lines for r, n in lines.items()}
        for site in ranked:
            of_room.setdefault(room(os.path.relpath(site.file, tree)), []).append(site)
        while len(taken) < min(wanted, len(ranked)):
            best = max((r for r in debt if of_room.get(r)), key=lambda r: (debt[r], r))
            debt[best] -= 1
            taken.append(of_room[best].pop(0))
        chosen += taken
        spare += [s for s in ranked if s not in taken]
    spare.sort(key=rank)
    chosen += spare[:max(0, options.number - len(chosen))]
    return chosen


def render(chosen, tree, files):
    """The copy's files, and the mutants of each line of those that have some."""
    chosen.sort(key=lambda s: (s.file, s.start, -s.end, sites.KINDS.index(s.kind)))
    by_file = {}
    for number, site in enumerate(chosen, 1):
        site.number = number
        by_file.setdefault(os.path.relpath(site.file, tree), []).append(site)
    out, lines = dict(files), {}
    head = b'#include "base/mutant.h"\n'
    for name, inside in by_file.items():
        text, numbers = sites.rewrite(files[name].decode("latin-1"), inside)
        out[name] = head + text.encode("latin-1")
        lines[str(tree / name)] = {line + 1: found for line, found in numbers.items()}
    out["src/base/mutant.h"] = (pathlib.Path(__file__).parent / "mutant.h").read_bytes()
    fault = b"#define OSC_FAULT(name) ("
    reach = f"static_cast<void>(::osc_mutant::on({FAULTS} + static_cast<int>(::osc::faults::Name::name))), "
    out[INJECT] = head + out[INJECT].replace(fault, fault + reach.encode(), 1)
    return out, lines


def refused(entries, lines):
    """The numbers of the mutants that the compiler refuses, and the sources with an error that no mutant explains."""
    numbers, unexplained, wrong = set(), [], []
    for entry in entries:
        words = shlex.split(re.sub(r" -o \S+", "", entry["command"]))
        while "ccache" in words[0]:
            words.pop(0)
        run = subprocess.run(["nice", *words, "-fsyntax-only", "-w", "-fmax-errors=0"], cwd=entry["directory"],
                             stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode == 0:
            continue
        wrong.append(entry["file"])
        places = re.findall(r"^(/[^:\n]+):(\d+):\d+:\s+(error|required from|note)", run.stderr, re.MULTILINE)
        for kinds in (("error",), ("required from",), ("note",)):
            new = set().union(*(lines.get(f, {}).get(int(n), set()) for f, n, k in places if k in kinds))
            if new:
                break
        else:
            unexplained.append(run.stderr)
        numbers |= new
    return numbers, unexplained, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", default="1")
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--folder", type=pathlib.Path, default=TOP / "build/evidence")
    options = parser.parse_args()
    folder = options.folder.resolve()
    tree, build = folder / "tree", folder / "build"
    files = tracked()
    if not (build / "CMakeCache.txt").is_file():
        write_tree(tree, files)
    else:
        write_tree(tree, {n: (tree / n).read_bytes() if is_mutated(n) and (tree / n).is_file() else c for n, c in files.items()})
    subprocess.run(["cmake", "-S", str(tree), "-B", str(build), *OPTIONS], stdout=subprocess.DEVNULL, check=True)

    inputs = [files[n] for n in sorted(files) if n.startswith(("src/", "include/", "CMake", "cmake/"))]
    key = hashlib.sha256(b"\0".join([(TOP / "tests/evidence/sites.py").read_bytes(), *inputs])).hexdigest()
    cache = folder / "sites.json"
    known = json.loads(cache.read_text(encoding="utf-8")) if cache.is_file() else {}
    if known.get("key") != key:
        found, users = find(build, tree, files)
        known = {"key": key, "sites": [vars(s) for s in found], "users": users, "broken": []}
        cache.write_text(json.dumps(known), encoding="utf-8")
    found = [sites.Site(**{**s, "parts": tuple(map(tuple, s["parts"]))}) for s in known["sites"]]
    found = [s for s in found if not is_replaced(s, tree, files)]
    counts = {k: sum(s.kind == k for s in found) for k in sites.KINDS}
    print("mutate: sites: " + ", ".join(f"{n} {k}" for k, n in counts.items()), flush=True)

    entries, before, last = list(commands(build)), None, []
    while True:
        chosen = draw(found, tree, files, options, set(known["broken"]))
        out, lines = render(chosen, tree, files)
        # Numbers change when a mutant is replaced, and with them the text of many files: only new mutants can be wrong.
        addresses = {s.address: s.file for s in chosen}
        changed = [f for a, f in addresses.items() if before is None or a not in before]
        recheck = {u for f in changed for u in known["users"].get(f, []) + [f]} | set(last)
        write_tree(tree, out)
        numbers, unexplained, last = refused([e for e in entries if e["file"] in recheck], lines)
        if unexplained:
            sys.exit("mutate: no mutant explains:\n" + unexplained[0])
        if not numbers:
            break
        broken = [s.address for s in chosen if s.number in numbers]
        print("mutate: the compiler refuses: " + "; ".join(broken), flush=True)
        known["broken"] += broken
        cache.write_text(json.dumps(known), encoding="utf-8")
        before = set(addresses) - set(broken)

    listed = []
    for site in chosen:
        text = files[os.path.relpath(site.file, tree)].decode("latin-1")
        listed.append({"number": site.number, "address": site.address, "kind": site.kind, "function": site.function,
                       "room": room(os.path.relpath(site.file, tree)), "file": os.path.relpath(site.file, tree),
                       "line": text.count("\n", 0, site.start) + 1, "text": " ".join(text[site.start:site.end].split()),
                       "becomes": site.operator})
    faults = [{"number": FAULTS + n, "address": "fault " + f.name, "kind": "fault", "name": f.name, "text": f.what}
              for n, f in enumerate(fault_table.FAULTS, 1)]
    revision = hashlib.sha256(b"\0".join(n.encode() + c for n, c in sorted(out.items()) if not n.startswith("docs/")))
    result = {"seed": options.seed, "revision": revision.hexdigest(), "sites": counts, "mutants": listed, "faults": faults}
    (folder / "mutants.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"mutate: {len(listed)} mutants and {len(faults)} faults; measure.py builds them")


if __name__ == "__main__":
    main()
