"""Rows of `source target weight`, of which each text format here consists after its header.

NumPy parses them. It does not report the line of an error, and takes 1e400 for inf; the rest of
this module adds the line and refuses what would be read otherwise than it is written.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice, product
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs.cast import warn_of_rounding
from tri_apsp.graphs.graph import MAX_VERTICES, EdgeList, Graph
from tri_apsp.graphs.labels import integers_of, number_ids
from tri_apsp.messages import counted, one_line, reason_of, shown

NUMBERS = (np.int64, np.float64)
"""The types that weights are parsed as: integers if all of them are, so that these are exact."""

QUOTED = re.compile(r'"(?:[^"]|"")*"')
"""A field in quotes."""

# A tab, unless it is in quotes.
_TAB = re.compile(rf"((?<!\S){QUOTED.pattern})|\t")
_REMEDY = "correct or remove the line"
_EXACT_END = 2.0**53  # below it a float64 holds every integer
_WITHIN_FLOAT64 = f"weights must be inf or at most {sys.float_info.max:.4g}"
# What a text with a number that large has: a search for each is faster than one for both.
_SIGNS_OF_LARGE = re.compile("[0-9]{16}"), re.compile("[eE][+]?[0-9]{3}")
_LARGE = re.compile(
    r"(?<![\w.])[+-]?(?=[0-9.]{16}|[0-9.]+e[+]?[0-9]{3})"
    r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?(?![\w.])",
    re.IGNORECASE,
)


class UnclearError(InputError):
    """A text breaks a rule, but may be read with other options."""


def misread(text: str, values: npt.NDArray[np.float64]) -> tuple[list[str], list[str]]:
    """Return the numbers in a text that are beyond float64, and the integers that float64 rounds,
    as far as they are among the values that were read from the text.
    """
    large = {*values[np.abs(values) >= _EXACT_END].tolist()}
    may_be = large and any(sign.search(text) for sign in _SIGNS_OF_LARGE)
    found = [each for each in _LARGE.findall(text) if float(each) in large] if may_be else []
    beyond = [each for each in found if math.isinf(float(each))]
    if beyond:  # which every caller refuses
        return beyond, []
    integers = (each for each in found if each.lstrip("+-").isdecimal())
    return [], [each for each in integers if int(each) != int(float(each))]


def parse_fields(
    name: str, fields: Sequence[str], text: str, remedy: str = "correct it"
) -> npt.NDArray[Any]:
    """Return the numbers of some fields, as int64 if all are integers and else as float64, checked
    against the text that has them as Text.check_weights does with rows.

    Raises:
        InputError: a field is no number, or one that is beyond float64.
    """
    rule = f"weights in {name} must be numbers, but one is not"
    for field in fields:
        if "_" in field:  # NumPy would read 1_0 as 10
            raise InputError(f"{rule} ({shown(field)}); {remedy}.")
    try:
        return np.array(fields, np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        values = np.array(fields, np.float64)
    except ValueError as error:
        raise InputError(f"{rule} ({reason_of(error)}); {remedy}.") from None
    beyond, rounded = misread(text, values)
    if beyond:
        raise InputError(f"{_WITHIN_FLOAT64} in {name}, but one is {shown(beyond[0])}; correct it.")
    _warn_of_rounded(rounded)
    return values


def _warn_of_rounded(written: list[str]) -> None:
    if written:
        warn_of_rounding(torch.float64, f"a weight is {shown(int(written[0]))}")


@dataclass(frozen=True)
class Text:
    """A text file from line `first` on.

    Attributes:
        name: what error messages call the file.
        data: the lines.
        encoding: that of the lines.
        comments: the first characters of comments; a letter must be followed by a blank.
        first: the number of the first line.
    """

    name: str
    data: bytes
    encoding: str
    comments: str
    first: int = 1

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number and the text of each line that is not blank."""
        for number, line in enumerate(self._stream(), self.first):
            if line.strip():
                yield number, line.strip(" \r\n")

    def rows(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that are not comments."""
        return (numbered for numbered in self.lines() if not self.is_comment(numbered[1]))

    def is_comment(self, line: str) -> bool:
        """Return whether a line is a comment."""
        line = line.lstrip()
        return line.startswith(tuple(self.comments)) and not (
            line[:1].isalpha() and line[1:2].strip()
        )

    def after(self, number: int) -> Text:
        """Return the file from the line after line `number` on."""
        skipped = number - self.first + 1
        rest = self.data.split(b"\n", skipped)[skipped:]
        return dataclasses.replace(self, data=b"".join(rest), first=number + 1)

    def parse(
        self,
        rule: str,
        dtypes: Sequence[Any],
        *,
        delimiter: str | None = None,
        use: Sequence[int] | None = None,
    ) -> npt.NDArray[Any]:
        """Return the rows as an array.

        Args:
            rule: what each row must be, for messages.
            dtypes: those that the array may have, in the order of preference.
            delimiter: the character between fields; None: blanks.
            use: the places of the fields in a row; None: there are no others.

        Raises:
            InputError: for a row that does not consist of these fields.
        """
        row = (self.first, "")

        def rows() -> Iterator[str]:
            nonlocal row
            for row in self.rows():
                yield row[1]

        # NumPy reads a stream fastest, but knows no comments of these kinds. It asks for rows one
        # by one, so that the row of an error is the last one.
        has_comments = any(comment.encode() in self.data for comment in self.comments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that there are no rows
            warnings.simplefilter("error", DeprecationWarning)  # NumPy 1 cuts 1.5 to 1 with it
            for from_stream, dtype in product([False] if has_comments else [True, False], dtypes):
                lines: Any = self._stream() if from_stream else rows()
                try:
                    return np.loadtxt(
                        lines,
                        dtype,
                        None,
                        delimiter=delimiter,
                        usecols=use,
                        ndmin=1,
                        quotechar='"',
                    )
                except (ValueError, DeprecationWarning) as error:
                    reason = re.sub(r"the dtype passed requires | at row.*", "", str(error))
        remedy = "write fractions with a point" if re.search(r"'[+-]?\d+,\d+'", reason) else _REMEDY
        raise self._error(rule, row, f" ({one_line(reason, 100)})", remedy)

    def check_weights(
        self,
        weights: npt.NDArray[Any],
        rule: str = "weights must be neither NaN nor -inf",
        remedy: str = _REMEDY,
    ) -> None:
        """Refuse NaN, -inf, and numbers that no float64 holds; warn once of an integer that was
        rounded.

        Args:
            weights: those of each row, (rows,) or (rows, columns).
            rule, remedy: what the message says of NaN and -inf.
        """
        of_rows = weights[:, None] if weights.ndim == 1 else weights
        self.refuse(np.any(~(of_rows > -np.inf), axis=1), rule, remedy)
        large = (np.abs(of_rows) >= _EXACT_END).any(axis=1)
        if weights.dtype.kind != "f" or not large.any():
            return
        all_rounded = list[str]()
        for row, values in compress(zip(self.rows(), of_rows, strict=True), large):
            beyond, rounded = misread(row[1], values)
            if beyond:
                raise self._error(_WITHIN_FLOAT64, row)
            all_rounded += rounded[:1]
        _warn_of_rounded(all_rounded)

    def check_count(self, found: int, expected: int) -> None:
        """Refuse another number of rows than the header announces."""
        if found != expected:
            raise InputError(
                f"{self.name} must list the {counted(expected, 'edge')} that its header "
                f"announces, but lists {found}; copy the file again or correct the header."
            )

    def refuse(
        self,
        wrong: npt.NDArray[np.bool_],
        rule: str,
        remedy: str = _REMEDY,
        kind: type[InputError] = InputError,
    ) -> None:
        """Raise the error of the first row that is `wrong`, if one is."""
        if wrong.any():
            row = next(islice(self.rows(), int(wrong.argmax()), None))
            raise self._error(rule, row, remedy=remedy, kind=kind)

    def _error(
        self,
        rule: str,
        row: tuple[int, str],
        reason: str = "",
        remedy: str = _REMEDY,
        kind: type[InputError] = InputError,
    ) -> InputError:
        return kind(
            f"{rule} in {self.name}, but line {row[0]} is {shown(row[1])}{reason}; {remedy}."
        )

    def _stream(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(self.data), self.encoding, newline="\n")


def parse_edges(
    text: Text,
    *,
    base: int = 0,
    n: int | None = None,
    expected: int | None = None,
    weights: Sequence[type] = NUMBERS,
    marker: str = "",
    delimiter: str | None = None,
    use: Sequence[int] | None = None,
    at_least: bool = False,
) -> EdgeList:
    """Parse rows of edges.

    Args:
        text: the lines after the header.
        base: the number of the first vertex, 0 or 1.
        n: the number of vertices; None: they are those that the rows name. Their ids, integers or
            names, become labels, and vertices are numbered in the order of these.
        at_least: whether rows may name vertices beyond n, which are there then.
        expected: the number of edges that the header announces, if any.
        weights: the types that the weights may have; none if edges have no weight, which then is 1.
        marker: the first field of each row, one character, if there is one.
        delimiter, use: as Text.parse.

    Raises:
        InputError: for a line that is malformed, names a vertex outside the range, or has the
            weight NaN or -inf; for more or fewer edges than expected; for ids of which some are
            integers and some are not.
    """
    ends = (np.int64, object) if n is None else (np.int64,)
    columns = ["source", "target"] + ["weight"] * bool(weights)
    fields = (delimiter or " ").join([*marker, *columns]).replace("\t", "<tab>")
    rule = f"each row must be `{fields}`"
    # A longer word than the marker is cut to two characters.
    marked = [("marker", "S2")] if marker else []
    dtypes = [
        [*marked, ("source", end), ("target", end), *weight]
        for end in ends
        for weight in [[("weight", kind)] for kind in weights] or [[]]
    ]
    table = text.parse(rule, dtypes, delimiter=delimiter, use=use)
    if marker:
        text.refuse(table["marker"] != marker.encode(), rule)
    if expected is not None:
        text.check_count(len(table), expected)
    # A view of a column would keep the whole table allocated.
    values = table["weight"].copy() if weights else np.ones(len(table), np.int64)
    text.check_weights(values)
    if n is not None:
        sources, targets = table["source"] - base, table["target"] - base
        if at_least and len(sources):
            n = max(n, int(max(sources.max(), targets.max())) + 1)
        outside = (np.minimum(sources, targets) < 0) | (np.maximum(sources, targets) >= n)
        text.refuse(outside, f"vertices must be from {base} to {base + n - 1}")
        return EdgeList(n, sources, targets, values, range(base, base + n))
    ids = np.concatenate([table["source"], table["target"]])
    if ids.dtype == object:
        ids = np.array([each.strip() for each in ids], object)
        _check_names(text, ids)
    vertices, labels = number_ids(integers_of(ids))
    return EdgeList(len(labels), vertices[: len(table)], vertices[len(table) :], values, labels)


def _check_names(text: Text, ids: npt.NDArray[Any]) -> None:
    """Refuse sources and targets that are missing, several lines in quotes, and integers among
    names.
    """
    of_quotes = r"[^\n]*\n(?s:.*)", "a name must stand in one line, between two quotes or none"
    for pattern, rule in (
        *([of_quotes] if b'"' in text.data else []),
        ("", "each row must name two vertices"),
        (r"[+-]?[0-9]+", "sources and targets must all be integers, or all be names"),
    ):
        found = np.array([bool(re.fullmatch(pattern, each)) for each in ids]).reshape(2, -1)
        wrong = np.logical_or(*(found if 2 * found.sum() <= found.size else ~found))
        text.refuse(wrong, rule, kind=UnclearError)


def separator(text: Text, delimiter: str | None, *, or_blanks: bool = False) -> str | None:
    """Return what separates the fields of the first row, without its quotes.

    - The only comma, tab or semicolon, where the row has no `delimiter`.
    - Else `delimiter`; None: blanks. With `or_blanks`, blanks also where the row has none of these.

    Names and other columns may have other marks. A row may be meant in two ways, and is refused,
    where it has

    - no delimiter, and several kinds of marks;
    - a comma or blanks as delimiter, and as many semicolons;
    - blanks as delimiter, and as many commas at the ends of words.
    """
    number, line = next(text.rows(), (1, ""))
    bare = QUOTED.sub("", line)
    others = [each for each in ";,\t" if each in bare and each != delimiter]
    own = bare.count(delimiter) if delimiter else len(bare.split()) - 1
    if not own and len(others) == 1:
        return others[0]
    marks = re.findall(";" if delimiter else r";|,(?=\s|$)", bare)
    if others and (not own or (len(marks) >= own and delimiter != "\t")):
        remedy = "write fields with a separator in quotes"
        if ";" in bare and "," in bare:
            remedy = f"write fractions with a point, and {remedy.removeprefix('write ')}"
        elif len(others) == 1:
            remedy = f"give `format='csv'`, or {remedy}"
        raise InputError(
            f"fields must be separated by one character, but line {number} of {text.name}, "
            f"{shown(line)}, has more; {remedy}."
        )
    return None if or_blanks and not own else delimiter


def fields(line: str, delimiter: str | None) -> list[str]:
    """Return the fields of a row, without quotes; `delimiter` None: blanks."""
    row = line if delimiter else _TAB.sub(lambda found: found[1] or " ", line)
    found = next(csv.reader([row], delimiter=delimiter or " ", skipinitialspace=True))
    return [field.strip() for field in found if delimiter or field]


def parse_count(field: str, name: str, line: int, what: str) -> int:
    """Return a count of `what` from a header, in 0..2**62.

    Raises:
        InputError: for any other text.
    """
    if not re.fullmatch(r"[0-9]{1,30}", field) or int(field) > MAX_VERTICES:
        raise InputError(
            f"the number of {what} in {name} must be an integer in 0..2**62, but line {line} has "
            f"{shown(field)}; correct the header."
        )
    return int(field)


def write_rows(
    graph: Graph, stream: BinaryIO, *, marker: str = "", separator: str = " ", base: int
) -> None:
    """Write one line per edge; a weight has the shortest form that is read as the same number."""
    for block in graph.blocks():
        columns = (block.sources + base, block.targets + base, block.weights)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        lines = [f"{marker}{u}{separator}{v}{separator}{w}\n" for u, v, w in rows]
        stream.write("".join(lines).encode())
