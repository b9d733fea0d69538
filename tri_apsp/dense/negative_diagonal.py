"""Dense graphs of which some have a negative value on the diagonal, solved again; see
cycles.attempts.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from tri_apsp.arguments import DenseBatch
from tri_apsp.cycles.attempts import Attempts
from tri_apsp.cycles.changed_weights import ChangedWeights
from tri_apsp.cycles.dense import matrices_of_marking
from tri_apsp.cycles.search import (
    Allowance,
    CycleSearch,
    DenseCycleSearch,
    NegativeCycle,
    allowance_of,
)
from tri_apsp.dense.plan import DensePlan
from tri_apsp.dense_reachability import closure_of
from tri_apsp.memory import memory_for_matrices
from tri_apsp.semirings import no_edge
from tri_apsp.value_checks import raise_out_of_range


class Attempt(NamedTuple):
    """What one solve returns.

    Attributes:
        distances: (batch, n, n); if a diagonal value became negative, as far as the solve went.
        is_negative: whether a diagonal value is negative, see verify.
        predecessors: (batch, n, n); None if they were not asked for, or if is_negative.
        plan: of the solve, for the sign of the weights if they were checked.
    """

    distances: torch.Tensor
    is_negative: bool
    predecessors: torch.Tensor | None
    plan: DensePlan


class DenseAttempts(Attempts):
    """Attempts of dense graphs.

    Args:
        batch: the graphs.
        solve: solves graphs.
        solved: what it returned for `batch`, which has a negative diagonal value.
        allowance: that of the one graph; None: by the weights of each.
    """

    def __init__(
        self,
        batch: DenseBatch,
        solve: Callable[[DenseBatch], Attempt],
        solved: Attempt,
        allowance: Allowance | None = None,
    ) -> None:
        super().__init__(batch.weights.dtype, solved.plan.options, is_batch=batch.count > 1)
        self._batch, self._solve, self.solved = batch, solve, solved
        self._allowance = allowance

    def negative_graphs(self) -> list[int]:
        if not self.solved.is_negative:
            return []
        diagonal = self.solved.distances.diagonal(dim1=-2, dim2=-1)
        found: list[int] = (diagonal < 0).any(dim=-1).nonzero().flatten().tolist()
        assert found, "a solve that ends early must leave the negative diagonal value that it found"
        return found

    def require_weights(self, graphs: Sequence[int]) -> None:
        if not self.solved.plan.options.overwrite:
            return
        distances = self._own(self.solved.distances, graphs[0])
        vertices = (distances[0].diagonal() < 0).nonzero().flatten().tolist()
        if not vertices:  # clamped integers, at padded vertices
            raise_out_of_range(distances.dtype, "a path weighs too little")
        raise self.overwritten(graphs, vertices)

    def begin(self, graph: int) -> tuple[CycleSearch, ChangedWeights]:
        weights = self._own(self._batch.weights, graph)[0]
        allowance = self._allowance
        if allowance is None:
            allowance = allowance_of(weights, len(weights), self._options.weight_error)
        return DenseCycleSearch(weights, allowance=allowance), ChangedWeights(len(weights))

    def remove(self, graph: int, cycle: NegativeCycle) -> None:
        weights, (search, changes) = self._own(self._batch.weights, graph), self.begun[graph]
        with memory_for_matrices(weights, matrices_of_marking(weights.dtype)):
            reachable = closure_of(weights, no_edge(weights.dtype))[0]
            mutual = (reachable & reachable.mT).to(torch.uint8)
            labels = mutual.argmax(dim=1).cpu()  # the first vertex of each component
            others = labels.masked_fill(labels == labels[cycle.vertices[0]], -1)
            cycles = [cycle, *search.run(others.masked_fill(changes.removed, -1))]
            chosen = labels[[each.vertices[0] for each in cycles]]
            removed = torch.isin(labels, chosen)
            changes.remove(cycles, removed, reachable[:, chosen], reachable[chosen])

    def attempt(self) -> None:
        matrices = 1 + self.solved.plan.matrices
        del self.solved  # frees its memory
        with memory_for_matrices(self._batch.weights, matrices):
            weights = self._batch.weights.clone(memory_format=torch.contiguous_format)
            for graph, (_, changes) in self.begun.items():
                changes.apply(0, self._own(weights, graph))
            self.solved = self._solve(dataclasses.replace(self._batch, weights=weights))

    def finish(self) -> NegativeCycle | None:
        """Take back the changes, and return a cycle of the first graph that has one."""
        cycles = list[NegativeCycle]()
        for graph, (_, changes) in sorted(self.begun.items()):
            changes.take_back(0, self._own(self.solved.distances, graph))
            if self.solved.predecessors is not None:
                changes.mark(0, self._own(self.solved.predecessors, graph), -1)
            cycles += [dataclasses.replace(cycle, graph=graph) for cycle in changes.cycles]
        return cycles[0] if cycles else None

    def _own(self, matrices: torch.Tensor, graph: int) -> torch.Tensor:
        """Return (1, size, size) of a graph, without padding."""
        sizes = self._batch.sizes
        size = self._batch.n if sizes is None else int(sizes[graph])
        return matrices[graph : graph + 1, :size, :size]
