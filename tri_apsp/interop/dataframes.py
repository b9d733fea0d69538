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
        source, target: the columns of its ends: integers, or names. Vertices are numbered in the
            order of these ids, which SparseGraph.labels and Result.labels hold.
        weight: the column of its weight; None: every edge weighs 1.
        directed: False: each edge counts in both directions.
        dtype: float32, float64, int32 or int64; None: float32.
        device: of the graph.

    Raises:
        InputError: there is no such column, or it is there twice; an id or a weight is missing;
            ids are neither all integers nor all names; a weight is no number.
        DistanceRangeError: a weight that `dtype` cannot hold.
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
        graph if directed else graph.both_ways(), dtype=dtype, device=resolve(str(device))
    )


def to_pandas(result: Result) -> pd.DataFrame:
    """Return the distances of one graph as a table: a row for each source, a column for each
    target or vertex, with the labels of the graph, or with the numbers of its vertices.

    Raises:
        InputError: the result is of a batch.
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
    rows, count = result.distances.shape
    labels: Labels = range(count) if result.labels is None else result.labels
    sources = range(count) if result.sources is None else result.sources.tolist()
    targets = range(count) if result.targets is None else result.targets.tolist()
    index = [labels[source] for source in sources] if rows == len(sources) else ["nearest"]
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
