"""The simulation of large jobs beside measurements: its runs, and the generated parts of docs/PERFORMANCE.md."""

import os

from . import launch, net
from .verdict import duration

DOCUMENT, RESIDENT = "scale", "scale_resident"
FILES = {DOCUMENT: "scale.json", RESIDENT: "scale_resident.json"}
# (processes, made-up nodes) of the measurements of memory.
RESIDENT_JOBS = ((2, 2), (8, 4), (64, 4))
LIMIT_SECONDS = 240
WITHIN = 0.25
# What a barrier of a node takes: two processes' is measured elsewhere (docs/STRATEGIES.md, b); a process more is taken as a
# contended atomic, which this machine has too few cores to show.
MEET_NS, MEET_MORE_NS = 200, 50
NEAR_WAY_NS = 1000
TITLES = {"fence": "fences", "fence_put": "fences, put to the next node", "pscw": "post-start, 1 neighbour",
          "pscw.3": "post-start, 3 neighbours", "lock_all": "lock_all, 1 target", "lock_all.3": "lock_all, 3 targets",
          "contended_lock": "contended lock", "window": "MPI_Win_allocate", "first_window": "the first window"}
CREATION = ["window", "first_window"]
# A process that waits in the host's collectives polls. If 16 do on two cores, each step takes some milliseconds more,
# which a network as slow as this hides.
HOSTS_SLOWER = 5


def neighbours_of(scenario):
    return int(scenario.split(".")[1]) if "." in scenario else 1


