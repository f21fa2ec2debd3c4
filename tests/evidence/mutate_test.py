"""The mutator makes the mutants that it should of a small program, each of them changes what the program does, and the
program's processes and threads record the mutants that they reach.

usage: mutate_test.py COMPILER"""
import os
import pathlib
import subprocess
import sys
import tempfile
import types

try:
    import mutate
    import sites
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

# Its exit code is a sum, in which nearly every mutant of the namespace changes a term.
PROGRAM = r"""
#include <atomic>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
namespace town {
enum class Fault { None, Size };
struct Bell { int rung = 0; void ring() { ++rung; } };
constexpr int kSeven = 3 + 4;
static_assert(kSeven - 1 == 6);
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define OVER(x) ((x) > 5)
Fault check(int size) { return size > 7 ? Fault::Size : Fault::None; }
Fault enter(int size, int& entered) {
    if (const Fault fault = check(size); fault != Fault::None) return fault;
    ++entered;
    return Fault::None;
}
template <class T> T sum(T a, T b) { return a + b; }
int sum(int a) { return LIKELY(a < 4 && a != 2) ? a : 0; }
struct Town {
    std::atomic<int> open{0};
    Bell bell;
    int wait(int most = 2 + 1) {
        open.store(1, std::memory_order_seq_cst);
        bell.ring();
        if constexpr (sizeof(int) > 1) most = most << 1;
        switch (most) {
            case 4 + 2: return bell.rung & (most ^ 1);
        }
        return OVER(most);
    }
};
}  // namespace town
int main() {
    using namespace town;
    int entered = 1;
    enter(7, entered);
    enter(8, entered);
    Town town;
    int result = entered + 2 * sum(5, 6) + 4 * sum(3) + 8 * sum(2);
    std::thread([&] { result += 60 * (town.wait() == 1); }).join();
    if (fork() == 0) _exit(sum(4) + 1);
    int status = 0;
    wait(&status);
    return result + 30 * WEXITSTATUS(status);
}
"""
PLAIN = 126
# The mutants of the namespace, and the program's exit code with each.
EXPECTED = [
    ("town::check condition 1", "size > 7", 126),
    ("town::check bound 1", "size > 7", 125),
    ("town::enter error 1", "fault != Fault::None", 127),
    ("town::enter equality 1", "fault != Fault::None", 126),
    ("town::sum(T, T) arithmetic 1", "a + b", 102),
    ("town::sum(int) condition 1", "LIKELY(a < 4 && a != 2)", 250),
    ("town::sum(int) junction 1", "a < 4 && a != 2", 6),
    ("town::sum(int) bound 1", "a < 4", 246),
    ("town::sum(int) equality 1", "a != 2", 130),
    ("town::Town::wait order 1", "open.store(1, std::memory_order_seq_cst)", 126),
    ("town::Town::wait wake 1", "bell.ring()", 66),
    ("town::Town::wait bits 1", "most << 1", 66),
    ("town::Town::wait bits 2", "bell.rung & (most ^ 1)", 66),
]


def found_in(text, name):
    finder = sites.Finder({name: text})
    unit = sites.cindex.Index.create().parse(name, ["-std=c++20"], unsaved_files=[(name, text)])
    assert not [d for d in unit.diagnostics if d.severity >= sites.cindex.Diagnostic.Error], list(unit.diagnostics)
    finder.read(unit)
    return finder.result()


def run(program, **settings):
    return subprocess.run([program], env={**os.environ, **settings}, check=False, timeout=20).returncode


def check_program(folder):
    found = [s for s in found_in(PROGRAM, str(folder / "program.cpp")) if s.function.startswith("town::")]
    wrong = []
    for number, site in enumerate(found, 1):
        site.number = number
    made = [(s.address, PROGRAM[s.start:s.end]) for s in found]
    if made != [e[:2] for e in EXPECTED]:
        wrong.append("the sites are " + "\n".join(map(str, made)))
    text, lines = sites.rewrite(PROGRAM, found)
    if lines[PROGRAM[:found[0].start].count("\n") + 1] != {1, 2}:
        wrong.append(f"the lines of mutants are {lines}")
    (folder / "mutant.h").write_bytes((pathlib.Path(__file__).parent / "mutant.h").read_bytes())
    (folder / "program.cpp").write_text('#include "mutant.h"\n' + text, encoding="utf-8")
    program = folder / "program"
    subprocess.run([sys.argv[1], "-std=c++20", "-pthread", "-o", program, folder / "program.cpp"], check=True)
    for number, code in enumerate([PLAIN] + [e[2] for e in EXPECTED]):
        got = run(program, MUTANT=str(number))
        if got != code:
            wrong.append(f"with mutant {number} the exit code is {got}, not {code}")

    reached = folder / "reached"
    reached.write_bytes(bytes(20))
    if run(program, MUTANT_REACHED=str(reached), MUTANT="3") != PLAIN:
        wrong.append("a mutant is on while the program records")
    if reached.read_bytes() != bytes([0] + [1] * len(EXPECTED) + [0] * (19 - len(EXPECTED))):
        wrong.append(f"reached are {reached.read_bytes()}")
    if run(program, MUTANT_REACHED="/nowhere") != PLAIN:
        wrong.append("the program does not run without a file to record in")
    return wrong


def check_draw(folder):
    """A new function replaces at most one mutant of others, and the shares of kinds and rooms hold."""
    def drawn(functions):
        found = [sites.Site(str(folder / name), "bound", 0, 1, f) for name, f in functions]
        files = {"src/a/a.cpp": b"\n" * 300, "src/b/b.cpp": b"\n" * 100}
        options = types.SimpleNamespace(seed="1", number=40)
        return {s.function for s in mutate.draw(found, folder, files, options, {"a::7 bound 0"})}

    functions = [(f"src/{room}/{room}.cpp", f"{room}::{n}") for room in "ab" for n in range(60)]
    before, after = drawn(functions), drawn(functions[1:] + [("src/a/a.cpp", "a::new")])
    wrong = []
    if len(before) != 40 or "a::7" in before:
        wrong.append(f"drawn are {sorted(before)}")
    if len(before - after) > 2:
        wrong.append(f"after an edit {sorted(before - after)} give way to {sorted(after - before)}")
    return wrong


def main():
    with tempfile.TemporaryDirectory() as place:
        wrong = check_program(pathlib.Path(place)) + check_draw(pathlib.Path(place))
    print("\n".join(wrong) if wrong else f"{len(EXPECTED)} mutants are as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
