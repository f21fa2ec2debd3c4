"""The table of records in docs/NETWORK.md against the library's own: opcodes, names, and the frames that carry them.

usage: records.py RECORDS_DEF NETWORK"""
import re
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        table = re.findall(r"^OSC_RECORD\((\w+), (\w+)\)", file.read(), re.MULTILINE)
    with open(sys.argv[2], encoding="utf-8") as file:
        rows = re.findall(r"^\| (\d+) (\w+) \| (\w+)", file.read(), re.MULTILINE)
    code = [(str(number), name, frame.lower()) for number, (name, frame) in enumerate(table, 1)]
    if not code or code != rows:
        print("\n".join(f"only in the library: {row}" for row in code if row not in rows))
        print("\n".join(f"only in the document: {row}" for row in rows if row not in code))
        return 1
    print(f"{len(code)} records")
    return 0


sys.exit(main())
