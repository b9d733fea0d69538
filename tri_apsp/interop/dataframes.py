"""Graphs from DataFrames of pandas, and distances as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.arguments import Vertices, sources_of
from tri_apsp.device import resolve
from tri_apsp.elimination.restricted import given_graph
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs import EdgeList, SparseGraph, sparse_graph
from tri_apsp.graphs.labels import Label, Labels, number_ids
from tri_apsp.graphs.sparse import GraphLike
from tri_apsp.messages import counted, shown
from tri_apsp.result import Result

if TYPE_CHECKING:
    import pandas as pd

_MOST_VERTICES = 2**31 - 1


def from_pandas(
    edges: pd.DataFrame,
    *,
    source: str = "source",
    target: str = "target",
    weight: str | None = "weight",
    directed: bool = True,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> SparseGraph:
    """Return the graph of a table of edges.

    Args:
        edges: a row for each edge. Of parallel edges the lightest counts.
        source: the column of the vertices that edges lead from: integers, or names. Vertices are
            numbered in the order of these ids, which SparseGraph.labels and Result.labels hold.
        target: the column of the vertices that edges lead to, of the same kind.
        weight: the column of the weights, numbers; None: every edge weighs 1.
        directed: False: each edge counts in both directions.
        dtype: float32, float64, int32 or int64; None: float32.
        device: of the graph: "auto", "cpu", "cuda", "cuda:N" or a torch.device.

    Returns:
        The graph, as prepare returns it. It keeps no edge of weight inf, and loops only if they are
        negative.

    Warns:
        RoundingWarning: once, if an integer weight is not exact in a float dtype.

    Raises:
        InputError: there is no such column, or it is there twice; an id or a weight is missing;
            ids are neither all integers nor all names; a weight is no number.
        DistanceRangeError: a weight that `dtype` cannot hold.

    Cost:
        A sort of the ids, and one of the edges.

    Examples:
        >>> import pandas as pd
        >>> from tri_apsp import from_pandas, shortest_paths
        >>> table = pd.DataFrame({"source": ["b", "a"], "target": ["c", "b"], "weight": [1, 3]})
        >>> graph = from_pandas(table, directed=False)
        >>> list(graph.labels)
        ['a', 'b', 'c']
        >>> shortest_paths(graph).distances[0].tolist()
        [0.0, 3.0, 4.0]
    """
    if not hasattr(edges, "columns"):
        raise InputTypeError(
            f"`edges` must be a DataFrame of pandas, but is {shown(edges)}; make one with "
            "pandas.DataFrame."
        )
    if edges.columns.duplicated().any():
        raise InputError(
            "`edges` must have different names of columns, but "
            f"{edges.columns[edges.columns.duplicated()][0]!r} is there twice; rename one."
        )
    unweighted = ", or give weight=None, so that every edge weighs 1"
    for name, column in (("source", source), ("target", target), ("weight", weight)):
        if column is not None and column not in edges.columns:
            raise InputError(
                f"`{name}` must be one of the columns {', '.join(map(str, edges.columns))}, but is "
                f"{column!r}; name one of these{unweighted if name == 'weight' else ''}."
            )
        if column is not None and edges[column].isna().any():
            raise InputError(
                f"no value of column {column!r} must be missing, but row "
                f"{edges.index[edges[column].isna()][0]} has none; fill it, or drop the row."
            )
    ends = [_ids(edges[column].to_numpy(), column) for column in (source, target)]
    if len(edges) and len({isinstance(end[0], str) for end in ends}) > 1:
        raise InputError(
            f"columns {source!r} and {target!r} must hold ids of one kind, but one holds integers "
            "and the other names; convert them with .astype(str)."
        )
    vertices, labels = number_ids(np.concatenate(ends))
    weights: npt.NDArray[Any] = np.ones(len(edges), np.int64)
    if weight is not None:
        weights = edges[weight].to_numpy()
        if weights.dtype.kind not in "iuf":
            raise InputError(
                f"column {weight!r} must hold numbers, but has dtype {weights.dtype}; convert it "
                "with .astype(float)."
            )
    graph = EdgeList(len(labels), vertices[: len(edges)], vertices[len(edges) :], weights, labels)
    return sparse_graph(
        graph if directed else graph.both_ways(), dtype=dtype, device=resolve(device)
    )


def to_pandas(
    result: Result | torch.Tensor,
    graph: GraphLike | None = None,
    *,
    sources: Vertices | None = None,
    targets: Vertices | None = None,
) -> pd.DataFrame | pd.Series:
    """Return distances, or values of vertices, as a table with the labels of the graph.

    Args:
        result: one of

            - a result of `shortest_paths` for one graph, or of `nearest`;
            - what `hops`, `reachability` or a table of distances returns, (rows, columns);
            - what a measure returns, a value for each vertex: (n,), or (limits, n) of
              `accessibility`;
            - what `paired_distances` returns, (pairs,), with its `sources` and `targets`.

            On any device.
        graph: whose labels count; None: those of the result, or the numbers of vertices.
        sources: the vertices of the rows of a tensor, such as range(n) for those of all; with
            `targets`, the first vertices of pairs. None: rows are numbered.
        targets: the vertices of its columns, or the second vertices of pairs. None: all.

    Returns:
        A DataFrame with a row for each source and a column for each target or vertex; of
        `nearest`, with a row for each vertex and the columns "distance" and "nearest", the label of
        the source, None without a path; of its `k` nearest, with a row for each vertex and rank
        from 1 on. Of values (n,), a Series; of pairs, its index has the
        levels "source" and "target". The dtype is that of the values;
        no path is what they hold, inf or no_edge.

    Raises:
        InputError: the values are of a batch, or not as many as there are vertices, `sources` or
            `targets`; pairs have one of these two alone.
        InputTypeError: they are neither a Result nor a tensor.

    Cost:
        A copy to the CPU, if the values are on a GPU.

    Examples:
        >>> import pandas as pd
        >>> from tri_apsp import closeness, from_pandas, shortest_paths, to_pandas
        >>> table = pd.DataFrame({"source": ["b", "a"], "target": ["c", "b"], "weight": [1, 3]})
        >>> graph = from_pandas(table, directed=False)
        >>> print(to_pandas(shortest_paths(graph, sources=[1, 2])))
             a    b    c
        b  3.0  0.0  1.0
        c  4.0  1.0  0.0
        >>> print(to_pandas(closeness(graph, weighted=True), graph).to_string())
        a    0.285714
        b    0.500000
        c    0.400000
    """
    import pandas as pd  # slow to import, and no other function needs it

    labels: Labels | None = None if graph is None else given_graph(graph).labels
    nearest: torch.Tensor | None = None
    values = result
    if isinstance(result, Result):
        sources, targets, nearest = result.sources, result.targets, result.nearest
        if nearest is not None and targets is not None:
            nearest = nearest.cpu()[..., targets]
        labels = result.labels if labels is None else labels
        values = result.distances
        sources = range(len(values)) if sources is None else sources
    if not isinstance(values, torch.Tensor):
        raise InputTypeError(
            f"`result` must be a Result or a tensor, but is {shown(result)}; give a tensor, such "
            "as the distances of Skims."
        )
    shape = tuple(values.shape)
    if len(shape) not in ((2,) if isinstance(result, Result) else (1, 2)):
        raise InputError(
            f"`result` must be of one graph, but has shape {shape}; take one of the batch."
        )
    if len(shape) == 1 and (sources is None) != (targets is None):
        raise InputError(
            "`sources` and `targets` must be given together for the values of pairs, but one of "
            "them is missing; add it, or leave both out for values of vertices."
        )
    if labels is None:  # numbers of vertices, of which the columns may be some
        labels = range(values.shape[-1] if targets is None else _MOST_VERTICES)

    def named(vertices: Vertices, name: str) -> list[Label]:
        return [labels[vertex] for vertex in sources_of(vertices, len(labels), name, 0).tolist()]

    columns = list(labels) if targets is None else named(targets, "targets")
    if len(columns) != values.shape[-1]:
        raise InputError(
            f"`result` must have one for each of {counted(len(columns), 'vertex', 'vertices')}, "
            f"but has shape {shape}; give the graph that it is of, or `targets`."
        )
    array = values.detach().cpu().numpy()
    if nearest is not None:
        found = [None if x < 0 else labels[x] for x in nearest.t().flatten().tolist()]
        index: Any = columns
        if nearest.dim() == 2:
            ranks = range(1, len(nearest) + 1)
            index = pd.MultiIndex.from_product([columns, ranks], names=["vertex", "rank"])
        return pd.DataFrame({"distance": array.T.ravel(), "nearest": found}, index=index)
    rows = list(range(len(array))) if sources is None else named(sources, "sources")
    if len(rows) != len(array):
        raise InputError(
            f"`sources` must name a vertex for each of the {len(array)} rows or pairs of `result`, "
            f"but {counted(len(rows), 'vertex', 'vertices')} are given; give one for each."
        )
    if len(shape) == 2:
        return pd.DataFrame(array, index=rows, columns=columns)
    if sources is None:
        return pd.Series(array, index=columns)
    pairs = pd.MultiIndex.from_arrays([rows, columns], names=["source", "target"])
    return pd.Series(array, index=pairs)


def _ids(values: npt.NDArray[Any], column: str) -> npt.NDArray[Any]:
    """Return ids as number_ids takes them."""
    if values.dtype.kind in "iu":
        fits = values.dtype != np.uint64 or values.max(initial=0) < 2**63
        return values.astype(np.int64 if fits else object)
    if not all(isinstance(value, str) for value in values):
        raise InputError(
            f"column {column!r} must hold integers or names, but has dtype {values.dtype}; convert "
            "it with .astype(int) or .astype(str)."
        )
    return values.astype(object)
