"""Lines of `source target weight`, of which every text format here consists after its header.

A file is parsed at most twice. NumPy's parser reads a million lines in a fraction of a second, but
it does not report the line of an error, and it rejects some lines that are valid. Then a slow
parser, which defines the format, reads line by line.
"""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tri_apsp.errors import InputError
from tri_apsp.graphs.dense import Graph
from tri_apsp.graphs.edges import MAX_VERTICES, EdgeList
from tri_apsp.messages import counted

__all__ = ["Grammar", "Text", "parse_count", "parse_edges", "write_rows"]

# Control characters other than tabs, line breaks and form feeds.
_CONTROL = bytes([*range(0x09), *range(0x0E, 0x20), 0x7F])
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(
    r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)


@dataclass(frozen=True)
class Text:
    """A text file from line `first` on; error messages call the file `name`."""

    name: str
    data: bytes
    first: int = 1

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield each line that is not blank with its number in the file, without line break and
        surrounding spaces.
        """
        for number, line in enumerate(io.BytesIO(self.data), self.first):
            # The formats are ASCII except for comments, of which latin-1 decodes every byte.
            text = line.decode("latin-1").strip(" \r\n")
            if text.strip("\t "):
                yield number, text

    def check(self) -> None:
        """Refuse a file that is not a text.

        Raises:
            InputError: for a control character, with its line.
        """
        if len(self.data.translate(None, _CONTROL)) == len(
            self.data
        ):  # five times as fast as a regular expression
            return
        start = next(index for index, byte in enumerate(self.data) if byte in _CONTROL)
        line = self.first + self.data.count(b"\n", 0, start)
        raise InputError(
            f"{self.name} must be a text file, but line {line} has the byte 0x{self.data[start]:02x}; give the text, or rename "
            "a binary file to the extension of its format."
        )

    def after(self, number: int) -> Text:
        """Return the file from the line after line `number` on."""
        offset = 0
        for _ in range(number - self.first + 1):
            offset = (self.data.find(b"\n", offset) + 1) or len(self.data)
        return Text(self.name, self.data[offset:], number + 1)


@dataclass(frozen=True)
class Grammar:
    """How a format writes an edge: after `marker`, with `delimiter` between its fields (None:
    blanks).

    A line that starts with `comment` is skipped. If `comment` is a letter, a blank or the end of
    the line must follow it.
    """

    comment: str
    marker: str = ""
    delimiter: str | None = None

    def is_comment(self, line: str) -> bool:
        """Return whether a line is a comment."""
        line = line.lstrip()
        return line.startswith(self.comment) and not (self.comment.isalpha() and line[1:2].strip())

    def fields(self, line: str) -> list[str]:
        """Return the fields of a line."""
        return [field.strip() for field in line.split(self.delimiter)]

    @property
    def separator(self) -> str:
        """What stands between the fields, for messages."""
        return {",": "commas", "\t": "tabs"}.get(self.delimiter or "", "blanks")

    def explain(self, name: str, number: int, fields: list[str], columns: int) -> InputError:
        """Return the error for a line that does not have the fields of an edge."""
        names = [self.marker, "source", "target", "weight"][0 if self.marker else 1 : columns + 1]
        shape = ("," if self.delimiter == "," else " ").join(names)
        shown, remedy = " ".join(fields), "correct or remove the line"
        if self.marker and fields[0] != self.marker:
            found = f"begins with {fields[0]!r}"
        elif len(fields) != len(names):
            found = f"has {counted(len(fields), 'field')}: {shown!r}"
            if len(fields) == 1:
                remedy = f"separate the fields by {self.separator}, or correct the line"
        else:
            found = f"holds names instead of numbers: {shown!r}"
        return InputError(
            f"each line of {name} must be an edge, `{shape}`, but line {number} {found}; {remedy}."
        )


def parse_edges(
    text: Text,
    grammar: Grammar,
    *,
    base: int,
    n: int | None = None,
    expected: int | None = None,
    columns: int = 3,
) -> EdgeList:
    """Parse the edges that fill the rest of a file.

    Args:
        text: the lines after the header.
        grammar: how the format writes an edge.
        base: the number of the first vertex, 0 or 1.
        n: the number of vertices; None: up to the largest vertex in the file.
        expected: the number of edges that the header announces, if any.
        columns: 3, or 2 if edges have no weight, which then is 1.

    Raises:
        InputError: for a line that is malformed, is one too many, names a vertex outside the range,
            or has the weight NaN or -inf; or for fewer edges than expected.
    """
    table = _parse_fast(text.data, grammar, columns)
    if table is None or not _is_sound(table, base, n, expected):
        table = _parse_slowly(text, grammar, base, n, expected, columns)
    sources, targets, weights = table
    if n is None:
        n = max(int(sources.max()), int(targets.max())) + 1 - base if len(sources) else 0
    return EdgeList(n, sources - base, targets - base, weights, base)


_Table = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[Any]]


def _parse_fast(data: bytes, grammar: Grammar, columns: int) -> _Table | None:
    """Parse with NumPy; return None if NumPy fails, or would accept what the slow parser refuses."""
    body = _without_comments(data, grammar)
    lines = body.count(b"\n")
    if grammar.marker:
        mark = f"\n{grammar.marker} ".encode()
        if body.count(mark) != lines:
            return None
        body = body.replace(mark, b"\n")
    if not lines:
        none = np.empty(0, np.int64)
        return none, none, none
    for weight in (np.int64, np.float64):
        fields = [("source", np.int64), ("target", np.int64), ("weight", weight)][:columns]
        table = _load(body, np.dtype(fields), grammar.delimiter)
        # NumPy skips a line that consists of the marker alone, as blank.
        if table is not None and not (grammar.marker and len(table) != lines):
            weights = table["weight"] if columns == 3 else np.ones(len(table), np.int64)
            if _has_overflow(weights, body):
                return None
            # Copied, since arithmetic on a column of the table is slow, and a view of it keeps the
            # whole table allocated.
            return table["source"].copy(), table["target"].copy(), weights.copy()
    return None


def _without_comments(data: bytes, grammar: Grammar) -> bytes:
    """Return the lines that are not comments, each with its line break before it, not after it."""
    body = b"\n" + data.replace(b"\r\n", b"\n")
    if grammar.comment.encode() in body:
        blank = r"(?=[ \t\n])" if grammar.comment.isalpha() else ""
        body = re.sub(rf"\n[ \t]*{grammar.comment}{blank}[^\n]*(?=\n|$)".encode(), b"", body)
    return body.rstrip(b" \n")


def _load(
    body: bytes, dtype: np.dtype[Any], delimiter: str | None = None
) -> npt.NDArray[Any] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # older NumPy only warns when it cuts 1.5 down to 1
            lines = io.StringIO(body.decode("latin-1"))
            return np.loadtxt(lines, dtype=dtype, delimiter=delimiter, comments=None, ndmin=1)
    except (ValueError, Warning):
        return None


def _is_sound(table: _Table, base: int, n: int | None, expected: int | None) -> bool:
    sources, targets, weights = table
    if expected is not None and len(sources) != expected:
        return False
    if not len(sources):
        return True
    last = base + (MAX_VERTICES if n is None else n) - 1
    return (
        min(sources.min(), targets.min()) >= base
        and max(sources.max(), targets.max()) <= last
        and bool(np.all(weights > -np.inf))
    )


def _has_overflow(weights: npt.NDArray[Any], body: bytes) -> bool:
    """Return whether some weight is too large for a float64: infinite, although its text is a
    number.
    """
    infinite = int(np.isinf(weights).sum()) if weights.dtype.kind == "f" else 0
    return infinite > 0 and infinite != body.lower().count(b"inf")


def _parse_slowly(
    text: Text, grammar: Grammar, base: int, n: int | None, expected: int | None, columns: int
) -> _Table:
    """Parse line by line, and raise the error of the first line that is wrong."""
    sources: list[int] = []
    targets: list[int] = []
    weights: list[float | int] = []
    last = base + (MAX_VERTICES if n is None else n) - 1
    number = text.first - 1
    for number, line in text.lines():
        if grammar.is_comment(line):
            continue
        fields = grammar.fields(line)
        marked = fields[1:] if grammar.marker else fields
        if (grammar.marker and fields[0] != grammar.marker) or len(marked) != columns:
            raise grammar.explain(text.name, number, fields, columns)
        if not any(_NUMBER.fullmatch(field) for field in marked):
            raise grammar.explain(text.name, number, fields, columns)
        if len(sources) == expected:
            raise InputError(
                f"{text.name} must list the {counted(expected, 'edge')} that its header announces, but line {number} is one "
                "more; correct the header or remove the line."
            )
        for field, ends in zip(marked, (sources, targets), strict=False):
            # More than 30 digits are out of range, and int raises an error of its own for thousands
            # of them.
            if not _WHOLE.fullmatch(field) or len(field) > 30 or not base <= int(field) <= last:
                allowed = (
                    "none at all for 0 vertices"
                    if n == 0
                    else f"whole numbers from {base} to {last if n else '2**62'}"
                )
                raise InputError(
                    f"vertices in {text.name} must be {allowed}, "
                    f"but line {number} has {field!r}; correct the line{'' if n is None else ' or the vertex count'}."
                )
            ends.append(int(field))
        weights.append(parse_number(marked[2], text.name, number) if columns == 3 else 1)
    if expected is not None and len(sources) < expected:
        raise InputError(
            f"{text.name} must list the {counted(expected, 'edge')} that its header announces, but ends after "
            f"{len(sources)}, at line {number}; the file is cut short: copy it again or correct the header."
        )
    kind = (
        np.int64
        if all(isinstance(weight, int) and abs(weight) < 2**62 for weight in weights)
        else np.float64
    )
    return np.array(sources, np.int64), np.array(targets, np.int64), np.array(weights, kind)


def parse_number(field: str, name: str, line: int) -> float | int:
    """Return a weight, as an int if it is written as one.

    Raises:
        InputError: for text that is not a number, for NaN and -inf, and for a number that no
            float64 holds.
    """
    if not _NUMBER.fullmatch(field):
        raise InputError(
            f"weights in {name} must be numbers, but line {line} has {field!r}; correct the line."
        )
    # No dtype holds a number of more than 300 digits, and float returns inf for it.
    value = int(field) if _WHOLE.fullmatch(field) and len(field) < 300 else float(field)
    if value != value or value == -float("inf"):
        raise InputError(
            f"weights in {name} must be neither NaN nor -inf, but line {line} has {field!r}; "
            "correct the weight or remove the line."
        )
    if value == float("inf") and field[-1] in "0123456789.":
        raise InputError(
            f"weights in {name} must be at most {sys.float_info.max:.4g}, but line {line} has {field[:40]!r}; write inf for no "
            "edge, or scale the weights."
        )
    return value


def parse_count(field: str, name: str, line: int, what: str) -> int:
    """Return a count of `what` from a header, in 0..2**62.

    Raises:
        InputError: for any other text.
    """
    if not re.fullmatch(r"[0-9]{1,30}", field) or int(field) > MAX_VERTICES:
        raise InputError(
            f"the number of {what} in {name} must be a whole number in 0..2**62, but line {line} has {field!r}; "
            "correct the header."
        )
    return int(field)


def write_rows(
    graph: Graph, stream: BinaryIO, *, marker: str = "", separator: str = " ", base: int
) -> None:
    """Write one line per edge, with the weight in the shortest form that is read back as the same
    number.
    """
    for block in graph.blocks():
        columns = (
            (block.sources + base).tolist(),
            (block.targets + base).tolist(),
            block.weights.tolist(),
        )
        rows = (
            f"{marker}{u}{separator}{v}{separator}{w}\n" for u, v, w in zip(*columns, strict=True)
        )
        stream.write("".join(rows).encode())
