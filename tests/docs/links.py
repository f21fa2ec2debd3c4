"""Every link inside the documents leads somewhere, and every file of the project that they name exists.

usage: links.py SOURCE

Checked are README.md and the pages of docs: links to files and to headings, and paths that begin with a folder of the project
(`*` stands for anything). Exit status: 0, or 1 with what leads nowhere.
"""
import glob
import os
import re
import sys

FOLDERS = ("src", "tests", "docs", "benchmarks", "examples", "include", "cmake")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"(?<![\w/.$-])(?:%s)/[\w./*+-]*[\w*+]" % "|".join(FOLDERS))


def anchors(text):
    """The names by which headings are linked to, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", text, re.M)}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    source = sys.argv[1]
    wrong, checked = [], 0
    for page in [os.path.join(source, "README.md")] + sorted(glob.glob(os.path.join(source, "docs", "**", "*.md"), recursive=True)):
        name = os.path.relpath(page, source)
        text = read(page)
        for link in LINK.findall(text):
            if "://" in link:
                continue
            path, _, heading = link.partition("#")
            to = os.path.join(os.path.dirname(page), path) if path else page
            checked += 1
            if not os.path.exists(to):
                wrong.append("%s: a link to %s, which is not there" % (name, link))
            elif heading and heading not in anchors(read(to)):
                wrong.append("%s: a link to %s, which has no such heading" % (name, link))
        for path in set(NAMED.findall(text)):
            checked += 1
            if not glob.glob(os.path.join(source, path)):
                wrong.append("%s: names %s, which is not there" % (name, path))
    print("\n".join(wrong))
    print("%d links and paths" % checked)
    return 1 if wrong or checked == 0 else 0


sys.exit(main())
