"""All distances of a sparse graph at once, by Johnson's algorithm: potentials where weights are
negative, then rows.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tri_apsp.device import synchronize
from tri_apsp.messages import counted
from tri_apsp.solver.memory import memory_for
from tri_apsp.solver.result import Result
from tri_apsp.solver.run import NegativeCycles
from tri_apsp.sparse.choice import JOHNSON
from tri_apsp.sparse.graph import SparseGraph
from tri_apsp.sparse.solve import SparseSolver, engine_name

__all__ = ["johnson"]

# Sources that are solved at a time.
_ROWS = 1024


def johnson(
    graph: SparseGraph,
    *,
    predecessors: bool = False,
    negative_cycles: NegativeCycles = "raise",
    report: Callable[[float], None] | None = None,
    remedy: str = "solve blocks of rows with all_pairs",
) -> Result:
    """Return all distances, and with `predecessors` those of all pairs; see shortest_paths.

    `remedy` ends the message of TooLargeError.

    Distances of integers are exact. Weights of floats are added up along a path from its source on,
    but by "elimination" in another order. Where some are negative, each distance is a sum of
    weights that were rounded once with potentials, minus the potentials, in float64, rounded once
    more.

    Raises:
        NegativeCycleError, DistanceRangeError: as single_source.
        TooLargeError: the result does not fit the memory of the device.

    Cost: that of single_source from all vertices.
    Source: Johnson, Efficient Algorithms for Shortest Paths in Sparse Networks, 1977.
    """
    n, itemsize = graph.n, graph.dtype.itemsize + (torch.int32.itemsize if predecessors else 0)
    with memory_for(
        f"all distances of {counted(n, 'vertex', 'vertices')}",
        n * n * itemsize,
        graph.device,
        remedy,
    ):
        distances = torch.empty(n, n, dtype=graph.dtype, device=graph.device)
        pred = torch.empty(n, n, dtype=torch.int32, device=graph.device) if predecessors else None
    solver, cycle = SparseSolver(graph, "auto", negative_cycles), None
    for rows, block in solver.blocks(_ROWS, predecessors=predecessors):
        distances[rows] = block.distances
        if pred is not None:
            assert block.predecessors is not None
            pred[rows] = block.predecessors
        cycle = cycle or block.negative_cycle
        if report is not None:
            synchronize(graph.device)
            report(rows.stop / n)
    return Result(distances, JOHNSON, engine_name(graph.device), None, pred, cycle)
