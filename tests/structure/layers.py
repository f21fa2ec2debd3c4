"""Reads src/ and fails on an include that runs up, on a room that the order does not name, on mpi.h outside the rooms that may
use it, and on what only one host's ABI has (numbers of handles, names) outside src/abi/HOST/. The order is docs/ARCHITECTURE.md's: a room includes only itself and rooms below it. Tables
(*.def) may be included from anywhere. It fails also on a script in tests/ with the name of a module of Python's library:
scripts of its folder would import it in that module's place."""
import pathlib
import re
import sys

# From the bottom up. A room is a folder of src/, or of src/plugins/.
ORDER = ["base", "stats", "op", "shm", "heap", "trace", "sync", "local", "fabric", "progress", "net", "reach", "core", "abi",
         "host", "window", "report", "api", "plugins", "plugins/adopt", "plugins/reports", "plugins/verify"]
TOOLS = "tools"  # beside the library: includes tables, options, the timeline, and the rooms that osc_info checks
FROM_TOOLS = {TOOLS, "abi", "base", "trace", "fabric", "local"}
WITH_MPI = {"abi", "host", "window", "report", "api", "plugins", "plugins/adopt", "plugins/reports", "plugins/verify"}
FILES_WITH_MPI = {"tools/check_host.cpp"}  # libosc_check.so
# Rooms that include nothing of these, although they lie above them: api, report and window alone call the host.
NOT_FROM = {"host": {"window", "report", "api", "plugins", "plugins/adopt", "plugins/reports", "plugins/verify"}}

HOST_FOLDERS = r"abi/[^/]+/"  # what one host's ABI alone has belongs there
# Names of MPICH and of Open MPI, in comments too; MPIX_ are extensions.
HOST_NAME = re.compile(r"P?MPIX_|MPIR_|MPII_|MPICH_|\b(ompi|OMPI|opal|OPAL)_|\bucp_")
# A handle of MPICH: two bits for how its object is stored, four for the kind of object, which is not 0, and a number.
HOST_NUMBER = re.compile(r"\b0x(?!00|40|80|c0)[0-9a-f][048c]00[0-9a-f]{4}u?l*\b", re.IGNORECASE)
NOT_OF_A_HOST = {"base/launcher.cpp", "tools/check_job.cpp", "abi/recognise.h"}  # launchers' variables; advice; the ABIs


def room_of(path):
    parts = path.split("/")
    if parts[0] == "plugins" and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else ""


def wrong_includes(source):
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        name = path.relative_to(source).as_posix()
        room = room_of(name)
        if room != TOOLS and room not in ORDER:
            yield f"{name}: the order of rooms does not name '{room}'"
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not re.match(HOST_FOLDERS, name) and name not in NOT_OF_A_HOST:
                if found := HOST_NAME.search(line) or HOST_NUMBER.search(line.split("//")[0]):
                    yield f"{name}:{number}: '{found[0]}' belongs to one host's ABI, in src/abi/HOST/"
            if re.match(r"\s*#\s*include <mpi\.h>", line) and room not in WITH_MPI and name not in FILES_WITH_MPI:
                yield f"{name}:{number}: mpi.h is for {', '.join(sorted(WITH_MPI))}"
            found = re.match(r'\s*#\s*include "([^"]+)"', line)
            if not found or found[1].endswith(".def") or "/" not in found[1] or found[1].startswith("osc/"):
                continue
            to = room_of(found[1])
            if to not in ORDER and to != TOOLS:
                yield f"{name}:{number}: {found[1]} is in no room"
            elif room == TOOLS:
                if to not in FROM_TOOLS:
                    yield f"{name}:{number}: tools include options, tables and some rooms below, not {found[1]}"
            elif to == TOOLS:
                yield f"{name}:{number}: {found[1]} is for tools"
            elif ORDER.index(to) > ORDER.index(room):
                yield f"{name}:{number}: {room} lies below {to}, which {found[1]} is in"
            elif to in NOT_FROM and room != to and room not in NOT_FROM[to]:
                yield f"{name}:{number}: {found[1]} is for {', '.join(sorted(NOT_FROM[to]))}"


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = list(wrong_includes(root / "src"))
    wrong += [f"{path}: a module of Python's library has this name" for path in sorted((root / "tests").rglob("*.py"))
              if path.stem in sys.stdlib_module_names]
    print("\n".join(wrong) if wrong else "layers: every include goes down")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
