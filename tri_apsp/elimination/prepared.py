"""A graph with an order of elimination, found once and used for many weights and calls."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.arguments import as_vector, check_dtype, check_flags
from tri_apsp.device import resolve
from tri_apsp.elimination.base import Sweeps
from tri_apsp.elimination.dissection import nested_dissection
from tri_apsp.elimination.tree import (
    EliminationTree,
    elimination_tree,
    symmetric_structure,
)
from tri_apsp.elimination.weights import Elimination, customize
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.gpu.launcher import has_triton, start_triton
from tri_apsp.graphs.arrays import PREPARED_KEY
from tri_apsp.graphs.files import open_output
from tri_apsp.graphs.labels import Ids, Labels
from tri_apsp.graphs.sparse import (
    SPARSE_DTYPES,
    EdgeLists,
    SparseGraph,
    are_lists,
    changed_edges,
    is_sparse,
    of_entries,
    sparse_graph,
)
from tri_apsp.messages import counted, parsing, shown
from tri_apsp.semirings import dtype_name, largest_distance, no_edge

# The most edges per vertex of the filled graph, of which dissection returns a lower bound. The
# roads of Luxembourg have 2, a triangulation of 65 536 points 25, a grid of 316 x 316 28; random
# graphs of 4 edges at each vertex have thousands.
_MOST_FILL = 32
LEAST_LEVELS = 27
"""From this many levels of a breadth-first search on, numbers of edges are found by elimination."""
# More changes than these, and than this share of the filled edges, take longer than setting all
# weights anew: 256 of 60 563 take 6 ms, all 1.6; 1024 of 2 126 877 take 190 ms, all 95.
_FEW_CHANGES, _CHANGED_SHARE = 64, 1 / 4096
# Written into files; another version is refused.
_VERSION = 1
# The arrays of a file, with the kinds of dtypes and the dimensions that they may have.
_PARTS = {
    "offsets": ("i", 1),
    "vertices": ("i", 1),
    "weights": ("if", 1),
    "kind_of_labels": ("U", 0),
    "labels": ("iU", 1),
    "has_order": ("b", 0),
    "order": ("i", 1),
    "directed": ("b", 0),
    "reason": ("U", 0),
    "rows": ("i", 1),
}
_NO_SEPARATORS = "it has no small separators, as road networks have"


@dataclass(frozen=True, eq=False)
class PreparedGraph(SparseGraph):
    """A sparse graph that is converted once for many calls, and has an order of elimination where
    it has small separators, as road networks, grids and meshes have. `prepare` returns it; all
    functions take it as a graph.

    Attributes:
        directed: whether it was prepared as it is; False: with each edge in both directions.
        tree: the elimination tree of the order; None without one.
        reason: why there is an order, or none.
        weight_indices: where the weight of each edge goes in the filled graph; None without an
            order.

    Examples:
        >>> import tri_apsp
        >>> roads = tri_apsp.prepare(tri_apsp.graphs.generate("roads", 1000, seed=1))
        >>> busy = roads.with_weights(2 * roads.by_source.weights)
        >>> near, far = (tri_apsp.shortest_paths(g, sources=0).distances for g in (roads, busy))
        >>> bool((2 * near == far).all())
        True
    """

    directed: bool = True
    tree: EliminationTree | None = None
    reason: str = ""
    weight_indices: Array | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.summary

    @property
    def summary(self) -> str:
        """Size, order, fill-in, height and live slots, and what they mean for queries, as lines."""
        lines = [f"{counted(self.n, 'vertex', 'vertices')}, {counted(self.edges, 'edge')}"]
        tree = self.tree
        if tree is None:
            return "\n".join([*lines, f"no order of elimination: {self.reason}"])
        height, live = f"height {tree.height}", counted(tree.slot_count, "live slot")
        filled = f"{tree.edges / max(1, self.n):.1f} filled edges per vertex"
        lines += [f"order of elimination: {self.reason}", f"{filled}, {height}, {live}"]
        usable = "rows, tables, pairs and measures by elimination"
        if self._elimination is None:
            usable = "these weights are solved by other methods: a negative cycle, or large sums"
        return "\n".join([*lines, usable])

    @cached_property
    def _elimination(self) -> Elimination | None:
        if self.tree is None or self.weight_indices is None:
            return None
        return customize(self.tree, self.in_sums_dtype(), self.weight_indices)

    @cached_property
    def sweeps(self) -> Sweeps | None:
        """Distances by elimination with these weights, in sums_dtype; None without an order, or
        where they would not be exact: see customize.
        """
        elimination = self._elimination
        if elimination is None:
            return None
        if self.device.type == "cpu":
            from tri_apsp.elimination.cpu import CpuSweeps

            return CpuSweeps(elimination)
        engines.choose(self.device)  # which raises if no kernel can run
        from tri_apsp.elimination.gpu import GpuSweeps

        return GpuSweeps(elimination, self.device)

    @cached_property
    def unweighted(self) -> PreparedGraph:
        """The graph with weights of 1, as int32."""
        ends = self.by_source.owners(), self.by_source.vertices.long()
        ones = torch.ones_like(self.by_source.weights, dtype=torch.int32)
        rows = self.by_source.rows
        return self._of(of_entries(self.n, *ends, ones, device=self.device, rows=rows))

    @cached_property
    def has_long_hops(self) -> bool:
        """Whether a breadth-first search has many levels."""
        return len(search_levels(self, LEAST_LEVELS)) > LEAST_LEVELS

    def both_ways(self) -> PreparedGraph:
        """Return the graph in which each edge counts in both directions, with the same order."""
        return replace(self._with_edges_of(super().both_ways()), directed=False)

    def reversed(self) -> PreparedGraph:
        """Return the graph in which each edge leads the other way, with the same order."""
        return self._with_edges_of(super().reversed())

    def _with_edges_of(self, graph: SparseGraph) -> PreparedGraph:
        """Return a graph whose edges the filled graph has, with the same order."""
        indices = None
        if self.tree is not None:
            indices = self.tree.weight_indices_of(graph.to(torch.device("cpu")))
        return replace(self, by_source=graph.by_source, weight_indices=indices)

    def without_isolated(self) -> tuple[SparseGraph, torch.Tensor]:
        """Return the graph of the vertices that have an edge, and these; with an order, the whole
        graph and all vertices, since those without an edge take no time to sweep.
        """
        if self.tree is None:
            return super().without_isolated()
        return self, torch.arange(self.n, device=self.device)

    def to(self, device: torch.device) -> PreparedGraph:
        """Return the graph on a device; itself if that is its own."""
        moved = super().to(device)
        return self if moved is self else replace(self, by_source=moved.by_source)

    def with_weights(self, weights: Any) -> Any:
        """Return the graph with the same edges of other weights, and the same order.

        Args:
            weights: (edges,), in the order of `by_source`, of float32, float64, int32 or int64:
                inf, or no_edge of integers, closes an edge; or (batch, edges); or a sparse graph
                whose edges are among those of this one, which closes the others. For other weights
                of a few edges see with_changes.

        Returns:
            A PreparedGraph; for a batch, a list of them.

        Raises:
            InputError: weights of another structure, NaN, minus infinity.

        Cost:
            The first call that uses them sets the weights of the filled graph: one operation for
            each of its triangles, 10 ms for the 114 599 vertices of Luxembourg.

        Examples:
            >>> import torch
            >>> import tri_apsp
            >>> graph = tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]]))
            >>> slow = graph.with_weights(2 * graph.by_source.weights)
            >>> tri_apsp.shortest_paths(slow, sources=0).distances
            tensor([[0, 6, 8]])
        """
        if is_sparse(weights):
            given = sparse_graph(weights, device=self.device)
            if not isinstance(given.labels, range) and given.labels != self.labels:
                raise InputError(
                    "`weights` must have the vertices of the prepared graph, but the labels of "
                    "some differ; prepare that graph."
                )
            return self._of(given if self.directed else given.both_ways())
        weights = as_vector(weights, "weights")
        is_tensor = isinstance(weights, torch.Tensor)
        try:
            values = torch.as_tensor(weights, dtype=None if is_tensor else self.dtype).detach()
        except (TypeError, ValueError, RuntimeError):
            raise InputTypeError(
                "`weights` must be numbers, one for each edge, or a sparse graph, but are "
                f"{shown(weights)}; give a tensor, an array or a list."
            ) from None
        if values.ndim == 2:
            return [self.with_weights(one) for one in values]
        if values.shape != (self.edges,):
            raise InputError(
                f"`weights` must have one weight for each of the {self.edges} edges, but have "
                f"shape {tuple(values.shape)}; give them in the order of by_source, or as a sparse "
                "graph."
            )
        check_dtype(values, "weights", SPARSE_DTYPES)
        ends = self.by_source.owners(), self.by_source.vertices.long()
        values, rows = values.to(self.device), self.by_source.rows
        return self._of(of_entries(self.n, *ends, values, device=self.device, rows=rows))

    def with_changes(self, edges: Any, weights: Any, *, in_place: bool = False) -> PreparedGraph:
        """Return the graph with other weights of some edges, and the same order. Only the weights
        of the filled graph above these edges are set again.

        Args:
            edges: (edges, 2), vertices; in a graph that was prepared with directed=False, both
                directions change. An edge that was closed before may be given again; without an
                order, any edge.
            weights: (edges,), which the dtype of the graph must hold: inf, or no_edge of integers,
                closes an edge.
            in_place: change this graph, and return it: without a copy of all weights, which takes
                longer than the change. Graphs that were made of this one before, such as by
                with_order, must not be used after that; the one that it was made of may.

        Returns:
            A PreparedGraph.

        Raises:
            InputError: an edge that the order of the graph has no place for, or that is given
                twice; another shape; NaN, minus infinity, fractions for integers.
            DistanceRangeError: a weight that the dtype cannot hold.

        Cost:
            In place the triangles of the filled graph at the edges whose weight changes there: less
            than 1 ms for an edge of a million vertices of roads; the first time a copy of the
            weights of all edges. Closing edges, and opening them again, also copies and sorts the
            lists of edges: 0.1 and 0.3 s. With negative weights before or after, or many edges, the
            next call that needs them sets all weights, as with_weights has it.

        Source:
            Dibbelt, Strasser, Wagner, Customizable Contraction Hierarchies, 2016, section 7:
            partial updates.

        Examples:
            >>> import torch
            >>> import tri_apsp
            >>> graph = tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]]))
            >>> jam = graph.with_changes([(1, 2)], [5])
            >>> tri_apsp.shortest_paths(jam, sources=0).distances
            tensor([[0, 3, 8]])
        """
        check_flags(in_place=in_place)
        found = changed_edges(self.n, edges, weights, dtype=self.dtype, directed=self.directed)
        if not in_place:
            return self.with_edges(*found)
        # At first another graph may have the same weights, such as that which was prepared.
        changed = self.with_edges(*found, in_place=self.__dict__.get("_owner") == id(self))
        self.__dict__.clear()
        self.__dict__.update(changed.__dict__, _owner=id(self))
        return self

    def has_places(self, tails: torch.Tensor, heads: torch.Tensor) -> bool:
        """Return whether the order has a place for these edges; without an order, any has one."""
        indices = self._places_of(tails, heads)
        return indices is None or bool((indices >= 0).all())

    def _places_of(self, tails: torch.Tensor, heads: torch.Tensor) -> Array | None:
        return None if self.tree is None else self.tree.indices_of(tails.numpy(), heads.numpy())

    def with_edges(
        self,
        tails: torch.Tensor,
        heads: torch.Tensor,
        weights: torch.Tensor,
        *,
        in_place: bool = False,
    ) -> PreparedGraph:
        """As SparseGraph.with_edges, with the same order, and without customizing anew."""
        indices = self._places_of(tails, heads)
        if indices is not None and (indices < 0).any():
            wrong = int(np.flatnonzero(indices < 0)[0])
            edge = int(tails[wrong]), int(heads[wrong])
            raise InputError(
                f"`edges` must have a place in the order of the graph, but {edge} has none; "
                "prepare the graph with that edge."
            )
        is_negative = self.lowest < 0  # before the weights change
        changed: PreparedGraph = super().with_edges(tails, heads, weights, in_place=in_place)  # type: ignore[assignment]
        if self.tree is not None and changed.by_source.vertices is not self.by_source.vertices:
            on_cpu = changed.to(torch.device("cpu"))
            changed.__dict__["weight_indices"] = self.tree.weight_indices_of(on_cpu)
        values = weights.numpy()
        if is_negative or (values < 0).any():
            return changed
        is_open = values < no_edge(self.dtype)
        changed.__dict__["lowest"] = 0
        if "farthest" in self.__dict__:  # still a bound, unless a closer one is needed
            farthest = self.farthest + sum(values[is_open].tolist())
            if not self.sums_fit or farthest <= largest_distance(self.dtype):
                changed.__dict__["farthest"] = farthest
        known = self.__dict__.get("_elimination")
        if known is None or known.dtype != dtype_name(changed.sums_dtype):
            return changed
        if len(values) > max(_FEW_CHANGES, _CHANGED_SHARE * known.tree.edges):
            return changed
        values = np.where(is_open, values, known.missing).astype(known.dtype)
        found, filled = known.with_changes(indices, values, in_place=in_place)
        changed.__dict__["_elimination"] = found
        sweeps = self.__dict__.get("sweeps")
        if in_place and sweeps is not None:
            changed.__dict__["sweeps"] = sweeps.after_changes(found, filled)
        return changed

    def _of(self, graph: SparseGraph) -> PreparedGraph:
        """Return a graph whose edges are among those of this one with the same order."""
        own, given = self.by_source, graph.by_source
        if graph.n != self.n:
            raise InputError(
                f"`weights` must be a graph of {counted(self.n, 'vertex', 'vertices')}, but have "
                f"{graph.n}; prepare that graph."
            )
        if torch.equal(given.offsets, own.offsets) and torch.equal(given.vertices, own.vertices):
            return replace(self, by_source=given)
        indices = own.numbers_of(given.owners(), given.vertices)
        if bool((indices < 0).any()):
            wrong = int((indices < 0).nonzero()[0])
            source, target = int(given.owners()[wrong]), int(given.vertices[wrong])
            raise InputError(
                "`weights` must have no edge that the prepared graph lacks, but have one from "
                f"{self.labels[source]} to {self.labels[target]}; prepare that graph."
            )
        kept = None if self.weight_indices is None else self.weight_indices[indices.cpu().numpy()]
        return replace(self, by_source=given, weight_indices=kept)

    def with_order(self, order: str | Sequence[int] | torch.Tensor) -> PreparedGraph:
        """Return the graph with another order of elimination: see prepare."""
        return ordered(self, order, directed=self.directed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write edges, weights, labels and order to a file.

        Args:
            path: ends in .npz.

        Raises:
            InputError: another ending; it cannot be written.

        Examples:
            >>> import pathlib
            >>> import torch
            >>> import tri_apsp
            >>> graph = tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]]))
            >>> graph.save("prepared.npz")
            >>> tri_apsp.PreparedGraph.load("prepared.npz").edges
            6
            >>> pathlib.Path("prepared.npz").unlink()
        """
        _check_ending(path)
        offsets, vertices, weights = self.by_source.arrays()
        order = np.empty(0, np.int32) if self.tree is None else self.tree.vertices[::-1]
        kind, labels = _labels_as_array(self.labels)
        arrays: dict[str, Any] = {
            PREPARED_KEY: _VERSION,
            "offsets": offsets,
            "vertices": vertices,
            "weights": weights,
            "kind_of_labels": kind,
            "labels": labels,
            "has_order": self.tree is not None,
            "order": order,
            "directed": self.directed,
            "reason": self.reason,
        }
        if self.by_source.rows is not None:
            arrays["rows"] = self.by_source.rows.numpy()
        with open_output(Path(path)) as file:
            np.savez(file, **arrays)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, device: torch.device | str | None = None
    ) -> PreparedGraph:
        """Return a graph that `save` wrote.

        Args:
            path: ends in .npz.
            device: where the edges go; None: the CPU.

        Raises:
            InputError: a file that `save` of this version did not write, or that is damaged.
            FileNotFoundError: there is none.

        Cost:
            The file is read, and the filled graph is found anew, without ordering: 50 ms for the
            114 599 vertices of Luxembourg.
        """
        _check_ending(path)
        failed = (
            f"{path} must be a file that PreparedGraph.save wrote, but is damaged or another file"
        )
        with Path(path).open("rb") as file, parsing(str(path), failed, "prepare the graph again"):
            loaded = np.load(file, allow_pickle=False)
            found = {name: loaded[name] for name in getattr(loaded, "files", ())}
            version = found.get(PREPARED_KEY)
            if (
                version is None
                or str(version) != str(_VERSION)
                or not found.keys() >= _PARTS.keys() - {"rows"}
            ):
                written = "is another file" if version is None else f"has version {version}"
                raise InputError(
                    f"{path} must be a prepared graph of version {_VERSION}, but {written}; "
                    "prepare the graph again."
                )
            found.setdefault("rows", np.empty(0, np.int64))  # which few files lack
            for name, (kinds, dimensions) in _PARTS.items():
                part = found[name]
                is_valid = part.dtype.kind in kinds and part.ndim == dimensions
                if is_valid and part.dtype.kind == "U":
                    # NumPy would convert any object to a string.
                    part.tobytes().decode("utf-32")
                if not is_valid or not part.dtype.isnative:
                    raise ValueError(f"its {name} are {part.dtype} of shape {part.shape}")
            lists = _checked_lists(path, *(found[x] for x in ("offsets", "vertices", "weights")))
            if len(found["rows"]) == len(lists.weights):
                lists = replace(lists, rows=torch.from_numpy(found["rows"].astype(np.int64)))
            labels = _labels_of_array(str(found["kind_of_labels"]), found["labels"])
            if len(labels) != len(found["offsets"]) - 1:
                raise ValueError(f"it has {counted(len(labels), 'label')}")
            graph = cls(
                len(labels),
                lists,
                labels,
                directed=bool(found["directed"]),
                reason=str(found["reason"]),
            )
            if found["has_order"]:
                tree = elimination_tree(graph, _permutation(found["order"], graph.n), graph.n**2)
                graph = _with_tree(graph, graph, tree, graph.reason)
        return graph if device is None else graph.to(resolve(device))


