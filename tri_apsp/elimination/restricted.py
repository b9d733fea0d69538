"""Graphs whose paths are restricted, by zones or turns: they are paths of a larger graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from tri_apsp.arguments import as_vector, check_flags
from tri_apsp.elimination.prepared import PreparedGraph, ordered
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.errors import InputError, InputTypeError, NegativeCycleError
from tri_apsp.graphs.labels import Labels
from tri_apsp.graphs.sparse import EdgeLists, GraphLike, SparseGraph, of_entries, sparse_graph
from tri_apsp.messages import shown
from tri_apsp.paths.following import Paths
from tri_apsp.result import Result
from tri_apsp.semirings import dtype_name, no_edge


@dataclass(frozen=True, eq=False)
class RestrictedGraph:
    """A graph with zones or turns, which `prepare(through=)` or `prepare(turns=)` returns. Vertices
    and edges are those of the graph that was given, in every argument and result.

    It is solved as a larger graph, in which a path from vertex v begins at starts[v], and one to v
    ends at v:

    - Of zones: the edges from a zone begin at a copy of it, so that no path leads on from it.
    - Of turns: each edge is a vertex, and each turn an edge with the weight of the edge that
      follows; the vertices are there twice more, as starts and as ends.

    Attributes:
        given: the graph without restrictions.
        inner: the larger graph, with an order of elimination where it has small separators.
        restriction: "zones" or "turns", which may be there beside zones.
        starts: (n,) of int64.
        owners: (inner.n,) of int64, the vertex at which a path is at each vertex of the larger one.
        edge_of: which edge of the graph that was prepared each edge of the larger graph travels, by
            `inner.by_source.rows`; -1: none.
        turn_costs: as edge_of, what the edge adds to that weight.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> path = torch.tensor([[0, 3, 9], [3, 0, 1], [9, 1, 0]])
        >>> graph = tri_apsp.prepare(path, through=[True, False, True])
        >>> tri_apsp.shortest_paths(graph, sources=0).distances
        tensor([[0, 3, 9]])
    """

    given: PreparedGraph
    inner: PreparedGraph
    restriction: str
    starts: torch.Tensor = field(repr=False)
    owners: torch.Tensor = field(repr=False)
    edge_of: torch.Tensor = field(repr=False)
    turn_costs: torch.Tensor = field(repr=False)
    # The edges that edge_of numbers, and the larger graph with all of them, on the CPU: other
    # weights may close some.
    _first: EdgeLists = field(repr=False)
    _whole: PreparedGraph = field(repr=False)

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self.given.n

    @property
    def edges(self) -> int:
        """The number of edges."""
        return self.given.edges

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        return self.given.dtype

    @property
    def device(self) -> torch.device:
        """Where the edges are."""
        return self.given.device

    @property
    def labels(self) -> Labels:
        """What the vertices are called."""
        return self.given.labels

    @property
    def by_source(self) -> EdgeLists:
        """The edges from each vertex; see SparseGraph."""
        return self.given.by_source

    def __str__(self) -> str:
        return f"{self.given.n} vertices with {self.restriction}, solved as\n{self.inner.summary}"

    def __getattr__(self, name: str) -> Any:
        """Say what a graph without restrictions has."""
        if not name.startswith("_") and hasattr(PreparedGraph, name):
            raise AttributeError(
                f"a graph with {self.restriction} has no {name!r}, but `given`, which is without, "
                "has."
            )
        raise AttributeError(f"a graph with restrictions has no attribute {name!r}")

    def to(self, device: torch.device) -> RestrictedGraph:
        """Return the graph on a device; itself if that is its own."""
        given, inner = self.given.to(device), self.inner.to(device)
        return self if inner is self.inner else replace(self, given=given, inner=inner)

    def reversed(self) -> RestrictedGraph:
        """Return the graph in which each edge leads the other way, with the same zones.

        Raises:
            InputError: it has turns.
        """
        if self.restriction == "turns":
            raise InputError(
                "a graph with turns cannot be reversed; prepare the reversed graph, with rows of "
                "(to, via, from, cost)."
            )
        through = self.starts == torch.arange(self.n)
        return _with_zones(self.given.reversed(), through, "auto")

    def with_weights(self, weights: Any) -> Any:
        """Return the graph with other weights, the same restrictions, and the same costs of turns:
        see PreparedGraph.with_weights.
        """
        found = self.given.with_weights(weights)
        if isinstance(found, list):
            return [self._of(each) for each in found]
        return self._of(found)

    def _of(self, given: PreparedGraph) -> RestrictedGraph:
        lists, missing = given.by_source, no_edge(given.dtype)
        weights = torch.full((len(self._first.weights),), missing, dtype=given.dtype)
        weights[self._first_numbers(lists)] = lists.weights.cpu()
        rows = self._whole.by_source.rows
        assert rows is not None
        values = _weights(weights, self.edge_of, self.turn_costs)[rows]
        inner = self._whole.with_weights(values).to(given.device)
        return replace(self, given=given, inner=inner)

    def _first_numbers(self, lists: EdgeLists) -> torch.Tensor:
        """Return the numbers of edges, as edge_of has them."""
        return self._first.numbers_of(lists.owners().cpu(), lists.vertices.cpu())

    def result(self, found: Result) -> Result:
        """Return a result with sources, predecessors and nearest as vertices of the graph; columns
        are that already.
        """
        changes: dict[str, Any] = {"edge_lists": self.by_source}
        every = torch.arange(self.n)
        if found.sources is not None:
            sources = self.owners[found.sources]
            is_whole = found.nearest is None and torch.equal(sources, every)
            changes["sources"] = None if is_whole else sources
        if found.targets is not None and torch.equal(found.targets, every):
            changes["targets"] = None
        if found.negative_cycle is not None:
            vertices = tuple(int(self.owners[v]) for v in found.negative_cycle.vertices)
            changes["negative_cycle"] = replace(found.negative_cycle, vertices=vertices)
        if found.nearest is not None:
            changes["nearest"] = self._owners(found.nearest[:, : self.n])
        if found.predecessors is not None and self.restriction == "turns":
            changes["predecessors"] = self._edges_before(found.predecessors)
        elif found.predecessors is not None:
            pred = self._owners(found.predecessors[:, : self.n])
            own = pred == torch.arange(self.n, device=pred.device)  # from the copy of a source
            changes["predecessors"] = pred.masked_fill_(own, -1)
            if found.nearest is not None:
                passed = self._passed_sources(found)
                changes["predecessors"][0, passed] = -1
                changes["nearest"][0, passed] = passed.to(pred.device)
        return replace(found, **changes)

    def _passed_sources(self, found: Result) -> torch.Tensor:
        """Return the zones of a result of `nearest` from which paths begin, though one from another
        source that is as near ends there.

        Raises:
            InputError: it may be nearer, so that no tree has both paths.
        """
        assert found.sources is not None
        assert found.predecessors is not None
        starts, pred = found.sources[found.sources >= self.n], found.predecessors[0, : self.n].cpu()
        zones = self.owners[starts]
        passed = zones[torch.isin(starts, pred) & (pred[zones] != starts)]
        if len(passed) and self.inner.lowest < 0:
            raise InputError(
                "predecessors of `nearest` must not lead on from a zone that is nearer to another "
                f"source, but those of {self.labels[int(passed[0])]} do, by negative weights; call "
                "paired_paths from Result.nearest."
            )
        return passed

    def _edges_before(self, larger: torch.Tensor) -> torch.Tensor:
        """Return the predecessors (rows, n + edges) of a result, from those of the larger graph;
        see Result.
        """
        whole = self.n + len(self._first.weights)
        found = larger[:, :whole]
        found = torch.where(found < whole, found, found.new_tensor(-1))  # not from a start
        if self.edges < len(self._first.weights):  # others are closed
            own = torch.cat((torch.arange(self.n), self.n + self._first_numbers(self.by_source)))
            numbers = torch.full((whole + 1,), -1)  # the last is of -1
            numbers[own] = torch.arange(len(own))
            found = numbers.to(found)[found[:, own.to(found.device)].long()]
        return found

    def _owners(self, vertices: torch.Tensor) -> torch.Tensor:
        """Return the owners of vertices; -1 stays."""
        owners = torch.cat((self.owners, self.owners.new_full((1,), -1))).to(vertices)
        return owners[vertices.long()]

    def paths(self, found: Paths) -> Paths:
        """Return paths of the larger graph as walks of the graph."""
        vertices = self.owners.to(found.vertices)[found.vertices.long()]
        kept = torch.ones_like(vertices, dtype=torch.bool)
        torch.ne(vertices[1:], vertices[:-1], out=kept[1:])
        begins = found.offsets[:-1][found.offsets.diff() > 0]
        kept[begins] = True
        offsets = torch.cat((found.offsets[:1], kept.cumsum(0)))[found.offsets]
        return Paths(vertices[kept], offsets, self.by_source)

    @property
    def travels(self) -> torch.Tensor:
        """Which edges of the larger graph travel one of the graph, of bool on the CPU."""
        rows = self.inner.by_source.rows
        assert rows is not None
        return self.edge_of[rows] >= 0

    def costs(self, given: torch.Tensor) -> torch.Tensor:
        """Return costs of edges, (..., edges) on the CPU, for those of the larger graph; 0 for
        those that travel none.
        """
        rows = self.inner.by_source.rows
        assert rows is not None
        of_first = given.new_zeros(*given.shape[:-1], len(self._first.weights) + 1)
        of_first[..., self._first_numbers(self.by_source)] = given
        return of_first[..., self.edge_of[rows]]  # -1 is the last

    def loads(
        self, larger: torch.Tensor, through: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loads of edges and the flow through vertices, from those of the larger graph:
        `larger` of its edges, `through` of its vertices.
        """
        lists, travels = self.inner.by_source, self.travels
        assert lists.rows is not None
        edges, owners = self.edge_of[lists.rows], lists.owners().cpu()
        loads = torch.zeros(len(self._first.weights), dtype=torch.float64)
        loads.index_add_(0, edges[travels], larger[travels])
        passing = torch.zeros(self.n, dtype=torch.float64).index_add_(0, self.owners, through)
        # What goes on to the end of a path does not pass; a start has none before it.
        ends = ~travels & (self.starts[self.owners[owners]] != owners)
        passing.index_add_(0, lists.vertices.cpu()[ends].long(), -larger[ends])
        return loads[self._first_numbers(self.by_source)], passing.clamp(min=0)


