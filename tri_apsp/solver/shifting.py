"""Solving graphs in which cycles weigh 0 but rounding made one look negative: with potentials that leave no negative weight."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch

from tri_apsp.errors import NegativeCycleError
from tri_apsp.solver.arguments import Problem
from tri_apsp.solver.negative_cycle import find_negative_cycle
from tri_apsp.solver.result import Result
from tri_apsp.value_range import row_blocks

__all__ = ["solve_shifted"]


def solve_shifted(problem: Problem, solve: Callable[[Problem], Result]) -> Result:
    """Return the result of `solve` for floats, from weights w[i, j] + p[i] - p[j] that are not negative.

    Such potentials p change no shortest path, and no negative value is left that a cycle of weight 0 could make lower and
    lower (Johnson, Efficient Algorithms for Shortest Paths in Sparse Networks, 1977).

    Raises:
        NegativeCycleError: a cycle is negative beyond rounding.

    Cost: Bellman-Ford for each graph, and one matrix beside those of `solve`.
    """
    batch, n, _ = problem.weights.shape
    potentials = problem.weights.new_zeros((batch, n), dtype=torch.float64)
    for item in range(batch):
        size = n if problem.sizes is None else int(problem.sizes[item])
        cycle, found = find_negative_cycle(problem.weights[item, :size, :size])
        if cycle is not None:
            raise NegativeCycleError(cycle.vertices, item if batch > 1 else None, weight=cycle.weight)
        potentials[item, :size] = found
    weights = problem.weights.clone(memory_format=torch.contiguous_format)
    _shift(weights, potentials, lowest=0)
    result = solve(Problem(weights, True, problem.sizes))
    _shift(result.distances, -potentials)
    if problem.batched:
        return result
    predecessors = None if result.predecessors is None else result.predecessors[0]
    return dataclasses.replace(result, distances=result.distances[0], predecessors=predecessors)


def _shift(matrices: torch.Tensor, potentials: torch.Tensor, lowest: float | None = None) -> None:
    """m[b, i, j] += p[b, i] - p[b, j], and at least `lowest`, rounded once."""
    for matrix, potential in zip(matrices, potentials, strict=True):
        first = 0
        for block in row_blocks(matrix[None]):
            rows = block.view(-1, matrix.shape[-1])
            shifted = rows.to(torch.float64) + (potential[first : first + len(rows), None] - potential)
            rows.copy_(shifted if lowest is None else shifted.clamp_(min=lowest))
            first += len(rows)
