"""A graph as a dense weight matrix, and the type that all readers and generators return."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch

from tri_apsp.device import resolve
from tri_apsp.errors import InputError
from tri_apsp.graphs.cast import cast_weights, check_dense
from tri_apsp.graphs.edges import EdgeList
from tri_apsp.graphs.labels import Labels
from tri_apsp.memory import check_memory
from tri_apsp.semirings import no_edge

# Values per block of rows when edges are counted or listed.
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class DenseGraph:
    """A graph given by its weights: `weights[i, j]` is the weight of the edge i -> j, or no_edge.

    Args:
        weights: (n, n), float32, float64, int16, int32 or int64, on the CPU; not copied.
        labels: what messages and results call the vertices; None: 0 to n - 1.
        name: what messages call the weights.

    Raises:
        InputError: another shape or dtype, NaN or -inf, or an integer outside
            [-no_edge, no_edge].

    Examples:
        >>> import torch
        >>> from tri_apsp.graphs import DenseGraph, write_graph
        >>> graph = DenseGraph(torch.tensor([[0, 3], [1, 0]]))
        >>> graph.n, graph.edges, graph.natural_dtype
        (2, 2, torch.int64)
        >>> write_graph(graph, "two.gr")
    """

    weights: torch.Tensor
    labels: Labels = None  # type: ignore[assignment]  # never after __post_init__
    name: str = "weights"

    def __post_init__(self) -> None:
        check_dense(self.weights, self.name)
        if self.weights.ndim != 2:
            raise InputError(
                f"`{self.name}` of one graph must have shape (n, n), but have "
                f"{tuple(self.weights.shape)}; take one of the batch."
            )
        if self.labels is None:
            object.__setattr__(self, "labels", range(self.n))

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self.weights.shape[0]

    @property
    def edges(self) -> int:
        """The number of entries that are not "no edge", on the diagonal only of the negative ones;
        one pass over the matrix.
        """
        missing, diagonal = no_edge(self.weights.dtype), self.weights.diagonal()
        present = sum(int((rows < missing).sum()) for _, rows in self._row_blocks())
        return present - int(((diagonal >= 0) & (diagonal < missing)).sum())

    @property
    def natural_dtype(self) -> torch.dtype:
        """The default dtype of a solve: that of the weights."""
        return self.weights.dtype

    def to_weights(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> torch.Tensor:
        """Return the weights in `dtype` on `device`, the diagonal 0 where it is not negative.

        Args:
            dtype: float32, float64, int16, int32 or int64.
            device: of the result: "auto", "cpu", "cuda", "cuda:N" or a torch.device.

        Returns:
            A new (n, n) tensor.

        Warns:
            RoundingWarning: once, if an integer is not exact in `dtype`.

        Raises:
            TooLargeError: before anything is allocated, if (n, n) values do not fit the free memory
                of `device`.
            InputError: an integer `dtype` and a weight that is not an integer.
            DistanceRangeError: a weight that `dtype` cannot hold.

        Cost:
            O(n^2); a second matrix of workspace if both dtype and device change.
        """
        place = resolve(str(device))
        check_memory(self.n, 1, dtype, place)
        result = cast_weights(self.weights, dtype).to(place)
        if result.data_ptr() == self.weights.data_ptr():
            result = result.clone(memory_format=torch.contiguous_format)
        result.diagonal().clamp_(max=0)
        return result

    def blocks(self) -> Iterator[EdgeList]:
        """Yield the edges in order of source and target, one block of rows at a time; of the loops
        only the negative ones.
        """
        missing = no_edge(self.weights.dtype)
        for first, rows in self._row_blocks():
            present = rows < missing
            diagonal = present.diagonal(first)
            diagonal &= rows.diagonal(first) < 0
            sources, targets = present.nonzero(as_tuple=True)
            yield EdgeList(
                self.n, (sources + first).numpy(), targets.numpy(), rows[present].numpy()
            )

    def _row_blocks(self) -> Iterator[tuple[int, torch.Tensor]]:
        step = max(1, _BLOCK // max(1, self.n))
        for first in range(0, self.n, step):
            yield first, self.weights[first : first + step]


Graph: TypeAlias = EdgeList | DenseGraph
"""What readers and generators return: `n`, `edges`, `natural_dtype`, `to_weights(dtype, device)`
and `blocks()`.
"""
