"""Edge lists and matrices as text, `.txt`, `.csv`, `.tsv`.

An edge list has one edge per line, `source target [weight]`. Vertices are those that a line names,
by integers or by names. A comment `# base 0 vertices 100`, or the option `vertices`, says instead
that there are 100 vertices, numbered from 0; so do the files that are written here.

A matrix has one row per line. Labels may stand in its first row, or in its first row and column.

What may be read in two ways is refused, with the options that say which is meant.
"""

import csv
import itertools
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs.dense import DenseGraph, Graph
from tri_apsp.graphs.edges import EdgeList
from tri_apsp.graphs.files import Source
from tri_apsp.graphs.labels import Labels, integers_of, number_ids
from tri_apsp.graphs.text import (
    NUMBERS,
    Text,
    parse_count,
    parse_edges,
    parse_labelled_edges,
    write_rows,
)
from tri_apsp.messages import shown
from tri_apsp.semirings import no_edge

_COLUMNS = ["source", "target", "weight"]
# What a first row may call the columns, such as source, from_station and Node 1.
_NAMES = {
    kind: re.compile(words, re.IGNORECASE)
    for kind, words in (
        ("source", r"((source|src|from|start|tail|origin)([ _.-].+)?|u|(node|vertex)[ _.-]?[1a])"),
        ("target", r"((target|dst|to|end|head|destination)([ _.-].+)?|v|(node|vertex)[ _.-]?[2b])"),
        ("weight", r"weight|cost|w|length|distance|time"),
    )
}
_DECLARATION = re.compile(r"[#%]\s*(?:base\s+(\S+))?\s*(?:\bvertices\s+(\S+))?", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(\.?[0-9].*|inf|nan)", re.IGNORECASE)
_ZERO = re.compile(r"[+-]?0+(\.0*)?(e[+-]?[0-9]+)?", re.IGNORECASE)
_OF_COLUMNS = "`columns='source,target,weight'` with their names or numbers"


@dataclass(frozen=True)
class TableOptions:
    """How a text file is meant.

    Attributes:
        base: the number of the first vertex, 0 or 1; None: as the file declares.
        vertices: the number of vertices; None: as the file declares, or those that it names.
        columns: those of source, target and weight, by the names of the first row or by numbers
            from 1, as a list or with commas; None: by well-known names, or the first two or three.
        header: whether the first row is no edge, or above a matrix holds labels; None: if it holds
            names of columns.
        matrix: whether the file holds a matrix; None: if it has four or more columns, and as many
            rows, or labels.
        missing: the entry of a matrix that means no edge, besides inf.
    """

    base: int | None = None
    vertices: int | None = None
    columns: str | Sequence[str | int] | None = None
    header: bool | None = None
    matrix: bool | None = None
    missing: float | None = None


def read_edge_text(source: Source, delimiter: str | None, options: TableOptions) -> Graph:
    """Return the graph of an edge list, or of a matrix.

    Args:
        source: the file.
        delimiter: the character between fields; None: blanks.
        options: see TableOptions.

    Raises:
        InputError: for content that the format does not allow, with its line; for what may be read
            in two ways; for options that contradict the file.
    """
    text = source.text("#%")
    declared, text = _declarations(text)
    for name in ("base", "vertices"):
        given = getattr(options, name)
        if given is not None and declared.setdefault(name, given) != given:
            raise InputError(
                f"`{name}` must agree with the file, but is {given}, and {source} declares "
                f"{declared[name]}; leave it out or correct the file."
            )
    if options.base is not None and "vertices" not in declared:
        raise InputError(
            f"`base` is for `vertices`, the number of numbered vertices, which neither {source} "
            "nor the call gives; leave it out, or give both."
        )
    rows = [_fields(line, delimiter) for _, line in itertools.islice(text.rows(), 5)]
    if not rows:
        if "vertices" not in declared:
            raise InputError(
                f"an edge list must have an edge or say how many vertices it has, but {source} "
                "does neither; write `# base 0 vertices 10` on its first line."
            )
        return _edges(text, declared, 2, None, delimiter)
    is_edge_list = declared or options.columns is not None or options.header is not None
    if options.matrix or (options.matrix is None and not is_edge_list and _is_matrix(text, rows)):
        return _matrix(text, rows, delimiter, options)
    if options.missing is not None:
        raise InputError(
            f"`missing` is for a matrix, but {source} holds a list of edges; leave it out, or give "
            "`matrix=True`."
        )
    has_header, use = _layout(text, rows, delimiter, options)
    first = next(text.rows())[0]
    if has_header:
        text = text.after(first)
        if len(rows) == 1 and "vertices" not in declared:
            raise InputError(
                f"an edge list must have an edge below the names of its columns, but {source} has "
                "none; write `# base 0 vertices 10` on its first line if it has no edge."
            )
    elif options.header is None and options.columns is None and not declared:
        _refuse_ambiguous(text, rows)
    # Without `use`, every row must have as many fields. A first row of numbers may have others.
    like = rows[1] if options.header and len(rows) > 1 else rows[0]
    others = use != tuple(range(len(like)))
    return _edges(text, declared, len(use), use if others else None, delimiter)


def _edges(
    text: Text,
    declared: dict[str, int],
    columns: int,
    use: tuple[int, ...] | None,
    delimiter: str | None,
) -> EdgeList:
    weights = NUMBERS if columns > 2 else ()
    if "vertices" not in declared:
        return parse_labelled_edges(text, weights=weights, delimiter=delimiter, use=use)
    if "base" not in declared:
        raise InputError(
            f"an edge list of {declared['vertices']} numbered vertices must say whether they count "
            f"from 0 or from 1, but {text.name} does not; give `base`, or write `# base 0` on its "
            "first line."
        )
    base, n = declared["base"], declared["vertices"]
    return parse_edges(text, base=base, n=n, weights=weights, delimiter=delimiter, use=use)


def _declarations(text: Text) -> tuple[dict[str, int], Text]:
    """Return what comments before the first edge declare, and the lines from the first row on."""
    declared: dict[str, int] = {}
    first, number = None, text.first - 1
    for number, line in text.lines():
        if text.is_comment(line):
            declared |= _declared(line, number, text.name)
        elif first is not None or any(map(_is_number, re.split(r"[,\s]+", line))):
            break
        else:  # it may name the columns
            first = number
    else:
        number += 1
    return declared, text.after((first or number) - 1)


def _declared(line: str, number: int, name: str) -> dict[str, int]:
    """Return the base and the vertices that a comment declares."""
    match = _DECLARATION.fullmatch(line.strip())
    base, vertices = match.groups() if match else (None, None)
    if base not in (None, "0", "1"):
        raise InputError(
            f"the vertex base must be 0 or 1, but line {number} of {name} declares "
            f"{shown(base)}; correct it."
        )
    declared = {} if base is None else {"base": int(base)}
    if vertices is not None and (base is not None or vertices.isdecimal()):
        declared["vertices"] = parse_count(vertices, name, number, "vertices")
    return declared


def _fields(line: str, delimiter: str | None) -> list[str]:
    """Return the fields of a row, without quotes."""
    if delimiter is None:
        found = re.findall(r'"[^"]*"|\S+', line)
    else:
        try:
            found = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
        except csv.Error:
            raise InputError(
                f"a field of a table may have {csv.field_size_limit()} characters, but one has "
                "more; give a file with a line for each row."
            ) from None
    return [field.strip().strip('"') for field in found]


def _is_number(field: str) -> bool:
    return _NUMBER.fullmatch(field) is not None


def _layout(
    text: Text, rows: list[list[str]], delimiter: str | None, options: TableOptions
) -> tuple[bool, tuple[int, ...]]:
    """Return whether the first row is no edge, and the places of the columns."""
    first, place = rows[0], f"line {next(text.rows())[0]} of {text.name}"
    if any(field.startswith("{") for field in first):
        raise InputError(
            f"an edge list must have weights as numbers, but {place} has attributes in braces; "
            "write it with networkx.write_weighted_edgelist."
        )
    if options.columns is not None:
        return _of_columns(rows, place, options)
    known = {
        kind: [i for i, field in enumerate(first) if name.fullmatch(field)]
        for kind, name in _NAMES.items()
    }
    words = not any(map(_is_number, first))
    # Words above numbers, and one in place of a weight, are names of columns.
    above = len(rows) > 1 and all(map(_is_number, rows[1]))
    in_order = bool(options.header) and not any(known.values())
    named = words and (any(known.values()) or len(first) > 2 or above) and not in_order
    if not named:
        width = len(rows[1] if options.header and len(rows) > 1 else first)
        if delimiter == "," and (width == 1 or ";" in first[0]):
            raise InputError(
                f"the fields of a .csv file must be separated by commas, but {place} is "
                f"{shown(','.join(first))}; write it so, or read it by pandas and from_pandas."
            )
        if width not in (2, 3):
            raise InputError(
                f"an edge list must have the columns source, target and, optionally, weight, but "
                f"{place} has {width} fields; say which they are: {_OF_COLUMNS}, or `matrix=True`."
            )
        return bool(options.header), tuple(range(width))
    counts = {kind: len(places) for kind, places in known.items()}
    others = len(first) - sum(counts.values())
    # Another column may be the weight, unless one is named so.
    weights = counts["weight"] or bool(others) * 2
    if counts["source"] != 1 or counts["target"] != 1 or weights > 1:
        raise InputError(
            f"the first row of an edge list must name source, target and, optionally, weight, but "
            f"{place} is {shown((delimiter or ' ').join(first))}; say which columns they are: "
            f"{_OF_COLUMNS}, or `matrix=True`."
        )
    return True, tuple(places[0] for places in known.values() if places)


def _of_columns(
    rows: list[list[str]], place: str, options: TableOptions
) -> tuple[bool, tuple[int, ...]]:
    """Return whether the first row is no edge, and the places of the columns that were given."""
    assert options.columns is not None
    columns, first = options.columns, rows[0]
    if isinstance(columns, str):
        columns = columns.split(",")
    given = [str(column).strip() for column in columns]
    if len(given) not in (2, 3) or len(set(given)) < len(given):
        raise InputError(
            f"`columns` must be those of source, target and, optionally, weight, but are "
            f"{','.join(given)}; give two or three, each once."
        )
    if all(column.isdecimal() for column in given):
        use = tuple(int(column) - 1 for column in given)
        has_header = bool(options.header)
        if options.header is None and len(rows) > 1:
            # Only the names of columns are words above numbers.
            used = [place for place in use if place < min(map(len, rows[:2]))]
            has_header = any(
                not _is_number(first[place]) and _is_number(rows[1][place]) for place in used
            )
    else:
        use = tuple(first.index(column) if column in first else -1 for column in given)
        has_header = True
    wrong = [column for column, at in zip(given, use, strict=True) if not 0 <= at < len(first)]
    if wrong:
        raise InputError(
            f"`columns` must be names or numbers of those in {place}, {', '.join(first)[:60]}, but "
            f"one is {shown(wrong[0])}; correct it."
        )
    return has_header, use


def _refuse_ambiguous(text: Text, rows: list[list[str]]) -> None:
    """Refuse a first row that may be the numbers of vertices and edges."""
    first = rows[0]
    if len(first) in (2, 3) and all(re.fullmatch(r"[0-9]+", field) for field in first):
        n, edges = int(first[0]), int(first[1])
        # Ids may be beyond what islice takes.
        others = list(itertools.islice(text.rows(), 1, min(edges + 2, sys.maxsize)))
        ids = (field for _, line in others for field in re.split(r"[,\s]+", line.strip())[:2])
        if len(others) == edges and all(i.isdecimal() and int(i) <= n for i in ids):
            raise InputError(
                f"the first row of {text.name}, {' '.join(first)}, may be an edge, or {n} vertices "
                f"and {edges} edges, of which as many follow; say that it is no edge: "
                f"`header=True`, or that it is one: {_first_columns(first)}."
            )


def _first_columns(row: list[str]) -> str:
    """Return the option that takes the first columns as source, target and weight."""
    numbers = ",".join(map(str, range(1, min(len(row), 3) + 1)))
    return f"`columns='{numbers}'`"


def _is_matrix(text: Text, rows: list[list[str]]) -> bool:
    """Return whether the rows are a matrix.

    Raises:
        InputError: they may be a matrix of distances, or edges.
    """
    width = len(rows[0])
    if _has_labels(rows):
        return True
    if width < 2 or not all(_is_number(field) for row in rows for field in row):
        return False
    height = sum(1 for _ in itertools.islice(text.rows(), width + 2))
    if height == width + 1:  # the first row may hold labels
        rows = rows[1:]
    elif height != width:
        return False
    if any(re.fullmatch(r"[+-]?inf|nan", end, re.IGNORECASE) for row in rows for end in row[:2]):
        return height == width  # no vertices
    # Rows of edges with further columns may be as many as these.
    has_zeros = all(
        len(row) == width and _ZERO.fullmatch(row[i]) is not None for i, row in enumerate(rows)
    )
    if width > 3 and has_zeros and height == width:
        return True
    if (width > 3 and height == width) or has_zeros:
        header = " and `header=True`" if height > width else ""
        raise InputError(
            f"{text.name} may hold a matrix of {width} vertices, or {height} edges; say which: "
            f"`matrix=True`{header}, or {_first_columns(rows[0])}."
        )
    return False


def _has_labels(rows: list[list[str]]) -> bool:
    """Return whether the first row and the first column hold the same labels. Numbers are labels
    only below a corner that is none.
    """
    labels = rows[0][1:]
    return (
        len(labels) > 1
        and not (all(map(_is_number, labels)) and _is_number(rows[0][0]))
        and len(rows) > min(len(labels), 4)
        and [row[0] for row in rows[1:]] == labels[: len(rows) - 1]
        and all(len(row) == len(rows[0]) for row in rows)
    )


def _matrix(
    text: Text, rows: list[list[str]], delimiter: str | None, options: TableOptions
) -> DenseGraph:
    """Return the graph of a matrix, with or without labels."""
    labels: Labels = range(len(rows[0]))
    use, vertices = None, np.arange(len(labels))
    if _has_labels(rows):
        names = rows[0][1:]
        found = [_fields(line, delimiter)[0] for _, line in itertools.islice(text.rows(), 1, None)]
        vertices, labels = number_ids(integers_of(np.array(names, object)))
        if found != names or len(labels) != len(names):
            raise InputError(
                f"the first row and the first column of {text.name} must hold the same labels in "
                "one order, each once, but do not; correct them."
            )
        use, text = range(1, len(rows[0])), text.after(next(text.rows())[0])
    elif options.header or not any(map(_is_number, rows[0])):
        names = rows[0]
        vertices, labels = number_ids(integers_of(np.array(names, object)))
        if len(labels) != len(names):
            raise InputError(
                f"the first row of {text.name} must hold each label once, but does not; correct it."
            )
        text = text.after(next(text.rows())[0])
    if delimiter is not None:
        # As NaN, such as pandas writes.
        empty = rb"(?m)(?<=%b)(?=%b|\r?$)|^(?=%b)" % (3 * (delimiter.encode(),))
        text = Text(text.name, re.sub(empty, b"nan", text.data), text.comments, text.first)
    width, missing = len(labels), options.missing
    table = text.parse(width, others=(np.int64, np.float64), delimiter=delimiter, use=use)
    if len(table) != width:
        raise InputError(
            f"a matrix must have as many rows as columns, but {text.name} has {len(table)} rows "
            f"of {width}; correct it, or give `header=True` if the first row holds labels."
        )
    columns = [table[name] for name in table.dtype.names or ()]
    values = np.array(columns).T.reshape(-1, width)
    if missing is not None:
        absent = np.isnan(values) if missing != missing else values == missing
        kind = torch.int64 if values.dtype == np.int64 else torch.float64
        values = np.where(absent & ~np.eye(width, dtype=bool), no_edge(kind), values)
    rule = "weights must be neither -inf nor, without `missing=nan`, NaN or empty"
    text.check_weights(values, rule)
    order = np.argsort(vertices)
    weights = torch.from_numpy(np.ascontiguousarray(values[np.ix_(order, order)]))
    return DenseGraph(weights, labels, text.name)


def write_edge_text(graph: Graph, stream: BinaryIO, delimiter: str | None) -> None:
    """Write a graph as an edge list from vertex 0, with its declaration and column names."""
    separator = delimiter or " "
    stream.write(f"# base 0 vertices {graph.n}\n{separator.join(_COLUMNS)}\n".encode())
    write_rows(graph, stream, separator=separator, base=0)
