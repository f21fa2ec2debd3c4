"""Every link inside the documents leads somewhere, every file of the project that they name exists, and so does every document
that the sources name.

usage: links.py SOURCE|INSTALLED

Checked are README.md, examples/README.md and the pages of docs: links to files and to headings; in the source tree also paths that
begin with a folder of the project (`*` stands for anything), and pages of docs in the files of CODE. Exit status: 0, or 1 with what leads nowhere.
"""
import glob
import os
import re
import sys

FOLDERS = ("src", "tests", "docs", "benchmarks", "examples", "include", "cmake")
CODE = ("src", "tests", "benchmarks", "examples", "cmake")
CITED = re.compile(r"\bdocs/(\w+\.md)\b")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"(?<![\w/.$-])(?:%s)/[\w./*+-]*[\w*+]" % "|".join(FOLDERS))


def anchors(text):
    """The names by which headings are linked to, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", text, re.M)}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def in_code(source):
    """What is wrong with the documents that the sources name, and how many they name."""
    wrong, named = [], 0
    for folder in CODE:
        for path in sorted(glob.glob(os.path.join(source, folder, "**", "*"), recursive=True)):
            if not os.path.isfile(path):
                continue
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
            for number, line in enumerate(lines, 1):
                for page in CITED.findall(line):
                    named += 1
                    where = "%s:%d" % (os.path.relpath(path, source), number)
                    if not os.path.exists(os.path.join(source, "docs", page)):
                        wrong.append("%s: names docs/%s, which is not there" % (where, page))
    return wrong, named


def main():
    source = sys.argv[1]
    is_source = os.path.exists(os.path.join(source, "src"))
    wrong, checked = in_code(source) if is_source else ([], 0)
    first = [os.path.join(source, page) for page in ("README.md", "examples/README.md")]
    for page in first + sorted(glob.glob(os.path.join(source, "docs", "**", "*.md"), recursive=True)):
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
        for path in set(NAMED.findall(text)) if is_source else ():
            checked += 1
            if not glob.glob(os.path.join(source, path)):
                wrong.append("%s: names %s, which is not there" % (name, path))
    print("\n".join(wrong))
    print("%d links and paths" % checked)
    return 1 if wrong or checked == 0 else 0


sys.exit(main())
