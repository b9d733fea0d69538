"""Negative cycles of a graph whose rows are divided among ranks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from tri_apsp.cycles.search import (
    Allowance,
    CycleSearch,
    Margins,
    NegativeCycle,
    allowance_of_parts,
)
from tri_apsp.distributed.rows import Rows
from tri_apsp.engines.bellman_ford_rounds import search_in_rounds
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.ranks.communicator import Communicator
from tri_apsp.semirings import no_edge


class RowCycleSearch(CycleSearch):
    """Searches a graph in rounds, in each of which every rank lowers potentials by its own edges.

    Args:
        weights: the rows of this rank.
        first: the vertex of the first of them.
        ranks: this one and the others.
        device: of this rank.
        error: the largest absolute error of a weight, for floats.
    """

    def __init__(
        self, weights: Rows, first: int, ranks: Communicator, device: torch.device, error: float
    ) -> None:
        self._weights, self._first, self._ranks, self._device = weights, first, ranks, device
        dtype, n = weights.dtype, weights.shape[1]
        allowance = allowance_of_parts(self._edges, dtype, n, error, ranks.gather)
        super().__init__(n, dtype, allowance)

    def _edges(self) -> Iterator[torch.Tensor]:
        """Yield the rows in parts (1, rows, n), without a positive diagonal."""
        for begin, part in self._weights.parts():
            own = part[:, self._first + begin :].diagonal()
            if bool(((own > 0) & (own < no_edge(part.dtype))).any()):
                part = part.clone()
                part[:, self._first + begin :].diagonal().clamp_(max=0)
            yield part[None]

    def _edges_of(self, cycle: list[int]) -> list[float]:
        own = torch.zeros(len(cycle), dtype=self._weights.dtype)
        for place, vertex in enumerate(cycle):
            row = vertex - self._first
            if 0 <= row < self._weights.shape[0]:
                target = cycle[(place + 1) % len(cycle)]
                own[place] = self._weights.rows(row, row + 1)[0, target]
        edges: list[float] = self._ranks.combined(own, torch.add, self._device).tolist()
        return edges

    def _search(
        self, labels: Array, lowest: Any, margins: Margins, parents: Array, on_cycle: Array
    ) -> torch.Tensor:
        dtype = torch.float64 if self._is_float else torch.int64
        return search_in_rounds(
            lambda active, high, low: self._relax(active, labels, high, low, margins.allowance),
            torch.zeros((2, self._n), dtype=dtype),
            labels,
            lowest,
            margins.relative,
            parents,
            on_cycle,
        )

    def _relax(
        self,
        active: torch.Tensor,
        labels: Array,
        high: torch.Tensor,
        low: torch.Tensor,
        allowance: Allowance,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the least potential of each vertex over edges from `active` ones of its component,
        both parts, and from which; see Relax.
        """
        from tri_apsp.kernels.cpu.bellman_ford import relax_rows  # with Numba: half a second

        infinity = np.inf if self._is_float else np.iinfo(np.int64).max
        potentials, device = (high.numpy(), low.numpy()), self._device
        least = np.full((3, self._n), infinity, potentials[0].dtype)  # and the rest, and from which
        missing, added = no_edge(self._weights.dtype), tuple(map(least.dtype.type, allowance))
        is_active = torch.zeros(self._n, dtype=torch.bool)
        is_active[active] = True
        own = is_active[self._first : self._first + self._weights.shape[0]]
        for begin, part in self._weights.parts(own.numpy()):
            rows = own[begin : begin + len(part)].nonzero().flatten()
            w = part[rows.to(part.device)].cpu().contiguous().numpy()
            vertices = (rows + begin + self._first).numpy()
            relax_rows(w, vertices, labels, w.dtype.type(missing), added, *potentials, least)
        found = self._ranks.combined(torch.from_numpy(least), _least, device)
        return found[0], found[1], found[2].to(torch.int64)

    def reached(self, cycle: NegativeCycle, *, forward: bool) -> torch.Tensor:
        """Return which vertices are reached from a cycle, or reach it: (n,) of bool, on the CPU.

        Cost: in each round, a pass over the rows of vertices that were reached first in the round
        before; or over those of vertices that have not been reached.
        """
        weights, first, missing = self._weights, self._first, no_edge(self._weights.dtype)
        newest = torch.zeros(self._n, dtype=torch.bool)
        newest[list(cycle.vertices)] = True
        found = torch.zeros_like(newest)
        while bool(newest.any()):
            found |= newest
            own_found = torch.zeros_like(found)
            wanted = newest if forward else ~found
            for begin, part in weights.parts(wanted[first : first + weights.shape[0]].numpy()):
                own = slice(first + begin, first + begin + len(part))
                if forward:
                    rows = part[newest[own].to(part.device)]
                    own_found |= (rows < missing).any(dim=0).cpu()
                else:
                    columns = part[:, newest.to(part.device)]
                    own_found[own] = (columns < missing).any(dim=1).cpu()
            newest = self._ranks.combined(own_found, torch.logical_or, self._device) & ~found
        return found


def _least(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the lesser of sums (3, n), in two parts, and from which vertex they are."""
    less = (other[0] < one[0]) | ((other[0] == one[0]) & (other[1] < one[1]))
    return torch.where(less, other, one)
