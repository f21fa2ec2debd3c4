#!/usr/bin/env python3
"""Hold what the host's libraries export against what libosc exports: every one-sided function of the host is libosc's
too, or stands in symbols.tsv with the reason; what the host's Fortran and C++ layers call is met as well; and libosc
exports nothing else.

    python3 symbols.py --osc build/src/libosc.so --entries src/api/entries.def --exports src/api/exports.def
        --headers include/osc/osc.h include/osc/notify.h -- WRAPPER...

WRAPPER are the host's compiler wrappers (mpicc, mpifort, mpicxx); their -show names the libraries.
"""
import argparse
import os
import re
import subprocess
import sys

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "symbols.tsv")
# The name of a one-sided function without its prefix, whatever language spells it.
RMA = re.compile(r"(.*_)?win_.*|r?(put|get|accumulate|get_accumulate)(_c)?|fetch_and_op|compare_and_swap|(alloc|free)_mem"
                 r"|request_get_status.*",
                 re.I)
# Fortran's spellings of one function: case, underscores, profiling names, and the marks of mpi_f08 and of arguments of
# type(c_ptr).
FORTRAN = re.compile(r"p?mpir?_(.*?)(_cptr)?(_f08(ts)?)?(_large)?_{0,2}", re.I)


def symbols(library, kind):
    text = subprocess.run(["nm", "-D", kind, library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}


def host_libraries(wrappers):
    found = {}
    for wrapper in wrappers:
        words = subprocess.run([wrapper, "-show"], check=True, capture_output=True, text=True).stdout.split()
        folders = [word[2:] for word in words if word.startswith("-L")]
        for name in (word[2:] for word in words if word.startswith("-l")):
            for folder in folders:
                path = os.path.realpath(os.path.join(folder, "lib%s.so" % name))
                if os.path.exists(path):
                    found.setdefault(path, any(symbol == "MPI_Init" for symbol in symbols(path, "--defined-only")))
                    break
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--osc", required=True)
    parser.add_argument("--entries", required=True)
    parser.add_argument("--exports", required=True)
    parser.add_argument("--headers", nargs="+", required=True)
    parser.add_argument("wrappers", nargs="+")
    options = parser.parse_args()

    with open(options.entries) as f:
        forms = re.findall(r"^OSC_(LARGE_|HOST_)?ENTRY\(\w+, (\w+),", f.read(), re.M)
    table = [name + ("_c" if form == "LARGE_" else "") for form, name in forms]
    with open(LIST) as f:
        rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")][1:]
    listed, used = {row[0] for row in rows}, set()
    needed = {row[0] for row in rows if row[2:] != ["newer"]}
    with open(options.exports) as f:
        table_beside = re.findall(r"^OSC_(?:EXPORTED|OF_HOST)\((\w+),", f.read(), re.M)
    promised = {prefix + name for name in table for prefix in ("MPI_", "PMPI_")} | {*table_beside, "dlsym", "osc_stand_behind"}
    exported = symbols(options.osc, "--defined-only")
    wrong = ["%s is in the table but not exported" % name for name in sorted(promised - exported)]
    for header in options.headers:
        with open(header) as f:
            declared = re.findall(r"^[\w *]*\b((?:osc|OSC)_\w+)\(", f.read(), re.M)
        wrong += ["%s of %s is in no table" % (name, header) for name in sorted(set(declared) - promised)]
    wrong += ["%s is exported, but no table has it" % name for name in sorted(exported - promised)]

    known = {name.lower() for name in table}
    checked = 0

    def meet(symbol, name, where):
        nonlocal checked
        checked += 1
        if symbol in exported:
            return
        if symbol in listed:
            used.add(symbol)
        elif name in listed:
            used.add(name)
        else:
            wrong.append("%s of %s is neither exported nor in the list" % (symbol, where))

    libraries = host_libraries(options.wrappers)
    if True not in libraries.values():
        wrong.append("no host library found through " + " ".join(options.wrappers))
    for path, is_c in sorted(libraries.items()):
        where = os.path.basename(path)
        # The functions that the host defines; for its language layers, the functions that they call.
        for symbol in sorted(symbols(path, "--defined-only" if is_c else "--undefined-only")):
            match = re.fullmatch(r"(?:P?MPIX?|MPII)_(.*)", symbol)
            if match and RMA.fullmatch(match.group(1)):
                meet(symbol, match.group(1), where)
        if is_c:
            continue
        # Names mangled by a module (__mpi_...) compare and convert handles, which are the host's.
        for symbol in sorted(symbols(path, "--defined-only")):
            match = FORTRAN.fullmatch(symbol)
            if not match or not RMA.fullmatch(match.group(1)):
                continue
            checked += 1
            name = match.group(1).lower()
            if name in known:
                continue
            row = next((entry for entry in listed if entry.lower() == name), None)
            if row is None:
                wrong.append("%s of %s stands for no function of the table or the list" % (symbol, where))
            else:
                used.add(row)
    wrong += ["%s is in the list, but the host has no such function" % name for name in sorted(needed - used)]

    print("%d symbols of %s held against %d entry points" %
          (checked, ", ".join(os.path.basename(path) for path in sorted(libraries)), len(table)))
    for line in wrong:
        print("  " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
