"""The options that several commands on a graph take, each described once."""

from argparse import BooleanOptionalAction
from pathlib import Path

from tri_apsp.configs import current_method
from tri_apsp.console.options import option
from tri_apsp.graphs import DISTANCE_FORMATS, FORMATS, SPARSE_DTYPES
from tri_apsp.request import METHOD_CHOICES
from tri_apsp.semirings import DTYPES, dtype_name

STDIN = "-"
"""In place of a file: standard input."""

MARK = "--negative-cycles mark"
"""One of OUTPUTS, for messages."""

ENDINGS = f"the name ends in one of {', '.join(DISTANCE_FORMATS)}"
"""Of files of distances, for help texts."""

SEPARATED = "separated by a comma, a tab, a semicolon or blanks, the same in all lines"
"""Of the fields in a file of vertices, for help texts."""

NAMED = f"{SEPARATED}, of which the first may name the columns"
"""As SEPARATED, where a number ends each line."""

GRAPH = (
    option(
        "graph",
        metavar="GRAPH",
        help=f"graph file; the name ends in one of {', '.join(f'.{name}' for name in FORMATS)}, "
        f"also with .gz; {STDIN} is standard input, which needs --format. A .npz may also be a "
        "file of prepare. Of parallel edges only the lightest counts, and a loop only if it is "
        "negative, also in the number of edges shown",
    ),
    option(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help="format of GRAPH, one of these endings without the dot; default: by the end of its "
        "name",
    ),
    option(
        "--vertices",
        type=int,
        metavar="N",
        help="number of vertices of an edge list, numbered from --base; default: the vertices that "
        "it names",
    ),
    option("--base", type=int, choices=[0, 1], help="number of the first of these vertices"),
    option(
        "--columns",
        metavar="S,T[,W]",
        help="columns of source, target and weight in a text file: names from its first row, or "
        'numbers from 1; in .tntp, .graphml and .gml the one of the weight, or "" for none',
    ),
    option(
        "--header",
        action=BooleanOptionalAction,
        help="the first row of a text file is no edge; above a matrix, it holds labels",
    ),
    option(
        "--matrix",
        action=BooleanOptionalAction,
        help="the text file holds a matrix, not an edge list",
    ),
    option(
        "--missing",
        type=float,
        metavar="X",
        help="entry of a matrix as text that means no edge, besides inf",
    ),
    option(
        "--undirected", action="store_true", help="count each edge of the file in both directions"
    ),
)
"""GRAPH, and the options that say how it is read."""

FILE = option(type=Path, metavar="FILE").settings
"""What options that name a file have in common."""

NETWORK = (
    *GRAPH,
    option(
        "--zones",
        **FILE,
        help="file of vertices that paths begin and end at, but do not pass: one per line, by its "
        "number or name in GRAPH; default: those that a .tntp names",
    ),
    option(
        "--turns",
        **FILE,
        help="file of turns: three vertices, from, via and to, and what a path adds that travels "
        f"both edges, per line, {NAMED}; inf forbids the turn; others cost nothing",
    ),
    option(
        "--no-u-turns",
        action="store_true",
        help="forbid to turn back at once, except where --turns names the turn",
    ),
)
"""Those of a command that restricts paths."""

METHOD = option(
    "--method",
    default="auto",
    type=current_method,
    choices=METHOD_CHOICES,
    metavar="METHOD",
    help=f"auto (default), {', '.join(METHOD_CHOICES[1:])}",
)
DTYPE = option(
    "--dtype",
    choices=[dtype_name(dtype) for dtype in DTYPES],
    help="default: that of a dense matrix or a prepared graph in GRAPH, else float32",
)
SPARSE_DTYPE = DTYPE.but(choices=[dtype_name(dtype) for dtype in SPARSE_DTYPES])
"""Of a command that solves a sparse graph."""

LIMIT = option(
    "--limit",
    type=float,
    metavar="D",
    help="longest distance of interest; a longer one counts as no path",
)
SOURCES = option("--sources", metavar="S", nargs="+")
NEGATIVE_CYCLES = option(
    "--negative-cycles",
    default="raise",
    choices=["raise", "mark"],
    help="raise (default): an error; mark: -inf for pairs with a path through a negative cycle, "
    "and the distances of all others",
)
WEIGHT_ERROR = option(
    "--weight-error",
    type=float,
    default=0.0,
    metavar="E",
    help="largest absolute error of a weight: a cycle of k edges counts as negative only if it "
    "weighs less than -k E (and rounding)",
)
PREDECESSORS = option(
    "--predecessors",
    **FILE,
    help="write the predecessor of every vertex on the path from each source, -1 without one: in "
    ".csv by the label in GRAPH, elsewhere by the number from 0; with turns the edge before each "
    "vertex, and before each edge, by its ends, elsewhere by n + its number in the order of source "
    "and target",
)
OUT = option("-o", "--out", **FILE, help=f"write the distances; {ENDINGS}")
OUTPUTS = NEGATIVE_CYCLES, WEIGHT_ERROR, PREDECESSORS, OUT
"""What `solve` and `sssp` say of their results."""
