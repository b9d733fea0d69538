"""The files that options name: checked before the work; those of vertices and of pairs, one per
line, by the labels of a graph.
"""

import argparse
import csv
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from tri_apsp.cli.options import STDIN
from tri_apsp.errors import InputError
from tri_apsp.graphs import DISTANCE_FORMATS, check_output
from tri_apsp.graphs.edge_text import NAMES
from tri_apsp.graphs.files import Source
from tri_apsp.graphs.labels import Labels, vertex_of
from tri_apsp.graphs.text import QUOTED, Text, fields, parse_fields, separator
from tri_apsp.messages import one_line, shown

P = TypeVar("P", str, Path)


def named(args: argparse.Namespace, options: Iterable[str]) -> dict[str, Any]:
    """Return the values of the options that are given."""
    values = {option: getattr(args, option.removeprefix("--")) for option in options}
    return {option: value for option, value in values.items() if value is not None}


def opened(path: P, what: str = "a graph") -> P | BinaryIO:
    """Return the path of a file, or standard input if that is named."""
    if str(path) != STDIN:
        return path
    if sys.stdin is None:
        raise InputError(
            f"{what} must be read from an open file, but standard input is closed; redirect a "
            "file to it."
        )
    return sys.stdin.buffer


def check_outputs(
    args: argparse.Namespace,
    outputs: Iterable[str],
    formats: Sequence[str] = DISTANCE_FORMATS,
    inputs: Iterable[str] = (),
) -> str:
    """Check the files that options name, before the work; return them for the result.

    Args:
        args: of the command line.
        outputs: options that name files to write.
        formats: the extensions that these may have.
        inputs: options that name files to read.

    Raises:
        InputError: for a file that cannot be written, is the graph or an input, or is named twice.
    """
    read, written = {**named(args, inputs), "the graph": args.graph}, named(args, outputs)
    seen = {Path(path).resolve(): name for name, path in read.items() if str(path) != STDIN}
    for option, path in written.items():
        check_output(path, formats)
        first = seen.setdefault(path.resolve(), option)
        if first != option:
            raise InputError(
                f"{first} and {option} must be two files, but both are {path}; change one."
            )
    return ", ".join(map(str, written.values()))


def read_texts(args: argparse.Namespace, options: Iterable[str]) -> dict[str, Text]:
    """Return the contents of the files of vertices that options name, before the graph is read.

    Raises:
        InputError: for a file that cannot be read or is empty, and if standard input is named
            twice.
    """
    given = named(args, options)
    places = {"GRAPH": args.graph, **given}
    from_stdin = [name for name, path in places.items() if str(path) == STDIN]
    if len(from_stdin) > 1:
        raise InputError(
            f"only one argument may be {STDIN}, standard input, but {' and '.join(from_stdin)} "
            "are; name a file."
        )
    return {
        option: Source(opened(path, "vertices"), "txt", "file of vertices").text("#")
        for option, path in given.items()
    }


def vertices_in(text: Text, labels: Labels, option: str) -> list[int]:
    """Return the vertices of a file that has one label per line, a name in quotes or without.

    Raises:
        InputError: for a line that is no label of the graph, and if there is none.
    """
    vertex = partial(vertex_of, labels, name=option)
    return [row[0] for row in _rows(text, labels, option, "one vertex of the graph,", vertex)]


def pairs_in(text: Text, labels: Labels, option: str) -> tuple[list[int], list[int]]:
    """Return the first and the second vertices of a file that has two labels per line, between
    which is a comma, a tab, a semicolon or blanks; a name that contains one of them is in quotes.

    Raises:
        InputError: for a line that is not two labels of the graph, and if there is none.
    """
    vertex = partial(vertex_of, labels, name=option)
    rows = _rows(text, labels, option, "two vertices of the graph,", vertex, vertex)
    return [source for source, _ in rows], [target for _, target in rows]


def values_in(text: Text, labels: Labels, option: str) -> list[float]:
    """Return a value for each vertex of the graph, from a file that has a label and a number per
    line, with separators as of pairs_in: the values of one vertex add up, others are 0. The first
    line may name the columns, as of demand and turns.

    Raises:
        InputError: for a line that is not a label of the graph and a number, and if there is none.
    """
    vertex, values = partial(vertex_of, labels, name=option), [0.0] * len(labels)
    what = "a vertex and a finite number, with vertices"
    for place, value in _rows(text, labels, option, what, vertex, _number):
        values[place] += value
    return values