def _checked_lists(path: object, offsets: Array, vertices: Array, weights: Array) -> EdgeLists:
    """Return the edges of a file, which must be in the form in which a graph keeps them."""
    lists = EdgeLists(*map(torch.from_numpy, (offsets, vertices, weights)))
    if are_lists(lists.offsets, lists.vertices, lists.weights):
        n = len(offsets) - 1
        ends = lists.owners(), lists.vertices.long()
        try:
            found = of_entries(n, *ends, lists.weights, device=torch.device("cpu")).by_source
        except InputError:
            found = None
        if found is not None and torch.equal(found.vertices, lists.vertices):
            return found
    raise InputError(
        f"{path} must be a file that PreparedGraph.save wrote, but its edges are those of no "
        "graph; prepare the graph again."
    )


def _labels_as_array(labels: Labels) -> tuple[str, Array]:
    """Return the kind of labels, and an array that a file holds."""
    if isinstance(labels, range):
        return "range", np.array([labels.start, labels.stop, labels.step])
    values = labels.values if isinstance(labels, Ids) else np.array([*labels], object)
    return ("large", values.astype(str)) if values.dtype == object else ("ids", values)


def _labels_of_array(kind: str, values: Array) -> Labels:
    """Return the labels from an array that _labels_as_array made.

    Raises:
        ValueError: they do not ascend, or are of another kind.
    """
    if kind == "range":
        return range(*map(int, values))
    if kind == "large":
        values = np.array([*map(int, values)], object)
    elif kind != "ids":
        raise ValueError(f"its labels are {shown(kind)}")
    if not bool((values[1:] > values[:-1]).all()):
        raise ValueError("its labels do not ascend")
    return Ids(values)


