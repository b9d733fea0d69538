"""Files of other tools, which are read but not written: TNTP, TSPLIB, METIS; and by NetworkX
GraphML, GML and Pajek.
"""

from __future__ import annotations

import io
import itertools
import re
from typing import Any

import numpy as np
import torch

from tri_apsp.errors import ApspWarning, InputError
from tri_apsp.graphs.cast import widen
from tri_apsp.graphs.dense import DenseGraph
from tri_apsp.graphs.edge_text import TableOptions
from tri_apsp.graphs.edges import EdgeList
from tri_apsp.graphs.files import Source
from tri_apsp.graphs.labels import integers_of, number_ids
from tri_apsp.graphs.text import Text, parse_count, parse_edges, parse_fields
from tri_apsp.messages import reason_of, shown, warn_caller


def read_tntp(source: Source, options: TableOptions) -> EdgeList:
    """Return the graph of a network file of Transportation Networks for Research, `.tntp`.

    Its weights are the column that `options.columns` names, by default `free_flow_time`.

    Source: github.com/bstabler/TransportationNetworks.
    """
    text = source.text("~")
    end = next((number for number, line in text.rows() if "<END OF METADATA>" in line.upper()), 0)
    # <NUMBER OF NODES>, <NUMBER OF LINKS> and <FIRST THRU NODE>
    metadata = re.findall(
        rb"<(?:NUMBER OF|FIRST THRU) (NODES?|LINKS)>\s*([^\s<]+)", text.data.upper()
    )
    counts = {
        key: parse_count(value.decode("latin-1"), str(source), end, key.decode().lower())
        for key, value in reversed(metadata)  # the first ones count
    }
    names = next((line for _, line in text.after(end).lines() if line.startswith("~")), "")
    columns = names.replace(";", " ").strip("~ ").lower().split()
    weight = _one_column(options, "free_flow_time")
    if b"NODES" not in counts or not end or weight not in columns:
        raise InputError(
            "a .tntp file must have <NUMBER OF NODES>, <END OF METADATA> and the names of columns "
            f"after `~`, {weight} among them, but {source} has {', '.join(columns)[:60] or 'none'};"
            " give a network file, or name another column in `columns`."
        )
    first = counts.get(b"NODE", 1)
    if first > 1:
        warn_caller(
            f"in {source} no path may pass through nodes before {first}, <FIRST THRU NODE>, but "
            "here it may; leave out the edges to them to solve without.",
            ApspWarning,
        )
    rows = Text(text.name, text.after(end).data.replace(b";", b" "), "~", end + 1)
    use = 0, 1, columns.index(weight)
    n, links = counts[b"NODES"], counts.get(b"LINKS")
    return parse_edges(rows, base=1, n=n, use=use, expected=links)


