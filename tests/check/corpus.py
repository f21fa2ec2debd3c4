"""Runs the corpus of the usage checker and compares the reports with the marks in its sources, exactly.

A line of wrong.cpp with the comment "// reported: NAME" must be named by a report of that name, once. The marks of one
case with one name are the lines of one report. No other report may come, and none at all about the right cases."""
import argparse
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

FIRST = re.compile(r"^libosc: rank (\d+): OSC_CHECK: ([a-z ]+) \(MPI 4\.1, [\d.]+\)")
CALLED = re.compile(r"^    called by .*\(.*?([a-z_]+\.cpp):(\d+)\)$")
SUMMARY = re.compile(r"^libosc: rank \d+: OSC_CHECK: (\d+) reports? of \d+ kinds?$")
CASE = re.compile(r"^void (\w+)\(\) \{")
MARK = re.compile(r"// reported: ([a-z ]+)$")
RACE = re.compile(r"^=+\nWARNING: ThreadSanitizer: data race .*?^=+\n", re.DOTALL | re.MULTILINE)
FRAME = re.compile(r"^    #0 .*\+(0x[0-9a-f]+)\)", re.MULTILINE)
PLACE = re.compile(r":(\d+)")
COUNT = re.compile(r"^ThreadSanitizer: reported \d+ warnings\n", re.MULTILINE)
HANGS = re.compile(r"// waits for ever: ([a-z ]+)$")


def expected_reports(source):
    """The reports of wrong.cpp: a counter of (name, lines)."""
    reports = collections.Counter()
    lines = collections.defaultdict(list)
    for number, text in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        if text == "}":
            for name, marked in lines.items():
                reports[name, tuple(sorted(marked))] += 1
            lines.clear()
        elif mark := MARK.search(text):
            lines[mark[1]].append(number)
    return reports


def printed_reports(text):
    """The reports on stderr, the sum of the summaries, and the lines that are none of the checker's."""
    reports = collections.Counter()
    summed = 0
    others = []
    current = None

    def close():
        if current:
            reports[current[0], tuple(sorted(current[1]))] += 1

    for line in text.splitlines():
        if first := FIRST.match(line):
            close()
            current = (first[2], [])
        elif summary := SUMMARY.match(line):
            close()
            current = None
            summed += int(summary[1])
        elif called := CALLED.match(line):
            current[1].append(int(called[2]))
        elif not line.startswith("  "):
            close()
            current = None
            others.append(line)
    close()
    return reports, summed, others


def take_races(text, program):
    """The reports of ThreadSanitizer, whose first two frames are the accesses: a counter as that of printed_reports, and the
    rest of the text. The reports name addresses in the program; addr2line finds the lines."""
    races = collections.Counter()
    for report in RACE.findall(text):
        lines = []
        for offset in FRAME.findall(report)[:2]:
            place = subprocess.run(["addr2line", "-e", program, hex(int(offset, 16))], capture_output=True, text=True, check=True)
            lines.append(int(PLACE.search(place.stdout)[1]))
        races["data race", tuple(sorted(lines))] += 1
    return races, COUNT.sub("", RACE.sub("", text))


def launch(arguments, settings=()):
    command = [arguments.mpiexec, "-n", arguments.ranks]
    for setting in [*arguments.env, "OSC_CHECK=" + arguments.level, "MPIR_CVAR_POLLS_BEFORE_YIELD=1", *settings]:
        command += ["-genv", *setting.split("=", 1)]
    return command + arguments.program


def run(arguments, cases):
    done = subprocess.run(launch(arguments) + cases, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode != 0 or "all cases have run" not in done.stdout:
        sys.exit(f"{' '.join(cases)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


def check_silence(arguments):
    done = subprocess.run(launch(arguments), capture_output=True, text=True, timeout=200, check=False)
    if done.returncode != 0 or any(FIRST.match(line) for line in done.stderr.splitlines()):
        sys.exit(f"exit status {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{' '.join(arguments.program)}: no report")


def hanging_cases(source):
    """The cases of wrong.cpp that never end: {case: (name, lines)}."""
    cases = {}
    case = None
    for number, text in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        if start := CASE.match(text):
            case = start[1]
        elif mark := HANGS.search(text):
            name, lines = cases.get(case, (mark[1], ()))
            cases[case] = (name, lines + (number,))
    return cases


def run_until_reported(arguments, case, expected):
    """Runs a case that never ends until both processes have reported what is expected. 90 s are no measure: a loaded machine
    is slow."""
    command = launch(arguments, ["OSC_HANG_REPORT=1"]) + [case]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as job:
        watchdog = threading.Timer(90, lambda: os.killpg(job.pid, signal.SIGKILL))
        watchdog.start()
        text = ""
        for line in job.stderr:
            text += line
            # The report is one write: the lines of it after its last call site are none.
            reports, _, _ = printed_reports(text)
            if reports == collections.Counter([expected]):
                break
        else:
            sys.exit(f"{case}: expected {expected}, printed:\n{text}")
        watchdog.cancel()
        # Open MPI's launcher removes what its job shares.
        os.killpg(job.pid, signal.SIGTERM)
        try:
            job.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)


def compare(text, expected, program):
    races, text_of_checker = take_races(text, program)
    reports, summed, others = printed_reports(text_of_checker)
    reports += races
    wrong = [f"printed but not expected: {name}, lines {lines} ({count} times)"
             for (name, lines), count in sorted((reports - expected).items())]
    wrong += [f"expected but not printed: {name}, lines {lines}" for (name, lines) in sorted(expected - reports)]
    wrong += [f"not a report: {line}" for line in others]
    if summed != sum(reports.values()) - sum(races.values()):
        wrong.append(f"the summaries count {summed} reports, {sum(reports.values())} were printed")
    if wrong:
        sys.exit("\n".join(wrong) + "\nThe output:\n" + text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--level", default="1", help="OSC_CHECK")
    parser.add_argument("--wrong", default="wrong.cpp", help="the source of the program's wrong cases")
    parser.add_argument("--silent", action="store_true", help="the program is right: it passes, and nothing is reported")
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    if arguments.silent:
        return check_silence(arguments)
    source = pathlib.Path(__file__).with_name(arguments.wrong)
    expected = expected_reports(source)
    compare(run(arguments, ["right"]), collections.Counter(), arguments.program[0])
    compare(run(arguments, ["wrong"]), expected, arguments.program[0])
    hanging = hanging_cases(source)
    for case, report in hanging.items():
        run_until_reported(arguments, case, report)
    print(f"corpus: {sum(expected.values()) + len(hanging)} reports as expected, none about right programs")


if __name__ == "__main__":
    main()
