"""Takes figures in interleaved rounds: starts of programs, in groups of which each has one start for every
implementation, and their output.
"""

import time

from .launch import run

LIMIT_SECONDS = 60


class Start:
    """One start of a program: `read(outcome)` gives (measure, size, figure, valid) from its output."""

    def __init__(self, implementation, command, read, expected):
        self.implementation = implementation
        self.command = command
        self.read = read
        self.expected = expected


class Figures:
    """Figures by measure, implementation, size and round; the command behind each; and the errors."""

    def __init__(self):
        self.values = {}
        self.commands = {}
        self.wrong = set()
        self.trouble = []
        self.rounds = 0

    def add(self, start, number, found):
        name, size, value, valid = found
        self.values.setdefault((name, start.implementation, size), {})[number] = value
        self.commands.setdefault((name, start.implementation), start.command)
        if not valid:
            self.wrong.add((name, start.implementation))

    def sizes(self, name, implementation):
        return sorted((s for n, i, s in self.values if n == name and i == implementation), key=lambda s: s or 0)

    def of(self, name, implementation, size):
        return self.values.get((name, implementation, size), {})


def take(groups, number_of_rounds, until, tell):
    """Interleaved rounds; a further one is begun only if it will probably end by `until` on the monotonic clock."""
    figures = Figures()
    begin = time.monotonic()
    for number in range(number_of_rounds):
        now = time.monotonic()
        if number and now + (now - begin) / number > until:
            tell("%d rounds are what the time allows" % number)
            break
        tell("round %d of %d" % (number + 1, number_of_rounds))
        for group in groups:
            turn = number % len(group)
            for start in group[turn:] + group[:turn]:
                outcome = run(start.command, LIMIT_SECONDS)
                found = list(start.read(outcome))
                for one in found:
                    figures.add(start, number, one)
                if outcome.trouble or len(found) < start.expected:
                    shown = " ".join(start.command[-3:])[-90:]
                    figures.trouble.append("%s, round %d, ... %s: %s" % (
                        start.implementation, number + 1, shown, outcome.trouble or "figures are missing"))
        figures.rounds = number + 1
    return figures
