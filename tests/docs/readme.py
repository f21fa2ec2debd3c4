"""README.md shows the two commands first, and the table of options that osc_info prints.

usage: readme.py OSC_INFO README"""
import subprocess
import sys

COMMANDS = ["sh examples/demo.sh", "sh tests/run.sh"]


def first_commands(text):
    """The command lines of the first fenced block, and whether a section stands before it."""
    before, _, rest = text.partition("\n```")
    block = rest.split("\n```", 1)[0].splitlines()[1:]
    return [line.split("#")[0].strip() for line in block if line.strip()], "\n## " in before


def option_table(text):
    """The rows of the table whose head names the variables, as they stand."""
    rows = []
    inside = False
    for line in text.splitlines():
        inside = inside or line.startswith("| variable |")
        if inside and not line.startswith("|"):
            break
        if inside:
            rows.append(line)
    return rows


def main():
    info, readme = sys.argv[1:]
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    wrong = []
    commands, late = first_commands(text)
    if commands != COMMANDS or late:
        wrong.append(f"the first thing in README must be the commands {COMMANDS}, not {commands}")
    printed = subprocess.run([info, "--markdown"], check=True, capture_output=True, text=True).stdout.splitlines()
    table = option_table(text)
    if table != printed:
        wrong.append("the table of options differs from `osc_info --markdown`:")
        wrong += [f"  only in README:   {row}" for row in table if row not in printed]
        wrong += [f"  only in osc_info: {row}" for row in printed if row not in table]
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
