"""insert.py makes all edits of fault_table.py, keeps the files that stay as they are, and refuses an edit that does not fit.

usage: insert_test.py SRC"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import fault_table
import insert

SCRIPT = pathlib.Path(insert.__file__)
EDIT = fault_table.Edit("a.cpp", "once", "twice")
# The text of a.cpp, and what the line of the refusal contains.
REFUSED = [("never\n", ["a_fault", "a.cpp", "0 times", "'once'"]), ("once, once\n", ["a_fault", "a.cpp", "2 times", "'once'"]),
           (None, ["a_fault", "no file a.cpp"])]


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as place:
        source, copy, other = (pathlib.Path(place) / name for name in ("src", "copy", "other"))
        shutil.copytree(sys.argv[1], source)
        command = [sys.executable, SCRIPT, source, copy]
        subprocess.run(command, check=True)
        text = "".join(path.read_text(encoding="utf-8") for path in copy.rglob("*") if path.is_file())
        wrong += [f"the copy has no {fault.name}" for fault in fault_table.FAULTS if f"OSC_FAULT({fault.name})" not in text]

        copied = [path for path in copy.rglob("*") if path.is_file()]
        for path in copied:
            os.utime(path, (1, 1))
        with open(source / "base/log.h", "a", encoding="utf-8") as file:
            file.write("// One line more.\n")
        (source / "base/log.cpp").unlink()
        subprocess.run(command, check=True)
        written = [path for path in copied if path.is_file() and path.stat().st_mtime != 1]
        if written != [copy / "base/log.h"] or (copy / "base/log.cpp").exists():
            wrong.append(f"after an edit of base/log.h and without base/log.cpp it wrote {written}")

        other.mkdir()
        for text, words in REFUSED:
            (other / "a.cpp").unlink(missing_ok=True)
            if text is not None:
                (other / "a.cpp").write_text(text, encoding="utf-8")
            try:
                insert.texts_with_faults(other, [("a_fault", EDIT)])
                line = "nothing"
            except SystemExit as refusal:
                line = str(refusal)
            if "\n" in line or not all(word in line for word in words):
                wrong.append(f"it says of {text!r}: {line}")
    print("\n".join(wrong) if wrong else "insert: every fault is in the copy")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
