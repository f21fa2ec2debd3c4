"""Runs the code blocks of README.md and docs/GUIDE.md against an installed copy of the build.

usage: blocks.py BUILD SOURCE MPIEXEC MPICC MPIFORT PAGE...

A comment in front of a block says what the test does with it; a block without one is an error:
  <!-- file: NAME -->   written to NAME in the page's folder
  <!-- run -->          a shell script, run by `bash -eu` in that folder; mpiexec, mpicc and mpifort are the build's MPI
  <!-- output -->       the lines that the last script must have printed, in any order; `...` stands for anything
  <!-- not run: WHY --> left out, with the reason
The first block of README needs no comment: continuous integration runs its two commands. /opt/osc in a page stands for the
folder that the build is installed in. Exit status: 0, or 1 with the blocks that failed.
"""
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

SECONDS = 120  # for each script
LAUNCH_SECONDS = 60  # for each mpiexec in it
PREFIX = "/opt/osc"
MARK = re.compile(r"<!-- (file|run|output|not run)(?:: (.+?))? -->$")


def blocks(text):
    """(number of the line, mark, argument, the block's text) of each fenced block; the mark is None if there is none."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].startswith("```"):
            at += 1
            continue
        end = at + 1
        while not lines[end].startswith("```"):
            end += 1
        marked = MARK.match(lines[at - 1]) if at > 0 else None
        mark, argument = marked.groups() if marked else (None, None)
        yield at + 1, mark, argument, "\n".join(lines[at + 1:end]) + "\n"
        at = end + 1


def tools(folder, mpiexec, mpicc, mpifort):
    """A folder of commands for PATH: the names that the pages use, for the MPI that the build uses."""
    os.mkdir(folder)
    commands = {"mpiexec": ["timeout", "-k", "5", str(LAUNCH_SECONDS), mpiexec], "mpicc": [mpicc], "mpifort": [mpifort]}
    for name, command in commands.items():
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec %s "$@"\n' % shlex.join(command))
        os.chmod(path, 0o755)


def run(script, folder, environment):
    """Exit status and output; the status is None if the script was stopped at its limit."""
    job = subprocess.Popen(["bash", "-eu", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = job.communicate(timeout=SECONDS)
        return job.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        output, _ = job.communicate()
        return None, output


def missing(expected, output):
    """The lines of `expected` that no line of `output` is."""
    lines = output.splitlines()
    patterns = [(line, ".*".join(re.escape(part) for part in line.split("..."))) for line in expected.splitlines()]
    return [line for line, pattern in patterns if not any(re.fullmatch(pattern, given) for given in lines)]


def check_page(page, folder, prefix, environment):
    """The errors in a page's blocks, and the numbers of blocks run and left out."""
    wrong, ran, left_out, output = [], 0, 0, None
    name = os.path.basename(page)
    with open(page, encoding="utf-8") as file:
        found = list(blocks(file.read()))
    for number, (line, mark, argument, text) in enumerate(found):
        where = "%s:%d" % (name, line)
        text = text.replace(PREFIX, prefix)
        if mark is None:
            if name != "README.md" or number > 0:
                wrong.append("%s: the block says neither that it runs nor why it does not" % where)
        elif mark == "not run":
            left_out += 1
            if not argument:
                wrong.append("%s: no reason why the block is not run" % where)
            print("%s: not run: %s" % (where, argument))
        elif mark == "file":
            with open(os.path.join(folder, argument), "w", encoding="utf-8") as file:
                file.write(text)
        elif mark == "run":
            ran += 1
            began = time.monotonic()
            status, output = run(text, folder, environment)
            print("%s: %.1f s" % (where, time.monotonic() - began))
            if status != 0:
                wrong.append("%s: %s\n%s" % (where, "no end within %d s" % SECONDS if status is None else
                                             "exit status %d" % status, output))
        else:
            wrong += ["%s: not printed: %s\n%s" % (where, line, output) for line in missing(text, output or "")]
    return wrong, ran, left_out


def main():
    build, source, mpiexec, mpicc, mpifort, *pages = sys.argv[1:]
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        prefix = os.path.join(scratch, "osc")
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL,
                       timeout=SECONDS)
        commands = os.path.join(scratch, "bin")
        tools(commands, mpiexec, mpicc, mpifort)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OSC_") and key != "LD_PRELOAD"}
        environment["PATH"] = commands + os.pathsep + environment["PATH"]
        for page in pages:
            folder = os.path.join(scratch, os.path.basename(page))
            os.mkdir(folder)
            os.symlink(os.path.abspath(os.path.join(source, "examples")), os.path.join(folder, "examples"))
            found, ran, left_out = check_page(page, folder, prefix, environment)
            wrong += found
            print("%s: %d blocks run, %d not" % (os.path.basename(page), ran, left_out))
            if ran == 0:
                wrong.append("%s: no block was run" % page)
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
