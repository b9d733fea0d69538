"""Finding one negative cycle, to be named in the error."""

from __future__ import annotations

from typing import NoReturn

import torch

from tri_apsp.errors import NegativeCycleError
from tri_apsp.semirings import distance_range, no_edge
from tri_apsp.solver.values import raise_out_of_range

__all__ = ["negative_cycle", "raise_negative_cycle"]


def raise_negative_cycle(distances: torch.Tensor, weights: torch.Tensor | None, sizes: torch.Tensor | None) -> NoReturn:
    """Raise the error for distances whose diagonal has become negative.

    Clamped integers can make a diagonal value negative without a cycle, also at a padded vertex. So the cycle is searched in
    the weights.

    Args:
        distances: (batch, n, n), solved or partly solved; some diagonal value is negative.
        weights: the unchanged weights; None if they were overwritten. Then the vertices with a negative diagonal are named.
        sizes: (batch,), the leading vertices of each graph; None: all.

    Raises:
        NegativeCycleError: with the vertices of one cycle.
        DistanceRangeError: there is no cycle, but a distance below the range of the dtype.
    """
    diagonal = distances.diagonal(dim1=-2, dim2=-1)
    item = int((diagonal < 0).any(dim=-1).nonzero()[0])
    batch = item if distances.shape[0] > 1 else None
    size = distances.shape[-1] if sizes is None else int(sizes[item])
    if weights is not None:
        cycle = negative_cycle(weights[item, :size, :size])
        if cycle:
            raise NegativeCycleError(cycle, batch)
    vertices = [int(v) for v in (diagonal[item, :size] < 0).nonzero().flatten()]
    clamped = distances[item].amin().item() < distance_range(distances.dtype, negative=True).lowest
    if clamped and not distances.is_floating_point() and (weights is not None or not vertices):
        raise_out_of_range(distances.dtype, "a path weighs too little")
    raise NegativeCycleError(vertices, batch)


def negative_cycle(weights: torch.Tensor) -> list[int]:
    """Return the vertices of one simple negative cycle of weights (n, n) in order, or [] if there is none.

    Bellman-Ford from all vertices at once, in float64: once the parents form a cycle, it is negative.
    Cost: n^2 operations per round, usually few more rounds than the cycle has edges, at most n.
    """
    n = weights.shape[0]
    infinity = no_edge(weights.dtype)
    distances = torch.zeros(n, dtype=torch.float64, device=weights.device)
    parents = torch.full((n,), -1, device=weights.device)
    step = max(1, (1 << 22) // n)  # columns at a time
    for iteration in range(1, n + 1):
        updated, changed = distances.clone(), False
        for start in range(0, n, step):
            columns = slice(start, start + step)
            part = weights[:, columns]
            through = part.to(torch.float64).masked_fill(part == infinity, float("inf")) + distances[:, None]
            best, source = through.min(dim=0)
            better = best < distances[columns]
            updated[columns] = torch.where(better, best, distances[columns])
            parents[columns] = torch.where(better, source, parents[columns])
            changed = changed or bool(better.any())
        if not changed:
            return []
        distances = updated
        if iteration & (iteration - 1) == 0 or iteration == n:
            cycle = _cycle_of(parents.tolist())
            if cycle:
                return cycle
    return []


def _cycle_of(parents: list[int]) -> list[int]:
    """Return a cycle of the graph v -> parents[v] in the direction of its edges (parent first), or []."""
    seen = [0] * len(parents)
    for start in range(len(parents)):
        vertex, path = start, []
        while vertex >= 0 and not seen[vertex]:
            seen[vertex] = start + 1
            path.append(vertex)
            vertex = parents[vertex]
        if vertex >= 0 and seen[vertex] == start + 1:
            return path[path.index(vertex) :][::-1]
    return []
