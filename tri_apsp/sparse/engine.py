"""The interface between sparse methods and hardware."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch

from tri_apsp.sparse.graph import SparseGraph

__all__ = ["SparseEngine", "Starts"]


class Starts(NamedTuple):
    """The vertices at which rows of distances start, one group after another.

    Attributes:
        vertices: 1-D of int64, each once in its group.
        offsets: (rows + 1,) of int64; those of a row are vertices[offsets[row] : offsets[row + 1]].
    """

    vertices: torch.Tensor
    offsets: torch.Tensor

    @classmethod
    def each(cls, vertices: torch.Tensor) -> Starts:
        """Return groups of one vertex each."""
        return cls(vertices, torch.arange(len(vertices) + 1))

    @property
    def rows(self) -> int:
        """The number of groups."""
        return len(self.offsets) - 1

    def row_of_each(self) -> torch.Tensor:
        """Return the row of each vertex."""
        return torch.arange(self.rows).repeat_interleave(self.offsets.diff())

    def groups(self) -> tuple[torch.Tensor, ...]:
        """Return the vertices of each row."""
        return torch.split(self.vertices, self.offsets.diff().tolist())


class SparseEngine(ABC):
    """Solves one graph without negative weights, on its device. The distances of all methods are the same bits."""

    name: ClassVar[str]
    """One of tri_apsp.engines.ENGINES."""

    methods: ClassVar[tuple[str, ...]]
    """The methods that distances() takes."""

    def __init__(self, graph: SparseGraph) -> None:
        assert graph.lowest >= 0
        self.graph = graph

    @abstractmethod
    def distances(self, method: str, starts: Starts, limit: float, *, early_stop: bool = True) -> torch.Tensor:
        """Return the distances (rows, n) from the nearest vertex of each group; no_edge beyond `limit`.

        Args:
            method: one of `methods`.
            limit: finite distances beyond it are not kept.
            early_stop: "output_parallel" ends with the first round that changes nothing; else after n - 1 rounds.
        """

    @abstractmethod
    def predecessors(self, starts: Starts, distances: torch.Tensor) -> torch.Tensor:
        """Return the predecessors, (rows, n) of int32, from what distances() returned; -1 at the starts and without a path."""
