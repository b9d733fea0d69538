"""Graphs on which other packages agree with tri_apsp, and how their answers are compared."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import cases
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import tri_apsp
from tri_apsp import PreparedGraph, shortest_paths

REMEDY = 'run pip install -c constraints.txt ".[peers]" in a clone'


class Graph(NamedTuple):
    """Edges (m, 2) and their weights (m,), all as another package takes them."""

    n: int
    edges: np.ndarray
    weights: np.ndarray
    directed: bool = True

    @property
    def least(self) -> float:
        return float(min(self.weights, default=1))

    @property
    def is_simple(self) -> bool:
        """Whether there are neither loops nor parallel edges."""
        ends = self.edges if self.directed else np.sort(self.edges)
        return len(np.unique(ends, axis=0)) == len(ends) and bool((ends[:, 0] != ends[:, 1]).all())

    @property
    def is_connected(self) -> bool:
        """Whether there are several vertices, each of which reaches all others."""
        parts, _ = connected_components(self.matrix, self.directed, "strong")
        return self.n > 1 and parts == 1

    @property
    def ways(self) -> list[bool]:
        """Whether to add up weights, if no shortest path can be walked in infinitely many ways."""
        return [False, True] if self.least > 0 else [False]

    @property
    def matrix(self) -> coo_array:
        """Keeps parallel edges; an edge of an undirected graph in one direction."""
        return coo_array((self.weights, tuple(self.edges.T)), shape=(self.n, self.n))

    @property
    def ours(self) -> PreparedGraph:
        return tri_apsp.prepare(self.matrix, directed=self.directed)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of different vertices."""
        return [(s, t) for s in range(self.n) for t in range(self.n) if s != t]

    @property
    def triples(self) -> list[tuple[int, int, float]]:
        ends, weights = self.edges.tolist(), self.weights.astype(float).tolist()
        return [(s, t, w) for (s, t), w in zip(ends, weights, strict=True)]

    @property
    def unit(self) -> "Graph":
        """The same edges, each of weight 1."""
        return self._replace(weights=np.ones_like(self.weights))

    @property
    def reverse(self) -> "Graph":
        return self._replace(edges=self.edges[:, ::-1])

    @property
    def lightest(self) -> dict[tuple[int, int], float]:
        """The lightest edge of each pair of vertices, in every direction it is used."""
        found: dict[tuple[int, int], float] = {}
        for s, t, w in self.triples:
            for pair in ((s, t),) if self.directed else ((s, t), (t, s)):
                found[pair] = min(w, found.get(pair, cases.INF))
        return found

    def distances(self) -> np.ndarray:
        """Return our distances as float64: those of the edges, with which those of a dense matrix
        must agree.
        """
        graph = self.ours
        found = [
            cases.values(shortest_paths(one, method=method).distances)
            for one, method in ((graph, "johnson"), (graph.dense(), "auto"))
        ]
        np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-12)
        return found[0]


def random(
    n: int,
    m: int,
    *,
    low: int = 1,
    high: int = 20,
    directed: bool = True,
    simple: bool = True,
    floats: bool = False,
) -> Graph:
    """m edges between vertices drawn at random: different pairs if the graph is simple."""
    rng = np.random.default_rng([n, m])
    pairs = np.argwhere(np.tri(n, k=-1).T + (np.tri(n, k=-1) if directed else 0) > 0)
    edges = rng.permutation(pairs)[:m] if simple else rng.integers(0, n, (m, 2))
    weights = rng.integers(low, high, m)
    return Graph(n, edges, weights + rng.random(m) if floats else weights, directed)


def negative(n: int, m: int, *, floats: bool = False) -> Graph:
    """Potentials shift the weights, and cancel on a cycle, so that none is negative."""
    graph = random(n, m, simple=False, floats=floats)
    potential = np.random.default_rng(n).integers(0, 30, n)
    shift = potential[graph.edges[:, 0]] - potential[graph.edges[:, 1]]
    return graph._replace(weights=graph.weights + shift)


def apart(graph: Graph) -> Graph:
    """The graph twice, and two vertices without an edge."""
    edges = np.concatenate([graph.edges, graph.edges + graph.n])
    return Graph(2 * graph.n + 2, edges, np.tile(graph.weights, 2), graph.directed)


