"""Prepared graphs with changes of some edges, against graphs that are prepared anew."""

import copy
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import cases
import numpy as np
import pytest
import torch
from elimination.reference import road_grid

import tri_apsp
from tri_apsp import DistanceRangeError, InputError, PreparedGraph, no_edge, prepare
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import SparseGraph, of_entries, sparse_graph

Changes = tuple[list[tuple[int, int]], list[float]]


pytestmark = pytest.mark.slow


def cast(graph: SparseGraph, dtype: torch.dtype, scale: float = 1) -> SparseGraph:
    """The graph in a dtype; floats are rounded in every sum."""
    weights = graph.by_source.weights.double() * scale
    return graph.with_weights(weights.to(dtype))


def random_graph(n: int, seed: int, directed: bool) -> SparseGraph:
    """Six edges for each vertex, with zeros, ties and parts without a path."""
    random = np.random.default_rng(seed)
    ends = torch.from_numpy(random.integers(0, n, (2, 3 * n)))
    weights = torch.from_numpy(random.integers(0, 5, 3 * n))
    graph = of_entries(n, *ends, weights, device=torch.device("cpu"))
    return graph if directed else graph.both_ways()


def graph_of(kind: str, directed: bool) -> tuple[SparseGraph, Any]:
    """A graph, and the order in which it is prepared."""
    if kind == "roads":
        return sparse_graph(generate("roads", 150, seed=2), dtype=torch.float64), "auto"
    if kind == "grid":
        return road_grid(11, seed=3, directed=directed), "auto"
    return random_graph(40, 4, directed), np.random.default_rng(5).permutation(40)


class Edges:
    """The edges of a graph as a dict of weights, and random changes of them."""

    def __init__(self, graph: PreparedGraph, seed: int, most: float) -> None:
        lists = graph.by_source
        ends = zip(lists.owners().tolist(), lists.vertices.tolist(), strict=True)
        self.weights = dict(zip(ends, lists.weights.tolist(), strict=True))
        self.all, self.closed = [*self.weights], set[tuple[int, int]]()
        self.graph, self.random, self.most = graph, np.random.default_rng(seed), most

    def weight(self) -> float:
        """A random weight; one in three is a small integer, with ties and zeros."""
        few = self.random.random() < 1 / 3
        found = self.random.integers(0, 4) if few else self.random.random() * self.most
        is_float = self.graph.dtype.is_floating_point
        return float(found) if is_float else int(found)

    def changes(self, kind: str) -> Changes:
        """Changes of one kind, already made in the dict."""
        among = [*self.closed] if kind == "open" else self.all
        count = 1 if self.random.random() < 0.5 else int(self.random.integers(1, 15))
        places = self.random.permutation(len(among))[:count]
        edges, weights = list[tuple[int, int]](), list[float]()
        for u, v in (among[i] for i in places):
            if not self.graph.directed and (v, u) in edges:
                continue
            old, weight = self.weights.get((u, v), 0), self.weight()
            if kind == "close":
                weight = no_edge(self.graph.dtype)
            elif kind in ("raise", "cut"):
                weight = max(old, weight) if kind == "raise" else min(old, weight)
            edges.append((u, v))
            weights.append(weight)
            for edge in {(u, v)} if self.graph.directed else {(u, v), (v, u)}:
                self.weights.pop(edge, None)
                self.closed.discard(edge)
                if kind == "close":
                    self.closed.add(edge)
                else:
                    self.weights[edge] = weight
        return edges, weights

    def anew(self) -> SparseGraph:
        """The graph of these edges."""
        ends = torch.tensor([*self.weights]).reshape(-1, 2).unbind(1)
        weights = torch.tensor([*self.weights.values()], dtype=self.graph.dtype)
        return of_entries(self.graph.n, *ends, weights, device=torch.device("cpu"))


