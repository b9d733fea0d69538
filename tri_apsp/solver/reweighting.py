"""Reweighting by potentials that leave no weight negative, for graphs in which rounding makes a
cycle look negative.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tri_apsp.engines.bellman_ford import NegativeCycle, NegativeCycleSearch
from tri_apsp.errors import NegativeCycleError
from tri_apsp.solver.arguments import Problem
from tri_apsp.solver.result import Result
from tri_apsp.value_range import row_blocks

__all__ = ["solve_reweighted"]


def solve_reweighted(problem: Problem, solve: Callable[[Problem], Result]) -> Result:
    """Return the result of `solve` for floats, from weights w[i, j] + p[i] - p[j] that are not
    negative.

    Such potentials p change no shortest path, and no negative value is left that a cycle of weight
    0 could make lower and lower (Johnson, Efficient Algorithms for Shortest Paths in Sparse
    Networks, 1977).

    Raises:
        NegativeCycleError: a cycle is negative beyond rounding.

    Cost: Bellman-Ford for each graph, and one matrix beside those of `solve`.
    """
    batch, n, _ = problem.weights.shape
    potentials = problem.weights.new_zeros((batch, n), dtype=torch.float64)
    negative = dict[int, NegativeCycle]()
    for item in range(batch):
        size = n if problem.sizes is None else int(problem.sizes[item])
        search = NegativeCycleSearch(problem.weights[item, :size, :size])
        cycles = search.run()
        if cycles:
            negative[item] = cycles[0]
        else:
            potentials[item, :size] = search.potentials()
    if negative:
        item, cycle = next(iter(negative.items()))
        raise NegativeCycleError(
            cycle.vertices, item if batch > 1 else None, weight=cycle.weight, graphs=[*negative]
        )
    weights = problem.weights.clone(memory_format=torch.contiguous_format)
    _reweight(weights, potentials, lowest=0)
    result = solve(Problem(weights, problem.batched, problem.sizes))
    _reweight(result.distances.view(weights.shape), -potentials)
    return result


def _reweight(
    matrices: torch.Tensor, potentials: torch.Tensor, lowest: float | None = None
) -> None:
    """m[b, i, j] += p[b, i] - p[b, j], and at least `lowest`, rounded once."""
    for matrix, potential in zip(matrices, potentials, strict=True):
        first = 0
        for block in row_blocks(matrix[None]):
            rows = block.view(-1, matrix.shape[-1])
            reweighted = rows.to(torch.float64) + (
                potential[first : first + len(rows), None] - potential
            )
            rows.copy_(reweighted if lowest is None else reweighted.clamp_(min=lowest))
            first += len(rows)
