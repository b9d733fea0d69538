"""The plan of a sparse solve: which rows, and by which method of sparse graphs."""

from dataclasses import dataclass, field
from typing import Literal, get_args

import torch

from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.plan import Options, Plan
from tri_apsp.sparse.choice import choose

JOHNSON = "johnson"
"""The choice of a sparse solve whose row method the rules find."""

RowMethod = Literal[
    "output_parallel", "input_parallel", "frontier", "many_sources", "dijkstra", "elimination"
]
"""The methods that solve rows of a sparse graph."""

ROWS = 1024
"""Rows that are solved at a time, of more."""

ROW_METHODS: tuple[RowMethod, ...] = get_args(RowMethod)


# Distances that are held at a time, of which only some are kept.
_PER_BLOCK = 1 << 26


def rows_per_block(n: int) -> int:
    """Return how many rows of n distances are held at a time, where only some values are kept."""
    return max(1, _PER_BLOCK // max(1, n))


@dataclass(frozen=True, kw_only=True, eq=False)
class SparsePlan(Plan):
    """How rows of the distances of a sparse graph are solved.

    Attributes:
        may_eliminate: solve by "elimination" in place of the method if the graph stays sparse.
        sources: (rows,) of int64 on the CPU; None: all vertices.
        targets: the columns of the distances, (columns,) of int64 on the CPU; None: all vertices.
            Predecessors are of all vertices, since paths lead through others.
        limit: the farthest distance of interest; None: any.
        nearest: how many rows are solved, the distances from so many nearest sources; 0: those from
            each source.
        options: what the caller wants of the distances.
    """

    may_eliminate: bool
    sources: torch.Tensor | None
    targets: torch.Tensor | None
    limit: float | None
    nearest: int
    options: Options = field(repr=False)


def plan_sparse(
    graph: SparseGraph,
    *,
    reason: str,
    choice: str = "auto",
    sources: torch.Tensor | None = None,
    targets: torch.Tensor | None = None,
    limit: float | None = None,
    nearest: int = 0,
    in_out: bool = False,
    options: Options = Options(),
) -> SparsePlan:
    """Return what solves rows of a graph, by checked arguments.

    Args:
        reason: why it is sparse.
        in_out: whether the distances go to memory of the caller.
    """
    rows = nearest or (graph.n if sources is None else len(sources))
    method, may_eliminate = choice, False
    if choice == "auto":
        method, may_eliminate = choose(graph, rows, sources, limit)
    if method == "elimination" and choice == "auto":
        reason += "; by its order of elimination"
    elif may_eliminate:
        reason += "; by elimination if the graph stays sparse"
    columns = graph.n if targets is None else len(targets)
    index = torch.int32.itemsize if options.predecessors else 0  # of every vertex
    return SparsePlan(
        way="sparse",
        method=method,
        engine=engine_name(graph.device, method),
        config=None,
        reason=reason,
        memory=min(rows, ROWS if in_out else rows) * columns * graph.dtype.itemsize
        + rows * graph.n * index,
        may_eliminate=may_eliminate,
        sources=sources,
        targets=targets,
        limit=limit,
        nearest=nearest,
        options=options,
    )


def engine_name(device: torch.device, method: str = "auto") -> str:
    """Return the name of the engine that solves rows of a sparse graph on a device by a method."""
    return "cpu" if device.type == "cpu" or method == "dijkstra" else "portable"
