"""The table of docs/PERFORMANCE.md that shows operations on derived datatypes, from `compare --shapes`."""

from . import comparison, curves
from .launch import HOST, LIBOSC, OPENMPI
from .report import markdown

FILES = {"shapes": "shapes/compare.json"}
PIECES = ("4", "16", "64", "256", "1000")
PLACES = {curves.HOSTS: "two hosts", "allocate": "node, allocated", "malloc": "node, malloc", "dynamic": "node, dynamic"}
OPERATIONS = {"put": "put", "get": "get", "acc": "accumulate"}
SHAPES = {"vector": "vector", "pages": "vector, a page apart", "indexed": "indexed, blocks of 1 to 3", "rows": "rows of 32"}


def split(name):
    """The place, operation, shape and pieces of a measure."""
    where, operation = name.split(".")[:2]
    flavour = name.split(".")[2] if where == curves.NODE else where
    kind, shape = operation.split("_")
    pieces = next(p for p in sorted(PIECES, key=len, reverse=True) if shape.endswith(p))
    return flavour, kind, shape[:-len(pieces)], pieces


def table(documents):
    """libosc's time over the host's by number of pieces, its time at the last, and there over Open MPI's."""
    rows = {split(row["name"]): row for row in documents["shapes"]["measures"]}
    lines = [["window", "operation", "target's datatype"] + ["%s pieces" % p for p in PIECES]
             + ["libosc, %s" % PIECES[-1], "/ Open MPI"]]

    def ratio(row, other):
        found = comparison.at(row["ratios"].get(other, []), None) if row else None
        return "%.2f" % found["median"] if found else "-"
    for place, window in PLACES.items():
        for kind, operation in OPERATIONS.items():
            for shape, datatype in SHAPES.items():
                of = [rows.get((place, kind, shape, pieces)) for pieces in PIECES]
                if any(of):
                    lines.append([window, operation, datatype] + [ratio(row, HOST) for row in of]
                                 + [comparison.cell(of[-1], LIBOSC, None), ratio(of[-1], OPENMPI)])
    return markdown(lines)


PARTS = {"shapes": table}
