"""Dense graphs with negative cycles: the memory of marking them, and the edges that matter to some
rows.
"""

import torch

from tri_apsp.arguments import DenseBatch
from tri_apsp.cycles.search import Allowance, allowance_of
from tri_apsp.memory import memory_for_matrices
from tri_apsp.semirings import no_edge
from tri_apsp.value_checks import check_graphs
from tri_apsp.value_range import value_range


def matrices_of_marking(dtype: torch.dtype) -> float:
    """Return what marking takes beside a solve, in matrices of the weights: a copy of them, and
    per pair its reachability, of bool and of float32.
    """
    return 1 + (torch.bool.itemsize + torch.float32.itemsize) / dtype.itemsize


def without_unreached(
    batch: DenseBatch, sources: torch.Tensor, error: float
) -> tuple[DenseBatch, Allowance | None]:
    """Return one graph for the rows of `sources`, (rows,) of int64: if a weight is negative, a copy
    without the edges from vertices to which no source leads, and the allowance_of() the whole
    graph, whose weights have this error; else None.

    Raises:
        InputError, DistanceRangeError: as check_graphs, of all weights.

    Every negative cycle that is left counts, and one solve is enough for rows that reach none.

    Cost: n^2 operations.
    """
    weights = batch.weights
    if not weights.numel() or not bool(weights.amin() < 0):  # staging checks the values, NaN too
        return batch, None
    missing = no_edge(weights.dtype)
    check_graphs(weights, None, value_range(weights, missing))
    reached = torch.zeros(batch.n, dtype=torch.bool, device=weights.device)
    with memory_for_matrices(weights, 2):
        found = sources.to(weights.device)
        while len(found):
            reached[found] = True
            targets = (weights[0, found] != missing).any(dim=0)
            found = (targets & ~reached).nonzero().flatten()
        if bool(reached.all()):
            return batch, None
        rest = weights.masked_fill(~reached[:, None], missing)
        return DenseBatch(rest, batch.batched), allowance_of(weights[0], batch.n, error)
