"""Edge lists and matrices as text, `.txt`, `.csv`, `.tsv`.

An edge list has one edge per line, `source target [weight]`. Fields are separated as the format
says, or by the only comma, tab or semicolon of the first row. Vertices are those that a line names,
by integers or by names. A comment `# base 0 vertices 100`, or the option `vertices`, says instead
that there are 100 vertices, numbered from 0; so do the files that are written here.

A matrix has one row per line. Labels may stand in its first row, or in its first row and column.

What the first row does not show is said by options; what may be read in two ways is refused.
"""

import dataclasses
import itertools
import re
import warnings
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
import torch

from tri_apsp.arguments import as_integer
from tri_apsp.errors import ApspError, ApspWarning, InputError
from tri_apsp.graphs.files import ReadOptions, Source, columns_of
from tri_apsp.graphs.graph import DenseGraph, EdgeList, Graph
from tri_apsp.graphs.labels import integers_of, number_ids
from tri_apsp.graphs.text import (
    NUMBERS,
    QUOTED,
    Text,
    UnclearError,
    fields,
    parse_count,
    parse_edges,
    separator,
    write_rows,
)
from tri_apsp.messages import counted, shown, warn_caller
from tri_apsp.semirings import no_edge

_COLUMNS = ["source", "target", "weight"]
NAMES = [
    re.compile(words, re.IGNORECASE)
    for words in (
        r"((source|src|from|start|tail|origin)([ _.-].+)?|u|(node|vertex)[ _.-]?[1a])",
        r"((target|dst|to|end|head|destination)([ _.-].+)?|v|(node|vertex)[ _.-]?[2b])",
        r"weight|cost|w|length|distance|time",
    )
]
"""What a first row may call the columns, such as source, from_station and Node 1."""
# `vertices` alone is followed by a number, else the comment is a sentence.
_DECLARATION = re.compile(
    r"[#%]\s*(?:base\s+(?P<base>\S+))?\s*(?:\bvertices\s+(?P<vertices>(?(base)\S|[0-9])+))?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[+-]?(\.?[0-9].*|inf(inity)?|nan)", re.IGNORECASE)
_ZERO = re.compile(r"[+-]?0+(\.0*)?(e[+-]?[0-9]+)?", re.IGNORECASE)


def read_edge_text(source: Source, delimiter: str | None, options: ReadOptions) -> Graph:
    """Return the graph of an edge list, or of a matrix.

    Args:
        source: the file.
        delimiter: the character between fields; None: blanks.
        options: how the file is meant.

    Raises:
        InputError: for content that the format does not allow, with its line; for what may be read
            in two ways; for options that contradict the file.
    """
    text = source.text("#%")
    delimiter = separator(text, delimiter)
    try:
        return _read(text, delimiter, options)
    except UnclearError as error:
        remedies = _remedies(text, delimiter, options)
        raise InputError(", or ".join([str(error).removesuffix("."), *remedies]) + ".") from None


def _remedies(text: Text, delimiter: str | None, options: ReadOptions) -> list[str]:
    """Return the options with which a text can be read, of those that are not given: each is tried
    on the first 1000 rows, or all rows of a matrix, and the first that works on the whole text. If
    it does not work there, none is returned.
    """

    def reads(part: Text, more: Any) -> bool:
        with warnings.catch_warnings(), suppress(ApspError, ValueError):
            warnings.simplefilter("ignore")
            own = {"txt": None, "tsv": "\t"}.get(more.get("format"), delimiter)
            _read(part, own, {**options, **more})
            return True
        return False

    rows = _rows(text, delimiter)
    *_, (last, _) = itertools.islice(text.rows(), max(1000, len(rows[0]) + 1))
    lines = last - text.first + 1
    head = dataclasses.replace(text, data=b"\n".join(text.data.split(b"\n", lines)[:lines]))
    numbers = [place for row in rows for place, field in enumerate(row) if _is_number(field)]
    columns = ",".join(["1", "2", *(str(place + 1) for place in sorted(numbers) if place > 1)][:3])
    header: list[Any] = [{"header": True}] if _may_be_header(text, rows) else []
    tried: list[Any] = [
        *header,
        {"columns": columns},
        *({"columns": columns, **one} for one in header),
        {"matrix": True},
        *([{"format": "txt"}] if len(rows[0]) == 1 else []),
    ]
    has_names = len(rows[0]) > 2 and _are_words(rows[0]) and not options.get("columns")
    by_tabs = _rows(text, "\t")[0] if delimiter is None else []
    # Blanks between tabs are parts of names.
    if by_tabs[1:] and any(" " in field and not _is_number(field) for field in by_tabs):
        has_names, tried = False, [{"format": "tsv"}, *({"format": "tsv", **one} for one in header)]
    works = list[Any]()
    for more in tried:
        is_given = any(options.get(name) is not None for name in more if name != "format")
        if not is_given and not (len(more) > 1 and works) and reads(head, more):
            works.append(more)
    if works and not reads(text, works[0]):
        works = []
    found = [" and ".join(f"`{name}={value!r}`" for name, value in one.items()) for one in works]
    if has_names:
        found.append("names of columns in `columns`")
    if [*map(len, rows)] == [1, 1] and 0 in numbers and not found:
        return ["remove both lines if they count vertices and edges"]
    return ["give " + ", or ".join(found) if found else "use from_pandas with ids as text"]


