"""The rows of the campaign: each is a fault, where and when it comes, how the processes reach each other, and the outcome."""

import dataclasses
import random

# How processes reach each other's memory: the settings, and the argument of the programs for it.
PATHS = {
    "node": ([], []),
    "process_vm": ([], ["private"]),
    "agent": (["OSC_DEBUG=cma=off"], ["private"]),
    "net": (["OSC_DEBUG=fake_nodes=2", "OSC_OFI_PROVIDER=net"], []),
    "tcp": (["OSC_DEBUG=fake_nodes=2", "OSC_OFI_PROVIDER=tcp;ofi_rxm"], []),
}
# exhausted.cpp makes windows of all kinds of memory on each path.
ALL_KINDS = [path for path in PATHS if path != "process_vm"]

# The steps of an epoch of campaign.cpp, and the rank that meets the fault there: 1 is an origin, 2 the target.
STEPS = {
    "lock": [("lock", 1), ("put", 1), ("accumulate", 1), ("flush", 1), ("unlock", 1), ("compute", 2)],
    "fence": [("fence", 1), ("put", 1), ("last_fence", 2)],
    "pscw": [("start", 1), ("put", 1), ("complete", 1), ("post", 2), ("wait", 2)],
    "lock_all": [("lock_all", 1), ("put", 1), ("flush_all", 1), ("unlock_all", 1)],
    "request": [("rput", 1), ("wait_rput", 1), ("rget", 1), ("wait_rget", 1)],
    "dynamic": [("attach", 2), ("put", 1), ("detach", 2)],
    "window": [("create", 1), ("free", 2)],
}
MOMENTS = ["before", "in", "after"]
OUTCOMES = {
    "kill": "survivors' calls succeed with the right bytes or report the death, each within 10 s",
    "stop": "every call succeeds with the right bytes",
    "abort": "the job ends within 20 s",
    "pause": "the job ends within 20 s of the launcher's SIGINT",
}


@dataclasses.dataclass
class Row:
    fault: str
    path: str
    epoch: str  # or another kind of place
    moment: str
    step: str
    outcome: str
    program: list  # its name and its arguments
    settings: list = dataclasses.field(default_factory=list)
    dead: int = 0
    ends: bool = False  # the fault ends the job before its program does
    lines: list = dataclasses.field(default_factory=list)  # expressions: each is found once
    silent: bool = False  # libosc prints nothing else
    one: str = ""  # a setting of rank 1 alone
    fake: bool = False  # tests/support/fake_libfabric stands before libfabric
    wrap: list = dataclasses.field(default_factory=list)  # namespaces of the epoch's ranks: one or all
    other_version: bool = False  # rank 1 has it
    root: bool = False

    def __post_init__(self):
        settings, arguments = PATHS[self.path]
        self.settings = settings + self.settings
        self.program = self.program + (arguments if self.program[0] != "exhausted" else [])
        self.name = ".".join([self.fault, self.path, self.epoch, self.moment, self.step])


def steps():
    """A fault at each step of each epoch."""
    for fault, outcome in OUTCOMES.items():
        for path in PATHS:
            for epoch, all_steps in STEPS.items():
                for step, victim in all_steps:
                    for moment in MOMENTS:
                        # These two end the whole job: the moment in a call is the same as before the next one.
                        if moment == "in" and fault in ("abort", "pause"):
                            continue
                        yield Row(fault, path, f"{epoch}.{victim}", moment, step, outcome,
                                  ["campaign", epoch, str(victim), fault, moment, step], dead=int(fault == "kill"),
                                  ends=fault in ("abort", "pause"))


def unfreed():
    """MPI_Finalize with a live window: an error of the program, which the checker reports."""
    report = r"OSC_CHECK: window never freed"
    for path in PATHS:
        for state in ("idle", "fence", "lock", "lock_all", "exposed", "attached", "stop"):
            for check in (0, 1):
                yield Row("unfreed", path, "finalize", f"check{check}", state,
                          "MPI_Finalize ends; one report with OSC_CHECK=1, silence without", ["unfreed", state],
                          settings=[f"OSC_CHECK={check}"], lines=[report] * check, silent=not check)


