"""What ranks that have some rows of a graph each tell each other, to find the predecessors that one
process finds.
"""

from collections.abc import Iterator
from typing import Any, Literal, TypeVar

import numpy as np
import torch

T = TypeVar("T", bound=Any)
"""A number, an array of NumPy or a tensor."""


class RowExchange:
    """The exchange of a rank that has all rows: it returns what it is given.

    All ranks call the same methods in the same order. Arrays are of NumPy or tensors; matrices of
    tensors are a batch, of one graph if a rank does not have all rows.

    Attributes:
        first: the vertex of the first row that this rank searches.
        own: which of these rows are its own. The others belong to a neighbour, which searches them
            too.
        has_all: whether this rank has all rows.
    """

    first: int = 0
    own: slice = slice(0, None)
    has_all: bool = True

    def combined(self, values: T, how: Literal["sum", "max", "min", "any"]) -> T:
        """Return the sum, the maximum or the minimum of what all ranks give, or where some rank
        gives True.
        """
        return values

    def joined(self, values: T) -> T:
        """Return the arrays of all ranks, one after another."""
        return values

    def merged(self, starts: T, ends: T, *entries: T) -> tuple[T, ...]:
        """Return lists for each vertex, in which the entries of a rank follow those of the ranks
        before it: `starts` and `ends`, (n,), and arrays of entries.

        Raises:
            TooLargeError: on all ranks, if the entries do not fit the memory of one. So do the
                methods below.
        """
        return starts, ends, *entries

    def all_rows(self, weights: T) -> T:
        """Return the weights of all vertices.

        Args:
            weights: of the rows that this rank searches; so below.
        """
        return weights

    def edges_to(self, wanted: Any, weights: T) -> tuple[T, T]:
        """Return vertices, and the weights (n, vertices) of the edges to them.

        Args:
            wanted: (n,) of bool, the vertices that this rank needs.
            weights: as above.
        """
        return _vertices(weights), weights

    def beside(self, wanted: Any, weights: T, distances: T) -> Iterator[tuple[T, T, T]]:
        """Yield all vertices that some rank needs in parts: vertices, the weights (n, vertices) of
        the edges to them, and the distances (vertices, n) from them.

        Args:
            wanted: as above, or the same as integers.
            weights, distances: of the rows that this rank searches.
        """
        yield _vertices(weights), weights, distances

    def divided(self, width: int) -> list[int]:
        """Return which of the vertices 0 to width, width to 2 * width, ..., by their number, have
        rows on several ranks.
        """
        return []


def _vertices(weights: Any) -> Any:
    n = weights.shape[-1]
    if isinstance(weights, np.ndarray):
        return np.arange(n)
    return torch.arange(n, dtype=torch.int32, device=weights.device)


ALL_ROWS = RowExchange()