def _read(text: Text, delimiter: str | None, options: ReadOptions) -> Graph:
    """Return the graph of a text.

    Raises:
        InputError: as read_edge_text.
        UnclearError: for a first row that other options may explain.
    """
    rows = _rows(text, delimiter)
    is_matrix = options.get("matrix")
    # As pandas writes one: an empty corner, and a label in row and column.
    if is_matrix is None and options.get("columns") is None:
        is_matrix = len(rows) > 1 and ["", rows[1][0]] == rows[0][:2]
    for name in ("base", "vertices", "columns") if is_matrix else ("missing",):
        if options.get(name) is not None:
            raise InputError(
                f"`{name}` is for a list of edges, but {text.name} is read as a matrix; leave it "
                "out, or give `matrix=False`."
                if is_matrix
                else f"`{name}` is for a matrix, but {text.name} is read as a list of edges; leave "
                "it out, or give `matrix=True`."
            )
    if is_matrix and rows:
        return _matrix(text, rows[0], delimiter, options)
    has_header, use = _layout(text, rows, options) if rows else (False, (0, 1))
    declared, text = _below(text, has_header)
    is_plain = not (has_header or declared or options.get("columns"))
    for name in ("base", "vertices"):
        given = options.get(name)
        if given is not None:
            number = declared.setdefault(name, as_integer(given, name))
            if number != given:
                raise InputError(
                    f"`{name}` must agree with the file, but is {given}, and {text.name} declares "
                    f"{number}; leave it out or correct the file."
                )
    base, n = declared.get("base"), declared.get("vertices")
    if base not in (None, 0, 1):
        raise InputError(
            f"`base`, the number of the first vertex, must be 0 or 1, but is {base} for "
            f"{text.name}; correct it, or the comment that declares it."
        )
    if n is None and (options.get("base") is not None or not any(text.rows())):
        raise InputError(
            f"a list without edges, and `base`, need the number of vertices, but {text.name} does "
            "not say it; give `vertices`, or write `# base 0 vertices 10` on its first line."
        )
    if n is not None and base is None:
        raise InputError(
            f"an edge list of {n} numbered vertices must say whether they count from 0 or from 1, "
            f"but {text.name} does not; give `base`, or write `# base 0` on its first line."
        )
    if rows and not has_header:
        edge = [rows[0][place] for place in use]
        if not all(map(_is_number, edge[2:] if n is None else edge)):
            raise _unclear(text)
    # Without `use`, every row must have as many fields.
    width = len(rows[-1 if options.get("header") else 0]) if rows else 2
    graph = parse_edges(
        text,
        base=base or 0,
        n=n,
        weights=NUMBERS if len(use) > 2 else (),
        delimiter=delimiter,
        use=None if use == tuple(range(width)) else use,
    )
    if is_plain:
        _refuse_ambiguous(graph, width, text.name, options)
    may_be_names = not has_header and graph.edges > 1 and _are_words(rows[0])
    if may_be_names and options.get("header") is None:
        _warn_of_names(graph, text)
    return graph


