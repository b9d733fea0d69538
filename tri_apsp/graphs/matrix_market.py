"""MatrixMarket files, `.mtx`: a sparse matrix by its entries (coordinate) or a dense one by its
columns (array).

SciPy reads and writes them. This module also refuses damaged files that SciPy would read without an
error.

Source: Boisvert, Pozo, Remington, The Matrix Market Exchange Formats: Initial Design, NISTIR 5935.
"""

from __future__ import annotations

import dataclasses
import io
import re
from typing import BinaryIO

import numpy as np
import torch

from tri_apsp.device import check_memory
from tri_apsp.errors import InputError
from tri_apsp.graphs.cast import check_dense
from tri_apsp.graphs.convert import edges_of_sparse
from tri_apsp.graphs.dense import DenseGraph, Graph
from tri_apsp.graphs.text import Text
from tri_apsp.messages import counted

__all__ = ["read_matrix_market", "write_matrix_market"]

_LAYOUTS = ("coordinate", "array")
_FIELDS = ("real", "double", "integer", "pattern")
_SYMMETRIES = ("general", "symmetric")

_BLANKS = b" \t\r\n"
_WHOLE = b"+-0123456789" + _BLANKS
_REAL = b".eEinftyINFTY" + _WHOLE


def read_matrix_market(text: Text) -> Graph:
    """Return the graph of a `.mtx` file.

    In the coordinate format every stored entry is an edge, also a zero; in a pattern it weighs 1.
    In the array format every entry is an edge. A symmetric matrix stores each edge once; it counts
    in both directions.

    Raises:
        InputError: for content that the format does not allow, with its line, and for a matrix that
            is not square or real.
        TooLargeError: before anything is allocated, for an array that does not fit the memory.
    """
    from scipy.io import mminfo, mmread  # slow to import, and no other format needs it

    size = _size_line(text)
    try:
        n, columns, entries, layout, field, symmetry = mminfo(io.BytesIO(text.data))
    except (ValueError, OverflowError) as error:
        raise _explained(text, error, size) from error
    for word, valid in ((layout, _LAYOUTS), (field, _FIELDS), (symmetry, _SYMMETRIES)):
        if word not in valid or (layout, word) == ("array", "pattern"):
            raise InputError(
                f"line 1 of {text.name} must name one of {', '.join(valid)} for a real matrix, but has {word!r}; "
                "convert the file."
            )
    if n != columns:
        raise InputError(
            f"the matrix in {text.name} must be square, but line {size} says {n} x {columns}; "
            "add empty rows or columns for missing vertices."
        )
    width = 1 if layout == "array" else 2 if field == "pattern" else 3
    if layout == "array":
        check_memory(n, 1, torch.float64, torch.device("cpu"))
        entries = n * (n + 1) // 2 if symmetry == "symmetric" else n * n
    body, allowed = text.after(size), _REAL if field in ("real", "double") else _WHOLE
    if not _is_sound(body, width, entries, allowed):
        raise _damage(body, width, entries, allowed)
    try:
        # mmread crashes on an array without rows, and on trailing text without a line break.
        matrix = (
            mmread(io.BytesIO(text.data + b"\n"))
            if n or layout == "coordinate"
            else np.empty((0, 0))
        )
    except (ValueError, OverflowError) as error:
        raise (
            _damage(body, width, entries, allowed)
            if "Truncated" in str(error)
            else _explained(text, error, 1)
        ) from error
    if layout == "coordinate":
        return dataclasses.replace(edges_of_sparse(matrix, f"the matrix in {text.name}"), base=1)
    weights = torch.from_numpy(matrix)
    check_dense(weights, f"the matrix in {text.name}")
    return DenseGraph(weights, base=1)


def _size_line(text: Text) -> int:
    """Return the number of the first line after line 1 that is not a comment, or of the last line
    if there is none.
    """
    number = 1
    for number, line in text.lines():
        if number > 1 and not line.lstrip().startswith("%"):
            break
    return number


def _explained(text: Text, error: Exception, line: int) -> InputError:
    """Return the error of SciPy's parser with the line that it names, or else with `line`."""
    message = str(error)
    prefix = re.match(r"Line (\d+): ", message)
    if prefix:
        line, message = int(prefix[1]), message[prefix.end() :]
    lines = text.data.decode("latin-1").splitlines()
    place = (
        f"line {line} is {lines[line - 1].strip()[:60]!r}"
        if line <= len(lines)
        else f"ends at line {len(lines)}"
    )
    reason = message.rstrip(" .:")
    return InputError(
        f"{text.name} must be a whole MatrixMarket file, but {place} ({reason}); correct it or copy it again."
    )


def _is_sound(body: Text, width: int, entries: int, allowed: bytes) -> bool:
    """Return whether the entries have none of the faults that mmread ignores: missing or extra
    fields, text, or -inf.

    Args:
        body: the lines after the size line.
        width: fields per line.
        entries: the number of lines that the header announces.
        allowed: the characters of valid numbers, and blanks.
    """
    blank = np.frombuffer(b"\n" + body.data, np.uint8) <= ord(" ")
    fields = np.count_nonzero(blank[:-1] > blank[1:])
    return (
        fields == entries * width
        and not body.data.translate(None, allowed)
        and b"-inf" not in body.data.lower()
    )


def _damage(body: Text, width: int, entries: int, allowed: bytes) -> InputError:
    """Return the error that names the first damaged line, or states that lines are missing;
    arguments of `_is_sound`.
    """
    number = body.first - 1
    for index, (number, line) in enumerate(body.lines()):
        if index == entries:
            return InputError(
                f"{body.name} must list the {counted(entries, 'entry', 'entries')} that its header announces, but line "
                f"{number} is one more; correct the header or remove the line."
            )
        if len(line.split()) != width:
            return InputError(
                f"each line of {body.name} must have {counted(width, 'field')}, as line 1 says, but line {number} is "
                f"{line[:60]!r}; correct the line."
            )
        if line.encode("latin-1").translate(None, allowed) or "-inf" in line.lower():
            kind = "integers" if allowed is _WHOLE else "real numbers, neither NaN nor -inf,"
            return InputError(
                f"{body.name} must hold {kind} as line 1 says, but line {number} is {line[:60]!r}; correct the line or line 1."
            )
    return InputError(
        f"{body.name} must list the {counted(entries, 'entry', 'entries')} that its header announces, but ends before that, "
        f"at line {number}; the file is cut short: copy it again or correct the header."
    )


def write_matrix_market(graph: Graph, stream: BinaryIO) -> None:
    """Write a graph in the coordinate format, general, with field integer if all weights are whole,
    else real.
    """
    from scipy.io import mmwrite
    from scipy.sparse import coo_array

    blocks = list(graph.blocks())
    none = np.empty(0, np.int64)  # for a graph without edges, which may have no block
    sources = np.concatenate([none, *(block.sources for block in blocks)])
    targets = np.concatenate([none, *(block.targets for block in blocks)])
    weights = np.concatenate([none, *(block.weights for block in blocks)])
    mmwrite(
        stream,
        coo_array((weights, (sources, targets)), shape=(graph.n, graph.n)),
        symmetry="general",
    )
