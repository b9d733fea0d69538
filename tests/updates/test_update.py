"""Distances after changes of a graph are those of a new solve of the changed graph."""

import math
from typing import Any

import cases
import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from updates.changing import (
    DTYPE_PARAMETERS,
    FEW_KINDS,
    KIND_PARAMETERS,
    KINDS,
    changed,
    check,
    graph_of,
    weights_of,
)

import tri_apsp
from tri_apsp import DistanceRangeError, InputError, NegativeCycleError, Result, no_edge, update
from tri_apsp.errors import InputTypeError
from tri_apsp.semirings import largest_distance
from tri_apsp.updates import run

INF = math.inf
# No vertex is beyond it: vertices that a rule names are taken modulo the size.
VERTEX = st.integers(0, 100)
CHANGES = st.lists(st.tuples(VERTEX, VERTEX, st.integers(-1, 6) | st.just(INF)), max_size=5)


class ChangingGraph(RuleBasedStateMachine):
    """A graph of small integer weights that changes again and again; potentials shift the weights,
    so that many are negative, but seldom a cycle is.
    """

    kinds = FEW_KINDS

    @initialize(
        n=st.integers(0, 10),
        seed=st.integers(0, 2**32 - 1),
        degree=st.sampled_from([0.5, 2, 6]),
        kind=st.runner().flatmap(lambda test: st.sampled_from(test.kinds)),
        predecessors=st.booleans(),
        potential=st.sampled_from([0, 0, 9]),
    )
    def solve(self, n, seed, degree, kind, predecessors, potential):  # type: ignore[no-untyped-def]
        weights = cases.random_graph(n, degree=degree, seed=seed, low=0, high=4)
        np.fill_diagonal(weights, 0)
        self.potential = np.random.default_rng(seed).integers(0, potential + 1, 200)
        self.weights = weights + self.shift(range(n), range(n))
        self.graph = graph_of(self.weights, *kind)
        self.result = tri_apsp.shortest_paths(self.graph, predecessors=predecessors)

    def shift(self, tails: Any, heads: Any) -> np.ndarray:
        return np.subtract.outer(self.potential[list(tails)], self.potential[list(heads)])

    def ends(self, changes: Any, n: int, *, directed: bool) -> tuple[list[Any], list[float]]:
        """The edges of a rule, each once, and their weights."""
        found = dict[Any, float]()
        for u, v, weight in changes if n else ():
            u, v = u % n, v % n
            if directed or u < v:
                found[u, v] = weight + int(self.potential[u] - self.potential[v])
        return list(found), list(found.values())

    def update(self, weights: cases.Matrix, *given: Any, **options: Any) -> None:
        """Update, and check all there is; `weights` are those after the change."""
        before = [
            x.clone() for x in (self.result.distances, self.result.predecessors) if x is not None
        ]
        graph_before, dtype = weights_of(self.graph), self.result.distances.dtype
        result, graph = self.result, self.graph
        try:
            tri_apsp.shortest_paths(cases.tensor(weights, torch.float64))
        except NegativeCycleError:
            with pytest.raises(NegativeCycleError):
                update(result, graph, *given, **options)
        else:
            self.result, self.graph = update(result, graph, *given, **options)
            self.weights = weights
            check(self.result, self.graph, weights)
            assert self.result.distances.dtype == dtype
            if not isinstance(self.graph, torch.Tensor):
                assert self.result.edge_lists is self.graph.by_source
                if len(weights):  # by the order, if it has one
                    row = tri_apsp.shortest_paths(self.graph, sources=[0]).distances
                    assert torch.equal(row, self.result.distances[:1])
        if self.result is result or not options.get("in_place"):
            held = [x for x in (result.distances, result.predecessors) if x is not None]
            assert all(map(torch.equal, before, held))
            np.testing.assert_array_equal(weights_of(graph), graph_before)
        else:
            assert self.result.distances is result.distances
            assert self.result.predecessors is result.predecessors
            if isinstance(graph, torch.Tensor):
                assert self.graph.data_ptr() == graph.data_ptr()

    @rule(changes=CHANGES, directed=st.booleans(), in_place=st.booleans())
    def change_edges(self, changes: Any, directed: bool, in_place: bool) -> None:
        given = self.ends(changes, len(self.weights), directed=directed)
        weights = changed(self.weights, *given, directed=directed)
        self.update(weights, *given, directed=directed, in_place=in_place)

    @rule(steps=st.lists(st.tuples(VERTEX, st.integers(-2, 3) | st.just(INF)), max_size=4))
    def change_edges_there_are(self, steps: Any) -> None:
        """By some weight each, so that they rise, fall and close."""
        tails, heads = (
            np.isfinite(self.weights) & ~np.eye(len(self.weights), dtype=bool)
        ).nonzero()
        chosen = {k % len(tails): by for k, by in steps} if len(tails) else {}
        edges = [(int(tails[k]), int(heads[k])) for k in chosen]
        new = [self.weights[edge] + by for edge, by in zip(edges, chosen.values(), strict=True)]
        self.update(changed(self.weights, edges, new), edges, new)

    @rule(closed=st.lists(VERTEX, max_size=2), changes=CHANGES, in_place=st.booleans())
    def close_vertices(self, closed: Any, changes: Any, in_place: bool) -> None:
        n = len(self.weights)
        closed = sorted({v % n for v in closed}) if n else []
        changes = [x for x in changes if n and not {x[0] % n, x[1] % n} & {*closed}]
        given = self.ends(changes, n, directed=True)
        weights = changed(self.weights, *given)
        weights[closed] = weights[:, closed] = INF
        np.fill_diagonal(weights, weights.diagonal().clip(max=0))
        self.update(weights, *given, closed=closed, in_place=in_place)

    @rule(added=st.integers(0, 2), changes=CHANGES)
    def add_vertices(self, added: int, changes: Any) -> None:
        n, m = len(self.weights) + added, len(self.weights)
        given = self.ends(changes, n, directed=True)
        weights = np.full((n, n), INF)
        np.fill_diagonal(weights, 0)
        weights[:m, :m] = self.weights
        self.update(changed(weights, *given), *given, vertices=n)