@contextmanager
def named_cycles(graph: object) -> Iterator[None]:
    """Raise the error of a negative cycle with the vertices of the graph, if that is restricted."""
    try:
        yield
    except NegativeCycleError as error:
        if not isinstance(graph, RestrictedGraph):
            raise
        vertices = [int(graph.owners[v]) for v in error.vertices]
        raise error.of_vertices(vertices, graph.labels) from None


def given_graph(graph: GraphLike | RestrictedGraph) -> SparseGraph | RestrictedGraph:
    """Return a graph for a function that takes restricted ones."""
    return graph if isinstance(graph, RestrictedGraph) else sparse_graph(graph)


def restricted(
    graph: PreparedGraph, through: Any, turns: Any, order: Any, *, u_turns: bool
) -> RestrictedGraph:
    """Return a graph with zones or turns: see tri_apsp.prepare."""
    check_flags(u_turns=u_turns)
    if not isinstance(order, str):
        raise InputError(
            "`order` must name no vertices for a graph with zones or turns, which is solved as a "
            'larger one, but does; give "auto".'
        )
    if turns is None and u_turns:
        return _with_zones(graph, through, order)
    turns = () if turns is None else turns
    return _with_turns(graph, through, turns, order, u_turns=u_turns)


def _passed(graph: PreparedGraph, through: Any) -> torch.Tensor:
    """Return `through` as a mask (n,) on the CPU.

    Raises:
        InputError: another shape.
    """
    allowed = torch.as_tensor(as_vector(through, "through"))
    if allowed.shape != (graph.n,) or allowed.dtype != torch.bool:
        raise InputError(
            f"`through` must be (n,) = ({graph.n},) of bool, True where paths may pass, but is "
            f"{shown(allowed)}; give a mask."
        )
    return allowed.cpu()


