"""Files of other tools: DIMACS and MatrixMarket, which are written too; TNTP, METIS and TSPLIB."""

from __future__ import annotations

import dataclasses
import io
import itertools
import re
from typing import Any, BinaryIO

import numpy as np
import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs.cast import widen
from tri_apsp.graphs.files import ReadOptions, Source, one_column
from tri_apsp.graphs.graph import DenseGraph, EdgeList, Graph
from tri_apsp.graphs.text import NUMBERS, Text, parse_count, parse_edges, parse_fields, write_rows
from tri_apsp.memory import check_memory
from tri_apsp.messages import counted, reason_of, shown


def read_dimacs(source: Source) -> EdgeList:
    """Return the graph of a DIMACS shortest-path file: `p sp n m`, then m arcs `a source target
    weight`. Vertices count from 1, a line that begins with `c` is a comment; weights may be
    fractions, and inf for no edge.

    Source: 9th DIMACS Implementation Challenge, "Shortest Paths", file formats.

    Raises:
        InputError: for content that the format does not allow, with its line.
    """
    text = source.text("c")
    number, line = next(text.rows(), (1, ""))
    header = line.split()
    if len(header) != 4 or header[:2] != ["p", "sp"]:
        raise InputError(
            f"the first line of {text.name} except comments must be `p sp n m`, but line {number} "
            f"is {shown(line)}; add the header, move it up or correct it."
        )
    n, arcs = (
        parse_count(field, text.name, number, what)
        for field, what in zip(header[2:], ("vertices", "arcs"), strict=True)
    )
    return parse_edges(text.after(number), base=1, n=n, expected=arcs, marker="a")


def write_dimacs(graph: Graph, stream: BinaryIO) -> None:
    """Write a graph in the `.gr` format."""
    arcs = sum(block.edges for block in graph.blocks())
    stream.write(f"p sp {graph.n} {arcs}\n".encode())
    write_rows(graph, stream, marker="a ", base=1)


# The kinds of matrices, with the types of their values.
_FIELDS = {"real": (np.float64,), "double": (np.float64,), "integer": (np.int64,), "pattern": ()}
_FIELDS["unsigned-integer"] = _FIELDS["integer"]  # as SciPy writes it
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read_matrix_market(source: Source) -> Graph:
    """Return the graph of a MatrixMarket file, a sparse matrix by its entries (coordinate) or a
    dense one by its columns (array).

    SciPy reads the header. It does not read the entries, since its reader takes `1 2 3-4` for 3,
    1.5 in a file of integers for 1, and 1e400 for inf.

    In the coordinate format every stored entry is an edge, also a zero; in a pattern it weighs 1.
    In the array format every entry is an edge. A symmetric matrix stores each edge once; it counts
    in both directions, in a skew-symmetric one with the opposite weight.

    Raises:
        InputError: for content that the format does not allow, with its line, and for a matrix that
            is not square or real.
        TooLargeError: before anything is allocated, for an array that does not fit the memory.

    Source: Boisvert, Pozo, Remington, The Matrix Market Exchange Formats: Initial Design, NISTIR
    5935.
    """
    from scipy.io import mminfo  # slow to import, and no other format needs it

    text = source.text("%")
    try:
        n, columns, entries, layout, field, symmetry = mminfo(io.BytesIO(text.data))
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"a .mtx file must begin with a MatrixMarket header, and a line `rows columns entries` "
            f"for coordinate or `rows columns` for array, but {source} does not "
            f"({reason_of(error)}); correct it."
        ) from error
    if field not in _FIELDS or symmetry not in _SYMMETRIES:
        raise InputError(
            f"line 1 of {source} must name one of {', '.join(_FIELDS)} and one of "
            f"{', '.join(_SYMMETRIES)}, but names {field} and {symmetry}; convert the file."
        )
    if n != columns:
        raise InputError(
            f"the matrix in {source} must be square, but its header says {n} x {columns}; add "
            "empty rows or columns for missing vertices."
        )
    size, _ = next(text.rows())
    entries_text = text.after(size)
    if layout == "array":
        return _read_array(entries_text, n, _FIELDS[field] or (np.int64,), symmetry)
    graph = parse_edges(entries_text, base=1, n=n, expected=entries, weights=_FIELDS[field])
    if symmetry == "general":
        return graph
    both = graph.both_ways()
    if symmetry == "skew-symmetric":
        both.weights[graph.edges :] *= -1
    return both