class ChangingGraphOfAnyKind(ChangingGraph):
    kinds = KINDS


TestChangingGraph = ChangingGraph.TestCase
TestChangingGraph.settings = settings(max_examples=20, stateful_step_count=8, deadline=None)
TestChangingGraphOfAnyKind = pytest.mark.slow(ChangingGraphOfAnyKind.TestCase)
TestChangingGraphOfAnyKind.settings = settings(
    max_examples=300, stateful_step_count=12, deadline=None
)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)], ids=str
)
@pytest.mark.parametrize("shift", [0, 9])
def test_floats_that_round(kind: str, dtype: torch.dtype, shift: int) -> None:
    """Distances and paths are those of a new solve within rounding; ties differ in their last bits
    only.
    """
    random, n, rtol = np.random.default_rng(shift), 40, 40 * torch.finfo(dtype).eps
    potential = shift * random.random(n)
    shifts = potential[:, None] - potential
    weights = cases.random_graph(n, degree=3, low=1, high=4) / 10 + shifts
    graph = graph_of(weights, kind, dtype)
    result = tri_apsp.shortest_paths(graph, predecessors=True)
    for _ in range(15):
        edges = np.unique(random.integers(0, n, (4, 2)), axis=0)
        edges = edges[edges[:, 0] != edges[:, 1]]
        new = random.choice([0.1, 0.2, 0.3, 0.7, INF], len(edges)) + shifts[tuple(edges.T)]
        result, graph = update(result, graph, edges, new)
        expected = tri_apsp.shortest_paths(graph).distances
        atol = rtol * max(1, shift)
        torch.testing.assert_close(result.distances, expected, rtol=rtol, atol=atol)
        dense = graph if isinstance(graph, torch.Tensor) else graph.dense()
        cases.assert_predecessors(result, dense, rtol=atol)


