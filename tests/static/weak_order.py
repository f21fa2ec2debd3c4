#!/usr/bin/env python3
"""Reads the code for aarch64 of the protocols that use no lock: which instructions order memory, and in which order.

    weak_order.py CXX       CXX: a C++ compiler for aarch64

Processors with x86-64's order run wrong code rightly, and qemu emulates no weaker order. So this compiles weak_order.cpp
for the first aarch64 as the library is compiled (with calls of the compiler's atomics), the same with the atomics inline,
and for later processors, and compares each function with a row of ROWS. Then it compiles each header again with the row's
change, which weakens it: a row that still passes proves nothing, and is a failure too.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SRC = HERE.parent.parent / "src"
PROCESSORS = {
    "outline": ["-march=armv8-a", "-moutline-atomics"],
    "exclusive": ["-march=armv8-a", "-mno-outline-atomics"],  # load and store exclusive
    "atomics": ["-march=armv8.1-a"],
    "rcpc": ["-march=armv8.3-a"],  # has an acquire that passes an earlier release
}

# In the order of the code: F a full barrier; A a load that acquires, and passes no earlier release; R a store that
# releases; X, XA, XR, XAR a read-modify-write that is relaxed, acquires, releases, does both. A later A waits for R, XR
# and XAR: that is what makes a waiter and a notifier see one another. The columns: function, a regular expression, and the
# header's text, with the weaker one, that the expression must notice.
ROWS = [
    ("flush", "XAR F", "core/epoch.h", "std::atomic_thread_fence(std::memory_order_seq_cst);", ""),
    ("unlock_no_check", "F", "core/epoch.h", "std::atomic_thread_fence(std::memory_order_seq_cst);", ""),
    ("bell_ring", "A XAR", "shm/wait.h", "sleepers.load(std::memory_order_seq_cst)", "sleepers.load(std::memory_order_relaxed)"),
    ("bell_sleep", "A XAR call.*", "shm/wait.h", "sleepers.fetch_add(1, std::memory_order_seq_cst)",
     "sleepers.fetch_add(1, std::memory_order_acquire)"),
    ("barrier", "XAR.* XAR A XAR", "shm/barrier.h", "arrived.fetch_add(1, std::memory_order_acq_rel)",
     "arrived.fetch_add(1, std::memory_order_acquire)"),
    ("post", "XAR A.*", "sync/pscw.h", "fetch_or(bit, std::memory_order_seq_cst)", "fetch_or(bit, std::memory_order_acquire)"),
    ("complete", "XAR A.*", "sync/pscw.h", "completes.fetch_add(1, std::memory_order_seq_cst)",
     "completes.fetch_add(1, std::memory_order_acquire)"),
    ("completes", "A XAR.*", "sync/pscw.h", "completes.load(std::memory_order_seq_cst)",
     "completes.load(std::memory_order_relaxed)"),
    ("notify", "XAR A.*", "sync/notify.h", "fetch_add(1, std::memory_order_seq_cst)", "fetch_add(1, std::memory_order_acquire)"),
    ("notified", "A", "sync/notify.h", "counter(i).load(std::memory_order_seq_cst)", "counter(i).load(std::memory_order_relaxed)"),
    ("lock_exclusive", "XAR", "sync/lock.h", "free, mine, std::memory_order_acq_rel", "free, mine, std::memory_order_release"),
    ("lock_shared", "XAR", "sync/lock.h", "seen, seen + 1, std::memory_order_acq_rel", "seen, seen + 1, std::memory_order_release"),
    ("unlock_exclusive", "R A", "sync/lock.h", "0, __ATOMIC_RELEASE)", "0, __ATOMIC_RELAXED)"),
    ("unlock_shared", "XAR.*", "sync/lock.h", "fetch_sub(1, std::memory_order_seq_cst)", "fetch_sub(1, std::memory_order_acquire)"),
    ("stripe_lock", "XA.*", "sync/stripe.h", "free, me + 1, std::memory_order_acquire", "free, me + 1, std::memory_order_relaxed"),
    ("stripe_unlock", "R", "sync/stripe.h", "store(0, std::memory_order_release)", "store(0, std::memory_order_relaxed)"),
    ("mailbox_push", "XAR A A.*", "net/channels/mailbox.h", "link + 1, std::memory_order_seq_cst", "link + 1, std::memory_order_acquire"),
    ("mailbox_give_up", "XAR A.*", "net/channels/mailbox.h", "seen, seen + 1, std::memory_order_seq_cst",
     "seen, seen + 1, std::memory_order_acquire"),
    ("last_region", "A A A A A A", "shm/regions.h", "version_.load(std::memory_order_acquire)",
     "version_.load(std::memory_order_relaxed)"),
    ("unsent", "A", "net/channels/fabric_sender.h", "stuck_.count.load(std::memory_order_seq_cst)",
     "stuck_.count.load(std::memory_order_relaxed)"),
    ("unsettled", "A", "net/connections.h", "unsettled_.load(std::memory_order_seq_cst)", "unsettled_.load(std::memory_order_relaxed)"),
]


def steps(lines):
    """The steps of one function, in the order of its code."""
    found = []
    for line in lines:
        match = re.match(r"\s+([a-z]\w*)\s*([^\s,]*)", line)
        if not match:
            continue
        name, first = match.groups()
        outline = re.match(r"__aarch64_[a-z]+\d+_(relax|acq_rel|acq|rel)$", first)
        atomic = re.match(r"(?:ld(?:add|clr|eor|set)|cas|swp)(al|a|l|)[bh]?$", name)
        if outline:
            found.append({"relax": "X", "acq": "XA", "rel": "XR", "acq_rel": "XAR"}[outline[1]])
        elif atomic:
            found.append("X" + {"al": "AR", "a": "A", "l": "R", "": ""}[atomic[1]])
        elif re.match(r"ld(a?)xr[bh]?$", name):
            found.append("XA" if name.startswith("lda") else "X")
        elif re.match(r"stl?xr[bh]?$", name):
            found[-1] += "R" if name.startswith("stl") else ""
        elif re.match(r"ldar[bh]?$", name):
            found.append("A")
        elif re.match(r"stlr[bh]?$", name):
            found.append("R")
        elif name == "dmb" and first == "ish":
            found.append("F")
        elif name == "blr":
            found.append("call")
    return " ".join(found)


def functions(assembly):
    """The lines of each function of the assembly."""
    code, name = {}, None
    for line in assembly.splitlines():
        label = re.match(r"([A-Za-z_]\w*):", line)
        if label:
            name = label[1]
        if name:
            code.setdefault(name, []).append(line)
    return code


def wrong(compiler, options, rows, folder=None):
    """The rows whose function does not match, with what it has; `folder`: headers in place of those of src."""
    command = [compiler, "-std=c++20", "-O2", "-DNDEBUG", "-S", "-o", "-", *options, *(["-I", folder] if folder else []),
               "-I", str(SRC), "-I", str(SRC.parent / "include"), str(HERE / "weak_order.cpp")]
    code = functions(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return [(row[0], row[1], have) for row in rows
            for have in [steps(code.get(row[0], []))] if not re.fullmatch(row[1], have)]


def weakened(compiler, options):
    """The rows that do not notice the weaker text of their header."""
    blind = []
    for header in dict.fromkeys(row[2] for row in ROWS):
        rows = [row for row in ROWS if row[2] == header]
        original = text = (SRC / header).read_text()
        for row in rows:
            if row[3] not in original:
                sys.exit(f"weak_order: {header} has no '{row[3]}'")
            text = text.replace(row[3], row[4])
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder, header)
            place.parent.mkdir(parents=True)
            place.write_text(text)
            noticed = {name for name, *_ in wrong(compiler, options, rows, folder)}
        blind += [row[0] for row in rows if row[0] not in noticed]
    return blind


def main():
    compiler = shutil.which(sys.argv[1])
    failures = 0
    for processor, options in PROCESSORS.items():
        for name, expected, have in wrong(compiler, options, ROWS):
            failures += 1
            print(f"{name} ({processor}): '{have}' in place of '{expected}'")
    for name in weakened(compiler, PROCESSORS["exclusive"]):
        failures += 1
        print(f"{name}: the weaker code passes too")
    print(f"weak_order: {len(ROWS)} steps for {len(PROCESSORS)} processors, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
