"""From which size on direct accesses are faster than messages: the generated part of docs/NETWORK.md."""

from .report import markdown

DOCUMENT = "crossover"
FILES = {DOCUMENT: "crossover.json"}
PROTOCOLS = ("buffered", "direct")
SHOWN = (1024, 4096, 8192, 16384, 65536)


def table(documents):
    document = documents[DOCUMENT]
    of = {(f["provider"], f["measure"], f["protocol"]): f["median"] / 1e3 for f in document["figures"]}
    columns = [(provider, many) for provider in dict.fromkeys(f["provider"] for f in document["figures"]) for many in (1, 8)]
    lines = [["bytes"] + ["%s, %s" % (provider, "one" if many == 1 else "eight") for provider, many in columns]]
    for size in SHOWN:
        each = [tuple(of[provider, "put%dx%d" % (many, size), p] for p in PROTOCOLS) for provider, many in columns]
        lines.append(["%d" % size] + ["%.1f / %.1f us" % pair for pair in each])
    return "`%s`, at %s:\n\n%s" % (document["command"], document["commit"][:10], markdown(lines))


PARTS = {"crossover": table}