def protected_pages():
    """The owner of a window has protected a page of it."""
    outcomes = {
        "node": ("works", "operations work: origins have mappings of their own"),
        "process_vm": ("range", "MPI_ERR_RMA_RANGE, and the page is unchanged"),
        "": ("death", "the owner ends by SIGSEGV, as by a store of its own; survivors' calls report the death within 10 s"),
    }
    for path in PATHS:
        outcome, text = outcomes.get(path, outcomes[""])
        for protection in ("none", "read"):
            for owner in ("computes", "waits"):
                yield Row("protect", path, "page", owner, protection, text,
                          ["protected_pages", protection, owner, outcome], dead=int(outcome == "death"),
                          # Else UCX, below MPICH, prints a backtrace first.
                          settings=["UCX_ERROR_SIGNALS="])


AGREED = "each creation of a window has the same outcome on all ranks; what is served works"
# What ends, and whether libosc must serve all the same.
RESOURCES = {
    "descriptors": False, "addresses": False, "locked": True, "shm_full": True, "shm_absent": True, "process_vm": True,
    "memfd_create": False,
}
# Functions of the system of which each call fails once, where libosc calls them to make a window.
EACH = {
    "first": ["mmap", "mprotect", "memfd_create", "ftruncate", "fallocate", "open", "pthread_create"],
    "later": ["mprotect", "ftruncate", "fallocate"],
}
EACH_OF_NETWORK = {  # before the first window
    "net": ["socket", "bind", "eventfd", "timerfd_create"],
    "tcp": ["socket", "bind", "eventfd", "timerfd_create", "epoll_create1"],
}
ROOT = ("shm_full", "shm_absent")


def exhausted():
    """A resource ends on one rank or on all, before the first window or beside live ones."""
    for path in ALL_KINDS:
        for resource, serves in RESOURCES.items():
            for who in ("one", "all"):
                for moment in ("first", "later"):
                    yield Row("exhaust", path, who, moment, resource, AGREED,
                              ["exhausted", resource, who, moment, "served" if serves else "served_or_refused"],
                              # UCX, below MPICH, would stand between libosc and mmap.
                              settings=["UCX_MEM_EVENTS=no"], root=resource in ROOT)


def each():
    """Each call of a function fails once: at least one, else the row says nothing."""
    for path in ALL_KINDS:
        for moment, functions in EACH.items():
            of_network = EACH_OF_NETWORK.get(path, []) if moment == "first" else []
            for function in functions + of_network:
                for who in ("one", "all"):
                    yield Row("exhaust", path, who, moment, f"each_{function}", AGREED,
                              ["exhausted", f"each_{function}", who, moment, "served_or_refused"],
                              settings=["UCX_MEM_EVENTS=no"], lines=["calls that failed: [1-9]"])


def providers():
    """The provider fails in a step of its opening or at registrations, by tests/support/fake_libfabric, or is none."""
    def row(path, who, moment, step, allowed, **more):
        return Row("provider", path, who, moment, step, AGREED, ["exhausted", "none", who, "first", allowed], **more)

    for path in ("net", "tcp"):
        for who in ("one", "all"):
            rank = ["FAKE_FI_RANK=1"] if who == "one" else []
            for step in ("getinfo", "fabric", "domain", "av", "cq", "endpoint", "bind", "enable", "name", "wait", "recv"):
                # The provider net has nothing to open for sleeping.
                allowed = "served" if (path, step) == ("net", "wait") else "refused"
                yield row(path, who, "opening", step, allowed, settings=[f"FAKE_FI_FAIL={step}", *rank], fake=True)
            for after in (0, 5):
                yield row(path, who, "later", f"mr{after}", "served", fake=True,
                          settings=["FAKE_FI_FAIL=mr", f"FAKE_FI_AFTER={after}", *rank])
        yield row(path, "one", "opening", "unknown", "refused", one="OSC_OFI_PROVIDER=nothing")
    yield row("net", "all", "opening", "unknown", "refused", settings=["OSC_OFI_PROVIDER=nothing"])


