"""Weights of one graph without negative cycles, and what is taken back from their distances."""

import math

import torch

from tri_apsp.cycles.search import NegativeCycle
from tri_apsp.semirings import minus_infinity, no_edge

# Rows that are marked, or get other weights, at a time.
_ROWS = 1024


class ChangedWeights:
    """The weights without the vertices of negative cycles, and with potentials: p[i] - p[j] is
    added to the weight of the edge from i to j, which is then not negative (Johnson, Efficient
    Algorithms for Shortest Paths in Sparse Networks, 1977). The shortest paths are the same, and no
    negative value is left that a cycle of weight 0 could make lower and lower.

    Args:
        n: vertices.
        first: the vertex of the first row, of which `begin` counts below.

    Attributes:
        cycles: a negative cycle of each component that was removed.
        removed: (n,) of bool on the CPU, the vertices of these.
        potentials: (n,) of float64; None: there are none.
    """

    def __init__(self, n: int, first: int = 0) -> None:
        self._n, self._first = n, first
        self.cycles = list[NegativeCycle]()
        self.removed = torch.zeros(n, dtype=torch.bool)
        self.potentials: torch.Tensor | None = None
        self._walks = list[tuple[torch.Tensor, torch.Tensor]]()

    @property
    def are_none(self) -> bool:
        """Whether the weights are those that were given."""
        return not self.cycles and self.potentials is None

    @property
    def labels(self) -> torch.Tensor:
        """The vertices that are left, for CycleSearch.run."""
        return torch.where(self.removed, -1, 0)

    def remove(
        self,
        cycles: list[NegativeCycle],
        vertices: torch.Tensor,
        before: torch.Tensor,
        after: torch.Tensor,
    ) -> None:
        """Remove components with one negative cycle each.

        Args:
            cycles: these.
            vertices: (n,) of bool, those of the components.
            before: (n, components) of bool, whether a vertex leads to a component.
            after: (components, n) of bool, whether a component leads to a vertex.
        """
        self.cycles += cycles
        self.removed = self.removed | vertices.cpu()
        self._walks.append((before, after))

    def apply(self, begin: int, rows: torch.Tensor) -> None:
        """Change weights (1, rows, columns), from `begin` on, to those that are solved."""
        own, columns = self._own(begin, rows), rows[0, :, : self._n]
        if self.cycles:
            removed = self.removed.to(rows.device)
            columns.masked_fill_(removed[own, None] | removed, no_edge(rows.dtype))
        columns[:, own.start :].diagonal().clamp_(max=0)
        self._add_potentials(columns, own, 1, lowest=0)

    def take_back(self, begin: int, rows: torch.Tensor) -> None:
        """Change distances (1, rows, columns) of these weights, from `begin` on, to those of the
        given ones: minus infinity for pairs with a walk through a negative cycle.
        """
        self._add_potentials(rows[0, :, : self._n], self._own(begin, rows), -1)
        self.mark(begin, rows, minus_infinity(rows.dtype))

    def mark(self, begin: int, rows: torch.Tensor, value: float) -> None:
        """Set the pairs with a walk through a negative cycle to a value."""
        own, columns = self._own(begin, rows), rows[0, :, : self._n]
        for before, after in self._walks:
            to_vertex = after.to(rows.device, torch.float32)
            parts = torch.split(columns, _ROWS), torch.split(before[own].to(rows.device), _ROWS)
            for part, to_component in zip(*parts, strict=True):
                part.masked_fill_(to_component.to(torch.float32) @ to_vertex > 0, value)

    def _own(self, begin: int, rows: torch.Tensor) -> slice:
        return slice(self._first + begin, self._first + begin + rows.shape[1])

    def _add_potentials(
        self, columns: torch.Tensor, own: slice, sign: int, lowest: float = -math.inf
    ) -> None:
        """columns[i, j] += sign * (p[i] - p[j]), and at least `lowest`, rounded once."""
        if self.potentials is None:
            return
        potentials = sign * self.potentials.to(columns.device)
        parts = torch.split(columns, _ROWS), torch.split(potentials[own], _ROWS)
        for part, mine in zip(*parts, strict=True):
            shifted = part.to(torch.float64) + (mine[:, None] - potentials)
            part.copy_(shifted.clamp_(min=lowest))
