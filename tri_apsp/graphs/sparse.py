"""Sparse graphs on one device, as compressed rows in a canonical order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.arguments import (
    INDEX_DTYPES,
    as_tensor,
    as_vector,
    check_device,
    check_dtype,
    check_tensor,
)
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs.cast import Cast, cast_weights
from tri_apsp.graphs.convert import dtype_of, edges_of_sparse
from tri_apsp.graphs.graph import DenseGraph, EdgeList, invalid_weight, outside_error
from tri_apsp.graphs.labels import Labels
from tri_apsp.memory import check_memory, require_memory
from tri_apsp.messages import counted, shown
from tri_apsp.semirings import DTYPES, dtype_name, largest_distance, no_edge, remedy_beyond

Array: TypeAlias = npt.NDArray[Any]


class SciPySparse(Protocol):
    """A sparse array or matrix of SciPy."""

    def tocoo(self) -> Any:
        """Return its entries."""


class Restricted(Protocol):
    """A graph whose paths are restricted: a RestrictedGraph."""

    @property
    def restriction(self) -> str:
        """By what."""


SPARSE_DTYPES = (torch.float32, torch.float64, torch.int32, torch.int64)
"""The dtypes of weights of sparse graphs."""

# sparse_graph() refuses the last two, with a remedy.
_SPARSE_LAYOUTS = (
    torch.sparse_csr,
    torch.sparse_csc,
    torch.sparse_coo,
    torch.sparse_bsr,
    torch.sparse_bsc,
)
# Vertices are stored as int32.
_MAX_VERTICES = (1 << 31) - 1
# Bits of the sums of a float64, and the largest share of a weight by which rounding moves it.
_BITS, _MOST_MOVED = 52, 1e-6
# Digits after the point, up to which weights are taken for decimals.
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class EdgeLists:
    """The edges at each vertex, one list after another.

    Attributes:
        offsets: (n + 1,) of int64; the edges of vertex v are those from offsets[v] to offsets[v +
            1].
        vertices: (edges,) of int32, the vertex at the other end, ascending in each list.
        weights: (edges,).
        rows: (edges,) of int64 on the CPU, which of the edges that were given each is, counted from
            0: the row of a table, the edge of a file, the stored entry of a matrix. Of an
            undirected graph both directions have the same. None: the edges were no list.
    """

    offsets: torch.Tensor
    vertices: torch.Tensor
    weights: torch.Tensor
    rows: torch.Tensor | None = None

    @property
    def degrees(self) -> torch.Tensor:
        """The length of each list, (n,) of int64."""
        return self.offsets.diff()

    def arrays(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Return offsets, vertices and weights as arrays of NumPy."""
        offsets, vertices, weights = (
            x.cpu().numpy() for x in (self.offsets, self.vertices, self.weights)
        )
        return offsets, vertices, weights

    def weights_along(self, vertices: Sequence[int]) -> list[Any]:
        """Return the weight of each edge from one of some vertices to the next; the lists are by
        source, on the CPU.
        """
        offsets, targets, weights = self.arrays()
        found = list[Any]()
        for source, target in itertools.pairwise(vertices):
            first, end = offsets[source], offsets[source + 1]
            found.append(weights[first + np.searchsorted(targets[first:end], target)].item())
        return found

    @cached_property
    def _on_host(self) -> tuple[Array, Array]:
        """Offsets and vertices as arrays."""
        return self.offsets.cpu().numpy(), self.vertices.cpu().numpy()

    def numbers_of(self, owners: torch.Tensor, vertices: torch.Tensor) -> torch.Tensor:
        """Return the place of the edge between owners[i] and vertices[i] for each i, of int64; -1
        where there is none. Few of them may be on the CPU, whatever the device of the lists.
        """
        return self.places_of(owners, vertices).clamp(min=-1)

    def places_of(self, owners: torch.Tensor, vertices: torch.Tensor) -> torch.Tensor:
        """As numbers_of, but -1 - p for an edge that is not there and belongs before place p."""
        n = max(1, len(self.offsets) - 1)
        device = self.offsets.device
        if owners.is_cpu and 64 * len(owners) < n:
            offsets, targets = self._on_host
            places = np.empty(len(owners), np.int64)
            pairs = zip(owners.tolist(), vertices.tolist(), strict=True)
            for i, (owner, vertex) in enumerate(pairs):
                first, end = offsets[owner], offsets[owner + 1]
                at = first + np.searchsorted(targets[first:end], vertex)
                places[i] = at if at < end and targets[at] == vertex else -1 - at
            return torch.from_numpy(places)
        given = owners.to(device), vertices.to(device)
        wanted, keys = (
            one.long() * n + other for one, other in (given, (self.owners(), self.vertices))
        )
        place = torch.searchsorted(keys, wanted)
        found = torch.cat((keys, keys.new_full((1,), -1)))[place] == wanted
        return torch.where(found, place, -1 - place).to(owners.device)

    def with_weights(self, weights: torch.Tensor) -> EdgeLists:
        """Return the same edges with other weights."""
        changed = replace(self, weights=weights)
        if "_on_host" in self.__dict__:
            changed.__dict__["_on_host"] = self._on_host
        return changed

    def without(self, places: torch.Tensor) -> EdgeLists:
        """Return the lists without the edges at some places, which ascend, on the CPU."""
        removed = places.to(self.offsets.device)
        kept = torch.ones_like(self.vertices, dtype=torch.bool)
        kept[removed] = False
        index = kept.nonzero().flatten()
        changed = EdgeLists(
            self.offsets - torch.searchsorted(removed, self.offsets),
            self.vertices[index],
            self.weights[index],
            None if self.rows is None else self.rows[index.cpu()],
        )
        if "_on_host" in self.__dict__ and not self.offsets.is_cpu:
            offsets, vertices = self._on_host
            fewer = offsets - np.searchsorted(places.numpy(), offsets)
            changed.__dict__["_on_host"] = fewer, np.delete(vertices, places.numpy())
        return changed

    def with_new(
        self,
        places: torch.Tensor,
        owners: torch.Tensor,
        vertices: torch.Tensor,
        weights: torch.Tensor,
    ) -> EdgeLists:
        """Return the lists with further edges, each before a place of the old ones and in their
        order; all on the CPU, where the lists are made.
        """
        (offsets, known), at = self._on_host, places.numpy()
        offsets = offsets + np.searchsorted(owners.numpy(), np.arange(len(offsets)))
        known = np.insert(known, at, vertices.numpy())
        values = np.insert(self.weights.cpu().numpy(), at, weights.numpy())
        made = [x.to(self.offsets.device) for x in _of_arrays((offsets, known, values))]
        rows = None if self.rows is None else torch.from_numpy(np.insert(self.rows.numpy(), at, -1))
        changed = EdgeLists(made[0], made[1], made[2], rows)
        changed.__dict__["_on_host"] = offsets, known
        return changed

    def owners(self) -> torch.Tensor:
        """Return the vertex at whose list each edge is, (edges,) of int64."""
        vertices = torch.arange(len(self.offsets) - 1, device=self.offsets.device)
        return vertices.repeat_interleave(self.degrees, output_size=len(self.vertices))