def _check_ending(path: object) -> None:
    if not isinstance(path, (str, os.PathLike)):
        raise InputTypeError(f"`path` must be a path, but is {shown(path)}; give a file name.")
    if Path(path).suffix.lower() != ".npz":
        raise InputError(f"`path` must end in .npz, but is {Path(path).name}; name the file so.")


def ordered(graph: SparseGraph, order: Any, *, directed: bool = True) -> PreparedGraph:
    """Return a graph with an order of elimination.

    Args:
        order: "auto", where the graph has small separators; "none"; or the vertices, (n,), in the
            order of elimination.

    Raises:
        InputError: an order that is no permutation of the vertices.
    """
    lists, on_cpu = graph.by_source, graph.to(torch.device("cpu"))
    given = PreparedGraph(graph.n, lists, graph.labels, directed=directed)
    if isinstance(order, str):
        if order not in ("auto", "none"):
            raise InputError(
                f'`order` must be "auto", "none" or the vertices in an order, but is {order!r}; '
                "give one of these."
            )
        if order == "none":
            return replace(given, reason='order="none"')
        if graph.device.type == "cuda" and has_triton():
            start_triton()
        tree = _found(on_cpu)
        if tree is None:
            return replace(given, reason=_NO_SEPARATORS)
        return _with_tree(given, on_cpu, tree, "by nested dissection; the graph stays sparse")
    vertices = _permutation(order, graph.n)
    tree = elimination_tree(on_cpu, vertices, graph.n * graph.n)
    return _with_tree(given, on_cpu, tree, "as given")


