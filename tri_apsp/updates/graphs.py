"""The graph of a result, dense or sparse, and the edges of it that get other weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import torch

from tri_apsp.arguments import check_flags, check_tensor, check_weights, sources_of
from tri_apsp.elimination.prepared import PreparedGraph
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs import DenseGraph
from tri_apsp.graphs.sparse import (
    EdgeLists,
    SparseGraph,
    changed_edges,
    is_sparse,
    sparse_graph,
)
from tri_apsp.messages import shown
from tri_apsp.result import Result
from tri_apsp.semirings import dtype_name, largest_distance, no_edge
from tri_apsp.value_range import largest_magnitude

# Edges of one pass over the distances, which takes as long as a product of this depth.
_DEPTH = 32
# The share of pairs with an edge from which on dense weights are their own lists of edges.
_MOST_LISTED = 1 / 16


class Lists(NamedTuple):
    """All edges by destination and by source, with weights of their own; and the places of some
    edges in both.
    """

    by_destination: EdgeLists
    by_source: EdgeLists
    in_places: torch.Tensor
    out_places: torch.Tensor

    @property
    def arrays(self) -> list[torch.Tensor]:
        """Offsets, vertices and weights of both."""
        return [x for each in self[:2] for x in (each.offsets, each.vertices, each.weights)]

    def set_weights(self, which: slice, weights: torch.Tensor) -> None:
        """Set the weights of some of the edges."""
        self.by_destination.weights[self.in_places[which]] = weights
        self.by_source.weights[self.out_places[which]] = weights


class DenseWeights:
    """Dense weights (n, n) behind the interface of SparseWeights."""

    has_order = False

    def __init__(self, weights: torch.Tensor) -> None:
        self.weights = self.given = weights
        self.n, self.dtype, self.device = len(weights), weights.dtype, weights.device

    @cached_property
    def lowest(self) -> float | int:
        """The smallest weight; 0 if none is negative."""
        return min(0, self.weights.min().item()) if self.n else 0

    @cached_property
    def largest(self) -> float | int:
        """The largest magnitude of a weight; 0 if there is none."""
        return largest_magnitude(self.weights[None]).item()

    def weights_of(self, tails: torch.Tensor, heads: torch.Tensor) -> torch.Tensor:
        """Return the weights of edges, no_edge where there is none, on the CPU."""
        return self.weights[tails.to(self.device), heads.to(self.device)].cpu()

    def edges_at(self, vertices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tails and the heads of all edges from and to some vertices."""
        touched = torch.zeros_like(self.weights, dtype=torch.bool)
        touched[vertices] = True
        touched[:, vertices] = True
        touched.fill_diagonal_(False)
        tails, heads = (touched & (self.weights < no_edge(self.dtype))).nonzero().unbind(1)
        return tails, heads

    def lists_of(self, edges: Edges) -> Lists:
        """Return all edges as lists, and the places of some of them."""
        if int((self.weights < no_edge(self.dtype)).sum()) <= _MOST_LISTED * self.n**2:
            listed = sparse_graph(self.weights)
            weights = listed.by_source.weights.to(self.dtype)
            return SparseWeights(SparseGraph.with_weights(listed, weights)).lists_of(edges)
        vertices = torch.arange(self.n, dtype=torch.int32, device=self.device).repeat(self.n)
        offsets = torch.arange(self.n + 1, device=self.device) * self.n
        into, out = (
            EdgeLists(offsets, vertices, w.flatten().clone())
            for w in (self.weights.mT, self.weights)
        )
        tails, heads = edges.tails.to(self.device), edges.heads.to(self.device)
        return Lists(into, out, heads * self.n + tails, tails * self.n + heads)

    def grown(self, n: int) -> DenseWeights:
        """Return weights (n, n) with further vertices, which have no edges."""
        return DenseWeights(_grown(self.weights, n))

    def with_edges(self, edges: Edges, *, in_place: bool = False) -> DenseWeights:
        """Return the graph with other weights of some edges."""
        changed = self.weights if in_place else self.weights.clone()
        given = edges.to(self.device)
        changed[given.tails, given.heads] = given.new
        return DenseWeights(changed)


