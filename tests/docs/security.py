"""Every claim of docs/SECURITY.md names tests, and ctest has them.

usage: security.py CTEST BUILD SECURITY.md"""
import json
import subprocess
import sys

ctest, build, page = sys.argv[1:]
listed = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True).stdout
known = {test["name"] for test in json.loads(listed)["tests"]}
with open(page, encoding="utf-8") as file:
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in file if line.startswith("| ")][1:]
claims = [row for row in rows if not row[0].startswith("**")]
wrong = [f"no row of three cells: {row}" for row in claims if len(row) != 3]
wrong += [f"ctest has no test {name}, of the claim: {row[0]}" for row in claims for name in row[-1].split(", ") if name not in known]
print("\n".join(wrong) or f"{len(claims)} claims with their tests")
sys.exit(1 if wrong or not claims else 0)
