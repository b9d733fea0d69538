"""Edge lists, `.txt`, `.csv`, `.tsv`: one edge per line, `source target [weight]`.

A line that begins with `#` is a comment. The edges alone do not show whether vertices count from 0
or from 1, and a wrong guess would make every distance wrong. So the base must be declared: by the
caller, or by a comment `# base 0 vertices 100` before the first edge. Either part of it may be
missing, or be a comment of its own.
"""

import re
from typing import BinaryIO

from tri_apsp.errors import InputError
from tri_apsp.graphs.dense import Graph
from tri_apsp.graphs.edges import EdgeList
from tri_apsp.graphs.files import Source
from tri_apsp.graphs.text import NUMBERS, Text, parse_count, parse_edges, write_rows

_SEPARATORS = {None: "blanks", ",": "commas", "\t": "tabs"}
_COLUMNS = ["source", "target", "weight"]
_DECLARATION = re.compile(r"#\s*(?:base\s+(\S+))?\s*(?:\bvertices\s+(\S+))?")
_STARTS_LIKE_NUMBER = re.compile(r"[+-]?(\.?[0-9]|(inf|nan)$)", re.IGNORECASE)


def read_edge_text(
    source: Source, delimiter: str | None, *, base: int | None = None, vertices: int | None = None
) -> EdgeList:
    """Return the graph of an edge list.

    Its first line that is not a comment may name the columns: `source`, `target` and, optionally,
    `weight`. If the first edge has no weight, no edge may have one, and every edge weighs 1.

    Args:
        source: the file.
        delimiter: the character between fields; None: blanks.
        base: the number of the first vertex, 0 or 1; None: as the file declares.
        vertices: the number of vertices; None: as the file declares, or else up to the largest
            vertex.

    Raises:
        InputError: for content that the format does not allow, with its line; for a missing
            declaration of the base; or for arguments that contradict the file.
    """
    declared, edges, columns = _head(source.text("#"), delimiter)
    for name, given in (("base", base), ("vertices", vertices)):
        if given is not None and declared.setdefault(name, given) != given:
            raise InputError(
                f"`{name}` must agree with the file, but is {given}, and {source} declares "
                f"{declared[name]}; leave it out or correct the file."
            )
    if "base" not in declared:
        raise InputError(
            f"an edge list must say whether its vertices count from 0 or from 1, but {source} does "
            "not; pass --base 0 or --base 1 (`base` in Python), or write `# base 0` on its first "
            "line."
        )
    if not columns and "vertices" not in declared:
        raise InputError(
            f"an edge list must have an edge or say how many vertices it has, but {source} does "
            "neither; write `# base 0 vertices 10` on its first line."
        )
    return parse_edges(
        edges,
        base=declared["base"],
        n=declared.get("vertices"),
        weights=() if columns == 2 else NUMBERS,
        delimiter=delimiter,
    )


def _head(text: Text, delimiter: str | None) -> tuple[dict[str, int], Text, int]:
    """Return what comments before the first edge declare, the lines from that edge on, and the
    number of its fields, 0 if there is no edge.
    """
    declared: dict[str, int] = {}
    first_row = True
    number = 0
    for number, line in text.lines():
        if text.is_comment(line):
            declared |= _declared(line, number, text.name)
            continue
        fields = line.split(delimiter)
        if not first_row or not _is_header(fields, f"line {number} of {text.name}", delimiter):
            return declared, text.after(number - 1), len(fields)
        first_row = False
    return declared, text.after(number), 0


def _is_header(fields: list[str], place: str, delimiter: str | None) -> bool:
    """Return whether the first row names the columns, after a check of the names."""
    names = [field.strip(" \"'").lower() for field in fields]
    if any(_STARTS_LIKE_NUMBER.match(name) for name in names):
        return False
    known = [name for name in names if name in _COLUMNS]
    if len(names) not in (2, 3) or any(names.index(name) != _COLUMNS.index(name) for name in known):
        raise InputError(
            "the columns of an edge list must be source, target and, optionally, weight, but "
            f"{place} is {(delimiter or ' ').join(fields)[:60]!r}; separate all by "
            f"{_SEPARATORS[delimiter]}, in this order."
        )
    return True


def _declared(line: str, number: int, name: str) -> dict[str, int]:
    """Return the base and the vertices that a comment declares."""
    match = _DECLARATION.fullmatch(line.strip())
    base, vertices = match.groups() if match else (None, None)
    if base not in (None, "0", "1"):
        raise InputError(
            f"the vertex base must be 0 or 1, but line {number} of {name} declares {base!r}; "
            "correct it."
        )
    declared = {} if base is None else {"base": int(base)}
    if vertices is not None and (base is not None or vertices.isdecimal()):
        declared["vertices"] = parse_count(vertices, name, number, "vertices")
    return declared


def write_edge_text(graph: Graph, stream: BinaryIO, delimiter: str | None) -> None:
    """Write a graph as an edge list from vertex 0, with its declaration and column names."""
    separator = delimiter or " "
    stream.write(f"# base 0 vertices {graph.n}\n{separator.join(_COLUMNS)}\n".encode())
    write_rows(graph, stream, separator=separator, base=0)
