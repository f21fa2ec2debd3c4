"""The simulation of large jobs: it takes the time that its constants say where that can be worked out by hand, counts the
messages that libosc really sends, and complains of wrong arguments in one line.

usage: scale.py --build BUILD --mpiexec MPIEXEC --preload LIBOSC"""
import argparse
import json
import os
import subprocess
import sys

SECONDS = 60
RANKS = 4
MACHINE = {"send": 1000, "receive": 2000, "way": 10000, "host_way": 20000, "near_way": 500, "meet": 100, "meet_more": 10,
           "window_ns": 3000, "creates": 1}
ALPHA = MACHINE["send"] + MACHINE["receive"] + MACHINE["way"]


def lines_of(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--preload", required=True)
    options = parser.parse_args()
    programs = os.path.join(options.build, "benchmarks")
    failed = []

    def expect(holds, what):
        print(f"{'ok      ' if holds else 'FAILED  '}{what}", flush=True)
        if not holds:
            failed.append(what)

    def run(command):
        return subprocess.run(["timeout", "-k", "2", str(SECONDS), *command], capture_output=True, text=True, check=False)

    def simulate(*words):
        return run([os.path.join(programs, "scale_sim"), *words])

    def simulated(scenario, **job):
        words = ["%s=%d" % item for item in {**MACHINE, **job}.items()]
        done = simulate(scenario, *words)
        found = lines_of(done.stdout)
        expect(done.returncode == 0 and len(found) == 1, f"{scenario} {job}: {done.stderr}")
        return found[0] if found else {"ns": 0, "messages": 0}

    def close(found, wanted, what):
        expect(abs(found - wanted) <= 0.02 * wanted, f"{what}: {found:.0f}, by hand {wanted:.0f}")

    # Rounds are ceil(log2 nodes); a node of two or more meets before and after them.
    for processes, per_node, rounds in ((2, 1, 1), (5, 1, 3), (8, 1, 3), (1024, 1, 10), (1024, 4, 8), (6, 2, 2)):
        meeting = MACHINE["meet"] + MACHINE["meet_more"] * (per_node - 2) if per_node > 1 else 0
        found = simulated("fence", processes=processes, per_node=per_node, repeats=10)
        close(found["ns"], rounds * ALPHA + 2 * meeting, f"fence of {processes} with {per_node} on a node")
        nodes = processes // per_node
        expect(found["messages"] == round(nodes * rounds / processes, 4), f"and its messages: {found['messages']}")
    # With one on a node data and close travel with the first step; the reply takes its sender's and receiver's time.
    found = simulated("fence_put", processes=64, repeats=10)
    expect(6 * ALPHA <= found["ns"] <= 6 * ALPHA + MACHINE["send"] + MACHINE["receive"], f"fence with a put: {found['ns']}")
    expect(found["messages"] == 7, f"and its messages: {found['messages']}")
    # Neighbours count, processes do not.
    for scenario in ("pscw", "lock_all"):
        for neighbours in (1, 3):
            times = {simulated(scenario, processes=n, neighbours=neighbours, repeats=5)["ns"] for n in (8, 64, 4096)}
            expect(len(times) == 1, f"{scenario} with {neighbours} neighbours takes as long in any job: {times}")
    close(simulated("lock_all", processes=16, repeats=10)["ns"], 2 * ALPHA, "lock_all")
    # From a second one that wants it on, the lock is handed over all the time: a grant and a put-unlock.
    close(simulated("contended_lock", processes=2, repeats=100)["ns"], 4 * ALPHA, "a lock that one wants")
    found = simulated("contended_lock", processes=32, repeats=100)
    close(found["ns"], 2 * ALPHA + MACHINE["receive"], "a contended lock")
    expect(found["messages"] == 4, f"and its messages: {found['messages']}")
    close(simulated("window", processes=64, repeats=10)["ns"], 2 * 6 * MACHINE["host_way"] + MACHINE["window_ns"], "a window")
    # 12 nodes cannot be reached in fewer rounds; if their number is no power of two, some finish earlier than others.
    found = simulated("window", processes=60, per_node=5, repeats=3)["ns"]
    expect(found >= 2 * 4 * MACHINE["host_way"] + MACHINE["window_ns"], f"a window on 12 nodes: {found}")
    memory = [json.loads(simulate("memory", f"processes={n}", "per_node=64").stdout) for n in (128, 1024)]
    expect(memory[0]["target"] == memory[1]["target"] > 0, "memory for a target used")
    large = [json.loads(simulate("memory", f"processes={n}", "per_node=64").stdout)["window"] for n in (1 << 16, 1 << 20)]
    expect(0 < large[1] < 1.1 * large[0], f"a large window does not grow with its ranks: {large}")

    for words in ([], ["fenc"], ["fence", "processes=0"], ["fence", "processes=ten"], ["fence", "way=-1"],
                  ["pscw", "processes=4", "neighbours=4"], ["fence", "processes=10", "per_node=4"]):
        wrong = simulate(*words)
        expect(wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and not wrong.stdout, f"{words}: {wrong.stderr.strip()}")

    # The messages that libosc sends: each rank a node of its own.
    done = run([options.mpiexec, "-n", str(RANKS), "-genv", "LD_PRELOAD", options.preload, "-genv", "OSC_DEBUG", f"fake_nodes={RANKS}",
                "-genv", "OSC_FALLBACK", "error", "-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1",
                os.path.join(programs, "scale_bench"), "--repeats", "20", "fence", "fence_put", "pscw", "pscw.3", "lock_all",
                "lock_all.3", "contended_lock", "window"])
    measured = lines_of(done.stdout)
    expect(done.returncode == 0 and len(measured) == 8, f"scale_bench: {done.returncode} {done.stderr[-300:]}")
    for line in measured:
        name, _, neighbours = line["scenario"].partition(".")
        found = simulated(name, processes=RANKS, neighbours=int(neighbours or 1), repeats=20)
        expect(line["valid"], f"{line['scenario']}: right data")
        # Replies that no process awaits may travel with other messages; now and then a process sends a ping.
        replies = int(neighbours or 1) if name in ("pscw", "fence_put") else 0
        expect(0.95 * (found["messages"] - replies) <= line["messages"] <= 1.1 * found["messages"],
               f"{line['scenario']}: {line['messages']} messages, simulated {found['messages']}")
    print("FAILED" if failed else "PASSED")
    return 1 if failed else 0


sys.exit(main())