@pytest.mark.parametrize(("kind", "dtype"), KIND_PARAMETERS, ids=str)
@pytest.mark.parametrize("predecessors", [False, True])
def test_many_edges_at_one_vertex(kind: str, dtype: torch.dtype, predecessors: bool) -> None:
    """More than 32, which one pass lowers, with edges elsewhere; then all of them rise again."""
    n, random = 60, np.random.default_rng(3)
    weights = cases.negative_graph(n, degree=2)
    np.fill_diagonal(weights, 0)
    graph = graph_of(weights, kind, dtype)
    result = tri_apsp.shortest_paths(graph, predecessors=predecessors)
    others = random.permutation(np.arange(1, n))[:40]
    edges = [(0, int(v)) for v in others] + [(int(v), 0) for v in others[5:]] + [(3, 9), (8, 2)]
    shift = [int(x) for x in np.random.default_rng([0, n, 1]).integers(0, 50, n)]
    new = [int(random.integers(0, 9)) + shift[u] - shift[v] for u, v in edges]
    lowered = changed(weights, edges, new)
    updated = update(result, graph, edges, new)
    assert updated.result.plan.method == "update"
    check(*updated, lowered)
    raised = changed(lowered, edges, [INF] * len(edges))
    check(*update(*updated, edges, [INF] * len(edges)), raised)


def test_zero_cycles_do_not_keep_each_other_alive() -> None:
    """0 -> 1 <-> 2, weights 0 on the cycle: without the first edge there is no path to it."""
    weights = np.full((3, 3), INF)
    np.fill_diagonal(weights, 0)
    weights[0, 1], weights[1, 2], weights[2, 1] = 5, 0, 0
    for kind, dtype in FEW_KINDS:
        graph = graph_of(weights, kind, dtype)
        result = tri_apsp.shortest_paths(graph, predecessors=True)
        check(*update(result, graph, [(0, 1)], [INF]), changed(weights, [(0, 1)], [INF]))
        check(*update(result, graph, [(0, 1)], [7]), changed(weights, [(0, 1)], [7]))


def chain_of(n: int, dtype: torch.dtype = torch.float32) -> tuple[Result, torch.Tensor]:
    graph = cases.tensor(cases.chain(n), dtype)
    graph.fill_diagonal_(0)
    return tri_apsp.shortest_paths(graph, predecessors=True), graph


def test_the_plan_says_what_ran() -> None:
    """The first edge of a chain is on few paths, one of three on many."""
    result, graph = chain_of(400)
    few = update(result, graph, [(0, 1), (399, 0)], [9, 500]).result.plan
    assert (few.way, few.method) == ("update", "update")
    assert few.reason == "1 edge raised, 1 lowered"
    edges, new = [(99, 100), (199, 200), (299, 300)], [9, 9, 9]
    many = update(result, graph, edges, new).result
    assert many.plan.method != "update"
    assert many.plan.reason == "3 edges raised, 0 lowered; solved anew: many pairs are affected"
    cases.assert_distances(many.distances, changed(cases.chain(400), edges, new))


def test_memory_of_the_plan() -> None:
    """Two matrices of 4 bytes for each pair; nothing in place."""
    result, graph = chain_of(40)
    assert update(result, graph, [(0, 1)], [9]).result.plan.memory == 2 * 4 * 1600
    assert update(result, graph, [(0, 1)], [9], in_place=True).result.plan.memory == 0


def test_edges_of_paths_follow() -> None:
    """Paths.edges names edges of the changed graph."""
    graph = tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]]))
    result = tri_apsp.shortest_paths(graph, predecessors=True)
    result, changed_graph = update(result, graph, [(0, 2), (1, 0)], [INF, INF])
    numbers = result.paths([0], [2]).edges
    lists = changed_graph.by_source
    assert lists.vertices[numbers].tolist() == [1, 2]
    assert lists.weights[numbers].tolist() == [3, 1]


def test_new_vertices_have_labels() -> None:
    graph = tri_apsp.prepare(torch.tensor([[0, 3], [1, 0]]))
    result, _ = update(tri_apsp.shortest_paths(graph), graph, [(1, 2)], [4], vertices=3)
    assert result.labels == range(3)


def test_a_sparse_result_with_dense_weights() -> None:
    graph = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
    result = tri_apsp.shortest_paths(tri_apsp.prepare(graph))
    result, _ = update(result, graph, [(0, 2)], [1])
    assert result.distances[0].tolist() == [0, 3, 1]
    assert result.edge_lists is None