def _read_array(text: Text, n: int, kinds: tuple[type, ...], symmetry: str) -> DenseGraph:
    check_memory(n, 1, torch.float64, torch.device("cpu"))
    dtypes = [[("weight", kind)] for kind in kinds]
    values = text.parse("each row must be `weight`", dtypes)["weight"].copy()
    is_skew = symmetry == "skew-symmetric"  # which has no diagonal
    text.check_count(
        len(values), n * n if symmetry == "general" else n * (n + 1) // 2 - n * is_skew
    )
    text.check_weights(values)
    if symmetry != "general":  # the file lists the lower triangle by columns: the upper one by rows
        matrix, upper = np.zeros((n, n), values.dtype), np.triu_indices(n, int(is_skew))
        matrix[upper] = -values if is_skew else values
        matrix.T[upper] = values
    else:
        matrix = values.reshape(n, n).T
    return DenseGraph(torch.from_numpy(matrix), range(1, n + 1))


def write_matrix_market(graph: Graph, stream: BinaryIO) -> None:
    """Write a graph in the coordinate format, with field integer if all weights are, else real."""
    is_integer = all(block.weights.dtype == np.int64 for block in graph.blocks())
    field, edges = "integer" if is_integer else "real", sum(b.edges for b in graph.blocks())
    header = f"%%MatrixMarket matrix coordinate {field} general\n{graph.n} {graph.n} {edges}\n"
    stream.write(header.encode())
    write_rows(graph, stream, base=1)


def read_tntp(source: Source, options: ReadOptions) -> EdgeList:
    """Return the graph of a network file of Transportation Networks for Research, `.tntp`.

    Its weights are the column that `columns` names, by default `free_flow_time`; "": all are 1.

    Source: github.com/bstabler/TransportationNetworks.
    """
    text = source.text("~")
    end = next((number for number, line in text.rows() if "<END OF METADATA>" in line.upper()), 0)
    # <NUMBER OF NODES>, <NUMBER OF LINKS> and <FIRST THRU NODE>
    metadata = re.findall(
        r"<(?:NUMBER OF|FIRST THRU) (NODES?|LINKS)>\s*([^\s<]+)",
        text.data.decode("latin-1").upper(),
    )
    counts = {
        key: parse_count(value, str(source), end, key.lower())
        for key, value in reversed(metadata)  # the first ones count
    }
    names = next((line for _, line in text.after(end).lines() if line.startswith("~")), "")
    columns = names.replace(";", " ").strip("~ ").lower().split()
    weight = one_column(options, "free_flow_time")
    if "NODES" not in counts or not end or weight not in ("", *columns):
        raise InputError(
            "a .tntp file must have <NUMBER OF NODES>, <END OF METADATA> and the names of columns "
            f"after `~`, {weight} among them, but {source} has {', '.join(columns)[:60] or 'none'};"
            " give a network file, or name another column in `columns`."
        )
    links = text.after(end)
    rows = dataclasses.replace(links, data=links.data.replace(b";", b" "))
    use = 0, 1, *(place for place, name in enumerate(columns) if name == weight)
    expected, weights = counts.get("LINKS"), NUMBERS if weight else ()
    found = parse_edges(
        rows,
        base=1,
        n=counts["NODES"],
        use=use[:3],
        expected=expected,
        weights=weights,
        at_least=True,
    )
    through = np.arange(found.n) + 1 >= counts.get("NODE", 1)
    return found if through.all() else dataclasses.replace(found, through=through)


