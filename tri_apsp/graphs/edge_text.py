"""Edge lists, `.txt`, `.csv`, `.tsv`: one edge per line, `source target [weight]`, and `#`
comments.

The edges alone do not show whether vertices count from 0 or from 1, and a wrong guess would make
every distance wrong. So the base must be declared: by the caller, or by a comment `# base 0
vertices 100` before the first edge. Either part of it may be missing, or be a comment of its own.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from tri_apsp.errors import InputError
from tri_apsp.graphs.dense import Graph
from tri_apsp.graphs.edges import EdgeList
from tri_apsp.graphs.text import Grammar, Text, parse_count, parse_edges, write_rows

__all__ = ["read_edge_text", "write_edge_text"]

_DELIMITERS = {".txt": None, ".csv": ",", ".tsv": "\t"}
_COLUMNS = ("source", "target", "weight")
_DECLARATION = re.compile(r"#\s*base\s+(\S+)(?:\s+vertices\s+(\S+))?|#\s*vertices\s+([0-9]+)")
_STARTS_LIKE_NUMBER = re.compile(r"[+-]?(\.?[0-9]|(inf|nan)$)", re.IGNORECASE)


def read_edge_text(
    text: Text, extension: str, *, base: int | None, vertices: int | None
) -> EdgeList:
    """Return the graph of an edge list.

    Args:
        text: the file. Its first line that is not a comment may name the columns: `source`,
            `target` and, optionally, `weight`. If the first edge has no weight, no edge may have
            one, and every edge weighs 1.
        extension: ".csv" (commas), ".tsv" (tabs) or ".txt" (blanks).
        base: the number of the first vertex, 0 or 1; None: as the file declares.
        vertices: the number of vertices; None: as the file declares, or else up to the largest
            vertex.

    Raises:
        InputError: for content that the format does not allow, with its line; for a missing
            declaration of the base; or for arguments that contradict the file.
    """
    grammar = Grammar(comment="#", delimiter=_DELIMITERS[extension])
    header, columns, body = False, 0, text
    for number, line in text.lines():
        if grammar.is_comment(line):
            declared = _DECLARATION.fullmatch(line)
            if declared:
                if declared[1] is not None:
                    base = _checked(
                        base, _parse_base(declared[1], text.name, number), "base", text.name, number
                    )
                if count_field := declared[2] or declared[3]:
                    count = parse_count(count_field, text.name, number, "vertices")
                    vertices = _checked(vertices, count, "vertices", text.name, number)
            continue
        fields = grammar.fields(line)
        if not header and not any(_STARTS_LIKE_NUMBER.match(field) for field in fields):
            _check_names(
                [field.strip("\"'").lower() for field in fields], grammar, text.name, number
            )
            header, body = True, text.after(number)
            continue
        columns = len(fields)
        if columns not in (2, 3) or not any(_STARTS_LIKE_NUMBER.match(field) for field in fields):
            raise grammar.explain(text.name, number, fields, 2 if columns == 2 else 3)
        break
    if base is None:
        raise InputError(
            f"an edge list must say whether its vertices count from 0 or from 1, but {text.name} does not; "
            "pass --base 0 or --base 1 (`base` in Python), or write `# base 0` on its first line."
        )
    if not columns and vertices is None:
        raise InputError(
            f"an edge list must have an edge or say how many vertices it has, but {text.name} does neither; "
            "write `# base 0 vertices 10` on its first line."
        )
    return parse_edges(body, grammar, base=base, n=vertices, columns=columns or 3)


def _parse_base(field: str, name: str, line: int) -> int:
    if field not in ("0", "1"):
        raise InputError(
            f"the vertex base must be 0 or 1, but line {line} of {name} declares {field!r}; correct it."
        )
    return int(field)


def _checked(given: int | None, declared: int, what: str, name: str, line: int) -> int:
    """Return what the file declares, which must be what the caller gave, if anything."""
    if given is not None and given != declared:
        raise InputError(
            f"`{what}` must agree with the file, but is {given} and line {line} of {name} declares {declared}; "
            "leave it out or correct the file."
        )
    return declared


def _check_names(names: list[str], grammar: Grammar, name: str, line: int) -> None:
    misplaced = [
        known
        for place, known in enumerate(_COLUMNS)
        if known in names and names.index(known) != place
    ]
    if len(names) not in (2, 3) or misplaced:
        remedy = (
            f"separate the columns by {grammar.separator}, and name all"
            if len(names) == 1
            else "reorder the columns"
        )
        raise InputError(
            f"the columns of an edge list must be source, target and, optionally, weight, in this order, but line {line} "
            f"of {name} names {', '.join(names)}; {remedy}."
        )


def write_edge_text(graph: Graph, stream: BinaryIO, extension: str) -> None:
    """Write a graph as an edge list from vertex 0, with its declaration and the names of its
    columns.
    """
    separator = _DELIMITERS[extension] or " "
    stream.write(f"# base 0 vertices {graph.n}\n{separator.join(_COLUMNS)}\n".encode())
    write_rows(graph, stream, separator=separator, base=0)
