"""Graphs from DataFrames of pandas, and distances as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.device import resolve
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs import EdgeList, SparseGraph, sparse_graph
from tri_apsp.graphs.labels import Labels, number_ids
from tri_apsp.messages import shown
from tri_apsp.result import Result

if TYPE_CHECKING:
    import pandas as pd


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
    for name, column in (("source", source), ("target", target), ("weight", weight)):
        if column is not None and column not in edges.columns:
            raise InputError(
                f"`{name}` must be one of the columns {', '.join(map(str, edges.columns))}, but is "
                f"{column!r}; name one of these."
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


def to_pandas(result: Result) -> pd.DataFrame:
    """Return the distances of one graph as a table: a row for each source, a column for each
    target or vertex, with the labels of the graph, or with the numbers of its vertices.

    Args:
        result: of `shortest_paths`, for one graph; on any device. The row of `nearest` is
            called "nearest".

    Returns:
        A DataFrame of the dtype of the distances; no path is what they hold, inf or no_edge.

    Raises:
        InputError: the result is of a batch.
        InputTypeError: it is no Result.

    Cost:
        A copy to the CPU, if the distances are on a GPU.

    Examples:
        >>> import torch
        >>> from tri_apsp import shortest_paths, to_pandas
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> print(to_pandas(shortest_paths(weights, sources=[1, 2])))
           0  1  2
        1  3  0  1
        2  2  5  0
    """
    import pandas as pd  # slow to import, and no other function needs it

    if not isinstance(result, Result):
        raise InputTypeError(
            f"`result` must be a Result of shortest_paths, but is {shown(result)}; give one."
        )
    if result.distances.dim() != 2:
        raise InputError(
            f"`result` must be of one graph, but its distances have shape "
            f"{tuple(result.distances.shape)}; take one of the batch."
        )
    count = result.distances.shape[1]
    labels: Labels = range(count) if result.labels is None else result.labels
    sources = range(count) if result.sources is None else result.sources.tolist()
    targets = range(count) if result.targets is None else result.targets.tolist()
    is_row = result.nearest is not None
    index = ["nearest"] if is_row else [labels[source] for source in sources]
    columns = [labels[target] for target in targets]
    return pd.DataFrame(result.distances.cpu().numpy(), index=index, columns=columns)


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