def read_metis(source: Source) -> EdgeList:
    """Return the undirected graph of a `.graph` file of METIS: a line for each vertex, from 1 on,
    with its neighbours and, if the header says so, the weights of the edges to them, which here may
    be fractions.

    Source: Karypis and Kumar, METIS, version 5.1, section 4.1.1.
    """
    text = source.text("%")
    lines = text.data.decode("latin-1").removesuffix("\n").split("\n")
    rows = [line.split() for line in lines if not line.lstrip().startswith("%")]
    header = next((row for row in rows if row), [])
    if not re.fullmatch(r"[0-9]{1,18} [0-9]{1,18}( [01]{1,3}( [0-9]{1,18})?)?", " ".join(header)):
        raise InputError(
            f"a .graph file must begin with `vertices edges [format [weights]]`, but {source} "
            f"begins with {shown(' '.join(header))}; correct the header."
        )
    *counts, kind, of_vertex = header + ["0", "1"][len(header) - 2 :]
    n, edges = map(int, counts)
    sizes, vertex_weights, edge_weights = (digit == "1" for digit in kind.zfill(3))
    skipped, step = sizes + vertex_weights * int(of_vertex), 1 + edge_weights
    lists = rows[rows.index(header) + 1 :]
    while len(lists) > n and not lists[-1]:
        lists.pop()
    found = [row[skipped:] for row in lists]
    words = list(itertools.chain.from_iterable(found))
    try:
        # NumPy would read 1_0 as 10.
        targets = np.array([word.replace("_", "?") for word in words[::step]], np.int64) - 1
    except (ValueError, OverflowError):
        targets, found = np.empty(0, np.int64), []
    matched = len(found) == n and all(len(row) % step == 0 for row in found)
    sources = np.repeat(np.arange(len(found)), [len(row) // step for row in found])
    # A loop has one end, or two, or does not count.
    loops = int((sources == targets).sum()) if matched else 0
    ends = (len(targets) - loops, len(targets), len(targets) + loops)
    if not matched or 2 * edges not in ends or ((targets < 0) | (targets >= n)).any():
        weighted = ", each with a weight" if edge_weights else ""
        raise InputError(
            f"a .graph file must have {n} lines of neighbours from 1 to {n}{weighted}, and each of "
            f"the {counted(edges, 'edge')} twice, as its header says, but {source} does not; "
            "correct it, or copy it again."
        )
    weights = np.ones(len(targets), np.int64)
    if edge_weights:
        weights = parse_fields(str(source), words[1::2], text.data.decode("latin-1"))
    there, back = [
        np.stack([*ends, weights])[:, np.lexsort([weights, *ends[::-1]])]
        for ends in ((sources, targets), (targets, sources))
    ]
    wrong = (there != back).any(axis=0)
    if wrong.any():
        u, v, _ = min(found[:, wrong.argmax()].tolist() for found in (there, back))
        raise InputError(
            "each edge of a .graph file must stand in the lines of both its ends, with one weight, "
            f"but that between {int(u) + 1} and {int(v) + 1} of {source} does not; correct it."
        )
    return EdgeList(n, sources, targets, weights, range(1, n + 1))


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
# How the numbers of EDGE_WEIGHT_SECTION fill a matrix: the indices of rows and columns, in order.
_SECTIONS: dict[str, Any] = {
    "FULL_MATRIX": lambda n: np.divmod(np.arange(n * n), n),
    "UPPER_ROW": lambda n: np.triu_indices(n, 1),
    "UPPER_DIAG_ROW": np.triu_indices,
    "LOWER_ROW": lambda n: np.tril_indices(n, -1),
    "LOWER_DIAG_ROW": np.tril_indices,
    "UPPER_COL": lambda n: np.tril_indices(n, -1),
    "UPPER_DIAG_COL": np.tril_indices,
    "LOWER_COL": lambda n: np.triu_indices(n, 1),
    "LOWER_DIAG_COL": np.triu_indices,
}


def read_tsplib(source: Source) -> DenseGraph:
    """Return the graph of a `.tsp` or `.atsp` file of TSPLIB with explicit weights.

    Source: Reinelt, TSPLIB 95.
    """
    text = source.text("%").data.decode("latin-1")
    # A comment may name the section too.
    begin = re.search(r"^[ \t]*EDGE_WEIGHT_SECTION\b[ \t]*:?", text, re.MULTILINE)
    head, section = (text[: begin.start()], text[begin.end() :]) if begin else (text, "")
    fields = dict(re.findall(r"^[ \t]*(\w+)[ \t]*:[ \t]*(.*?)[ \t]*$", head, re.MULTILINE))
    form = fields.get("EDGE_WEIGHT_FORMAT", "").upper()
    size = fields.get("DIMENSION", "")
    if fields.get("EDGE_WEIGHT_TYPE", "").upper() != "EXPLICIT" or form not in _SECTIONS:
        raise InputError(
            "a .tsp file must have EDGE_WEIGHT_TYPE: EXPLICIT and the format FULL_MATRIX, or "
            "UPPER or LOWER, _ or _DIAG_, and ROW or COL, but "
            f"{source} has {str(fields.get('EDGE_WEIGHT_TYPE'))[:25]} and {form[:25] or None}; "
            "compute its distances, and save them as .npy."
        )
    n = parse_count(size, str(source), 1, "vertices")
    numbers = list(itertools.takewhile(_NUMBER.fullmatch, section.split()))
    values = widen(parse_fields(str(source), numbers, section))
    # Counted before anything of size n^2 is made: DIMENSION may be wrong.
    half = n * (n + 1) // 2 if "DIAG" in form else n * (n - 1) // 2
    wanted = n * n if form == "FULL_MATRIX" else half
    if len(values) != wanted:
        raise InputError(
            f"{source} must have {wanted} weights, as its DIMENSION of {n} says, but has "
            f"{len(values)}; copy it again."
        )
    rows, columns = _SECTIONS[form](n)
    weights = np.zeros((n, n), values.dtype)
    weights[rows, columns] = values
    if form != "FULL_MATRIX":
        weights[columns, rows] = values
    return DenseGraph(torch.from_numpy(weights), range(1, n + 1), str(source))
