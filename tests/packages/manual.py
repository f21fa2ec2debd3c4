"""The manual pages are made without a warning of groff, have a name for whatis, and name every option.

usage: manual.py SOURCE PAGES OSCRUN OSC_INFO

PAGES is the folder of osc.7, oscrun.1 and osc_info.1. Exit status: 0, 1 with what is wrong, or 77 without man.
"""
import os
import re
import shutil
import subprocess
import sys

ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "120", "MAN_KEEP_FORMATTING": ""}


def run(*command):
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def main():
    source, pages, *programs = sys.argv[1:]
    if shutil.which("man") is None or shutil.which("lexgrog") is None:
        print("SKIPPED: there is no man")
        return 77
    with open(os.path.join(source, "src", "base", "options.def"), encoding="utf-8") as file:
        wanted = {"osc.7": re.findall(r'^OSC_OPTION\(\w+, "(\w+)"', file.read(), re.M)}
    for program in programs:
        wanted[os.path.basename(program) + ".1"] = re.findall(r"--\w[\w-]*", run(program, "--help")[1])
    wrong = []
    for page, words in wanted.items():
        path = os.path.join(pages, page)
        status, text, warnings = run("man", "--warnings", "-E", "UTF-8", "-Tutf8", "-P", "cat", "-l", path)
        if status != 0 or warnings:
            wrong.append(f"{page}: man: {status}: {warnings}")
        # Bold letters are printed twice.
        text = re.sub(".\b", "", text)
        missing = [word for word in words if not re.search(rf"(?<![\w-]){word}(?![\w-])", text)]
        if len(words) < 6 or missing:
            wrong.append(f"{page}: of {len(words)} options these lack: {missing}")
        status, name, _ = run("lexgrog", path)
        if status != 0 or f'"{page[:-2]} - ' not in name:
            wrong.append(f"{page}: whatis: {name}")
        print(f"{page}: {len(words)} options")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