def demand_in(text: Text, labels: Labels, option: str) -> tuple[list[int], list[int], Any]:
    """Return the different sources and targets of a file that has two labels and a number per line,
    with separators as of pairs_in, and the numbers as a sparse matrix (sources, targets): those of
    one pair add up.

    Raises:
        InputError: for a line that is not two labels of the graph and a number, and if there is
            none.
    """
    from scipy.sparse import coo_array  # which few commands need

    vertex = partial(vertex_of, labels, name=option)
    what = "a source, a target and a finite number, with vertices"
    rows = _rows(text, labels, option, what, vertex, vertex, _number)
    ends = zip(*rows, strict=True)
    sources, row = np.unique(next(ends), return_inverse=True)
    targets, column = np.unique(next(ends), return_inverse=True)
    demand = coo_array((np.array(next(ends)), (row, column)), (len(sources), len(targets)))
    return sources.tolist(), targets.tolist(), demand


def turns_in(text: Text, labels: Labels, option: str) -> list[list[Any]]:
    """Return the turns of a file that has three labels and a number or inf per line, with
    separators as of pairs_in.

    Raises:
        InputError: for a line that is not three labels of the graph and a number, and if there is
            none.
    """
    vertex = partial(vertex_of, labels, name=option)
    what = "three vertices, from, via and to, and a number or inf, with vertices"
    return _rows(text, labels, option, what, vertex, vertex, vertex, _number_or_inf)


def _number(field: str) -> float:
    if not math.isfinite(value := _number_or_inf(field)):
        raise ValueError
    return value


def _number_or_inf(field: str) -> float:
    value = float(parse_fields("a line", [field], field)[0])
    if not value > -math.inf:  # also NaN
        raise ValueError
    return value


def _rows(
    text: Text,
    labels: Labels,
    option: str,
    what: str,
    *kinds: Callable[[str], Any],
) -> list[list[Any]]:
    """Return the fields of each line that is no comment.

    Args:
        what: the rule of a line, for messages, which name the vertices after it.
        kinds: those of the fields, which return one or raise ValueError.
    """
    if not len(labels):
        vertex_of(labels, "", option)  # raises
    delimiter = separator(text, ",", or_blanks=True) if len(kinds) > 1 else None
    may_name, rows = kinds[-1] in (_number, _number_or_inf), list[list[Any]]()
    found = "comments"
    for number, line in text.rows():
        given, parts = line.strip(), list[str]()
        try:
            parts = [_unquoted(given)] if len(kinds) == 1 else fields(given, delimiter)
            row = [kind(part) for kind, part in zip(kinds, parts, strict=True)]
        except (ValueError, csv.Error):  # replaced below by one with the file and the line
            row = []
        is_first, may_name = may_name, False
        if is_first and len(parts) == len(kinds) and not any(map(_is_valid, kinds, parts)):
            is_source, is_target = NAMES[0].fullmatch, NAMES[1].fullmatch
            if len(parts) > 2 and (is_target(parts[0]) or any(map(is_source, parts[1:-1]))):
                raise InputError(
                    f"columns of {option} must be {what.removesuffix(', with vertices')}, in this "
                    f"order, but line {number} of {text.name} names {shown(line)}; reorder them."
                )
            found = "names of columns"
            continue
        if not row:
            among = "" if isinstance(labels, range) else f"one of the {len(labels)} "
            ends = one_line(f"{among}from {labels[0]} to {labels[len(labels) - 1]}", 100)
            raise InputError(
                f"each line of {option} must hold {what} {ends}, but line {number} of {text.name} "
                f"is {shown(line)}; correct or remove it."
            )
        rows.append(row)
    if not rows:
        raise InputError(
            f"{option} must hold at least one line, but {text.name} has {found} alone; add one."
        )
    return rows


def _is_valid(kind: Callable[[str], Any], part: str) -> bool:
    try:
        kind(part)
    except ValueError:
        return False
    return True


def _unquoted(line: str) -> str:
    return line[1:-1].replace('""', '"') if QUOTED.fullmatch(line) else line