class Runs:
    """Starts of scale_bench on hosts and of scale_sim, and the errors."""

    def __init__(self, args, tools):
        self.args = args
        self.tools = tools
        self.trouble = []

    def bench(self, ranks, scenarios, repeats, environment=None, delay=None):
        """{scenario: line} with a rank on each host; two hosts have cores of their own."""
        args = self.args
        hosts = net.Hosts(net.HOSTS_SCRIPT, self.tools, args.provider)
        words = [self.tools.program("scale_bench"), "--repeats", str(repeats)]
        command = hosts.start(launch.LIBOSC, words + list(scenarios), environment, ranks=ranks)
        command[2] = str(ranks)
        if delay is None:
            outcome = launch.run(command, LIMIT_SECONDS)
        else:
            outcome = launch.run(command, LIMIT_SECONDS, {
                "LINK": "tap", "DELAY_US": str(delay),
                "FORWARDER": os.path.join(self.args.build, "tests", "multihost", "multihost_forwarder")})
        lines = {line["scenario"]: line for line in outcome.json_lines() if "scenario" in line}
        ended = any("finalize" in line for line in outcome.json_lines())
        if outcome.trouble and not ended:
            self.trouble.append("%d ranks: %s" % (ranks, outcome.trouble))
        for name, line in lines.items():
            if not line["valid"]:
                self.trouble.append("%d ranks, %s: wrong data" % (ranks, name))
        return lines

    def simulate(self, scenario, machine, **job):
        words = [self.tools.program("scale_sim"), scenario.split(".")[0], "neighbours=%d" % neighbours_of(scenario)]
        words += ["%s=%g" % item for item in machine.items()]
        words += ["%s=%d" % item for item in job.items()]
        outcome = launch.run(words, LIMIT_SECONDS)
        if outcome.trouble or not outcome.json_lines():
            self.trouble.append("%s: %s" % (" ".join(words[:2]), outcome.trouble or "no figure"))
            return None
        return outcome.json_lines()[0]

    @staticmethod
    def ns(lines, name):
        return lines.get(name, {"ns": 0})["ns"]

    def constants(self):
        """Of two hosts with a core each. In a row of answered messages each process sends one and receives one for each:
        that is what a message costs both together, of which half is taken for each; what is left of its way is the
        network's."""
        many = 50 * self.args.repeats
        lines = self.bench(2, ["way", "way.4096", "host_way", "host_create", "own_window"], many)
        gap = self.ns(self.bench(2, ["gap"], many, {"OSC_DEBUG": "net_protocol=messages"}), "gap")
        half = min(gap, self.ns(lines, "way")) / 2
        # The reply carries the bytes, the request does not.
        byte = max(self.ns(lines, "way.4096") - self.ns(lines, "way"), 0) * 2 / 4096
        return self.machine(lines, half, half, byte)

    def machine(self, lines, send, receive, byte):
        return {"send": send, "receive": receive, "way": max(self.ns(lines, "way") - send - receive, 0), "byte": byte,
                "host_way": self.ns(lines, "host_way"), "host_byte": byte, "near_way": NEAR_WAY_NS,
                "entry_ns": self.entry_ns(),
                "creates": round(self.ns(lines, "host_create") / max(self.ns(lines, "host_way"), 1)), "window_ns": self.ns(lines, "own_window"), "meet": MEET_NS, "meet_more": MEET_MORE_NS}

    def entry_ns(self):
        """Of the library's own code, for the largest job."""
        args = self.args
        found = self.simulate("entry", {}, processes=args.largest, per_node=args.per_node)
        return found["ns"] if found else 0

    def agreement(self, machine):
        """Measured and simulated; the constants of a slow network are those of its first start."""
        epochs = [name for name in TITLES if name not in CREATION]
        return (self.compared(machine, epochs, self.args.delay, self.args.repeats)
                + self.compared(machine, CREATION, HOSTS_SLOWER * self.args.delay, max(self.args.repeats // 4, 2)))

    def compared(self, machine, names, delay, repeats):
        rows, slow = [], None
        for ranks in self.args.ranks:
            wanted = [name for name in names if neighbours_of(name) < ranks]
            asked = ["way", "host_way", "host_create", "own_window"] if slow is None else []
            lines = self.bench(ranks, asked + wanted, repeats, delay=delay)
            if slow is None:
                slow = self.machine(lines, machine["send"], machine["receive"], machine["byte"])
            for name in wanted:
                found = self.simulate(name, slow, processes=ranks, per_node=1, repeats=repeats)
                if name in lines and found:
                    rows.append({"scenario": name, "ranks": ranks, "delay_us": delay, "measured_ns": lines[name]["ns"],
                                 "simulated_ns": found["ns"], "measured_messages": lines[name]["messages"],
                                 "simulated_messages": found["messages"]})
        return rows

    def curves(self, machine):
        """Up to the largest job, with many processes on a node and with one."""
        rows = []
        for per_node in sorted({self.args.per_node, 1}, reverse=True):
            for processes in self.sizes(4 * per_node):
                for name in TITLES:
                    # Those that want a lock are all on nodes of their own.
                    if name == "contended_lock" and per_node > 1 or neighbours_of(name) >= processes // per_node:
                        continue
                    repeats = 1 if name == "contended_lock" or processes > 65536 else 4
                    found = self.simulate(name, machine, processes=processes, per_node=per_node, repeats=repeats)
                    if found:
                        rows.append({"scenario": name, "processes": processes, "per_node": per_node, "ns": found["ns"],
                                     "messages": found["messages"]})
        return rows

    def sizes(self, smallest):
        """Each 16 times the one before, up to the largest."""
        found = [self.args.largest]
        while found[0] // 16 >= smallest:
            found.insert(0, found[0] // 16)
        return found

    def memory(self):
        rows = []
        for processes in self.sizes(2 * self.args.per_node):
            found = self.simulate("memory", {}, processes=processes, per_node=self.args.per_node)
            if found:
                rows.append({key: found[key] for key in ("processes", "per_node", "window", "target", "peer",
                                                               "communicator")})
        return rows


    def resident(self):
        """Memory that a process's windows between made-up nodes add, by provider and job."""
        rows = []
        for provider in net.PROVIDERS:
            for processes, nodes in RESIDENT_JOBS:
                command = self.tools.mpiexec(launch.LIBOSC)
                for name, value in (("MPIR_CVAR_POLLS_BEFORE_YIELD", "1"), ("OSC_DEBUG", "fake_nodes=%d" % nodes),
                                    ("OSC_OFI_PROVIDER", provider)):
                    command += ["-genv", name, value]
                outcome = launch.run(command + ["-n", str(processes), self.tools.program("window_state"),
                                                str(processes // nodes)], LIMIT_SECONDS)
                if outcome.trouble:
                    self.trouble.append("%s, %d processes: %s" % (provider, processes, outcome.trouble))
                rows += [dict(line, provider=provider, nodes=nodes) for line in outcome.json_lines() if "state" in line]
        return rows


def markdown(lines):
    rows = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(rows[:1] + ["|" + "---|" * len(lines[0])] + rows[1:])


def time_text(ns):
    return duration({"median": ns})


def agreement_table(documents):
    document = documents[DOCUMENT]
    ranks = sorted({row["ranks"] for row in document["agreement"]})
    lines = [["simulated / measured time (messages of both)"] + ["%d ranks" % n for n in ranks]]
    for name, title in TITLES.items():
        cells = []
        for n in ranks:
            row = next((r for r in document["agreement"] if r["scenario"] == name and r["ranks"] == n), None)
            if row is None:
                cells.append(" ")
                continue
            ratio = row["simulated_ns"] / row["measured_ns"]
            text = "%.2f" % ratio if abs(ratio - 1) <= WITHIN else "**%.2f**" % ratio
            if row["simulated_messages"]:
                text += " (%.2g, %.2g)" % (row["simulated_messages"], row["measured_messages"])
            cells.append(text)
        lines.append([title] + cells)
    apart = [r for r in document["agreement"] if abs(r["simulated_ns"] / r["measured_ns"] - 1) > WITHIN]
    summary = "%d of %d within %.0f %%." % (len(document["agreement"]) - len(apart), len(document["agreement"]), 100 * WITHIN)
    return markdown(lines) + "\n\n" + summary


def times_table(documents):
    document = documents[DOCUMENT]
    parts = []
    shown = {}
    for per_node in sorted({r["per_node"] for r in document["curves"]}, reverse=True):
        rows = [r for r in document["curves"] if r["per_node"] == per_node]
        sizes = sorted({r["processes"] for r in rows})
        if per_node == 1:
            sizes = sizes[::2]  # the picture has the others
        lines = [["%d on a node; processes:" % per_node if per_node > 1 else "one on a node; processes:"]
                 + ["{:,}".format(n) for n in sizes]]
        for name in TITLES:
            of = {r["processes"]: r for r in rows if r["scenario"] == name}
            times = {n: time_text(of[n]["ns"]) for n in sizes if n in of}
            # Protocols among neighbours take the same however the processes lie: one table has them.
            if not of or any(all(had.get(n, time) == time for n, time in times.items()) for had in shown.get(name, [])):
                continue
            shown.setdefault(name, []).append(times)
            lines.append([TITLES[name]] + [times.get(n, " ") for n in sizes])
        parts.append(markdown(lines))
    return "\n\n".join(parts)


def bytes_text(number):
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if number >= factor:
            return "%.3g %s" % (number / factor, unit)
    return "%.0f B" % number


def memory_table(documents):
    rows = documents[DOCUMENT]["memory"]
    lines = [["processes, %d on a node" % rows[0]["per_node"]] + ["{:,}".format(r["processes"]) for r in rows]]
    for key, title in (("window", "each window"), ("target", "each target on another node that it has used"),
                       ("peer", "each process on another node that it has exchanged messages with"),
                       ("communicator", "each communicator with windows, without the provider's part")):
        lines.append([title] + [bytes_text(r[key]) for r in rows])
    return markdown(lines)


def resident_table(documents):
    """MiB of resident memory since before the first window, the largest of all processes; one column for each job."""
    rows = documents[RESIDENT]["resident"]
    jobs = list(dict.fromkeys((row["provider"], row["ranks"], row["nodes"]) for row in rows))
    lines = [["MiB"] + ["`%s`, %d on %d nodes" % job for job in jobs]]
    for state in dict.fromkeys(row["state"] for row in rows):
        of = {(row["provider"], row["ranks"], row["nodes"]): row for row in rows if row["state"] == state}
        lines.append([state] + ["%.1f" % (of[job]["resident_kib_most"] / 1024) if job in of else " " for job in jobs])
    return "`%s`, commit %s\n\n" % (documents[RESIDENT]["command"], documents[RESIDENT].get("commit", "unknown")[:12]) + markdown(lines)


def constants_list(documents):
    document = documents[DOCUMENT]
    machine = document["machine_ns"]
    return "\n".join([
        "- `%s`, commit %s" % (document["command"], document.get("commit", "unknown")[:12]),
        "- a message of libosc's: %s to send, %s under way, %s to receive, %.2f ns for each byte"
        % (time_text(machine["send"]), time_text(machine["way"]), time_text(machine["receive"]), machine["byte"]),
        "- a message of the host MPI's: %s in all; its MPI_Comm_create takes as long as %d of its reductions"
        % (time_text(machine["host_way"]), machine["creates"]),
        "- a window on one process: %s; an entry in a node's table of processes: %.0f ns; a barrier of a node: %d ns and "
        "%d ns for each process above two (assumed)"
        % (time_text(machine["window_ns"]), machine["entry_ns"], machine["meet"], machine["meet_more"])])


PARTS = {"constants": constants_list, "agreement": agreement_table, "times": times_table, "memory": memory_table,
         "resident": resident_table}
