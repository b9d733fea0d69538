"""What readers and generators return: a graph as a list of weighted edges, or by its weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.device import resolve
from tri_apsp.errors import ApspWarning, InputError
from tri_apsp.graphs.cast import Cast, cast_weights, check_dense, widen
from tri_apsp.graphs.labels import Label, Labels
from tri_apsp.memory import check_memory
from tri_apsp.messages import counted, warn_caller
from tri_apsp.semirings import no_edge

MAX_VERTICES = 1 << 62  # so that vertex numbers fit int64; memory allows far fewer

# Edges per block that is scattered or written, and values per block of rows whose edges are counted
# or listed; these limit temporaries at no measurable cost.
_EDGES, _VALUES = 1 << 18, 1 << 22


@dataclass(frozen=True, eq=False)
class EdgeList:
    """`n` vertices 0..n-1 and directed edges `sources[e] -> targets[e]` of weight `weights[e]`.

    Parallel edges (of which the lightest counts), loops, and the weights 0 and inf (no edge) are
    allowed.

    Args:
        n: vertices, 0 <= n <= 2^62; nothing of size n is allocated.
        sources: NumPy array (edges,) of integers in 0..n-1; stored as int64.
        targets: as `sources`.
        weights: NumPy array (edges,) of integers or floats; stored as int64 if every weight is an
            integer, of magnitude below 2^62 - 1 in integers and 2^53 in floats; else as float64.
        labels: what messages and results call the vertices; None: 0 to n - 1.
        rows: NumPy array (edges,) of int64, the place of each edge in the list that was given;
            None: as they are here.
        through: NumPy array (n,) of bool, at which vertices paths may pass, as `prepare` takes it;
            None: at all. Functions that take no zones warn.

    Raises:
        InputError: a vertex outside 0..n-1, or a weight that is NaN or -inf.

    Examples:
        >>> import numpy as np
        >>> import torch
        >>> from tri_apsp.graphs import EdgeList
        >>> graph = EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([3, 1]))
        >>> graph.both_ways().to_weights(torch.float32)
        tensor([[0., 3., inf],
                [3., 0., 1.],
                [inf, 1., 0.]])
    """

    n: int
    sources: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    weights: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    # Never None after __post_init__.
    labels: Labels = None  # type: ignore[assignment]
    rows: npt.NDArray[np.int64] = None  # type: ignore[assignment]
    through: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.n <= MAX_VERTICES:
            raise InputError(
                f"`n` must lie in 0..2**62, but is {self.n}; give the number of vertices."
            )
        if self.labels is None:
            object.__setattr__(self, "labels", range(self.n))
        for name in ("sources", "targets"):
            vertices = np.asarray(getattr(self, name)).astype(np.int64, copy=False)
            object.__setattr__(self, name, vertices)
            if vertices.size and not (vertices.min() >= 0 and vertices.max() < self.n):
                edge = int(((vertices < 0) | (vertices >= self.n)).argmax())
                source, target = int(self.sources[edge]), int(self.targets[edge])
                raise outside_error(self.n, source, target, getattr(self.labels, "start", 0))
        weights = widen(np.asarray(self.weights))
        object.__setattr__(self, "weights", weights)
        if self.rows is None:
            object.__setattr__(self, "rows", np.arange(len(weights)))
        if weights.dtype.kind == "f" and not (weights > -np.inf).all():
            edge = int((weights > -np.inf).argmin())
            ends = (self.labels[int(v[edge])] for v in (self.sources, self.targets))
            raise invalid_weight(weights[edge], *ends)

    @property
    def edges(self) -> int:
        """The number of edges, including parallel edges and loops."""
        return len(self.sources)

    @property
    def natural_dtype(self) -> torch.dtype:
        """The default dtype of a solve: float32, the fastest on most engines."""
        return torch.float32

    def to_weights(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> torch.Tensor:
        """Return the dense weights W with W[i, j] = min over edges i -> j, no_edge where there is
        none, W[i, i] <= 0.

        Args:
            dtype: float32, float64, int16, int32 or int64.
            device: of the result: "auto", "cpu", "cuda", "cuda:N" or a torch.device.

        Returns:
            (n, n) tensor. A loop counts only if it is negative: the diagonal is 0 elsewhere.

        Warns:
            RoundingWarning: once, if an integer is not exact in `dtype`.

        Raises:
            TooLargeError: before anything is allocated, if (n, n) values do not fit the free memory
                of `device`.
            InputError: an integer `dtype` and a weight that is not an integer.
            DistanceRangeError: a weight that `dtype` cannot hold.

        Cost:
            O(n^2 + edges); workspace of 2^18 edges.
        """
        missing, place = no_edge(dtype), resolve(device)
        self.warn_of_zones()
        check_memory(self.n, 1, dtype, place)
        result = torch.full((self.n, self.n), missing, dtype=dtype, device=place)
        result.fill_diagonal_(0)
        flat, cast = result.view(-1), Cast(dtype)
        for start in range(0, self.edges, _EDGES):
            part = slice(start, start + _EDGES)
            index = torch.from_numpy(self.sources[part] * self.n + self.targets[part]).to(place)
            values = cast(
                torch.from_numpy(np.require(self.weights[part], requirements=("C", "W")))
            ).to(place)
            flat.scatter_reduce_(0, index, values, reduce="amin")
        cast.warn()
        return result

    def both_ways(self) -> EdgeList:
        """Return the undirected graph of these edges: adds the reverse of every edge except loops,
        with the same weight.
        """
        reversible = self.sources != self.targets
        return EdgeList(
            self.n,
            np.concatenate([self.sources, self.targets[reversible]]),
            np.concatenate([self.targets, self.sources[reversible]]),
            np.concatenate([self.weights, self.weights[reversible]]),
            self.labels,
            np.concatenate([self.rows, self.rows[reversible]]),
            self.through,
        )

    def warn_of_zones(self) -> None:
        """Warn if some vertices are zones, which the caller does not take."""
        if self.through is not None:
            count = counted(int((~self.through).sum()), "zone")
            warn_caller(
                f"paths may pass through the {count} of the graph here; in Python, give "
                "prepare(tri_apsp.graphs.load_graph(path)) to shortest_paths, paired_distances, "
                "nearest, accessibility or edge_flows to respect them.",
                ApspWarning,
            )

    def blocks(self) -> Iterator[EdgeList]:
        """Yield the edges of finite weight in order, one block at a time."""
        for start in range(0, self.edges, _EDGES):
            part = slice(start, start + _EDGES)
            kept = self.weights[part] < np.inf
            yield EdgeList(
                self.n, self.sources[part][kept], self.targets[part][kept], self.weights[part][kept]
            )


def outside_error(n: int, source: int, target: int, base: int = 0) -> InputError:
    """Return the error of an edge from or to another vertex than the n of its graph; `base`: the
    number of the first in the message.
    """
    return InputError(
        f"each edge must join vertices in [{base}, {base + n}), but one leads from {base + source} "
        f"to {base + target}; correct it, or enlarge the graph."
    )


def invalid_weight(weight: float, source: Label, target: Label) -> InputError:
    """Return the error of a weight that is NaN or -inf."""
    return InputError(
        f"edge weights must be neither NaN nor -inf, but that from {source} to {target} is "
        f"{weight}; replace it by a weight, or by inf for no edge."
    )


@dataclass(frozen=True, eq=False)
class DenseGraph:
    """A graph given by its weights: `weights[i, j]` is the weight of the edge i -> j, or no_edge.

    Args:
        weights: (n, n), float32, float64, int16, int32 or int64, on the CPU; not copied,
            unless they are an array of NumPy.
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
        weights = check_dense(self.weights, self.name)
        if weights is not self.weights:
            object.__setattr__(self, "weights", weights.clone())
        if weights.ndim != 2:
            raise InputError(
                f"`{self.name}` of one graph must have shape (n, n), but have "
                f"{tuple(weights.shape)}; take one of the batch."
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
        """Return the weights in `dtype` on `device`, the diagonal 0 where it is not negative: a new
        (n, n) tensor. Arguments, warnings and errors are those of EdgeList.to_weights.

        Cost:
            O(n^2); a second matrix of workspace if both dtype and device change.
        """
        place = resolve(device)
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
        step = max(1, _VALUES // max(1, self.n))
        for first in range(0, self.n, step):
            yield first, self.weights[first : first + step]


Graph: TypeAlias = EdgeList | DenseGraph
"""What readers and generators return: `n`, `edges`, `natural_dtype`, `to_weights(dtype, device)`
and `blocks()`.
"""