class SparseWeights:
    """A sparse graph behind the interface of DenseWeights."""

    def __init__(self, graph: SparseGraph) -> None:
        self.graph = self.given = graph
        self.n, self.dtype, self.device = graph.n, graph.dtype, graph.device
        # Then a solve takes little time.
        self.has_order = isinstance(graph, PreparedGraph) and graph.tree is not None

    @property
    def lowest(self) -> float | int:
        return self.graph.lowest

    @property
    def largest(self) -> float | int:
        return max(self.graph.heaviest, -self.graph.lowest)

    def weights_of(self, tails: torch.Tensor, heads: torch.Tensor) -> torch.Tensor:
        places = self.graph.by_source.numbers_of(tails, heads)
        weights = self.graph.by_source.weights
        if not len(weights):
            return torch.full(places.shape, no_edge(self.dtype), dtype=self.dtype)
        found = weights[places.to(self.device)].cpu()
        return found.masked_fill_(places < 0, no_edge(self.dtype))

    def edges_at(self, vertices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ends = self.graph.by_source.owners(), self.graph.by_source.vertices.long()
        chosen = torch.isin(ends[0], vertices) | torch.isin(ends[1], vertices)
        return ends[0][chosen], ends[1][chosen]

    def lists_of(self, edges: Edges) -> Lists:
        into, out = self.graph.by_destination, self.graph.by_source
        places = torch.stack(
            (into.numbers_of(edges.heads, edges.tails), out.numbers_of(edges.tails, edges.heads))
        ).to(self.device)
        # One more weight, which belongs to no vertex: the place -1 of an edge that is not there.
        none = torch.full((1,), no_edge(self.dtype), dtype=self.dtype, device=self.device)
        own = [each.with_weights(torch.cat((each.weights, none))) for each in (into, out)]
        return Lists(own[0], own[1], places[0], places[1])

    def grown(self, n: int) -> SparseWeights:
        """Return a graph with further vertices, which have no edges, and without an order."""
        lists = self.graph.by_source
        offsets = torch.cat((lists.offsets, lists.offsets[-1:].expand(n - self.n)))
        return SparseWeights(SparseGraph(n, dataclasses.replace(lists, offsets=offsets)))

    def with_edges(self, edges: Edges, *, in_place: bool = False) -> SparseWeights:
        """Return the graph with other weights of some edges; never in place."""
        graph, tails, heads, weights = self.graph, edges.tails, edges.heads, edges.new
        if isinstance(graph, PreparedGraph):
            if not graph.has_places(tails, heads):
                graph = SparseGraph(graph.n, graph.by_source, graph.labels)
            elif not graph.directed and not _is_symmetric(edges):
                graph = dataclasses.replace(graph, directed=True)
        return SparseWeights(graph.with_edges(tails, heads, weights))


HeldGraph: TypeAlias = DenseWeights | SparseWeights


@dataclass(frozen=True)
class Edges:
    """Edges that get other weights, each once.

    Attributes:
        tails, heads: (edges,) of int64, their ends.
        old, new: (edges,), their weights; no_edge before they open, and after they close.
    """

    tails: torch.Tensor
    heads: torch.Tensor
    old: torch.Tensor
    new: torch.Tensor

    def __len__(self) -> int:
        return self.new.numel()

    def chosen(self, which: torch.Tensor | slice) -> Edges:
        return Edges(self.tails[which], self.heads[which], self.old[which], self.new[which])

    def to(self, device: torch.device) -> Edges:
        return Edges(*(x.to(device) for x in (self.tails, self.heads, self.old, self.new)))

    @cached_property
    def raised(self) -> Edges:
        """Those that rise or close."""
        return self.chosen(self.new > self.old)

    @cached_property
    def lowered(self) -> Edges:
        """Those that fall or open."""
        return self.chosen(self.new < self.old)


def _is_symmetric(edges: Edges) -> bool:
    """Return whether each edge gets its weight in both directions."""
    found = set(zip(edges.tails.tolist(), edges.heads.tolist(), edges.new.tolist(), strict=True))
    return found == {(v, u, weight) for u, v, weight in found}


def steps_of(edges: Edges) -> list[tuple[int | None, Edges]]:
    """Return the edges of each pass over the distances, and the vertex that they have in common;
    None: they are few.
    """
    steps = list[tuple[int | None, Edges]]()
    while len(edges) > _DEPTH:
        vertex, count = torch.bincount(torch.cat((edges.tails, edges.heads))).max(0)[::-1]
        if int(count) <= _DEPTH:
            break
        touches = (edges.tails == vertex) | (edges.heads == vertex)
        steps.append((int(vertex), edges.chosen(touches)))
        edges = edges.chosen(~touches)
    parts = range(0, len(edges), _DEPTH)
    return steps + [(None, edges.chosen(slice(i, i + _DEPTH))) for i in parts]


def sums_fit(graph: HeldGraph, edges: Edges) -> bool:
    """Return whether the dtype holds the weight of any path, also along some new edges."""
    new = edges.new[edges.new < no_edge(graph.dtype)].abs().tolist()
    return bool(graph.n * max([graph.largest, *new]) <= largest_distance(graph.dtype))


@dataclass(frozen=True)
class Held:
    """The graph of a result, on its device; of a batch, each of them.

    Attributes:
        graphs: one after another.
        batch: the dense weights of a batch, of which these are parts; else None.
    """

    graphs: list[HeldGraph]
    batch: torch.Tensor | None = None

    def grown(self, n: int) -> Held:
        """Return the graphs with further vertices, which have no edges."""
        if self.batch is None:
            return Held([one.grown(n) for one in self.graphs])
        batch = _grown(self.batch, n)
        return Held([DenseWeights(one) for one in batch], batch)

    def sets_of(self, edges: Any, weights: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the edges and the weights of each graph, which may be the same for all."""
        if self.batch is None:
            return [edges], [weights]
        count, sets = len(self.graphs), list[Sequence[Any]]()
        for name, values, rank in (("edges", edges, 3), ("weights", weights, 2)):
            try:
                shape = torch.as_tensor(values).shape
            except (TypeError, ValueError, RuntimeError):
                raise InputError(
                    f"`{name}` must be the same for all graphs, or as many for each, but are not; "
                    "call `update` for each graph."
                ) from None
            if len(shape) == rank and shape[0] != count:
                raise InputError(
                    f"`{name}` must be the same for all graphs, or one set for each of the "
                    f"{count}, but are {shape[0]} sets; give as many."
                )
            sets.append(values if len(shape) == rank else [values] * count)
        return sets[0], sets[1]

    def with_changes(self, changes: Sequence[Edges], *, in_place: bool) -> Any:
        """Return the changed graph or batch; `in_place`: dense weights in their own memory."""
        changed = [
            one.with_edges(edges, in_place=in_place)
            for one, edges in zip(self.graphs, changes, strict=True)
        ]
        if self.batch is None:
            return changed[0].given
        given = [one.given for one in changed if isinstance(one, DenseWeights)]
        return self.batch if in_place or not given else torch.stack(given)


def held_graphs(result: Result, graph: Any, *, in_place: bool = False) -> Held:
    """Return the graph of a result of all pairs; `in_place`: dense weights in their own memory.

    Raises:
        InputError: the result is another, or not of such a graph; weights that differ by direction
            cannot change in place with a result of directed=False.
    """
    if not isinstance(result, Result):
        raise InputTypeError(
            f"`result` must be what shortest_paths returned, but is {shown(result)}; give that."
        )
    solve = "solve for all pairs"
    wrong = {
        "rows of chosen sources": (result.sources is not None or result.nearest is not None, solve),
        "columns of chosen targets": (result.targets is not None, solve),
        "blocks on several devices": (bool(result.blocks), "give `out` to the solve"),
        f"paths over {result.semiring}": (result.semiring != "min_plus", "call its function anew"),
        "a negative cycle": (result.negative_cycle is not None, "solve the changed graph"),
    }
    for what, (is_so, remedy) in wrong.items():
        if is_so:
            raise InputError(
                f"`result` must have the shortest distances of all pairs, but has {what}; {remedy}."
            )
    d, shape = result.distances, tuple[int, ...]()
    if d.requires_grad:
        raise InputError(
            "`result` must not require a gradient, which this function does not have, but does; "
            "solve graph.detach()."
        )
    if is_sparse(graph) or hasattr(graph, "restriction"):
        given = sparse_graph(graph, device=d.device)
        given = given if result.directed else given.both_ways()
        held, shape, dtype = Held([SparseWeights(given)]), (given.n, given.n), given.dtype
    else:
        graph = check_tensor(graph.weights if isinstance(graph, DenseGraph) else graph, "graph")
        batch = check_weights(graph.detach() if graph.requires_grad else graph)
        weights, dtype = batch.weights.to(d.device), batch.weights.dtype
        if not result.directed and not torch.equal(weights, weights.mT):
            if in_place:
                raise InputError(
                    "`graph` must be symmetric with `in_place` and a result of directed=False, but "
                    "is not; give torch.minimum(graph, graph.mT)."
                )
            weights = torch.minimum(weights, weights.mT)
        parts: list[HeldGraph] = [DenseWeights(one) for one in weights]
        held = Held(parts, weights if batch.batched else None)
        shape = tuple(weights.shape if batch.batched else weights.shape[1:])
    if shape != tuple(d.shape) or dtype != d.dtype:
        raise InputError(
            f"`graph` must be that of the result, whose distances are {tuple(d.shape)} of "
            f"{dtype_name(d.dtype)}, but is {shape} of {dtype_name(dtype)}; give the graph that "
            "was solved, in that dtype."
        )
    return held


def direction_of(result: Result, graph: Any, directed: bool | None) -> bool:
    """Return whether edges change in one direction only; None: if the result, and a prepared graph,
    are directed.
    """
    if directed is None:
        return result.directed and getattr(graph, "directed", True)
    check_flags(directed=directed)
    if directed and not result.directed:
        raise InputError(
            "`directed` must not be True for a result of directed=False, whose edges have both "
            "directions, but is; leave it out."
        )
    return directed


def changes_of(graph: HeldGraph, edges: Any, weights: Any, closed: Any, *, directed: bool) -> Edges:
    """Return the edges that get other weights, and both their weights, on the CPU.

    Args:
        closed: vertices all of whose edges close.
    """
    none = no_edge(graph.dtype)
    tails, heads, new = changed_edges(graph.n, edges, weights, dtype=graph.dtype, directed=directed)
    vertices = sources_of(closed, graph.n, "closed", least=0)
    if len(vertices):
        touches = torch.isin(tails, vertices) | torch.isin(heads, vertices)
        if bool((touches & (new < none)).any()):
            wrong = int(touches.nonzero()[0])
            raise InputError(
                "`edges` must not have an open edge of a closed vertex, but one is "
                f"({int(tails[wrong])}, {int(heads[wrong])}); leave it out."
            )
        more = [x.cpu() for x in graph.edges_at(vertices.to(graph.device))]
        kept = ~touches
        tails, heads = torch.cat((tails[kept], more[0])), torch.cat((heads[kept], more[1]))
        new = torch.cat((new[kept], new.new_full((len(tails) - int(kept.sum()),), none)))
    return Edges(tails, heads, graph.weights_of(tails, heads), new)


def grown_result(result: Result, n: int) -> Result:
    """Return the result of a graph with further vertices, which have no edges."""
    if result.labels is not None and not isinstance(result.labels, range):
        raise InputError(
            "`vertices` must be left out for a graph whose vertices have names, but is given; "
            "prepare the graph with its new vertices."
        )
    distances, pred = _grown(result.distances, n), result.predecessors
    if pred is not None:
        given, old = pred, pred.shape[-1]
        pred = given.new_full(distances.shape, -1)
        pred[..., :old, :old] = given
    labels = None if result.labels is None else range(n)
    return dataclasses.replace(result, distances=distances, predecessors=pred, labels=labels)


def _grown(matrix: torch.Tensor, n: int) -> torch.Tensor:
    """Return weights or distances (..., n, n) with further vertices, which have no edges."""
    old = matrix.shape[-1]
    grown = matrix.new_full((*matrix.shape[:-2], n, n), no_edge(matrix.dtype))
    grown.diagonal(dim1=-2, dim2=-1).zero_()
    grown[..., :old, :old] = matrix
    return grown