@pytest.mark.parametrize("dtype", DTYPE_PARAMETERS, ids=str)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("more", [[], [(2, 0)], [(0, 1)]], ids=str)
def test_distances_beyond_the_dtype(dtype: torch.dtype, in_place: bool, more: Any) -> None:
    """An edge that opens makes a path too long: alone, with another, and with one that rises."""
    most = largest_distance(dtype)
    graph = torch.full((3, 3), no_edge(dtype), dtype=dtype).fill_diagonal_(0)
    graph[0, 1] = most // 2
    result, before = tri_apsp.shortest_paths(graph), graph.clone()
    new = torch.tensor([most] * (1 + len(more)), dtype=dtype)
    with pytest.raises(DistanceRangeError, match="distances must fit"):
        update(result, graph, [(1, 2), *more], new, in_place=in_place)
    assert torch.equal(graph, before)
    assert torch.equal(result.distances, before)


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [False, True])
def test_distances_beyond_the_dtype_at_one_vertex(in_place: bool) -> None:
    graph = torch.full((50, 50), no_edge(torch.int16), dtype=torch.int16).fill_diagonal_(0)
    graph[48, 49] = 9000
    result = tri_apsp.shortest_paths(graph)
    edges, before = [(48, v) for v in range(40)] + [(v, 48) for v in range(40, 48)], graph.clone()
    with pytest.raises(DistanceRangeError, match="distances must fit int16"):
        update(result, graph, edges, [1] * 47 + [9000], in_place=in_place)
    assert torch.equal(result.distances, before)


@pytest.mark.parametrize("dtype", DTYPE_PARAMETERS, ids=str)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("rise", [False, True])
def test_a_negative_cycle_changes_nothing(dtype: torch.dtype, in_place: bool, rise: bool) -> None:
    """The edge (2, 0) makes one of weight -1, alone, and with one that rises before it."""
    graph = cases.tensor(changed(cases.chain(20), [], []), dtype)
    result = tri_apsp.shortest_paths(graph, predecessors=True)
    before = [x.clone() for x in (result.distances, result.predecessors, graph)]
    edges, new = [(2, 0), (18, 19)][: 1 + rise], [-4, 9][: 1 + rise]
    with pytest.raises(NegativeCycleError, match="one of weight -1 through vert"):
        update(result, graph, edges, new, in_place=in_place)
    assert all(map(torch.equal, before, (result.distances, result.predecessors, graph)))


def batch_of(count: int, n: int = 9) -> tuple[list[cases.Matrix], torch.Tensor, Result]:
    graphs = [
        changed(cases.negative_graph(n, degree=3, seed=seed), [], []) for seed in range(count)
    ]
    batch = torch.stack([cases.tensor(graph, torch.float32) for graph in graphs])
    return graphs, batch, tri_apsp.shortest_paths(batch, predecessors=True)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("each", ["", "weights", "edges", "edges, weights"])
def test_batches(in_place: bool, each: str) -> None:
    """The same change in each graph, or one for each."""
    graphs, batch, result = batch_of(3)
    edges, new = [(0, 1), (1, 2), (5, 0)], [60, INF, 70]
    all_edges = [edges, [(3, 4), (2, 7), (8, 1)], edges] if "edges" in each else [edges] * 3
    all_new = [new, [61, 62, 63], [70, 60, INF]] if "weights" in each else [new] * 3
    found, after = update(
        result,
        batch,
        all_edges if "edges" in each else edges,
        all_new if "weights" in each else new,
        in_place=in_place,
    )
    expected = np.stack(list(map(changed, graphs, all_edges, all_new)))
    cases.assert_distances(found.distances, expected)
    cases.assert_predecessors(found, cases.tensor(expected, torch.float32))
    assert torch.equal(after, cases.tensor(expected, torch.float32))
    assert (after is batch, found.distances is result.distances) == (in_place, in_place)
    if not in_place:
        assert torch.equal(batch, cases.tensor(np.stack(graphs), torch.float32))


def test_a_batch_closes_vertices_and_gets_new_ones() -> None:
    graphs, batch, result = batch_of(2)
    found, after = update(result, batch, [(1, 9)], [50], closed=[4], vertices=10)
    for i, weights in enumerate(graphs):
        expected = np.pad(weights, (0, 1), constant_values=INF)
        expected[4] = expected[:, 4] = INF
        np.testing.assert_array_equal(weights_of(after[i]), changed(expected, [(1, 9)], [50]))
    cases.assert_distances(found.distances, np.stack([weights_of(one) for one in after]))


def test_a_batch_without_graphs_gets_new_vertices_too() -> None:
    batch = torch.zeros(0, 3, 3)
    result, after = update(tri_apsp.shortest_paths(batch), batch, [(0, 4)], [2], vertices=5)
    assert result.distances.shape == after.shape == (0, 5, 5)