@dataclass(frozen=True, eq=False)
class SparseGraph:
    """A directed graph of n vertices, each pair of which has at most one edge, the lightest of
    those given. `prepare`, `read_sparse_graph` and `from_pandas` return such a graph.

    Attributes:
        n: vertices.
        by_source: the edges from each vertex, one list after another: `offsets` (n + 1,) of int64,
            `vertices` (edges,) of int32 and `weights` (edges,). No weight is `no_edge`, and a loop
            is kept only if its weight is negative.
        labels: what the file of the graph calls each vertex; 0 to n - 1 if it names none. All
            functions number vertices from 0.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> graph = tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]]))
        >>> graph.n, graph.edges, graph.dtype, graph.labels
        (3, 6, torch.int64, range(0, 3))
        >>> graph.by_source.offsets.tolist(), graph.by_source.vertices.tolist()
        ([0, 2, 4, 6], [1, 2, 0, 2, 0, 1])
    """

    n: int
    by_source: EdgeLists
    labels: Labels = None  # type: ignore[assignment]  # never after __post_init__

    def __post_init__(self) -> None:
        if self.labels is None:
            object.__setattr__(self, "labels", range(self.n))

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        return self.by_source.weights.dtype

    @property
    def device(self) -> torch.device:
        """Where the edges are."""
        return self.by_source.weights.device

    @property
    def edges(self) -> int:
        """The number of edges."""
        return len(self.by_source.weights)

    @cached_property
    def lowest(self) -> float | int:
        """The smallest weight; 0 if there is no edge, or none is negative."""
        return min(0, self._values.min().item()) if self.edges else 0

    @cached_property
    def heaviest(self) -> float | int:
        """The largest weight; 0 if there is no edge."""
        return self._values.max().item() if self.edges else 0

    @cached_property
    def farthest(self) -> float | int:
        """An upper bound of the magnitude of the weight of a path, which leaves all vertices but
        its last once at most.
        """
        most = max(1, self.n - 1) * max(self.heaviest, -self.lowest)
        # Far below the end of the dtype, a closer bound is not needed; from 2^63 on, the sum below
        # would wrap.
        is_enough = 4 * most <= largest_distance(self.dtype) or most >= 2**63
        if is_enough or self.dtype.is_floating_point:
            return most
        lists = self.by_source
        heaviest = lists.weights.new_zeros(self.n)
        heaviest.scatter_reduce_(0, lists.owners(), lists.weights.abs(), "amax")
        return min(most, int(heaviest.sum(dtype=torch.int64) - heaviest.min()))

    @property
    def sums_fit(self) -> bool:
        """Whether the dtype holds the weight of any path."""
        return bool(self.farthest <= largest_distance(self.dtype))

    @property
    def sums_dtype(self) -> torch.dtype:
        """The dtype in which paths are added up: int64 for weights of int32 if some sum may not
        fit, else that of the weights.
        """
        return torch.int64 if self.dtype == torch.int32 and not self.sums_fit else self.dtype

    def in_sums_dtype(self) -> SparseGraph:
        """Return the graph in the dtype of its sums; itself if that is its own."""
        if self.sums_dtype == self.dtype:
            return self
        return SparseGraph.with_weights(self, self.by_source.weights.to(self.sums_dtype))

    @property
    def _values(self) -> Any:
        """The weights, on a CPU as an array: torch's threads would wait for one that a busy machine
        does not run.
        """
        weights = self.by_source.weights
        return weights.numpy() if self.device.type == "cpu" else weights

    @cached_property
    def by_destination(self) -> EdgeLists:
        """The edges to each vertex."""
        found = self._transposition
        if self.device.type == "cpu":  # see _values
            weights = torch.from_numpy(self._values[found.weights.numpy()])
            return found.with_weights(weights)
        return found.with_weights(self.by_source.weights[found.weights])

    @cached_property
    def _transposition(self) -> EdgeLists:
        """The edges to each vertex; in place of the weights, which edge of by_source each is."""
        lists = self.by_source
        if self.device.type == "cpu":
            offsets, vertices, _ = lists.arrays()
            found = _transposed(offsets, vertices, np.arange(len(vertices)))
            return EdgeLists(*_of_arrays(found))
        order = lists.vertices.sort(stable=True).indices
        counts = torch.bincount(lists.vertices, minlength=self.n)
        return EdgeLists(_offsets(counts), lists.owners()[order].to(torch.int32), order)

    @property
    def on_grid(self) -> SparseGraph | None:
        """The graph with its positive weights as multiples of a quantum, such that float64 holds
        the sum of each path: itself where it does; decimals as integers, in another unit; others
        rounded. None if that would move a weight by more than _MOST_MOVED of itself, or a sum is
        infinite.
        """
        return self if self._grid_weights is self.by_source.weights else self._rounded

    @cached_property
    def _rounded(self) -> SparseGraph | None:
        weights = self._grid_weights
        return None if weights is None else self.with_weights(weights)

    def farthest_of(self, values: torch.Tensor) -> float:
        """Return an upper bound of the magnitude of the sum along a path, which leaves each vertex
        once, of values of the edges, (edges,) of float64 on the CPU.
        """
        largest = torch.zeros(self.n, dtype=torch.float64)
        largest.scatter_reduce_(0, self.by_source.owners().cpu(), values.abs(), "amax")
        return largest.sum().item()

    @cached_property
    def _grid_weights(self) -> torch.Tensor | None:
        given = self.by_source.weights
        weights = given.cpu().to(torch.float64)
        farthest = self.farthest_of(weights)
        if not self.dtype.is_floating_point and farthest < 2.0**_BITS:
            return given
        if not math.isfinite(farthest):
            return None
        shift, exact = _BITS - math.frexp(farthest)[1], weights.numpy()
        rounded = np.ldexp(np.rint(np.ldexp(exact, shift)), -shift)
        if (abs(rounded - exact) > _MOST_MOVED * exact).any():
            return None
        if np.array_equal(rounded, exact) and self.dtype == torch.float64:
            return given
        own = given.cpu().numpy()
        for unit in (10.0**digits for digits in range(1, _DIGITS + 1)):
            few = np.rint(exact[:100] * unit) / unit  # most graphs end here
            if farthest * unit < 2.0**_BITS and np.array_equal(few.astype(own.dtype), own[:100]):
                scaled = np.rint(exact * unit)
                if np.array_equal((scaled / unit).astype(own.dtype), own):
                    return torch.from_numpy(scaled).to(self.device)
        return torch.from_numpy(rounded).to(self.device)

    def to(self, device: torch.device) -> SparseGraph:
        """Return the graph on a device; itself if that is its own."""
        lists, weights = self.by_source, self.by_source.weights.to(device)
        if weights is lists.weights:  # also if "cuda" names the device that is current
            return self
        moved = EdgeLists(lists.offsets.to(device), lists.vertices.to(device), weights, lists.rows)
        return SparseGraph(self.n, moved, self.labels)

    def with_weights(self, weights: torch.Tensor) -> SparseGraph:
        """Return the graph with the same edges of other weights, which must be valid."""
        return self._same_edges(
            SparseGraph(self.n, self.by_source.with_weights(weights), self.labels)
        )

    def _same_edges(self, graph: SparseGraph) -> SparseGraph:
        """Return a graph with the same edges, which need not be sorted by destination again."""
        if "_transposition" in self.__dict__:
            graph.__dict__["_transposition"] = self._transposition
        return graph

    def with_edges(
        self,
        tails: torch.Tensor,
        heads: torch.Tensor,
        weights: torch.Tensor,
        *,
        in_place: bool = False,
    ) -> SparseGraph:
        """Return the graph with other weights of some edges, or with these edges too; no_edge
        closes one.

        Args:
            tails, heads: (edges,) of int64 on the CPU, their ends; each edge once.
            weights: (edges,) of the dtype of the graph, on the CPU.
            in_place: use the memory of this graph, if no edge is new or closed.
        """
        lists, is_open = self.by_source, weights < no_edge(self.dtype)
        places = lists.places_of(tails, heads)
        is_known = places >= 0
        changed, kept = self, is_open & is_known
        if bool(kept.any()):
            in_place = in_place and bool(kept.all())
            values = lists.weights if in_place else lists.weights.clone()
            values[places[kept].to(self.device)] = weights[kept].to(self.device)
            changed = self._same_edges(replace(self, by_source=lists.with_weights(values)))
        new = is_open & ~is_known
        if bool(new.any()):
            # Other weights have not moved the places.
            changed = changed._with_new(-1 - places[new], tails[new], heads[new], weights[new])
        closed = is_known & ~is_open
        if bool(closed.any()):
            changed = changed._without(tails[closed], heads[closed])
        return changed

    def _with_new(
        self,
        places: torch.Tensor,
        tails: torch.Tensor,
        heads: torch.Tensor,
        weights: torch.Tensor,
    ) -> SparseGraph:
        """Return the graph with edges that it does not have, each before a place of by_source."""
        order = (tails * self.n + heads).argsort()
        places, tails, heads, weights = (x[order] for x in (places, tails, heads, weights))
        changed = replace(self, by_source=self.by_source.with_new(places, tails, heads, weights))
        if "_transposition" in self.__dict__:
            known, order = self._transposition, (heads * self.n + tails).argsort()
            tails, heads = tails[order], heads[order]
            into = -1 - known.places_of(heads, tails)
            old, new = known.weights.cpu().numpy(), (places + torch.arange(len(places)))[order]
            old = old + np.searchsorted(places.numpy(), old, side="right")
            moved = known.with_weights(torch.from_numpy(old))
            changed.__dict__["_transposition"] = moved.with_new(into, heads, tails, new)
        return changed

    def _without(self, tails: torch.Tensor, heads: torch.Tensor) -> SparseGraph:
        """Return the graph without some of its edges."""
        removed = self.by_source.numbers_of(tails, heads).sort().values
        changed = replace(self, by_source=self.by_source.without(removed))
        if "_transposition" in self.__dict__:
            into = self._transposition.numbers_of(heads, tails).sort().values
            fewer = self._transposition.without(into)
            numbers = fewer.weights - torch.searchsorted(removed.to(self.device), fewer.weights)
            changed.__dict__["_transposition"] = fewer.with_weights(numbers)
        return changed

    def encoded(self, encode: Callable[[torch.Tensor], torch.Tensor]) -> SparseGraph:
        """Return the graph with other weights, and without the edges whose new one is no_edge."""
        lists, weights = self.by_source, encode(self.by_source.weights)
        if bool((weights < no_edge(weights.dtype)).all()):
            return self.with_weights(weights)
        found = canonical(self.n, lists.owners(), lists.vertices.long(), weights, lists.rows)
        return SparseGraph(self.n, found.by_source, self.labels)

    def with_source(self, vertices: torch.Tensor) -> SparseGraph:
        """Return the graph with a further vertex n and edges of weight 0 from it to `vertices`,
        which ascend.
        """
        lists, new = self.by_source, vertices.to(self.device)
        offsets = torch.cat((lists.offsets, lists.offsets[-1:] + len(new)))
        targets = torch.cat((lists.vertices, new.to(torch.int32)))
        weights = torch.cat((lists.weights, lists.weights.new_zeros(len(new))))
        return SparseGraph(self.n + 1, EdgeLists(offsets, targets, weights))

    def without_isolated(self) -> tuple[SparseGraph, torch.Tensor]:
        """Return the graph of the vertices that have an edge, and these, ascending, as int64; the
        graph itself if it has no others.
        """
        lists = self.by_source
        has_edge = (lists.degrees > 0) | (self.by_destination.degrees > 0)
        kept = has_edge.nonzero().flatten()
        if len(kept) == self.n:
            return self, kept
        place = has_edge.cumsum(0) - 1
        offsets = torch.cat((lists.offsets[kept], lists.offsets[-1:]))
        targets = place[lists.vertices.long()].to(torch.int32)
        return SparseGraph(len(kept), EdgeLists(offsets, targets, lists.weights)), kept

    def both_ways(self) -> SparseGraph:
        """Return the graph in which each edge counts in both directions."""
        lists = self.by_source
        sources, targets = lists.owners(), lists.vertices.long()
        ends = torch.cat((sources, targets)), torch.cat((targets, sources))
        rows = None if lists.rows is None else lists.rows.repeat(2)
        found = canonical(self.n, *ends, lists.weights.repeat(2), rows)
        return SparseGraph(self.n, found.by_source, self.labels)

    def reversed(self) -> SparseGraph:
        """Return the graph in which each edge leads the other way."""
        rows = self.by_source.rows
        if rows is not None:
            rows = rows[self.by_source.vertices.cpu().argsort(stable=True)]
        return SparseGraph(self.n, replace(self.by_destination, rows=rows), self.labels)

    def dense(self) -> torch.Tensor:
        """Return the weights as a matrix (n, n).

        Raises:
            TooLargeError: the matrix does not fit the memory of the device.
        """
        check_memory(self.n, 1, self.dtype, self.device)
        weights = torch.full(
            (self.n, self.n), no_edge(self.dtype), dtype=self.dtype, device=self.device
        )
        weights.fill_diagonal_(0)
        weights[self.by_source.owners(), self.by_source.vertices.long()] = self.by_source.weights
        return weights