def grid(side: int) -> Graph:
    """A street grid, two-way, which is solved by elimination."""
    v = np.arange(side * side).reshape(side, side)
    right, down = (
        np.stack([a.ravel(), b.ravel()], 1) for a, b in ((v[:, :-1], v[:, 1:]), (v[:-1], v[1:]))
    )
    edges = np.concatenate([right, down])
    return Graph(side**2, edges, np.random.default_rng(side).integers(1, 9, len(edges)), False)


def streets(side: int) -> Graph:
    """A street grid whose weights tie often, and of which some streets are one-way."""
    rng, edges = np.random.default_rng(side), grid(side).edges
    back = edges[rng.random(len(edges)) < 0.6, ::-1]
    edges = np.concatenate([edges, back])
    return Graph(side**2, edges, rng.integers(1, 4, len(edges)))


NO_EDGES = np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64)
GRAPHS = {
    "directed": random(50, 200),
    "undirected": random(50, 90, directed=False),
    "strongly connected": random(40, 300),
    "grid": grid(7),
    "one-way streets": streets(7),
    "ties": random(40, 120, high=4),
    "undirected ties": random(40, 70, high=4, directed=False),
    "fractions": random(50, 150, floats=True),
    "undirected fractions": random(40, 70, directed=False, floats=True),
    "negative": negative(50, 150),
    "negative fractions": negative(40, 120, floats=True),
    "zero weights": random(40, 120, low=0, high=3),
    "undirected zero weights": random(40, 60, low=0, high=3, directed=False),
    "loops and parallel edges": random(15, 150, simple=False),
    "undirected parallel edges": random(15, 100, simple=False, directed=False),
    "disconnected": apart(random(20, 50)),
    "undirected disconnected": apart(random(20, 30, directed=False)),
    "no edges": Graph(5, *NO_EDGES),
    "one vertex": Graph(1, *NO_EDGES),
    "one vertex, undirected": Graph(1, *NO_EDGES, directed=False),
    "a loop": Graph(1, np.array([[0, 0]]), np.array([3])),
    "one edge": Graph(2, np.array([[1, 0]]), np.array([7])),
}
CYCLES = {
    "two vertices": Graph(3, np.array([[0, 1], [1, 2], [2, 1]]), np.array([4, 1, -2])),
    "a loop": Graph(2, np.array([[0, 1], [1, 1]]), np.array([1, -1])),
    "an undirected edge": Graph(3, np.array([[0, 1], [1, 2]]), np.array([5, -1]), False),
    "fractions": Graph(3, np.array([[0, 1], [1, 2], [2, 0]]), np.array([0.5, 0.25, -1])),
}


def each(
    *, least: float = -cases.INF, simple: bool = False, connected: bool = False
) -> pytest.MarkDecorator:
    """Parametrize a test over the graphs that a package takes: those without a lesser weight; if
    asked, those without loops and parallel edges, or the strongly connected ones.
    """
    chosen = {
        name: graph
        for name, graph in GRAPHS.items()
        if graph.least >= least
        and (graph.is_simple or not simple)
        and (graph.is_connected or not connected)
    }
    return pytest.mark.parametrize("graph", chosen.values(), ids=chosen)


every_cycle = pytest.mark.parametrize("graph", CYCLES.values(), ids=CYCLES)


def assert_same(ours: object, theirs: object) -> None:
    """Assert that two arrays are the same up to rounding, inf included."""
    np.testing.assert_allclose(np.float64(ours), np.float64(theirs), rtol=1e-11, atol=1e-11)


def assert_cycle(graph: Graph) -> None:
    """Assert that we name a cycle of the graph, and its weight, which is negative."""
    with pytest.raises(tri_apsp.NegativeCycleError) as caught:
        shortest_paths(graph.ours)
    around, lightest = caught.value.vertices, graph.lightest
    weight = sum(lightest[pair] for pair in zip(around, around[1:] + around[:1], strict=True))
    assert weight == caught.value.weight < 0


def assert_paths(graph: Graph, paths: Iterable[tuple[int, int, list[int]]]) -> None:
    """Assert that the weight of each path (source, target, vertices) is our distance, and that none
    is empty where there is one.
    """
    distances, lightest = graph.distances(), graph.lightest
    for source, target, path in paths:
        if len(path) == 0:
            assert distances[source, target] == cases.INF
            continue
        assert (path[0], path[-1]) == (source, target)
        length = sum(lightest[pair] for pair in pairwise(path))
        assert length == pytest.approx(distances[source, target], rel=1e-12, abs=1e-12)
