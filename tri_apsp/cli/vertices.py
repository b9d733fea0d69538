"""Files of vertices and of pairs, one per line, by the labels of a graph."""

import argparse
import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from tri_apsp.cli.graph import STDIN, opened
from tri_apsp.errors import InputError
from tri_apsp.graphs.files import Source
from tri_apsp.graphs.labels import Labels, vertex_of
from tri_apsp.graphs.text import Text
from tri_apsp.messages import one_line, shown

_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def read_texts(args: argparse.Namespace, *options: str) -> dict[str, Text]:
    """Return the contents of the files that options name, before the graph is read.

    Raises:
        InputError: for a file that cannot be read or is empty, and if standard input is named
            twice.
    """
    paths = {option: getattr(args, option.removeprefix("--")) for option in options}
    given = {option: str(path) for option, path in paths.items() if path is not None}
    from_stdin = [name for name, path in {"GRAPH": args.graph, **given}.items() if path == STDIN]
    if len(from_stdin) > 1:
        raise InputError(
            f"one argument alone must be {STDIN}, standard input, but {' and '.join(from_stdin)} "
            "are; name a file."
        )
    found = dict[str, Text]()
    for option, path in given.items():
        place = opened(path, "vertices")
        source = Source(Path(place) if isinstance(place, str) else place, "txt", "file of vertices")
        found[option] = source.text("#")
    return found


def vertices_in(text: Text, labels: Labels, option: str) -> list[int]:
    """Return the vertices of a file that has one label per line, a name in quotes or without.

    Raises:
        InputError: for a line that is no label of the graph, and if there is none.
    """
    return [vertex for (vertex,) in _rows(text, labels, option, lambda line: [_unquoted(line)])]


def pairs_in(text: Text, labels: Labels, option: str) -> tuple[list[int], list[int]]:
    """Return the first and the second vertices of a file that has two labels per line, between
    which is a comma, a tab or blanks; a name that contains one of them is in quotes.

    Raises:
        InputError: for a line that is not two labels of the graph, and if there is none.
    """
    first = _QUOTED.sub("", next((line for _, line in text.rows()), ""))
    delimiter = next((one for one in ("\t", ",") if one in first), None)
    rows = _rows(text, labels, option, lambda line: _fields(line, delimiter), width=2)
    return [source for source, _ in rows], [target for _, target in rows]


def _rows(
    text: Text,
    labels: Labels,
    option: str,
    split: Callable[[str], Sequence[str]],
    width: int = 1,
) -> list[list[int]]:
    """Return the vertices of each line that is no comment."""
    if not len(labels):
        vertex_of(labels, "", option)  # raises
    rows = list[list[int]]()
    for number, line in text.rows():
        try:
            row = [vertex_of(labels, label, option) for label in split(line.strip())]
        except (InputError, csv.Error):  # replaced below by one with the file and the line
            row = []
        if len(row) != width:
            among = "" if isinstance(labels, range) else f"one of the {len(labels)} "
            ends = one_line(f"{among}from {labels[0]} to {labels[len(labels) - 1]}", 100)
            what = "one vertex" if width == 1 else "two vertices"
            raise InputError(
                f"each line of {option} must hold {what} of the graph, {ends}, but line {number} "
                f"of {text.name} is {shown(line)}; correct or remove it."
            )
        rows.append(row)
    if not rows:
        raise InputError(
            f"{option} must name at least one vertex, but {text.name} has comments alone; add a "
            "line."
        )
    return rows


def _fields(line: str, delimiter: str | None) -> list[str]:
    if '"' not in line:
        return [field.strip() for field in line.split(delimiter)]
    fields = next(csv.reader([line], delimiter=delimiter or " ", skipinitialspace=True))
    return [field.strip() for field in fields if delimiter or field]


def _unquoted(line: str) -> str:
    return line[1:-1].replace('""', '"') if _QUOTED.fullmatch(line) else line