GraphLike: TypeAlias = (
    torch.Tensor | npt.NDArray[Any] | SparseGraph | EdgeList | DenseGraph | SciPySparse | Restricted
)
"""What functions take as a graph: see tri_apsp.shortest_paths."""


def is_sparse(graph: Any) -> bool:
    """Return whether a graph is one for sparse_graph(), and not a matrix of weights."""
    if isinstance(graph, torch.Tensor):
        return graph.layout in _SPARSE_LAYOUTS
    return isinstance(graph, (EdgeList, SparseGraph)) or hasattr(
        graph, "tocoo"
    )  # which SciPy's sparse arrays have


def sparse_graph(
    graph: Any,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    encode: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> SparseGraph:
    """Return the sparse graph of what a caller gave, which stays unchanged.

    Entries may be unsorted, and several may be at one place: the smallest counts. A stored 0 is an
    edge of weight 0; inf, or no_edge(dtype) in integers, is no edge; so is a 0 in SciPy's formats
    bsr and dia, which pad with zeros. A loop counts only if it is negative.

    Args:
        graph: a torch tensor of layout sparse_csr, sparse_csc or sparse_coo, or dense weights (n,
            n); a SciPy sparse array; what graphs.load_graph() returns; or a SparseGraph.
        dtype: float32, float64, int32 or int64; None keeps that of `graph`, and takes float32 for
            files and bool.
        device: None keeps that of a tensor, and takes the CPU for others.
        encode: replaces the weights, in `dtype`, before the lightest of parallel ones is taken.

    Raises:
        InputError: for another type, shape, dtype or device; NaN or -inf; an index beyond the
            vertices; a fraction for an integer dtype.
        DistanceRangeError: a weight that the dtype cannot hold.
        TooLargeError: the edges, while they are sorted, do not fit the memory.
    """
    if dtype is not None and dtype not in SPARSE_DTYPES:
        raise InputError(
            f"`dtype` must be one of {', '.join(map(dtype_name, SPARSE_DTYPES))} for a sparse "
            "graph, but is "
            f"{dtype_name(dtype) if isinstance(dtype, torch.dtype) else repr(dtype)}; choose one "
            "of these."
        )
    if what := getattr(graph, "restriction", ""):
        raise InputError(
            f"`graph` must have no {what} for this function, but has some; give graph.given, which "
            "is without, or call shortest_paths, nearest, paired_distances, paired_paths, skims, "
            "accessibility or edge_flows."
        )
    if isinstance(graph, SparseGraph):
        given: SparseGraph = graph
        if dtype is not None and dtype != given.dtype:
            given = given.with_weights(_cast(given.by_source.weights, dtype))
        if encode is not None:
            given = given.encoded(encode)
        return given if device is None else given.to(device)
    labels = None
    if isinstance(graph, DenseGraph):
        graph, labels = graph.weights, graph.labels
    graph = as_tensor(graph, "graph")
    rows = None
    if isinstance(graph, torch.Tensor):
        n, sources, targets, weights = _entries(graph)
        place = device or graph.device
    else:
        edges = graph
        if not is_sparse(graph):
            check_tensor(graph, "graph")  # raises
        if not isinstance(graph, EdgeList):
            edges = edges_of_sparse(graph, "`graph`")
            dtype = dtype_of(graph.dtype, dtype, "`graph`", SPARSE_DTYPES)
        n, labels, place = edges.n, edges.labels, device or torch.device("cpu")
        dtype = dtype or edges.natural_dtype
        edges.warn_of_zones()
        arrays = edges.sources, edges.targets, edges.weights, edges.rows
        sources, targets, weights, rows = (as_tensor(x, "graph").contiguous() for x in arrays)
    found = of_entries(
        n, sources, targets, weights, dtype=dtype, device=place, rows=rows, encode=encode
    )
    return SparseGraph(n, found.by_source, labels)  # type: ignore[arg-type]


def changed_edges(
    n: int, edges: Any, weights: Any, *, dtype: torch.dtype, directed: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the ends and the new weights of edges of a graph of n vertices, checked, on the CPU;
    without loops that are not negative.

    Args:
        edges: (edges, 2), each once; with directed=False both directions of each are returned.
        weights: (edges,), converted to `dtype`; inf, or no_edge of integers, closes an edge.

    Raises:
        InputError, DistanceRangeError: other shapes; a vertex or a weight that breaks a rule.
    """
    is_list = isinstance(weights, (list, tuple)) and not dtype.is_floating_point
    if is_list and all(isinstance(x, Integral) or x == math.inf for x in weights):
        # Beside inf, an array would round large integers.
        weights = [no_edge(dtype) if x == math.inf else x for x in weights]
    given = list[torch.Tensor]()
    for name, values, rule, remedy in (
        (
            "edges",
            edges,
            "pairs of vertex numbers",
            "the number of a label is labels.index(label)",
        ),
        ("weights", weights, "numbers", "give one for each edge"),
    ):
        try:
            found = as_vector(values, name)
            array = found if isinstance(found, torch.Tensor) else np.asarray(found)
            given.append(torch.as_tensor(array).detach().cpu())
        except (TypeError, ValueError, RuntimeError):
            raise InputTypeError(
                f"`{name}` must be {rule}, but is {shown(values)}; {remedy}."
            ) from None
    ends, values = given
    if not ends.numel():
        ends = torch.empty((0, 2), dtype=torch.int64)
    if ends.dim() != 2 or ends.shape[1] != 2 or ends.dtype not in INDEX_DTYPES:
        raise InputError(
            "`edges` must be pairs of vertices, integers of shape (edges, 2), but have shape "
            f"{tuple(ends.shape)} and dtype {dtype_name(ends.dtype)}; give a list of pairs."
        )
    if values.shape != (len(ends),):
        raise InputError(
            f"`weights` must have one weight for each of the {len(ends)} edges, but have shape "
            f"{tuple(values.shape)}; give as many."
        )
    check_dtype(values, "weights", tuple(DTYPES))
    if not directed:
        other = ends[:, 0] != ends[:, 1]
        ends, values = torch.cat((ends, ends[other].flip(1))), torch.cat((values, values[other]))
    tails, heads = (x.long().contiguous() for x in ends.unbind(1))
    is_closed = values == no_edge(values.dtype if values.is_floating_point() else dtype)
    if closes := bool(is_closed.any()):
        values = values.masked_fill(is_closed, 0)
    _check_entries(n, tails, heads, values)
    keys = np.sort((tails * n + heads).numpy())
    is_again = keys[1:] == keys[:-1]
    if is_again.any():
        twice = int(keys[1:][is_again][0])
        both = "" if directed else ", in one direction"
        raise InputError(
            f"`edges` must name each edge once{both}, but name {(twice // n, twice % n)} again; "
            "leave one out."
        )
    new = _cast(values, dtype)
    if closes:
        new = new.masked_fill(is_closed, no_edge(dtype))
    kept = (tails != heads) | (new < 0)
    if bool(kept.all()):
        return tails, heads, new
    return tails[kept], heads[kept], new[kept]


def components_of(graph: SparseGraph, connection: str = "strong") -> npt.NDArray[np.int64]:
    """Return a number in [0, n) for the component of each vertex, (n,): "strong" or "weak"."""
    from scipy.sparse import csr_array  # imports of 0.1 s, which few graphs need
    from scipy.sparse.csgraph import connected_components

    offsets, vertices, _ = graph.by_source.arrays()
    matrix = csr_array((np.ones(graph.edges, np.int8), vertices, offsets), (graph.n, graph.n))
    labels: npt.NDArray[np.int64] = connected_components(matrix, connection=connection)[1]
    return labels.astype(np.int64)


def of_entries(
    n: int,
    sources: torch.Tensor,
    targets: torch.Tensor,
    weights: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device,
    rows: torch.Tensor | None = None,
    encode: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> SparseGraph:
    """Return the graph of n vertices and of edges in any order; see sparse_graph.

    Args:
        sources, targets: (edges,) of int64, or of int32 on a CPU.
        weights: (edges,), on the same device.
        dtype, device: of the result; `dtype` None: that of the weights.
    """
    if n > _MAX_VERTICES:
        raise InputError(
            f"`graph` must have at most {_MAX_VERTICES} vertices, but has {n}; split it."
        )
    _check_memory(n, len(weights), weights.dtype, device)
    _check_entries(n, sources, targets, weights)
    weights = _cast(weights.to(device), dtype or weights.dtype)
    weights = weights if encode is None else encode(weights)
    return canonical(n, sources.to(device), targets.to(device), weights, rows)


def _check_memory(n: int, edges: int, dtype: torch.dtype, device: torch.device) -> None:
    """Refuse a graph that does not fit the memory while its edges are sorted."""
    what = f"a graph of {counted(n, 'vertex', 'vertices')} and {counted(edges, 'edge')}"
    require_memory(
        what,
        n * 8 * 4 + edges * (8 * 5 + 2 * dtype.itemsize),
        device,
        "split it into its components",
    )


def _entries(graph: torch.Tensor) -> tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return n, and the sources, targets and weights of the entries of a tensor."""
    check_device(graph, "graph")
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        raise InputError(
            f"`graph` must be square, (n, n), but has shape {tuple(graph.shape)}; give one graph."
        )
    if graph.requires_grad:
        raise InputError(
            "`graph` must not require a gradient, which only shortest_paths of dense weights has; "
            "give graph.detach()."
        )
    if graph.dtype == torch.int16 and graph.layout == torch.strided:
        graph = cast_weights(graph, torch.int32)
    check_dtype(graph, "graph", (*SPARSE_DTYPES, torch.bool))
    n = graph.shape[0]
    if graph.layout == torch.strided:
        kept = graph if graph.dtype == torch.bool else graph != no_edge(graph.dtype)
        _check_memory(n, int(kept.sum()), graph.dtype, graph.device)
        sources, targets = kept.nonzero().unbind(1)
        weights = graph[sources, targets]
    else:
        sources, targets, weights = stored_entries(graph, "graph")
    if weights.dtype == torch.bool:
        sources, targets, weights = (
            sources[weights],
            targets[weights],
            weights[weights].to(torch.float32),
        )
    return n, sources, targets, weights


def are_lists(offsets: torch.Tensor, others: torch.Tensor, values: torch.Tensor) -> bool:
    """Return whether offsets rise from 0 to the number of entries, which have one index and one
    value each.
    """
    return (
        {offsets.dtype, others.dtype} <= {torch.int32, torch.int64}
        and offsets.ndim == others.ndim == values.ndim == 1
        and len(offsets) > 0
        and int(offsets[0]) == 0
        and int(offsets[-1]) == len(others) == len(values)
        # Differences might overflow.
        and bool((offsets[1:] >= offsets[:-1]).all())
    )


def stored_entries(
    tensor: torch.Tensor, name: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the rows, the columns and the values that a sparse tensor stores, (entries,) each, of
    which every index still has to be checked. What torch checks only where asked to is checked,
    since its own conversions read and write beyond their memory without.

    Raises:
        InputError: for another layout; for parts that do not fit each other.
    """
    if tensor.layout in (torch.sparse_csr, torch.sparse_csc):
        by_rows, values = tensor.layout == torch.sparse_csr, tensor.values()
        offsets = tensor.crow_indices() if by_rows else tensor.ccol_indices()
        others = tensor.col_indices() if by_rows else tensor.row_indices()
        if offsets.shape != (tensor.shape[0] + 1,) or not are_lists(offsets, others, values):
            remedy = "build the tensor anew, from data that is not damaged"
            if offsets.dtype != torch.int64:
                remedy = "build the tensor with int64 indices, which hold more entries"
            raise InputError(
                f"the offsets of `{name}` must rise from 0 to the number of entries, "
                f"{values.numel()}, but do not; {remedy}."
            )
        rows = torch.arange(tensor.shape[0], device=values.device)
        owners = rows.repeat_interleave(offsets.long().diff())
        return (owners, others, values) if by_rows else (others, owners, values)
    if tensor.layout != torch.sparse_coo or tensor.sparse_dim() != 2:
        owner = name if name.isidentifier() else ""
        raise InputError(
            f"`{name}` must be dense, or sparse in both dimensions with layout csr, csc or coo, "
            f"but has layout {tensor.layout}; convert it with {owner}.to_dense().to_sparse_csr()."
        )
    # indices() and values() would require coalesced entries, with those at one place added up.
    sources, targets = tensor._indices()
    return sources, targets, tensor._values()


def _check_entries(
    n: int, sources: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
) -> None:
    """Refuse an end that is no vertex, and a weight that is neither a number of the dtype nor
    no_edge.
    """
    limit = no_edge(weights.dtype)
    floating = weights.is_floating_point()
    lowest = torch.finfo(weights.dtype).min if floating else -limit
    if sources.device.type == "cpu":
        from tri_apsp.kernels.cpu.edge_lists import first_wrong  # see canonical

        values = weights.numpy()
        bounds = values.dtype.type(lowest), values.dtype.type(limit)
        place = int(first_wrong(n, sources.numpy(), targets.numpy(), values, *bounds))
    else:
        wrong = (sources < 0) | (sources >= n) | (targets < 0) | (targets >= n)
        wrong |= ~((weights >= lowest) & (weights <= limit))
        place = int(wrong.nonzero()[0]) if bool(wrong.any()) else -1
    if place < 0:
        return
    source, target, weight = (x[place].item() for x in (sources, targets, weights))
    if not (0 <= source < n and 0 <= target < n):
        raise outside_error(n, int(source), int(target))
    if floating:
        raise invalid_weight(weight, int(source), int(target))
    raise InputError(
        f"weights of {dtype_name(weights.dtype)} must lie in [-{limit}, {limit}], but `graph` "
        f"has {weight} from {source} to {target}; {remedy_beyond(weights.dtype)}."
    )


def _cast(weights: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return checked weights in another dtype."""
    if weights.dtype == dtype:
        return weights
    cast = Cast(dtype)
    result = cast(weights)
    cast.warn()
    return result


def canonical(
    n: int,
    sources: torch.Tensor,
    targets: torch.Tensor,
    weights: torch.Tensor,
    rows: torch.Tensor | None = None,
) -> SparseGraph:
    """Return the graph of edges in any order: `sources` and `targets` in [0, n), of int64 on a GPU;
    `weights` checked; `rows` as EdgeLists has them.
    """
    if weights.device.type == "cpu":
        from tri_apsp.kernels.cpu.edge_lists import kept_edges, lists_by  # Numba: half a second

        values = weights.numpy()
        missing = values.dtype.type(no_edge(weights.dtype))
        heads, tails, places, in_order = kept_edges(
            sources.numpy(), targets.numpy(), values, missing
        )
        if in_order:
            offsets = np.concatenate(([0], np.bincount(heads, minlength=n).cumsum()))
        else:
            offsets, tails, places = _transposed(*lists_by(n, tails, heads, places))
            offsets, tails, places = _lightest(offsets, tails, places, values)
        lists = EdgeLists(*_of_arrays((offsets, tails, values[places])))
        return SparseGraph(n, replace(lists, rows=None if rows is None else rows[places]))
    kept = (weights < no_edge(weights.dtype)) & ((sources != targets) | (weights < 0))
    place = kept.nonzero().flatten()
    keys = (sources * n + targets)[place]
    if not bool((keys[1:] > keys[:-1]).all()):
        order = weights[place].sort(stable=True).indices  # the lightest, then the first, is kept
        order = order[keys[order].sort(stable=True).indices]
        keys, place = keys[order], place[order]
        is_first = torch.ones_like(keys, dtype=torch.bool)
        torch.ne(keys[1:], keys[:-1], out=is_first[1:])
        keys, place = keys[is_first], place[is_first]
    sources = keys.div(max(n, 1), rounding_mode="floor")
    targets = (keys - sources * n).to(torch.int32)
    lists = EdgeLists(_offsets(torch.bincount(sources, minlength=n)), targets, weights[place])
    return SparseGraph(n, replace(lists, rows=None if rows is None else rows[place.cpu()]))


def _transposed(offsets: Array, vertices: Array, places: Array) -> tuple[Array, Array, Array]:
    """Return the lists of the same edges at their other ends, in the order of these: offsets,
    vertices and places.
    """
    from tri_apsp.kernels.cpu.edge_lists import lists_by  # see canonical

    n = len(offsets) - 1
    owners = np.repeat(np.arange(n, dtype=np.int32), np.diff(offsets))
    found: tuple[Array, Array, Array] = lists_by(n, vertices, owners, places)
    return found


def _lightest(
    offsets: Array, vertices: Array, places: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Return ascending lists with the lightest of parallel edges, of several the first.

    Args:
        places: of the edges in `weights`; ascending for parallel ones.
    """
    is_first = np.ones(len(vertices), np.bool_)
    np.not_equal(vertices[1:], vertices[:-1], out=is_first[1:])
    is_first[offsets[:-1][offsets[:-1] < offsets[1:]]] = True
    if is_first.all():
        return offsets, vertices, places
    first, values = np.flatnonzero(is_first), weights[places]
    least = np.minimum.reduceat(values, first)
    group = is_first.cumsum() - 1
    lightest = np.flatnonzero(values == least[group])
    lightest = lightest[np.unique(group[lightest], return_index=True)[1]]
    return np.searchsorted(first, offsets), vertices[first], places[lightest]


def _of_arrays(arrays: Iterable[npt.NDArray[Any]]) -> Iterator[torch.Tensor]:
    return map(torch.from_numpy, arrays)


def _offsets(counts: torch.Tensor) -> torch.Tensor:
    return torch.cat((counts.new_zeros(1), counts.cumsum(0)))
