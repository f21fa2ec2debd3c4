"""The table of docs/PERFORMANCE.md on windows over the program's own memory while a thread of the target waits: libosc's time
over that of each host, from `over.sh HOST BUILD --measure` (tests/hosts)."""

from .comparison import ratio_text, short
from .report import losing, markdown

HOSTS = {"mpich-system": "MPICH 4.0.2", "mpich": "MPICH 5.0.2", "openmpi": "Open MPI 4.1.4", "impi": "Intel MPI 2021.18"}
FILES = {host: "waiting/%s.json" % host for host in HOSTS}
OPERATIONS = {"put8": "put, 8 bytes", "get8": "get, 8 bytes", "fop": "fetch_and_op", "cas": "compare_and_swap",
              "acc8": "accumulate, 8 bytes", "get_acc8": "get_accumulate, 8 bytes", "rput_wait": "Rput, wait", "rget_wait": "Rget, wait",
              "lock_put32": "lock, put of 32 bytes, unlock", "vector64": "put of 64 doubles two apart, to the same",
              "vector64_packed": "put of 64 doubles, to 64 two apart", "acc64k": "accumulate, 64 KiB", "acc1m": "accumulate, 1 MiB", "put64k": "put, 64 KiB",
              "get64k": "get, 64 KiB", "put4m": "put, 4 MiB", "get4m": "get, 4 MiB"}


def kept(document):
    """What the table shows of each measure: its ratios. `versions` are those of Debian's packages, whatever the host."""
    def row(measure):
        return {"measure": measure["measure"], **{k: measure["ratio"][k] for k in ("median", "q1", "q3")},
                "p90": measure["p90"]["median"]}
    rows = [row(m) if "ratio" in m else m for m in document["measures"]]
    return {**{k: v for k, v in document.items() if k not in ("command", "versions")}, "measures": rows}


def table(documents):
    """A row for each operation on one window, and on several in rotation; bold where the host is faster."""
    ratios = {(row["measure"], host): row for host in HOSTS for row in kept(documents[host])["measures"]}
    lines = [["operation", "windows"] + list(HOSTS.values())]

    def cell(ratio):
        text = "%s, %s" % (ratio_text(ratio), short(ratio["p90"])) if ratio else "-"
        return "**%s**" % text if ratio and losing(ratio) else text
    for name, operation in OPERATIONS.items():
        for rot in ("", ".rot"):
            cells = [cell(ratios.get((name + ".malloc" + rot, host))) for host in HOSTS]
            if set(cells) != {"-"}:
                lines.append([operation, "in rotation" if rot else "one"] + cells)
    runs = ", ".join(sorted({"%s at %s" % (documents[host]["when"][:10], documents[host]["commit"][:8]) for host in HOSTS}))
    return "%s\n\n`sh tests/hosts/over.sh HOST BUILD --measure --only '[!b]*.malloc*' --impl host --impl libosc --bind`, HOST %s; %s." % (
        markdown(lines), ", ".join(HOSTS), runs)


PARTS = {"waiting": table}
