"""What the solve of one rank changes of the weights, and takes back from the distances."""

import math

import torch

from tri_apsp.distributed.cycles import NegativeComponent
from tri_apsp.engines import Block
from tri_apsp.semirings import minus_infinity, no_edge

# Rows that get other weights at a time.
_REWEIGHTED = 1024


class ChangedWeights:
    """The weights without the vertices of negative cycles, and with potentials: p[i] - p[j] is
    added to the weight of the edge from i to j, which is then not negative.

    Args:
        n: vertices.
        first: the vertex of the first row of this rank.

    Attributes:
        components: with negative cycles, whose vertices are removed.
        removed: (n,) of bool, on the CPU.
        potentials: (n,) of float64, on the CPU; None: there are none.
    """

    def __init__(self, n: int, first: int) -> None:
        self._n, self._first = n, first
        self.components = list[NegativeComponent]()
        self.removed = torch.zeros(n, dtype=torch.bool)
        self.potentials: torch.Tensor | None = None

    @property
    def are_none(self) -> bool:
        """Whether the weights are those that were given."""
        return not self.components and self.potentials is None

    def remove(self, component: NegativeComponent) -> None:
        """Remove the vertices of a component."""
        self.components.append(component)
        self.removed = self.removed | component.vertices

    def apply(self, begin: int, rows: Block) -> None:
        """Make rows of weights, from `begin` on, those that a solve starts from."""
        vertex, own = self._first + begin, self._vertices(begin, rows)
        if self.components:
            removed = self.removed.to(rows.device)
            rows[0, :, : self._n].masked_fill_(removed[own, None] | removed, no_edge(rows.dtype))
        rows[0, :, vertex:].diagonal().clamp_(max=0)
        self._add_potentials(rows, own, 1, lowest=0)

    def take_back(self, begin: int, rows: Block) -> None:
        """Make solved rows, from `begin` on, distances of the weights that were given; those of
        pairs with a walk through a negative cycle are minus infinity.
        """
        self._add_potentials(rows, self._vertices(begin, rows), -1)
        self.mark(begin, rows, minus_infinity(rows.dtype))

    def mark(self, begin: int, rows: Block, value: float) -> None:
        """Set the pairs with a walk through a negative cycle to a value."""
        own = self._vertices(begin, rows)
        for component in self.components:
            before, after = (x.to(rows.device) for x in (component.before, component.after))
            rows[0, :, : self._n].masked_fill_(before[own, None] & after, value)

    def _vertices(self, begin: int, rows: Block) -> slice:
        return slice(self._first + begin, self._first + begin + rows.shape[1])

    def _add_potentials(
        self, rows: Block, own: slice, sign: int, lowest: float = -math.inf
    ) -> None:
        """rows[i, j] += sign * (p[i] - p[j]), and at least `lowest`, rounded once."""
        if self.potentials is None:
            return
        potentials = sign * self.potentials.to(rows.device)
        columns = rows[0, :, : self._n]
        parts = torch.split(columns, _REWEIGHTED), torch.split(potentials[own], _REWEIGHTED)
        for part, mine in zip(*parts, strict=True):
            shifted = part.to(torch.float64) + (mine[:, None] - potentials)
            part.copy_(shifted.clamp_(min=lowest))
