"""README.md shows the two commands first; docs/GUIDE.md has the tables of options that osc_info prints, and README names no other ones.

usage: readme.py OSC_INFO README GUIDE [--write]"""
import re
import subprocess
import sys

BEGIN, END = "<!-- osc_info --markdown -->\n", "<!-- end -->\n"
COMMANDS = ["sh examples/demo.sh", "sh tests/run.sh"]


def first_commands(text):
    """The command lines of the first fenced block, and whether a section stands before it."""
    before, _, rest = text.partition("\n```")
    block = rest.split("\n```", 1)[0].splitlines()[1:]
    return [line.split("#")[0].strip() for line in block if line.strip()], "\n## " in before


def main():
    info, readme, guide = sys.argv[1:4]
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    with open(guide, encoding="utf-8") as file:
        user_guide = file.read()
    wrong = []
    commands, late = first_commands(text)
    if commands != COMMANDS or late:
        wrong.append(f"the first thing in README must be the commands {COMMANDS}, not {commands}")
    printed = subprocess.run([info, "--markdown"], check=True, capture_output=True, text=True).stdout.splitlines()
    if "--write" in sys.argv:
        before, rest = user_guide.split(BEGIN)
        user_guide = before + BEGIN + "\n" + "\n".join(printed) + "\n\n" + END + rest.split(END, 1)[1]
        with open(guide, "w", encoding="utf-8") as file:
            file.write(user_guide)
    table = user_guide.split(BEGIN)[1].split(END)[0].strip().splitlines()
    if table != printed:
        wrong.append("the tables of options differ from `osc_info --markdown`:")
        wrong += [f"  only in GUIDE:    {row}" for row in table if row not in printed]
        wrong += [f"  only in osc_info: {row}" for row in printed if row not in table]
    known = re.findall(r"^\| `(OSC_[A-Z_]+)`", "\n".join(printed), re.MULTILINE)
    rows = "\n".join(line for line in text.splitlines() if line.startswith("| `OSC_"))
    wrong += [f"README's table has {name}, which is no option" for name in re.findall(r"OSC_[A-Z_]+", rows) if name not in known]
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
