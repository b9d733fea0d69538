"""GraphML and GML, whose edges have attributes by name."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tri_apsp.errors import InputError
from tri_apsp.graphs.files import ReadOptions, Source, one_column
from tri_apsp.graphs.graph import EdgeList
from tri_apsp.graphs.labels import integers_of, number_ids
from tri_apsp.graphs.text import Text, parse_fields
from tri_apsp.messages import counted

_NUMERIC = ("int", "long", "float", "double")
# Attributes that number edges, as NetworkX writes them.
_NO_WEIGHTS = {"id", "key"}
# A text, a comment, a bracket or a word of GML.
_WORD = re.compile(r'"[^"]*"|#[^\n]*|[\[\]]|[^\s"\[\]]+')


class _Edge(NamedTuple):
    """An edge between the ids of two nodes, with the texts of its attributes."""

    source: str
    target: str
    is_directed: bool
    values: dict[str, str]


def read_graphml(source: Source, options: ReadOptions) -> EdgeList:
    """Return the graph of a GraphML file; the ids of its nodes are the labels.

    The nodes and edges of a nested graph count too. An edge without a value has the default of the
    key. Weights: those of `_graph`.

    Source: Brandes, Eiglsperger, Lerner, GraphML Primer.
    """
    from xml.etree import ElementTree  # slow to import, and no other format needs it

    text = source.text("")
    try:
        root = ElementTree.fromstring(text.data)
    except ElementTree.ParseError:  # Latin-1 that is not declared
        root = ElementTree.fromstring(text.data.decode(text.encoding))
    top, hyperedges = _named(root, "graph"), _named(root.iter(), "hyperedge")
    if len(top) != 1 or hyperedges:
        raise InputError(
            f"a .graphml file must hold one graph and no hyperedge, but {source} holds "
            f"{counted(len(top), 'graph')} and {counted(len(hyperedges), 'hyperedge')}; keep one "
            "graph, and write hyperedges as edges."
        )
    kept = [each for each in _named(root, "key") if each.get("for", "all") in ("edge", "all")]
    names = {key.get("id"): key.get("attr.name") or key.get("id") for key in kept}
    defaults = {
        names[key.get("id")]: each.text or "" for key in kept for each in _named(key, "default")
    }
    edges = [
        _Edge(
            edge.get("source"),
            edge.get("target"),
            edge.get("directed", str(graph.get("edgedefault") == "directed")).lower() == "true",
            defaults
            | {
                names[data.get("key")]: data.text or ""
                for data in _named(edge, "data")
                if data.get("key") in names
            },
        )
        for graph in _named(root.iter(), "graph")
        for edge in _named(graph, "edge")
    ]
    ids = [node.get("id") for node in _named(root.iter(), "node")]
    numeric = {names[key.get("id")] for key in kept if key.get("attr.type") in _NUMERIC}
    return _graph(text, options, ids, ids, edges, numeric)


def _named(elements: Any, name: str) -> list[Any]:
    """Return the elements of XML with a name, in whatever namespace."""
    return [each for each in elements if each.tag.rpartition("}")[2] == name]


def read_gml(source: Source, options: ReadOptions) -> EdgeList:
    """Return the graph of a GML file. The labels of its nodes are the labels, if each has one that
    no other has, else their ids. Weights: those of `_graph`.

    Source: Himsolt, GML: A portable Graph File Format.
    """
    text = source.text("")
    words = _WORD.findall(text.data.decode(text.encoding))
    records = _record(word for word in words if not word.startswith("#"))
    graphs = records.get("graph", [])
    if len(graphs) != 1:
        raise InputError(
            f"a .gml file must hold one graph, but {source} holds {len(graphs)}; give one of them."
        )
    nodes, is_directed = graphs[0].get("node", []), graphs[0].get("directed") == ["1"]
    rows = [
        {name: values[0] for name, values in record.items() if isinstance(values[0], str)}
        for record in graphs[0].get("edge", [])
    ]
    numeric = {name for row in rows for name, value in row.items() if not value.startswith('"')}
    plain = ({name: _plain(value) for name, value in row.items()} for row in rows)
    edges = [_Edge(row.pop("source", ""), row.pop("target", ""), is_directed, row) for row in plain]
    ids = [_plain(node["id"][0]) if "id" in node else None for node in nodes]
    labels = [_plain(node["label"][0]) for node in nodes if "label" in node]
    return _graph(text, options, ids, labels if len({*labels}) == len(ids) else ids, edges, numeric)


def _record(words: Iterator[str], end: str = "") -> dict[str, list[Any]]:
    """Return the values of each key up to a word: texts, and records, which brackets enclose."""
    found = dict[str, list[Any]]()
    for key in words:
        if key == end:
            return found
        value = next(words, "]")
        if key[0] in '"[]' or value == "]":
            raise ValueError(f"{key} has no value")
        found.setdefault(key, []).append(_record(words, "]") if value == "[" else value)
    if end:
        raise ValueError("a bracket is not closed")
    return found


def _plain(value: str) -> str:
    """Return a value of GML without quotes."""
    return html.unescape(value[1:-1]) if value.startswith('"') else value


def _graph(
    text: Text,
    options: ReadOptions,
    ids: Sequence[str | None],
    names: Sequence[str | None],
    edges: Sequence[_Edge],
    numeric: set[str],
) -> EdgeList:
    """Return the graph of nodes and edges.

    Weights are the attribute that `columns` names, by default `weight`. Edges weigh 1 if it is "",
    or if none has `weight`, or another attribute whose type is a number than `id` and `key`.

    Args:
        text: the file.
        options: name the attribute.
        ids: what edges call the nodes; None where that is missing.
        names: what labels call them.
        edges: of the file.
        numeric: the attributes whose type is a number.
    """
    weight = one_column(options, "weight")
    if not ids:
        raise InputError(f"a graph must have nodes, but that of {text.name} has none; add them.")
    wrong = len(ids) - len({*ids} - {None})
    if wrong:
        raise InputError(
            f"each node of {text.name} must have an id that no other has, but {wrong} of "
            f"{len(ids)} do not; correct them."
        )
    vertices, labels = number_ids(integers_of(np.array(names, object)))
    vertex = dict(zip(ids, vertices.tolist(), strict=True))
    unknown = [end for edge in edges for end in edge[:2] if end not in vertex]
    if unknown:
        raise InputError(
            f"each edge of {text.name} must join two of its nodes, but one has {unknown[0]!r}; add "
            "this node, or correct the edge."
        )
    # Otherwise each edge weighs 1.
    is_weighted = options.get("columns") or (
        weight and any({weight, *(numeric - _NO_WEIGHTS)} & edge.values.keys() for edge in edges)
    )
    lacks = next((edge for edge in edges if weight not in edge.values), None)
    if lacks and is_weighted:
        common = sorted(set.intersection(*({*edge.values} - _NO_WEIGHTS for edge in edges)))
        others = [name for name in common if name in numeric] or common
        listed = ", ".join(others[:3]) + ", ..." * (len(others) > 3)
        remedy = f"add it, or name another in `columns`: {listed}" if others else "add it"
        u, v = (labels[vertex[end]] for end in lacks[:2])
        raise InputError(
            f"each edge of {text.name} must have the attribute {weight!r}, but that from {u} to "
            f"{v} does not; {remedy}, or give `columns=''`: each edge weighs 1."
        )
    weights = parse_fields(
        text.name,
        [edge.values.get(weight, "1") for edge in edges],
        text.data.decode("latin-1"),
        "correct it, or name others in `columns`",
    )
    ends = np.array([[vertex[end] for end in edge[:2]] for edge in edges], np.int64).reshape(-1, 2)
    back = np.array([not edge.is_directed for edge in edges], bool) & (ends[:, 0] != ends[:, 1])
    return EdgeList(
        len(ids),
        np.concatenate([ends[:, 0], ends[back, 1]]),
        np.concatenate([ends[:, 1], ends[back, 0]]),
        np.concatenate([weights, weights[back]]),
        labels,
    )
