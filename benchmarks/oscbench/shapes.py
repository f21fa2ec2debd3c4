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


def kept(document):
    """What the table shows of each measure: libosc's median, and the medians of its ratios."""
    def row(measure):
        def median(points):
            return comparison.at(points, None)["median"] if points else None
        return {"name": measure["name"], "ns": median(measure["figures"].get(LIBOSC)),
                **{other: median(measure["ratios"].get(other)) for other in (HOST, OPENMPI)}}
    return dict(document, measures=[m if "ns" in m else row(m) for m in document["measures"]])


def table(documents):
    """libosc's time over the host's by number of pieces, its time at the last, and there over Open MPI's."""
    rows = {split(row["name"]): row for row in kept(documents["shapes"])["measures"]}
    lines = [["window", "operation", "target's datatype"] + ["%s pieces" % p for p in PIECES]
             + ["libosc, %s" % PIECES[-1], "/ Open MPI"]]

    def ratio(row, other):
        return "%.2f" % row[other] if row and row[other] is not None else "-"
    for place, window in PLACES.items():
        for kind, operation in OPERATIONS.items():
            for shape, datatype in SHAPES.items():
                of = [rows.get((place, kind, shape, pieces)) for pieces in PIECES]
                if all(of):
                    lines.append([window, operation, datatype] + [ratio(row, HOST) for row in of]
                                 + [comparison.duration(of[-1]["ns"] / 1e3), ratio(of[-1], OPENMPI)])
    return markdown(lines)


PARTS = {"shapes": table}