def _with_tree(
    graph: PreparedGraph, on_cpu: SparseGraph, tree: EliminationTree | None, reason: str
) -> PreparedGraph:
    """Return a graph with a tree, which is not None."""
    assert tree is not None
    indices = tree.weight_indices_of(on_cpu)
    return replace(graph, tree=tree, weight_indices=indices, reason=reason)


def search_levels(graph: SparseGraph, most: int | None = None) -> Array:
    """Return the offsets (levels + 1,) of the levels among the vertices that a breadth-first search
    in both directions finds from the vertex with the most edges; [0] without edges.

    Args:
        most: the number of levels at which the search ends; None: it finds all.
    """
    from tri_apsp.kernels.cpu.sparse import search

    if not graph.edges:
        return np.zeros(1, np.int32)
    lists = *graph.by_source.arrays()[:2], *graph.by_destination.arrays()[:2]
    hub = np.diff(lists[0]).argmax()
    found: Array = search(*lists, hub, graph.n if most is None else most, graph.n)
    return found


def _found(graph: SparseGraph) -> EliminationTree | None:
    """Return the tree of an order with little fill-in, None if none is known."""
    structure = symmetric_structure(graph)
    order = nested_dissection(*structure, _MOST_FILL)
    if order is None:
        return None
    return elimination_tree(graph, order, int(2 * _MOST_FILL * graph.n), structure)


def _permutation(order: Any, n: int) -> Array:
    """Return an order of all vertices as an array."""
    try:
        vertices = np.asarray(order.cpu() if isinstance(order, torch.Tensor) else order)
    except (TypeError, ValueError):
        vertices = np.empty(0, object)
    if vertices.shape != (n,) or not (n == 0 or vertices.dtype.kind in "iu"):
        given = f"{vertices.dtype} of shape {vertices.shape}"
        raise InputError(
            f"`order` must name each of the {n} vertices once, by integers, but is {given}; give "
            "all vertices in the order of elimination."
        )
    outside = vertices[(vertices < 0) | (vertices >= n)]
    if len(outside):
        raise InputError(
            f"`order` must name vertices from 0 to {n - 1}, but names {outside[0]}; give a "
            "permutation."
        )
    if not np.array_equal(np.sort(vertices), np.arange(n)):
        counts = np.bincount(vertices, minlength=n)
        wrong = int(np.flatnonzero(counts != 1)[0])
        raise InputError(
            f"`order` must name each of the {n} vertices once, but names vertex {wrong} "
            f"{counted(int(counts[wrong]), 'time')}; give a permutation."
        )
    return vertices.astype(np.int32)
