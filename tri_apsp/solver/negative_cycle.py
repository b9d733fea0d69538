"""Finding a negative cycle, and potentials where there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

import torch

from tri_apsp.errors import NegativeCycleError
from tri_apsp.semirings import distance_range, no_edge
from tri_apsp.solver.values import raise_out_of_range

__all__ = ["NegativeCycle", "OnlyRoundingError", "find_negative_cycle", "raise_negative_cycle"]

# A cycle of floats is negative if it weighs less than this many units in the last place of the largest weight, for each edge.
_UNITS = 4


@dataclass(frozen=True)
class NegativeCycle:
    """A cycle of negative weight.

    Attributes:
        vertices: in the order of the cycle, each once.
        weight: the sum of its edges.
        graph: its place in the batch.
    """

    vertices: tuple[int, ...]
    weight: float
    graph: int = 0


class OnlyRoundingError(Exception):
    """A diagonal became negative although no cycle is: cycles weigh 0, and rounding made one look lighter."""


def raise_negative_cycle(distances: torch.Tensor, weights: torch.Tensor | None, sizes: torch.Tensor | None) -> NoReturn:
    """Raise the error for distances whose diagonal has become negative.

    Clamped integers can make a diagonal value negative without a cycle, also at a padded vertex. So the cycle is searched in
    the weights.

    Args:
        distances: (batch, n, n), solved or partly solved; some diagonal value is negative.
        weights: the unchanged weights; None if they were overwritten. Then the vertices with a negative diagonal are named.
        sizes: (batch,), the leading vertices of each graph; None: all.

    Raises:
        NegativeCycleError: with one cycle.
        DistanceRangeError: there is no cycle, but a distance below the range of the dtype.
        OnlyRoundingError: there is no cycle of floats.
    """
    diagonal = distances.diagonal(dim1=-2, dim2=-1)
    item = int((diagonal < 0).any(dim=-1).nonzero()[0])
    batch = item if distances.shape[0] > 1 else None
    size = distances.shape[-1] if sizes is None else int(sizes[item])
    if weights is not None:
        cycle, _ = find_negative_cycle(weights[item, :size, :size])
        if cycle is not None:
            raise NegativeCycleError(cycle.vertices, batch, weight=cycle.weight)
        if distances.is_floating_point():
            raise OnlyRoundingError
    vertices = [int(v) for v in (diagonal[item, :size] < 0).nonzero().flatten()]
    clamped = distances[item].amin().item() < distance_range(distances.dtype, negative=True).lowest
    if clamped and not distances.is_floating_point() and (weights is not None or not vertices):
        raise_out_of_range(distances.dtype, "a path weighs too little")
    raise NegativeCycleError(vertices, batch)


def find_negative_cycle(weights: torch.Tensor) -> tuple[NegativeCycle | None, torch.Tensor]:
    """Return a simple negative cycle of weights (n, n), or None; and potentials.

    Bellman-Ford from all vertices at once, in float64: once the parents form a cycle, it is negative. A path of floats counts
    as shorter only beyond the tolerance, so that rounding forms no cycle.

    Returns:
        The cycle, and (n,) of float64: without a cycle, weights[i, j] + potential[i] - potential[j] is not negative, within the
        tolerance.

    Cost: n^2 operations per round, usually few more rounds than the cycle has edges, at most n.
    """
    n = weights.shape[0]
    infinity = no_edge(weights.dtype)
    potentials = torch.zeros(n, dtype=torch.float64, device=weights.device)
    parents = torch.full((n,), -1, device=weights.device)
    tolerance = 0.0
    if weights.is_floating_point() and weights.numel():
        largest = weights.masked_fill(weights == infinity, 0).abs().amax().item()
        tolerance = _UNITS * torch.finfo(weights.dtype).eps * largest
    step = max(1, (1 << 22) // max(1, n))  # columns at a time
    for iteration in range(1, n + 1):
        updated, changed = potentials.clone(), False
        for start in range(0, n, step):
            columns = slice(start, start + step)
            part = weights[:, columns]
            through = part.to(torch.float64).masked_fill(part == infinity, math.inf) + potentials[:, None]
            best, source = through.min(dim=0)
            better = best < potentials[columns] - tolerance
            updated[columns] = torch.where(better, best, potentials[columns])
            parents[columns] = torch.where(better, source, parents[columns])
            changed = changed or bool(better.any())
        if not changed:
            break
        potentials = updated
        if iteration & (iteration - 1) == 0 or iteration == n:
            cycle = _cycle_of(parents.tolist())
            if cycle:
                return _weighed(cycle, weights), potentials
    return None, potentials


def _weighed(cycle: list[int], weights: torch.Tensor) -> NegativeCycle:
    source = torch.tensor(cycle, device=weights.device)
    edges = weights[source, source.roll(-1)].tolist()
    return NegativeCycle(tuple(cycle), math.fsum(edges) if weights.is_floating_point() else sum(edges))


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