def assert_same_lists(found: SparseGraph, expected: SparseGraph) -> None:
    for a, b in (
        (found.by_source, expected.by_source),
        (found.by_destination, expected.by_destination),
    ):
        for name in ("offsets", "vertices", "weights"):
            assert torch.equal(getattr(a, name), getattr(b, name)), name


def assert_same_filled(found: PreparedGraph, expected: PreparedGraph) -> None:
    """The weights of the filled graph are the same, bit for bit."""
    a, b = found._elimination, expected._elimination
    assert a is not None
    assert b is not None
    assert found.weight_indices is not None
    assert np.array_equal(found.weight_indices, expected.weight_indices)  # type: ignore[arg-type]
    for name in ("given", "upward", "downward"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.dtype == b.dtype


def answers(graph: PreparedGraph) -> Iterator[torch.Tensor]:
    """A row, a table and pairs."""
    sources, targets = torch.arange(0, graph.n, 7), torch.arange(graph.n).flip(0)[::5]
    yield tri_apsp.shortest_paths(graph, sources=[graph.n // 2]).distances
    yield tri_apsp.shortest_paths(graph, sources=sources, targets=targets).distances
    yield tri_apsp.paired_distances(graph, sources[:5], targets[:5])


def assert_same_answers(found: PreparedGraph, expected: PreparedGraph) -> None:
    for a, b in zip(answers(found), answers(expected), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@cases.every_sparse_dtype
@pytest.mark.parametrize("kind", [pytest.param("roads", marks=pytest.mark.slow), "grid", "random"])
def test_sequences(kind: str, dtype: torch.dtype, directed: bool, in_place: bool) -> None:
    """After each of many changes, everything is as after setting all weights of the same order."""
    given, order = graph_of(kind, directed)
    given = cast(given, dtype, 0.3 if dtype.is_floating_point else 1)
    base = prepare(given, directed=directed, order=order)
    graph, edges = replace(base), Edges(base, 6, 100)
    tri_apsp.shortest_paths(graph, sources=0)  # sets the weights of the filled graph
    kinds = ["raise", "cut", "any", "close", "raise", "open", "cut", "close", "any"]
    for step, change in enumerate(kinds + kinds[:3]):
        before = None if in_place or step % 4 else [*answers(graph)]
        changed = graph.with_changes(*edges.changes(change), in_place=in_place)
        assert (changed is graph) == in_place
        assert "_elimination" in changed.__dict__, "all weights are set anew"
        assert changed.edges == len(edges.weights)
        anew = edges.anew()
        expected = base.with_weights(anew)
        assert_same_lists(changed, anew)
        assert_same_filled(changed, expected)
        if before is not None:
            for a, b in zip(before, answers(graph), strict=True):
                assert torch.equal(a, b), "the graph before changed"
        if step % 6 == 5:
            again = prepare(anew, order="none")
            for a, b, c in zip(*map(answers, (changed, expected, again)), strict=True):
                assert torch.equal(a, b)
                torch.testing.assert_close(a, c)
        graph = changed
    if not directed:
        assert graph._elimination.is_symmetric  # type: ignore[union-attr]


def grid_of_tenths(dtype: torch.dtype = torch.float64, *, directed: bool = False) -> SparseGraph:
    return cast(
        road_grid(9, seed=1, directed=directed), dtype, 0.1 if dtype.is_floating_point else 1
    )


def test_first_change_of_one_direction() -> None:
    """The weights are symmetric no more, and may become so again."""
    base = prepare(grid_of_tenths())
    for in_place in (False, True):
        graph = replace(base)
        assert graph._elimination.is_symmetric  # type: ignore[union-attr]
        for weight in (50.0, 0.05, graph.by_source.weights[0].item()):
            graph = graph.with_changes([(0, 1)], [weight], in_place=in_place)
            expected = base.with_weights(graph.by_source.weights)
            for name in ("upward", "downward"):
                found = getattr(graph._elimination, name)
                assert np.array_equal(found, getattr(expected._elimination, name))
            assert tri_apsp.paired_distances(graph, [0], [1]).item() <= weight


def test_the_graph_that_was_prepared_stays() -> None:
    """Also where a prepared graph has the memory of its weights."""
    given = grid_of_tenths()
    before = given.by_source.weights.clone()
    graph = prepare(given)
    assert graph.with_changes([(0, 1), (1, 0)], [7, 7], in_place=True) is graph
    assert torch.equal(given.by_source.weights, before)
    assert int((graph.by_source.weights != before).sum()) == 2


@pytest.mark.parametrize("closes", [False, True])
@cases.every_sparse_dtype
def test_in_place_takes_no_memory_of_all_edges(dtype: torch.dtype, closes: bool) -> None:
    graph = prepare(grid_of_tenths(dtype, directed=True))
    graph.with_changes([(0, 1)], [7], in_place=True)
    arrays = graph.by_source, graph._elimination
    assert arrays[1] is not None
    weight = no_edge(dtype) if closes else 9
    graph.with_changes([(1, 2)], [weight], in_place=True)
    assert (graph.by_source.weights.data_ptr() == arrays[0].weights.data_ptr()) != closes
    for name in ("given", "upward", "downward"):
        assert getattr(graph._elimination, name) is getattr(arrays[1], name)


CACHED = [
    name
    for one in PreparedGraph.__mro__
    for name, x in vars(one).items()
    if isinstance(x, cached_property)
]


@pytest.mark.parametrize(
    "change", [([(0, 1)], [300]), ([(0, 1), (3, 4)], [1, 2]), ([(0, 1)], [-1])]
)
@pytest.mark.parametrize("closes", [False, True])
@cases.every_sparse_dtype
def test_what_is_known_follows(dtype: torch.dtype, closes: bool, change: Changes) -> None:
    """All that a graph keeps from one call to the next, its properties and measures."""
    base = prepare(grid_of_tenths(dtype))
    graph = replace(base)
    edges, weights = change
    if closes:
        edges, weights = [*edges, (1, 2)], [*weights, no_edge(dtype)]
    assert {"lowest", "heaviest", "farthest", "by_destination", "sweeps", "unweighted"} < {*CACHED}
    for _ in range(2):  # of the graph as it was, and of one that is changed a second time
        for name in CACHED:
            getattr(graph, name)
        if graph.lowest == 0:
            tri_apsp.betweenness(graph, weighted=True)  # by flows of the sweeps
        graph.with_changes(edges, weights, in_place=True)
        anew = prepare(of_entries(graph.n, *ends_of(graph), device=graph.device))
        for name in ("lowest", "heaviest", "has_long_hops", "sums_fit", "sums_dtype"):
            assert getattr(graph, name) == getattr(anew, name), name
        assert_same_lists(graph, anew)
        assert torch.equal(graph._transposition.weights, anew._transposition.weights)
        assert_same_lists(graph.unweighted, anew.unweighted)
        assert (graph.sweeps is None) == (anew.sweeps is None)
        assert (graph.on_grid is None) == (anew.on_grid is None)
        if graph.lowest == 0:
            assert graph.on_grid is not None
            assert anew.on_grid is not None
            assert_same_lists(graph.on_grid, anew.on_grid)
            found = tri_apsp.betweenness(graph, weighted=True)
            torch.testing.assert_close(found, tri_apsp.betweenness(anew, weighted=True))
            d, of_anew = (
                tri_apsp.shortest_paths(g, sources=range(graph.n)).distances for g in (graph, anew)
            )
            torch.testing.assert_close(d, of_anew)
            assert graph.farthest >= max(graph.heaviest, d.max().item())
        weights = [w if w >= no_edge(dtype) else abs(w) // 2 + 3 for w in weights]


def ends_of(graph: SparseGraph) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    lists = graph.by_source
    return lists.owners(), lists.vertices.long(), lists.weights.clone()


def test_negative_weights() -> None:
    """They come and go; a negative cycle is found, and the graph can be repaired."""
    base = prepare(cast(road_grid(9, seed=1), torch.float32))
    graph = replace(base)
    tri_apsp.shortest_paths(graph, sources=0)
    for weights in ([-1, 40], [-1, -1], [3, 4]):
        changed = graph.with_changes([(0, 1), (1, 0)], weights)
        for one in (changed, graph.with_changes([(0, 1), (1, 0)], weights, in_place=True)):
            anew = prepare(of_entries(one.n, *ends_of(one), device=one.device), order="none")
            assert one.lowest == anew.lowest
            if sum(weights) < 0:
                with pytest.raises(tri_apsp.NegativeCycleError):
                    tri_apsp.shortest_paths(one, sources=0)
            else:
                assert_same_filled(one, base.with_weights(one.by_source.weights))
                assert_same_answers(one, anew)


def test_sums_beyond_int32() -> None:
    """From the change on that lets sums exceed int32, they are of int64."""
    given = road_grid(9, seed=1)
    graph = prepare(cast(given, torch.int32))
    tri_apsp.shortest_paths(graph, sources=0)
    edges, heavy = [(0, 1), (0, 9), (1, 2), (1, 10), (9, 10), (9, 18)], [1 << 29] * 6
    for first, last, dtype in ((0, 1, torch.int32), (1, 6, torch.int64)):
        graph.with_changes(edges[first:last], heavy[first:last], in_place=True)
        assert graph.sums_dtype == dtype
        expected = prepare(graph.with_weights(graph.by_source.weights), order="none")
        with pytest.raises(DistanceRangeError) if last == 6 else nullcontext():
            assert_same_answers(graph, expected)
    graph.with_changes(edges, [1] * 6, in_place=True)
    assert_same_answers(graph, prepare(graph, order="none"))


def test_without_an_order() -> None:
    """Any edge may be new then; the weights of the graph before stay."""
    graph = prepare(grid_of_tenths(torch.int32), order="none")
    before = graph.by_source.weights.clone()
    tri_apsp.shortest_paths(graph, sources=0)
    edges, weights = [(0, 80), (3, 4), (5, 6)], [1, 1000, no_edge(torch.int32)]
    changed = graph.with_changes(edges, weights)
    assert torch.equal(graph.by_source.weights, before)
    assert changed.edges == graph.edges
    assert changed.tree is None
    expected = of_entries(81, *ends_of(changed), device=graph.device)
    assert tri_apsp.paired_distances(changed, [0], [80]).item() == 1
    assert_same_answers(changed, prepare(expected))
    assert graph.with_changes(edges, weights, in_place=True) is graph
    assert_same_lists(graph, expected)


@pytest.mark.parametrize("in_place", [False, True])
def test_many_changes(in_place: bool) -> None:
    """The next call sets all weights, which takes less time."""
    base = prepare(grid_of_tenths(directed=True))
    graph, edges = replace(base), Edges(base, 8, 100)
    ends = [*edges.weights]
    tri_apsp.shortest_paths(graph, sources=0)
    for count in (64, 65, len(ends)):
        weights = edges.random.random(count)
        graph = graph.with_changes(ends[:count], weights, in_place=in_place)
        assert ("_elimination" in graph.__dict__) == (count == 64)
        assert graph.by_source.weights[:count].tolist() == weights.tolist()
        assert_same_filled(graph, base.with_weights(graph.by_source.weights))


def test_no_changes() -> None:
    graph = prepare(grid_of_tenths())
    assert_same_lists(graph.with_changes([], []), graph)
    assert_same_lists(graph.with_changes([(4, 4)], [3]), graph)  # no path needs a loop


@pytest.mark.parametrize(
    ("edges", "weights", "error", "message"),
    [
        (
            [(0, 1), (2, 0)],
            [1, 2],
            InputError,
            r"order of the graph, but \(2, 0\) has none; prepare the",
        ),
        (
            [(0, 1), (1, 2), (0, 1)],
            [1, 2, 3],
            InputError,
            r"edge once, in one direction, but name \(0, 1\) again",
        ),
        ([(0, 1), (1, 0)], [1, 2], InputError, r"in one direction, but name \(0, 1\) again"),
        ([(0, 1)], [1, 2], InputError, r"for each of the 1 edges, but have shape \(2,\)"),
        ([(0, 4)], [1], InputError, r"vertices in \[0, 4\), but one leads from 0 to 4"),
        ([0, 1], [1], InputError, r"integers of shape \(edges, 2\)"),
        ([(0, 1.5)], [1], InputError, r"integers of shape \(edges, 2\)"),
        (
            [(0, 1)],
            ["far"],
            tri_apsp.InputTypeError,
            "`weights` must be numbers, but is .*; give one for each edge",
        ),
        ([(0, 1)], [True], InputError, "`weights` must have one of the dtypes"),
        ([(0, 1)], [float("nan")], InputError, "neither NaN nor -inf, but that from 0 to 1"),
        ([(0, 1)], [-float("inf")], InputError, "neither NaN nor -inf"),
        ([(0, 1)], [2.5], InputError, "must be integers to be stored as int32"),
        ([(0, 1)], [1 << 30], DistanceRangeError, "less than 1073741823 in magnitude"),
    ],
)
def test_messages(edges: Any, weights: Any, error: type[Exception], message: str) -> None:
    """The graph stays as it was."""
    chain = of_entries(
        4,
        torch.tensor([0, 1, 2]),
        torch.tensor([1, 2, 3]),
        torch.tensor([5, 6, 7], dtype=torch.int32),
        device=torch.device("cpu"),
    )
    graph = prepare(
        SparseGraph(4, chain.by_source, ["a", "b", "c", "d"]), directed=False, order=[0, 1, 2, 3]
    )
    before = [*answers(graph)]
    for in_place in (False, True):
        with pytest.raises(error, match=message):
            graph.with_changes(edges, weights, in_place=in_place)
    for a, b in zip(before, answers(graph), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(tri_apsp.InputTypeError, match="`in_place` must be True or False"):
        graph.with_changes([], [], in_place=1)  # type: ignore[arg-type]


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [False, True])
@cases.every_sparse_dtype
def test_on_a_gpu(dtype: torch.dtype, directed: bool) -> None:
    """The weights of the sweeps follow on the device; also after symmetric ones become others."""
    given = grid_of_tenths(dtype)
    base = prepare(given, directed=directed)
    edges = Edges(base, 7, 100)
    graph = prepare(given, directed=directed, device="cuda")
    list(answers(graph))
    kinds = ["raise", "cut", "any", "close", "raise", "open", "cut"]
    for in_place in (True, False, True):
        for change in kinds:
            changed = graph.with_changes(*edges.changes(change), in_place=in_place)
            assert changed.device.type == "cuda"
            assert not in_place or "sweeps" in changed.__dict__
            expected = base.with_weights(edges.anew())
            for a, b in zip(answers(changed), answers(expected), strict=True):
                torch.testing.assert_close(a.cpu(), b)
            all_rows = tri_apsp.shortest_paths(changed).distances
            torch.testing.assert_close(all_rows.cpu(), tri_apsp.shortest_paths(expected).distances)
            graph = changed


def test_a_copy_that_changes_in_place_leaves_the_other() -> None:
    graph = prepare(road_grid(5))
    tri_apsp.shortest_paths(graph, sources=0)
    edge = [(0, int(graph.by_source.vertices[0]))]
    before = tri_apsp.paired_distances(graph, [0], [edge[0][1]]).clone()
    first = copy.copy(graph)
    first.with_changes(edge, [100], in_place=True)
    second = copy.copy(first)
    second.with_changes(edge, [1], in_place=True)
    again = tri_apsp.paired_distances(graph, [0], [edge[0][1]])
    assert torch.equal(before, again)
    assert first.by_source.weights[0] == 100
    assert second.by_source.weights[0] == 1
