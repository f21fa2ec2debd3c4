"""Copies the files of src that the compiler reads, and inserts the faults of fault_table.py into the copy.

usage: insert.py SRC COPY

The copy's faults.def lists the names of the faults for inject.h. A file whose content stays keeps its time, so that an edit of
one source compiles no more than that source anew. Files that src no longer has are removed."""
import pathlib
import sys

import fault_table

SUFFIXES = (".cpp", ".h", ".def")


def texts_with_faults(source, edits):
    """The text of each file; exits with one line if an edit does not fit."""
    texts = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8")
             for path in source.rglob("*") if path.suffix in SUFFIXES}
    for name, edit in edits:
        if edit.file not in texts:
            sys.exit(f"insert.py: {name}: no file {edit.file}")
        times = texts[edit.file].count(edit.text)
        if times != 1:
            sys.exit(f"insert.py: {name}: {edit.file} has {times} times, not once: {edit.text!r}")
        texts[edit.file] = texts[edit.file].replace(edit.text, edit.replacement)
    return texts


def write(copy, texts):
    for path in [p for p in copy.rglob("*") if p.is_file()]:
        if path.relative_to(copy).as_posix() not in texts:
            path.unlink()
    for name, text in texts.items():
        path = copy / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def main():
    source, copy = map(pathlib.Path, sys.argv[1:])
    texts = texts_with_faults(source, fault_table.edits())
    texts["faults.def"] = "".join(f"OSC_FAULT_ENTRY({fault.name})\n" for fault in fault_table.FAULTS)
    write(copy, texts)


if __name__ == "__main__":
    main()