def read_metis(source: Source) -> EdgeList:
    """Return the undirected graph of a `.graph` file of METIS: a line for each vertex, from 1 on,
    with its neighbours and, if the header says so, the weights of the edges to them.

    Source: Karypis and Kumar, METIS, version 5.1, section 4.1.1.
    """
    text = source.text("%")
    # NumPy would read 1_0 as 10.
    lines = text.data.decode("latin-1").replace("_", "?").removesuffix("\n").split("\n")
    rows = [line.split() for line in lines]
    rows = [row for row in rows if not (row and row[0].startswith("%"))]
    header = next((row for row in rows if row), [])
    if not re.fullmatch(r"[0-9]{1,18} [0-9]{1,18}( [01]{1,3}( [0-9]{1,18})?)?", " ".join(header)):
        raise InputError(
            f"a .graph file must begin with `vertices edges [format [weights]]`, but {source} "
            f"begins with {shown(' '.join(header))}; correct the header."
        )
    n, edges = int(header[0]), int(header[1])
    sizes, vertex_weights, edge_weights = (
        kind == "1" for kind in (header[2] if len(header) > 2 else "0").zfill(3)
    )
    skipped = sizes + vertex_weights * (int(header[3]) if len(header) > 3 else 1)
    lists = rows[rows.index(header) + 1 :]
    while len(lists) > n and not lists[-1]:
        lists.pop()
    step = 2 if edge_weights else 1
    try:
        found = [np.array(row[skipped:], np.int64) for row in lists]
        sources = np.repeat(np.arange(len(found)), [len(row) // step for row in found])
        values = np.concatenate([*found, np.empty(0, np.int64)])
        targets, weights = values[::step] - 1, values[1::2] if edge_weights else None
    except (ValueError, OverflowError):
        found, targets = [], np.array([-1])
    matched = all(len(row) % step == 0 for row in found) and len(lists) == n
    if not matched or len(targets) != 2 * edges or not np.isin(targets, np.arange(n)).all():
        weighted = ", each with a weight" if edge_weights else ""
        raise InputError(
            f"a .graph file must have {n} lines of neighbours from 1 to {n}{weighted}, and each of "
            f"the {edges} edges twice, as its header says, but {source} does not; copy it again."
        )
    ones = np.ones(len(targets), np.int64)
    return EdgeList(n, sources, targets, ones if weights is None else weights, range(1, n + 1))


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
# How the numbers of EDGE_WEIGHT_SECTION fill a matrix: the indices of rows and columns, in order.
_SECTIONS: dict[str, Any] = {
    "FULL_MATRIX": lambda n: np.divmod(np.arange(n * n), n),
    "UPPER_ROW": lambda n: np.triu_indices(n, 1),
    "UPPER_DIAG_ROW": np.triu_indices,
    "LOWER_ROW": lambda n: np.tril_indices(n, -1),
    "LOWER_DIAG_ROW": np.tril_indices,
    "UPPER_COL": lambda n: np.tril_indices(n, -1),
    "UPPER_DIAG_COL": np.tril_indices,
    "LOWER_COL": lambda n: np.triu_indices(n, 1),
    "LOWER_DIAG_COL": np.triu_indices,
}


def read_tsplib(source: Source) -> DenseGraph:
    """Return the graph of a `.tsp` or `.atsp` file of TSPLIB with explicit weights.

    Source: Reinelt, TSPLIB 95.
    """
    text = source.text("%").data.decode("latin-1")
    head, _, section = text.partition("EDGE_WEIGHT_SECTION")
    fields = dict(re.findall(r"^\s*(\w+)\s*:\s*(.*?)\s*$", head, re.MULTILINE))
    form = fields.get("EDGE_WEIGHT_FORMAT", "").upper()
    size = fields.get("DIMENSION", "")
    if fields.get("EDGE_WEIGHT_TYPE", "").upper() != "EXPLICIT" or form not in _SECTIONS:
        raise InputError(
            "a .tsp file must have EDGE_WEIGHT_TYPE: EXPLICIT and the format FULL_MATRIX, or "
            "UPPER or LOWER, _ or _DIAG_, and ROW or COL, but "
            f"{source} has {str(fields.get('EDGE_WEIGHT_TYPE'))[:25]} and {form[:25] or None}; "
            "compute its distances, and save them as .npy."
        )
    n = parse_count(size, str(source), 1, "vertices")
    numbers = list(itertools.takewhile(_NUMBER.fullmatch, section.split()))
    values = widen(parse_fields(str(source), numbers, section))
    # Counted before anything of size n^2 is made: DIMENSION may be wrong.
    if form == "FULL_MATRIX":
        wanted = n * n
    else:
        wanted = n * (n + 1) // 2 if "DIAG" in form else n * (n - 1) // 2
    if len(values) != wanted:
        raise InputError(
            f"{source} must have {wanted} weights, as its DIMENSION of {n} says, but has "
            f"{len(values)}; copy it again."
        )
    rows, columns = _SECTIONS[form](n)
    weights = np.zeros((n, n), values.dtype)
    weights[rows, columns] = values
    if form != "FULL_MATRIX":
        weights[columns, rows] = values
    return DenseGraph(torch.from_numpy(weights), range(1, n + 1), str(source))


def read_by_networkx(source: Source, options: TableOptions) -> EdgeList:
    """Return the graph of a GraphML, GML or Pajek file, with the names of its nodes as labels.

    Weights are the attribute that `options.columns` names, by default `weight`; edges weigh 1 if
    none has an attribute that is a number.
    """
    import networkx as nx  # slow to import, and no other format needs it

    data = source.read()
    try:
        if source.format == "graphml":
            graph: Any = nx.read_graphml(io.BytesIO(data))
        elif source.format == "gml":
            graph = nx.read_gml(io.BytesIO(data))
        else:
            graph = nx.parse_pajek(data.decode("utf-8"))
        if not len(graph):
            raise ValueError("it names no vertex")
    except Exception as error:  # its readers raise many types
        raise InputError(
            f"a .{source.format} file must be one that NetworkX reads, but {source} is not "
            f"({reason_of(error)}); correct it or copy it again."
        ) from error
    weight = _one_column(options, "weight")
    rows = list(graph.edges(data=True))
    numbers = {
        name
        for *_, attributes in rows
        for name, value in attributes.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    if any(weight not in attributes for *_, attributes in rows) and (numbers or options.columns):
        raise InputError(
            f"each edge of {source} must have the attribute {weight!r}, but they have "
            f"{', '.join(sorted(numbers)) or 'none that is a number'}; name one that all have in "
            "`columns`."
        )
    ids = np.array([str(node) for node in graph.nodes], object)
    vertices, labels = number_ids(integers_of(ids))
    vertex = dict(zip(graph.nodes, vertices.tolist(), strict=True))
    ends = np.array([(vertex[u], vertex[v]) for u, v, _ in rows], np.int64).reshape(-1, 2)
    try:
        fields = [str(attributes.get(weight, 1)) for *_, attributes in rows]
        weights = parse_fields(str(source), fields, data.decode("latin-1"))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"the attribute {weight!r} of edges must be a number, but is not in {source}; name "
            "another in `columns`."
        ) from None
    edges = EdgeList(len(labels), ends[:, 0], ends[:, 1], weights, labels)
    return edges if graph.is_directed() else edges.both_ways()


def _one_column(options: TableOptions, default: str) -> str:
    """Return the one column that the options name, or the default."""
    if options.columns is None:
        return default
    columns = [options.columns] if isinstance(options.columns, str) else options.columns
    if len(columns) != 1:
        raise InputError(
            f"`columns` must be the one that holds the weights of a format of its own, but are "
            f"{len(columns)}; give one."
        )
    return str(columns[0])