def _with_zones(graph: PreparedGraph, through: Any, order: str) -> RestrictedGraph:
    """Return the graph whose paths pass through a vertex only where `through` (n,) of bool says
    so.
    """
    zones, lists, n = (~_passed(graph, through)).nonzero().flatten(), graph.by_source, graph.n
    starts = torch.arange(n)
    starts[zones] = torch.arange(n, n + len(zones))
    tails, heads, places = starts[lists.owners().cpu()], lists.vertices.cpu().long(), len(zones)
    ends = torch.cat((tails, starts[zones])), torch.cat((heads, zones))
    edge_of = torch.cat((torch.arange(graph.edges), torch.full((places,), -1)))
    owners = torch.cat((torch.arange(n), zones))
    costs = torch.zeros(len(edge_of), dtype=torch.float64)
    return _restricted(graph, "zones", order, ends, (starts, owners, edge_of, costs))


def _with_turns(
    graph: PreparedGraph, through: Any, turns: Any, order: str, *, u_turns: bool
) -> RestrictedGraph:
    """Return the graph in which turns from an edge to the next have costs.

    Args:
        through: (n,) of bool, False where all turns are forbidden; None: nowhere.
        turns: rows of (from, via, to, cost), as an array, a tensor, a list or a DataFrame.
        u_turns: whether turns back to `from` are allowed where no row names them.

    Raises:
        InputError: rows of another shape; a turn without its edges, or twice; a cost that is no
            number, or minus infinity.
    """
    n, edges = graph.n, graph.edges
    vertices, costs = _turn_rows(turns, graph)
    lists = graph.by_source
    offsets, heads, tails = lists.offsets.cpu(), lists.vertices.cpu().long(), lists.owners().cpu()
    # Every turn: from edge `before` to edge `after`; the turns of an edge begin at `begins`.
    counts = offsets.diff()[heads]
    begins = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    before = torch.arange(edges).repeat_interleave(counts)
    after = offsets[:-1][heads][before] + torch.arange(len(before)) - begins[before]
    added = torch.zeros(len(before), dtype=torch.float64)
    allowed = torch.ones(len(before), dtype=torch.bool)
    if not u_turns:
        allowed = heads[after] != tails[before]
    into, out = (
        lists.numbers_of(*(x.to(graph.device) for x in ends)).cpu()
        for ends in (vertices[:2], vertices[1:])
    )
    missing = (into < 0) | (out < 0)
    if bool(missing.any()):
        wrong = int(missing.nonzero()[0])
        names = [graph.labels[v] for v in vertices[:, wrong].tolist()]
        raise InputError(
            "each row of `turns` must follow two edges, but the graph lacks one of those from "
            f"{names[0]} to {names[1]} and from {names[1]} to {names[2]}; correct the row."
        )
    place = begins[into] + out - offsets[vertices[1]]
    first = np.unique(place.numpy(), return_index=True)[1]
    if len(first) < len(place):
        wrong = np.setdiff1d(np.arange(len(place)), first)[0]
        names = [graph.labels[v] for v in vertices[:, wrong].tolist()]
        raise InputError(
            f"`turns` must name each turn once, but have {names} twice; leave one row out."
        )
    allowed[place] = costs < np.inf
    added[place] = costs
    if through is not None:
        allowed &= _passed(graph, through)[heads[before]]
    before, after, added = before[allowed], after[allowed], added[allowed]
    every, numbers = torch.arange(n), torch.arange(edges)
    # Ends are 0 to n, then edges, then starts.
    ends = (
        torch.cat((n + edges + tails, n + before, n + numbers, n + edges + every)),
        torch.cat((n + numbers, n + after, heads, every)),
    )
    none = torch.full((edges + n,), -1)
    edge_of = torch.cat((numbers, after, none))
    turn_costs = torch.cat((added.new_zeros(edges), added, added.new_zeros(edges + n)))
    owners = torch.cat((every, heads, every))
    maps = n + edges + every, owners, edge_of, turn_costs
    return _restricted(graph, "turns", order, ends, maps)


