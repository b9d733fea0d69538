"""Negative cycles of a graph whose rows are divided among ranks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from tri_apsp.cycles.search import (
    CycleSearch,
    Margins,
    NegativeCycle,
    allowance_of_parts,
)
from tri_apsp.distributed.communicator import Communicator
from tri_apsp.distributed.rows import Rows
from tri_apsp.engines.bellman_ford_rounds import search_in_rounds
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.semirings import no_edge

# Sums that are formed at a time.
_SUMS = 1 << 22


class RowCycleSearch(CycleSearch):
    """Searches a graph in rounds, in each of which every rank lowers potentials by its own edges.

    Args:
        weights: the rows of this rank.
        first: the vertex of the first of them.
        ranks: this one and the others.
    """

    def __init__(self, weights: Rows, first: int, ranks: Communicator) -> None:
        self._weights, self._first, self._ranks = weights, first, ranks
        dtype, n = weights.dtype, weights.shape[1]
        allowance = allowance_of_parts(
            lambda: (part[None] for _, part in self._edges()), dtype, n, ranks.gather
        )
        super().__init__(n, dtype, allowance)

    def _edges(self, wanted: Array | None = None) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield the rows in parts, without a positive diagonal: the first vertex, and the rows; see
        Rows.parts.
        """
        for begin, part in self._weights.parts(wanted):
            vertex = self._first + begin
            diagonal = part[:, vertex:].diagonal()
            if bool(((diagonal > 0) & (diagonal < no_edge(part.dtype))).any()):
                part = part.clone()
                part[:, vertex:].diagonal().clamp_(max=0)
            yield vertex, part

    def _edges_of(self, cycle: list[int]) -> list[float]:
        own = dict[int, float]()
        for place, vertex in enumerate(cycle):
            row = vertex - self._first
            if 0 <= row < self._weights.shape[0]:
                target = cycle[(place + 1) % len(cycle)]
                own[place] = self._weights.rows(row, row + 1)[0, target].item()
        found: dict[int, float] = {}
        for edges in self._ranks.gather(own):
            found |= edges
        return [found[place] for place in range(len(cycle))]

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
        allowance: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the least potential of each vertex over edges from `active` ones of its component,
        both parts, and from which; see Relax.
        """
        infinity = np.inf if self._is_float else np.iinfo(np.int64).max
        potentials = high.numpy(), low.numpy()
        least = np.full(self._n, infinity, potentials[0].dtype)
        rest, parent = np.zeros(self._n, least.dtype), np.full(self._n, -1)
        step = max(1, _SUMS // self._n)
        is_active = np.zeros(self._n, bool)
        is_active[active.numpy()] = True
        own = slice(self._first, self._first + self._weights.shape[0])
        for first, part in self._edges(is_active[own]):
            begin, end = np.searchsorted(active.numpy(), (first, first + len(part)))
            for start in range(begin, end, step):
                chosen = active[start : min(start + step, end)]
                w = part[(chosen - first).to(part.device)].cpu().numpy()
                found = self._least_of(w, chosen.numpy(), labels, *potentials, allowance)
                _take_less((least, rest, parent), found)
        first_rank, *others = self._ranks.gather((least, rest, parent))
        least, rest, parent = (values.copy() for values in first_rank)
        for other in others:
            _take_less((least, rest, parent), other)
        return torch.from_numpy(least), torch.from_numpy(rest), torch.from_numpy(parent)

    def _least_of(
        self, w: Array, vertices: Array, labels: Array, high: Array, low: Array, allowance: float
    ) -> tuple[Array, Array, Array]:
        """As _relax, of the edges w from `vertices`."""
        same = (labels[vertices, None] == labels) & (w < no_edge(self._weights.dtype))
        weights, potentials = w.astype(high.dtype), high[vertices, None]
        with np.errstate(all="ignore"):
            total = potentials + weights
            if not self._is_float:
                total[~same] = np.iinfo(np.int64).max
                row = total.argmin(axis=0)
                columns = np.arange(self._n)
                return total[row, columns], np.zeros_like(high), vertices[row]
            # The rounding error of `total`, exactly, and what is too small for it.
            added = total - potentials
            rest = low[vertices, None] + allowance * np.abs(weights)
            rest += (potentials - (total - added)) + (weights - added)
            rest[np.isnan(rest)] = 0  # where the sum is beyond a float
            rounded = total
            total = rounded + rest
            rest -= total - rounded
            rest[np.isnan(rest)] = 0
        total[~same] = np.inf
        first = total.min(axis=0)
        rest[total != first] = np.inf
        row = rest.argmin(axis=0)
        return first, rest[row, np.arange(self._n)], vertices[row]


def _take_less(known: tuple[Array, Array, Array], other: tuple[Array, Array, Array]) -> None:
    """Replace sums, in two parts, and what belongs to them, where the others are less; of equal
    ones the first vertex is kept, whatever rank has it.
    """
    less = (other[0] < known[0]) | ((other[0] == known[0]) & (other[1] < known[1]))
    for into, values in zip(known, other, strict=True):
        np.copyto(into, values, where=less)


def reached(
    cycle: NegativeCycle, weights: Rows, first: int, ranks: Communicator, *, forward: bool
) -> torch.Tensor:
    """Return which vertices are reached from a cycle, or reach it: (n,) of bool, on the CPU.

    Args:
        weights, first, ranks: as for RowCycleSearch.

    Cost: in each round, a pass over the rows of vertices that were reached first in the round
        before; or over those of vertices that have not been reached.
    """
    n, missing = weights.shape[1], no_edge(weights.dtype)
    found = torch.zeros(n, dtype=torch.bool)
    newest = found.clone()
    newest[list(cycle.vertices)] = True
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
        newest = torch.stack(ranks.gather(own_found)).any(dim=0) & ~found
    return found