def _warn_of_names(graph: EdgeList, text: Text) -> None:
    """Warn of a first row of names that no other row has: they may be those of columns."""
    ends = np.concatenate([graph.sources, graph.targets])
    first = graph.sources[0], graph.targets[0]
    if isinstance(graph.labels[0], str) and np.isin(ends, first).sum() == 2:
        number, line = next(text.rows())
        warn_caller(
            f"line {number} of {text.name}, {shown(line)}, counts as an edge, but no other line "
            "has its names; give `header=True` if it names the columns, or `header=False` if it is "
            "an edge.",
            ApspWarning,
        )


def _below(text: Text, has_header: bool) -> tuple[dict[str, int], Text]:
    """Return what comments above the first row of numbers declare, and the lines from there on."""
    declared, last = dict[str, int](), text.first - 1
    for number, line in text.lines():
        if not text.is_comment(line):
            if not has_header:
                break
            has_header = False
        match = _DECLARATION.fullmatch(line.strip())
        for name, field in match.groupdict().items() if match else ():
            if field is not None:
                declared[name] = parse_count(field, text.name, number, name)
        last = number
    return declared, text.after(last)


def _rows(text: Text, delimiter: str | None) -> list[list[str]]:
    """Return the fields of the first two rows."""
    return [fields(line, delimiter) for _, line in itertools.islice(text.rows(), 2)]


def _are_words(row: list[str]) -> bool:
    return all(row) and not any(map(_is_number, row))


def _may_be_header(text: Text, rows: list[list[str]]) -> bool:
    """Return whether the first of some rows is words alone, without an open quote, or fewer fields
    than the next that count vertices and edges.
    """
    _, line = next(text.rows())
    if _are_words(rows[0]):
        return '"' not in QUOTED.sub("", line)
    return len(rows[0]) < len(rows[-1]) and rows[0][1:] in (
        [],
        [str(sum(1 for _ in text.rows()) - 1)],
    )


def _is_number(field: str) -> bool:
    return _NUMBER.fullmatch(field) is not None


def _layout(
    text: Text, rows: list[list[str]], options: ReadOptions
) -> tuple[bool, tuple[int, ...]]:
    """Return whether the first of some rows is no edge, and the places of the columns."""
    first, header, columns = rows[0], options.get("header"), options.get("columns")
    number, _ = next(text.rows())
    if columns is not None:
        given = columns_of(columns)
        is_numbers = all(column.isdecimal() for column in given)
        names = [str(place + 1) for place in range(len(first))] if is_numbers else first
        if len(given) not in (2, 3) or len({*given} & {*names}) < len(given):
            raise InputError(
                f"`columns` must be two or three of those in line {number} of {text.name}, "
                f"{', '.join(first)[:60]}, each once, or their numbers from 1, but are "
                f"{', '.join(given)[:60]}; correct them."
            )
        return bool(header) or not is_numbers, tuple(map(names.index, given))
    known = [
        [place for place, field in enumerate(first) if name.fullmatch(field)] for name in NAMES
    ]
    counts = [*map(len, known)]
    if header is not False and counts[0] + counts[1] and not any(map(_is_number, first)):
        # Another column may be the weight, unless one is named so.
        if counts == [1, 1, 1] or (counts == [1, 1, 0] and len(first) == 2):
            return True, tuple(places[0] for places in known if places)
    else:
        row = rows[-1] if header else first
        has_weights = len(row) == 3 and _is_number(row[2])
        # Where another row differs, the parser names it.
        is_edge = len(rows[-1]) == len(row) or header is False or not _may_be_header(text, rows)
        if has_weights or (len(row) == 2 and is_edge):
            return bool(header), tuple(range(len(row)))
    raise _unclear(text)


def _unclear(text: Text) -> UnclearError:
    number, line = next(text.rows())
    return UnclearError(
        f"rows of an edge list must be `source target [weight]`, but line {number} of {text.name} "
        f"is {shown(line)}; correct it."
    )


