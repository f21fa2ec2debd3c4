"""The generated tables of docs/NETWORK.md against `osc_info --providers`, if this machine has the same libfabric.

usage: providers.py OSC_INFO NETWORK [--write]"""
import subprocess
import sys

BEGIN, END = "<!-- osc_info --providers -->\n", "<!-- end -->\n"
# Slow under load, so that its probes may run out of time: only its attributes are compared.
SLOW = "| `sockets` | takes it"


def rows(text):
    return [line for line in text.splitlines() if line.startswith("| `") and not line.startswith(SLOW)]


def name_of(row):
    return row.split("`")[1]


def main():
    info, path = sys.argv[1:3]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    block, after = rest.split(END, 1)
    printed = subprocess.run([info, "--providers"], check=True, capture_output=True, text=True).stdout
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(before + BEGIN + "\n" + printed + "\n" + END + after)
        return 0
    version = printed.splitlines()[0]
    if version not in block.splitlines():
        print(f"another libfabric than the document's: {version}")
        return 77
    here, written = rows(printed), rows(block)
    local = {name_of(row) for row in here}
    wrong = [f"not in {path}: {row}" for row in here if row not in written]
    wrong += [f"only in {path}: {row}" for row in written if name_of(row) in local and row not in here]
    if not local:
        wrong.append("libfabric has no provider here")
    print("\n".join(wrong) if wrong else f"{len(here)} rows of {', '.join(sorted(local))}")
    return 1 if wrong else 0


sys.exit(main())