def _turn_rows(turns: Any, graph: SparseGraph) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the vertices (3, rows) of turns, and their costs as float64."""
    turns = turns.detach().cpu() if isinstance(turns, torch.Tensor) else turns
    try:
        rows: Array = np.asarray(turns, np.float64)
    except (TypeError, ValueError, OverflowError):
        rows = np.empty(1)
    rows = rows.reshape(-1, 4) if not rows.size else rows
    if rows.ndim != 2 or rows.shape[1] != 4:
        raise InputTypeError(
            "`turns` must be rows of four numbers, (from, via, to, cost), but are "
            f"{shown(turns)}; give an array (rows, 4)."
        )
    vertices, costs = rows[:, :3], rows[:, 3]
    is_vertex = (vertices >= 0) & (vertices < graph.n) & (np.floor(vertices) == vertices)
    for valid, values, rule in (
        (is_vertex, vertices, f"vertices of `turns` must be numbers in [0, {graph.n}), not labels"),
        (costs > -np.inf, costs, "costs of `turns` must be numbers, or inf"),
    ):
        if not valid.all():
            raise InputError(f"{rule}, but one is {values[~valid][0]:g}; correct the row.")
    return torch.from_numpy(vertices.T.astype(np.int64)), torch.from_numpy(costs)


def _weights(weights: torch.Tensor, edge_of: torch.Tensor, costs: torch.Tensor) -> torch.Tensor:
    """Return the weights of the edges of a larger graph, in the order in which it was made.

    Raises:
        InputError: a sum of a weight and a cost does not fit the dtype of the weights.
    """
    missing, dtype = no_edge(weights.dtype), weights.dtype
    own = torch.cat((weights, weights.new_zeros(1)))[edge_of]  # -1 is the last
    is_edge = own != missing
    if dtype.is_floating_point:
        wrong = (own.double() + costs).abs() > torch.finfo(dtype).max
    else:  # float64 would round sums of int64
        wrong = (own.long() + costs.clamp(-(2.0**62), 2.0**62).long()).abs() >= missing
        wrong |= costs != costs.round()
    wrong &= is_edge
    if bool(wrong.any()):
        raise InputError(
            "the cost of a turn, also with the weight of the edge that follows, must fit "
            f"{dtype_name(dtype)}, but one is {costs[wrong][0].item():g}; correct it, or convert "
            "the weights."
        )
    return torch.where(is_edge, own + costs.to(dtype), own)


def _restricted(
    graph: PreparedGraph,
    restriction: str,
    order: str,
    ends: tuple[torch.Tensor, torch.Tensor],
    maps: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
) -> RestrictedGraph:
    _, owners, edge_of, costs = maps
    weights = _weights(graph.by_source.weights.cpu(), edge_of, costs)
    rows, cpu = torch.arange(len(weights)), torch.device("cpu")
    larger = of_entries(len(owners), *ends, weights, device=cpu, rows=rows)
    whole = ordered(larger, order)
    inner, first = whole.to(graph.device), graph.to(cpu).by_source
    return RestrictedGraph(graph, inner, restriction, *maps, first, whole)