def _refuse_ambiguous(graph: EdgeList, width: int, name: str, options: ReadOptions) -> None:
    """Refuse edges without names of columns that may be a matrix, or whose first one may be the
    numbers of vertices and edges.
    """
    columns = graph.sources[:4].tolist(), graph.targets[:4].tolist(), graph.weights[:4].tolist()
    rows = [(graph.labels[u], graph.labels[v], w) for u, v, w in zip(*columns, strict=True)]
    may_be_matrix = options.get("vertices") is None and graph.edges in (width, width + 1)
    square = rows[-width:] if may_be_matrix else []
    others = np.concatenate([graph.sources[1:], graph.targets[1:]])
    edges = f"`columns='{'1,2,3'[: 2 * width - 1]}'`"
    if square and all(_ZERO.fullmatch(str(row[place])) for place, row in enumerate(square)):
        what, remedy = "a matrix", "`matrix=True`"
        if graph.edges > width:
            what, remedy = "a matrix below labels", "`matrix=True` and `header=True`"
    elif (
        options.get("header") is None
        and rows[0][1] == graph.edges - 1 > 0
        and (others <= graph.sources[0]).all()
    ):
        what, remedy = "edges below the numbers of vertices and edges", "`header=True`"
        edges = "`header=False`"
    else:
        return
    raise InputError(
        f"{name} may hold {graph.edges} edges, or {what}; say which: {remedy}, or {edges}."
    )


def _matrix(
    text: Text, first: list[str], delimiter: str | None, options: ReadOptions
) -> DenseGraph:
    """Return the graph of a matrix, with or without labels, of which `first` is the first row."""
    header, names, use = options.get("header"), list[str](), None
    has_labels = header or (header is None and not _is_number(first[0]))
    _, text = _below(text, has_labels)
    # Labels stand in the first column too where there are as many rows as that.
    if has_labels:
        names = first
        if sum(1 for _ in text.rows()) < len(first):
            names, use = first[1:], range(1, len(first))
            column = [fields(row, delimiter)[0] for _, row in text.rows()]
            names = names if names == column else []
        if not names or len({*names}) < len(names):
            raise InputError(
                f"labels must stand in the first row of {text.name}, or in its first row and "
                "column in one order, each once, but do not; correct them"
                f"{', or leave out `header=True`' if header else ''}."
            )
    if delimiter is not None:
        # As NaN, such as pandas writes.
        empty = rb"(?m)(?<=%b)(?=%b|\r?$)|^(?=%b)" % (3 * (delimiter.encode(),))
        text = dataclasses.replace(text, data=re.sub(empty, b"nan", text.data))
    width = len(names or first)
    dtypes = [[("row", kind, (width,))] for kind in NUMBERS]
    rule = f"each row must have {counted(width, 'number')}"
    values = text.parse(rule, dtypes, delimiter=delimiter, use=use)["row"]
    if len(values) != width:
        raise InputError(
            f"a matrix must have as many rows as columns, but {text.name} has {len(values)} rows "
            f"of {width}; correct it"
            f"{'' if names else ', or give `header=True` if the first row holds labels'}."
        )
    missing = options.get("missing")
    if missing is not None:
        absent = np.isnan(values) if missing != missing else values == missing
        kind = torch.int64 if values.dtype == np.int64 else torch.float64
        # A vertex reaches itself.
        no_edges = np.where(np.eye(width, dtype=bool), 0, no_edge(kind))
        values = np.where(absent, no_edges, values)
    rule, remedy = "weights must be neither -inf, NaN nor empty", "correct it"
    if missing is None and bool(np.isnan(values).any()):
        remedy += ", or give `missing=nan` if NaN is no edge"
    text.check_weights(values, rule, remedy)
    if not names:
        return DenseGraph(torch.from_numpy(values), range(width), text.name)
    vertices, labels = number_ids(integers_of(np.array(names, object)))
    order = np.argsort(vertices)
    return DenseGraph(torch.from_numpy(values[np.ix_(order, order)]), labels, text.name)


def write_edge_text(graph: Graph, stream: BinaryIO, delimiter: str | None) -> None:
    """Write a graph as an edge list from vertex 0, with its declaration and column names."""
    separator = delimiter or " "
    stream.write(f"# base 0 vertices {graph.n}\n{separator.join(_COLUMNS)}\n".encode())
    write_rows(graph, stream, separator=separator, base=0)