def test_a_batch_with_a_negative_cycle_changes_nothing() -> None:
    """Also the graphs before that of the cycle."""
    _, batch, result = batch_of(3)
    edges, new = [(0, 0)], [[1], [-1], [1]]
    before = [x.clone() for x in (batch, result.distances, result.predecessors)]
    with pytest.raises(NegativeCycleError):
        update(result, batch, edges, new, in_place=True)
    assert all(map(torch.equal, before, (batch, result.distances, result.predecessors)))


GRAPH = torch.tensor([[0, 3, INF], [INF, 0, 1], [2, INF, 0]])
CYCLE = torch.tensor([[0, 3, INF], [-4, 0, 1], [2, INF, 0]])


@pytest.mark.parametrize(
    ("solve", "message"),
    [
        (lambda: tri_apsp.shortest_paths(GRAPH, sources=[0]), "has rows of chosen sources"),
        (lambda: tri_apsp.nearest(GRAPH, [0]), "has rows of chosen sources"),
        (
            lambda: tri_apsp.shortest_paths(GRAPH, sources=range(3), targets=[1]),
            "has rows of chosen sources",
        ),
        (lambda: tri_apsp.widest_paths(GRAPH), "has paths over max_min"),
        (lambda: tri_apsp.shortest_paths(CYCLE, negative_cycles="mark"), "has a negative cycle"),
    ],
)
def test_other_results_are_refused(solve: Any, message: str) -> None:
    sentence = f"`result` must have the shortest distances of all pairs, but {message}; "
    with pytest.raises(InputError, match=f"^{sentence}"):
        update(solve(), GRAPH, [(0, 1)], [2])


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (GRAPH[:2, :2], r"\(3, 3\) of float32, but is \(2, 2\) of float32"),
        (GRAPH.double(), r"\(3, 3\) of float32, but is \(3, 3\) of float64"),
        (GRAPH[None], r"\(3, 3\) of float32, but is \(1, 3, 3\) of float32"),
        (tri_apsp.prepare(GRAPH.double()), r"\(3, 3\) of float32, but is \(3, 3\) of float64"),
        (tri_apsp.prepare(GRAPH, turns=[[0, 1, 2, INF]]), "`graph` must have no "),
        (tri_apsp.prepare(GRAPH, through=[True, False, True]), "`graph` must have no "),
    ],
    ids=range(6),
)
def test_other_graphs_are_refused(graph: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        update(tri_apsp.shortest_paths(GRAPH), graph, [(0, 1)], [2])


@pytest.mark.parametrize("graph", [None, [[0, 1], [1, 0]], "graph.npz"])
def test_graphs_of_other_kinds_are_refused(graph: Any) -> None:
    result = tri_apsp.shortest_paths(GRAPH)
    with pytest.raises(InputTypeError, match="`graph` must be a torch tensor"):
        update(result, graph, [(0, 1)], [2])
    with pytest.raises(InputTypeError, match="`graph` must be a torch tensor"):
        tri_apsp.criticality(result, graph, [(0, 1)])


@pytest.mark.parametrize("make", [torch.clone, tri_apsp.prepare], ids=["dense", "prepared"])
def test_both_directions_change_if_the_graph_was_solved_so(make: Any) -> None:
    one_way = torch.tensor([[0, 1, INF], [INF, 0, 1], [INF, INF, 0]])
    result = tri_apsp.shortest_paths(one_way, directed=False)
    found = update(result, make(one_way), [(0, 1)], [5.0])
    assert found.result.distances[[0, 1], [1, 0]].tolist() == [5, 5]
    assert tri_apsp.criticality(result, one_way, [(0, 1)]).disconnected.tolist() == [4]
    with pytest.raises(InputError, match="`directed` must not be True for a result of directed=F"):
        update(result, one_way, [(0, 1)], [5.0], directed=True)


def test_a_negative_cycle_names_no_argument_that_is_not_there() -> None:
    result = tri_apsp.shortest_paths(GRAPH)
    with pytest.raises(NegativeCycleError, match=r"remove or raise one of its edges\.$"):
        update(result, GRAPH, [(1, 0)], [-99.0])


@pytest.mark.parametrize(
    ("edges", "weights", "options", "message"),
    [
        ([(0, 1), (0, 1)], [1, 2], {}, r"name each edge once, but name \(0, 1\) again"),
        ([(0, 1), (1, 0)], [1, 2], {"directed": False}, r"but name \(0, 1\) again; leave one"),
        ([(0, 1, 2)], [1], {}, r"integers of shape \(edges, 2\), but have"),
        ([0, 1], [1], {}, r"integers of shape \(edges, 2\), but have"),
        ([(0.0, 1.0)], [1], {}, r"integers of shape \(edges, 2\), but have"),
        ([(0, 1)], [1, 2], {}, r"one weight for each of the 1 edges, but have shape \(2,\)"),
        ([(0, 1)], [math.nan], {}, "neither NaN nor -inf, but that from 0 to 1 is nan"),
        ([(0, 1)], [-INF], {}, "neither NaN nor -inf, but that from 0 to 1 is -inf"),
        ([(0, 3)], [1], {}, r"vertices in \[0, 3\), but one leads from 0 to 3"),
        ([(0, -1)], [1], {}, r"vertices in \[0, 3\), but one leads from 0 to -1"),
        ([(0, 1)], [1], {"closed": [1]}, r"open edge of a closed vertex, but one is \(0, 1\)"),
        ([], [], {"closed": [3]}, r"`closed` must lie in \[0, 3\), but one is 3"),
        ([], [], {"vertices": 2}, "`vertices` must be at least 3, but is 2"),
        ([], [], {"vertices": 4, "in_place": True}, "`in_place` must be False with `vertices`"),
        ([], [], {"directed": 1}, "`directed` must be True or False"),
        ("ab", [1], {}, "`edges` must be pairs of vertex numbers, but is 'ab'; the"),
        ([(0, 1)], None, {}, "`weights` must be numbers, but is None; give"),
    ],
)
def test_changes_that_break_a_rule(edges: Any, weights: Any, options: Any, message: str) -> None:
    graph = GRAPH.clone()
    result = tri_apsp.shortest_paths(graph)
    before = result.distances.clone()
    with pytest.raises(InputError, match=message):
        update(result, graph, edges, weights, **options)
    assert torch.equal(result.distances, before)
    assert torch.equal(graph, GRAPH)


def test_weights_that_the_dtype_does_not_hold() -> None:
    graph = torch.tensor([[0, 3], [1, 0]], dtype=torch.int16)
    result = tri_apsp.shortest_paths(graph)
    with pytest.raises(InputError, match=r"integers to be stored as int16, but one is 2\.5"):
        update(result, graph, [(0, 1)], [2.5])
    with pytest.raises(DistanceRangeError, match="less than 16383 in magnitude"):
        update(result, graph, [(0, 1)], [20_000])


def test_what_is_no_result_is_refused() -> None:
    with pytest.raises(InputTypeError, match="`result` must be what shortest_paths returned"):
        update(GRAPH, GRAPH, [(0, 1)], [2])  # type: ignore[arg-type]


def test_new_vertices_of_a_graph_with_names_are_refused(save: Any) -> None:
    graph = tri_apsp.prepare(tri_apsp.read_sparse_graph(save("g.csv", "a,b,3\nb,c,1\n")))
    with pytest.raises(InputError, match="left out for a graph whose vertices have names"):
        update(tri_apsp.shortest_paths(graph), graph, vertices=4)


@pytest.mark.parametrize(
    ("edges", "weights", "message"),
    [
        ([(0, 1)], [[1.0], [2.0], [3.0]], "`weights` must be the same for all graphs, or one set"),
        (
            [[(0, 1)]],
            [1.0],
            "`edges` must be the same for all graphs, or one set for each of the 2",
        ),
    ],
)
def test_other_numbers_of_sets_than_graphs(edges: Any, weights: Any, message: str) -> None:
    batch = GRAPH.repeat(2, 1, 1)
    with pytest.raises(InputError, match=message):
        update(tri_apsp.shortest_paths(batch), batch, edges, weights)


def test_sets_of_different_sizes_are_refused() -> None:
    weights = torch.ones(2, 3, 3)
    result = tri_apsp.shortest_paths(weights)
    with pytest.raises(InputError, match="as many for each"):
        update(result, weights, [[(0, 1)], [(0, 1), (1, 2)]], [[1.0], [1.0, 2.0]])


def test_a_loop_in_both_directions_is_one_edge() -> None:
    """It changes nothing, unless it is negative."""
    result, graph = chain_of(4)
    found = update(result, graph, [(1, 1), (0, 1)], [3, 2], directed=False)
    without = update(result, graph, [(0, 1)], [2], directed=False)
    assert torch.equal(found.result.distances, without.result.distances)
    with pytest.raises(NegativeCycleError):
        update(result, graph, [(1, 1)], [-1], directed=False)


@pytest.mark.parametrize(
    ("dtype", "unit"),
    [
        pytest.param(torch.int16, 1, marks=pytest.mark.slow),
        (torch.int32, 1 << 16),
        pytest.param(torch.int64, 1 << 48, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_sums_along_negative_cycles_do_not_wrap(dtype: torch.dtype, unit: int) -> None:
    graph = torch.zeros((6, 6), dtype=dtype)
    edges = [(i, j) for i in range(6) for j in range(6) if i != j][:16]
    with pytest.raises(NegativeCycleError):
        update(tri_apsp.shortest_paths(graph), graph, edges, [-1000 * unit] * 16)


def test_rounding_does_not_lead_predecessors_around() -> None:
    """3e7 + 1 is 3e7: the new edges are a cycle whose weight the distances do not show."""
    graph = torch.tensor([[0, 0.1, 1], [3e7, 0, 0.3], [INF, INF, 0]])
    result = tri_apsp.shortest_paths(graph, predecessors=True)
    found = update(result, graph, [(1, 0), (2, 1)], [1.0, 3e7]).result
    assert found.path(2, 1) == [2, 1]


@pytest.mark.slow
def test_rounding_in_many_updates() -> None:
    random = np.random.default_rng(0)
    for least in [1e-9, 0.1] * 15:
        weights = np.exp(random.uniform(np.log(least), np.log(3e7), (8, 8)))
        weights[random.random((8, 8)) < 0.5] = INF
        graph = cases.tensor(weights, torch.float32)
        result = tri_apsp.shortest_paths(graph, predecessors=True)
        for _ in range(4):
            edges = np.argwhere(random.random((8, 8)) < 0.06)
            new = np.exp(random.uniform(np.log(least), np.log(3e7), len(edges)))
            result, graph = update(result, graph, edges, new)
            expected = tri_apsp.shortest_paths(graph).distances
            torch.testing.assert_close(result.distances, expected, rtol=1e-5, atol=0)
            for i, j in np.argwhere(expected.isfinite().numpy()):
                assert len(result.path(int(i), int(j))) <= 8


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_result_of_edges_in_both_directions(kind: str) -> None:
    """The graph has each edge in one: update and criticality count both."""
    weights = np.full((4, 4), INF)
    weights[[0, 0, 0, 1, 2], [1, 2, 3, 2, 3]] = [1, 9, 1, 1, 1]
    graph = graph_of(weights, kind, torch.float32)
    result = tri_apsp.shortest_paths(graph, directed=False)
    found = update(result, graph, [(0, 1)], [4], directed=False)
    assert found.result.distances[0].tolist() == [0, 3, 2, 1]
    back = update(*found, [(0, 1)], [1], directed=False).result
    assert torch.equal(back.distances, result.distances)
    closing = tri_apsp.criticality(result, graph, [(0, 1), (1, 2)], directed=False)
    assert closing.increase.tolist() == [4, 4]


def test_a_change_in_one_direction_makes_a_graph_directed() -> None:
    graph = tri_apsp.prepare(cases.tensor(cases.chain(5), torch.float32), directed=False)
    result = tri_apsp.shortest_paths(graph)
    both = update(result, graph, [(0, 1)], [4], directed=False).graph
    one = update(result, graph, [(0, 1)], [4], directed=True).graph
    assert (both.directed, one.directed) == (False, True)


@pytest.mark.slow
def test_large_integers_beside_inf_are_exact() -> None:
    graph = torch.tensor([[0, 5, 9], [9, 0, 3], [2, 9, 0]])
    new = [2**55 + 1, INF]
    changed = update(tri_apsp.shortest_paths(graph), graph, [(0, 1), (1, 2)], new).graph
    assert changed[[0, 1], [1, 2]].tolist() == [2**55 + 1, no_edge(torch.int64)]


def test_many_edges_that_fall_are_solved_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """By passes over the distances the result is the same."""
    weights = changed(cases.random_graph(60, degree=4, high=50), [], [])
    edges = [(i, (7 * i + 3) % 60) for i in range(0, 60, 2)]
    graph, new = cases.tensor(weights, torch.float32), [3] * 30
    result = tri_apsp.shortest_paths(graph, predecessors=True)
    anew = update(result, graph, edges, new)
    assert anew.result.plan.reason.endswith("solved anew: many edges fall")
    monkeypatch.setattr(run, "_FEW", 40)
    passes = update(result, graph, edges, new)
    assert passes.result.plan.method == "update"
    for found in (anew, passes):
        check(*found, changed(weights, edges, new))


def test_read_only_and_expanded_graphs_are_not_overwritten() -> None:
    array = np.ones((3, 3))
    array.flags.writeable = False
    expanded = torch.ones(1, 1).expand(3, 3)
    for graph in (array, expanded):
        with pytest.raises(InputError, match="must not"):
            update(tri_apsp.shortest_paths(graph), graph, [(0, 1)], [4.0], in_place=True)


def test_a_gradient_is_refused() -> None:
    graph = torch.ones(3, 3, requires_grad=True)
    with pytest.raises(InputError, match="gradient"):
        update(tri_apsp.shortest_paths(graph), graph, [(0, 1)], [4.0])


def test_distances_of_other_strides() -> None:
    weights = changed(cases.random_graph(9, degree=3), [], [])
    graph = cases.tensor(weights, torch.float32)
    out = torch.empty(9, 9).T
    result = tri_apsp.shortest_paths(graph, out=out)
    found = update(result, graph, [(0, 1), (3, 4)], [INF, 1], in_place=True)
    assert found.result.distances is out
    check(*found, changed(weights, [(0, 1), (3, 4)], [INF, 1]))


@pytest.mark.parametrize("batch", [False, True])
def test_in_place_with_both_directions(batch: bool) -> None:
    """Dense weights that differ by direction were copied, and kept their weights."""
    graph = torch.tensor([[0, 1, 7], [1, 0, 2], [7, 2, 0]]).float()
    graph = graph.repeat(2, 1, 1) if batch else graph
    found = update(
        tri_apsp.shortest_paths(graph, directed=False), graph, [(0, 1)], [5.0], in_place=True
    )
    assert graph.flatten()[[1, 3]].tolist() == [5, 5]
    found = update(found.result, graph, [(0, 1)], [4.0], in_place=True)
    assert found.result.distances.flatten()[1].item() == 4
    one_way = torch.tensor([[0, 1.0], [INF, 0]])
    result = tri_apsp.shortest_paths(one_way, directed=False)
    with pytest.raises(InputError, match="`graph` must be symmetric with `in_place`"):
        update(result, one_way, [(0, 1)], [5.0], in_place=True)


def test_both_directions_of_a_graph_that_was_prepared_so() -> None:
    graph = tri_apsp.prepare(torch.tensor([[0, 1.0], [1, 0]]), directed=False)
    result = tri_apsp.shortest_paths(graph)
    found = update(result, graph, [(0, 1)], [5.0])
    assert found.result.distances.flatten().tolist() == [0, 5, 5, 0]
    assert tri_apsp.criticality(result, graph, [(0, 1)]).disconnected.tolist() == [2]


def test_pairs_with_another_shortest_path_are_not_many() -> None:
    """Nearly all paths of a grid may take another edge; an edge of a star is on all of a row."""
    grid = tri_apsp.graphs.generate("grid", 2025).to_weights(torch.float32)
    grid[grid < INF] = 1
    grid.fill_diagonal_(0)
    graph = tri_apsp.prepare(grid, order="none")
    found = update(tri_apsp.shortest_paths(graph), graph, [(1012, 1013)], [5.0])
    assert found.result.plan.reason == "1 edge raised, 0 lowered"
    hub = torch.rand(600, 600) + 10
    hub[0], hub[:, 0] = 0.1, 0.1
    hub.fill_diagonal_(0)
    edges = [(0, i) for i in range(1, 300)]
    found = update(tri_apsp.shortest_paths(hub), hub, edges, [20.0] * len(edges))
    assert found.result.plan.reason.endswith("solved anew: many pairs are affected")