def namespaces():
    """Ranks of one node that see other processes, or another network."""
    served = AGREED.replace("has the same outcome on all ranks; what is served", "is served and")
    for path in ("node", "agent"):
        for who in ("one", "all"):
            # Over shared memory the host does not start between such ranks, and its MPI_Finalize may not end over TCP.
            yield Row("namespace", path, who, "pid", "first", served, ["exhausted", "namespace", who, "first", "served"],
                      settings=["UCX_TLS=tcp,self"], wrap=["--pid", "--mount-proc"], root=True)
        yield Row("namespace", path, "all", "net", "first", "each creation of a window is refused on all ranks",
                  ["exhausted", "namespace", "all", "first", "refused"], wrap=["--pid", "--mount-proc", "--net"], root=True)


# What rank 1 has differently where all processes need the same, and what libosc then says of it. (OSC_TRACE is another
# one, which leaves its recording: tests/tools/settings.py.)
DIFFERENT = {
    "OSC_DISABLE=1": r"[0-9.]+ with OSC_DISABLE",
    "OSC_DEBUG=fake_nodes=3": r"[0-9.]+ with OSC_DEBUG=fake_nodes=3",
    "OSC_STATS=1": r"[0-9.]+ with OSC_STATS",
    "version": r"9\.9\.9",
}
# Options that each process may set.
OWN = ["OSC_FENCE=immediate", "OSC_PSCW=deferred", "OSC_LOCK=deferred", "OSC_CHECK=1", "OSC_ADOPT=always",
       "OSC_HANG_REPORT=off", "OSC_DEBUG=cma=off", "OSC_DEBUG=spin=0", "OSC_DEBUG=attend=0", "OSC_DEBUG=pool_mib=4",
       "OSC_DEBUG=net_protocol=direct", "OSC_DEBUG=atomics=provider"]


def different():
    """Rank 1 has another option value, or another version of libosc."""
    for path in ("node", "net"):
        nodes = "fake_nodes=2," if path == "net" else ""

        def row(step, outcome, allowed, **more):
            return Row("different", path, "one", "first", step, outcome, ["exhausted", "none", "one", "first", allowed],
                       settings=["OSC_FALLBACK=host"], **more)

        for what, text in DIFFERENT.items():
            yield row(what, "the host serves; one line for each call names rank 1", "host",
                      lines=[rf"MPI_Win_allocate: the host MPI serves this window, because .*rank 1: libosc {text}"],
                      one="" if what == "version" else what, other_version=what == "version")
        for setting in OWN:
            yield row(setting, "the windows are served", "served",
                      one=setting.replace("OSC_DEBUG=", f"OSC_DEBUG={nodes}"))


def table():
    return [*steps(), *unfreed(), *protected_pages(), *exhausted(), *each(), *providers(), *namespaces(), *different()]


def mutants():
    """Rows of programs that are wrong, and what campaign.py must find."""
    for fault, found in (("hang", "ranks that do not end"), ("corrupt", "wrong bytes"), ("litter", "a process")):
        yield Row(fault, "node", "fence.1", "before", "put", found, ["campaign", "fence", "1", fault, "before", "put"])


GATE = 24  # rows


def cover(rows):
    """The rows of the gate, each of which adds the most to what they have of: a fault with each path and epoch, each step,
    and each moment with each path."""
    def pairs(row):
        return {(row.fault, row.path), (row.fault, row.epoch), (row.epoch, row.step), (row.moment, row.path), row.fault}

    shuffled = random.Random(1).sample(rows, len(rows))  # the table has similar rows side by side
    chosen, seen = [], set()
    for _ in range(GATE):
        # A fault that no row has comes first.
        chosen.append(max(shuffled, key=lambda row: (row.fault not in seen, len(pairs(row) - seen))))
        seen |= pairs(chosen[-1])
    return chosen
