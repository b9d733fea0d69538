"""Random calls on random graphs, against a reference on Python's numbers: tables of every shape,
limits, sums that may not fit the dtype, cycles that weigh 0 or less.
"""

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tri_apsp
from tri_apsp import no_edge, prepare
from tri_apsp.elimination.prepared import PreparedGraph
from tri_apsp.errors import DistanceRangeError, NegativeCycleError
from tri_apsp.graphs.sparse import SPARSE_DTYPES
from tri_apsp.semirings import largest_distance, minus_infinity
from tri_apsp.sparse.plan import ROW_METHODS

# Of a weight that is a multiple of it, every sum of a few is exact; some multiples do not fit.
UNITS: dict[torch.dtype, float | int] = {
    torch.float32: 2.0**110,
    torch.float64: 2.0**990,
    torch.int32: 1 << 20,
    torch.int64: 1 << 52,
}
CYCLE = -float("inf")
"""The distance through a negative cycle."""


@dataclass
class Case:
    """A random graph and a random call, by a seed."""

    seed: int
    dtypes: tuple[torch.dtype, ...]

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        choice, whole = self.random.choice, self.random.randint
        self.n, self.dtype = choice([1, 2, 3, 5, 8, 12]), choice(self.dtypes)
        self.unit = UNITS[self.dtype] if choice([True, False]) else 1
        most = choice([0, 1, 3, 50, 1000]) if self.unit == 1 else self.largest // int(self.unit)
        deepest = choice([most // 4, min(most, 4)])
        potentials = [whole(-deepest, deepest) for _ in range(self.n)]
        kind = choice(["none negative", "potentials", "all cycles 0", "some negative"])
        self.edges = dict[tuple[int, int], int]()
        for _ in range(int(self.n * choice([0.7, 1.3, 2, 4]))):
            u, v = whole(0, self.n - 1), whole(0, self.n - 1)
            weight = choice([0, whole(0, min(most, 9)), whole(0, most), whole(0, most // 3)])
            if kind == "some negative" and whole(0, 6) == 0:
                weight = -min(weight, choice([most, 9]))
            if kind == "potentials" or kind == "all cycles 0":
                weight = weight if kind == "potentials" else 0
                weight = max(-most, min(most, weight + potentials[u] - potentials[v]))
            if u != v:
                self.edges.setdefault((u, v), weight)
                if kind == "none negative" and choice([True, False]):
                    self.edges.setdefault((v, u), weight)
        self.sources = self.vertices(choice([1, 1, 2, self.n]))
        self.targets = choice(
            [None, self.vertices(choice([1, 2, self.n])), self.random.sample(range(self.n), self.n)]
        )
        self.limit = choice([None, None, choice([0, 1, 5, 30, most // 2, 1 << 40])])
        self.predecessors, self.marks = choice([True, False]), choice([True, False])

    def vertices(self, count: int) -> list[int]:
        return [self.random.randrange(self.n) for _ in range(count)]

    @property
    def largest(self) -> int:
        return int(largest_distance(self.dtype))

    @cached_property
    def distances(self) -> list[list[float]]:
        """In units: inf without a path, CYCLE through a negative cycle."""
        n, infinity = self.n, float("inf")
        d: list[list[float]] = [[0 if i == j else infinity for j in range(n)] for i in range(n)]
        for (u, v), weight in self.edges.items():
            d[u][v] = min(d[u][v], weight)
        for k, i, j in itertools.product(range(n), repeat=3):
            if d[i][k] < infinity and d[k][j] < infinity:
                d[i][j] = min(d[i][j], d[i][k] + d[k][j])
        cycles = [k for k in range(n) if d[k][k] < 0]
        for i, j in itertools.product(range(n), repeat=2):
            if any(d[i][k] < infinity and d[k][j] < infinity for k in cycles):
                d[i][j] = CYCLE
        return d

    def fits(self, distance: float) -> bool:
        return abs(distance) == float("inf") or abs(distance) * int(self.unit) <= self.largest

    def expected(self, distance: float, limit: float | None = None) -> float | int:
        if distance == CYCLE:
            return minus_infinity(self.dtype)
        if distance == float("inf") or (limit is not None and distance > limit):
            return no_edge(self.dtype)
        return distance * self.unit

    @property
    def may_be_refused(self) -> bool:
        """Dtypes of 64 bits have no wider one for weights with potentials, see the docs."""
        if self.dtype.itemsize < 8 or all(weight >= 0 for weight in self.edges.values()):
            return False
        columns = [
            [d for d in (0, *column) if abs(d) < float("inf")]
            for column in zip(*self.distances, strict=True)
        ]
        p = [min(column) for column in columns]
        weights = [weight + p[u] - p[v] for (u, v), weight in self.edges.items()]
        farthest = max(map(max, columns)) if self.limit is None else self.limit
        return not self.fits(max(*weights, farthest) - min(p))

    def graph(self) -> Any:
        """Dense or sparse weights, or a prepared graph of an order that suits it, or of any."""
        form = self.random.choice(["dense", "sparse", "prepared", "any order"])
        ends = torch.tensor([*self.edges], dtype=torch.int64).reshape(-1, 2).T
        weights = torch.tensor([w * self.unit for w in self.edges.values()], dtype=self.dtype)
        size = self.n, self.n
        if form == "dense":
            matrix = torch.full(size, no_edge(self.dtype), dtype=self.dtype).fill_diagonal_(0)
            matrix[ends[0], ends[1]] = weights
            return matrix
        graph = torch.sparse_coo_tensor(ends, weights, size, check_invariants=True)
        if form == "sparse":
            return graph
        order = np.random.default_rng(self.seed).permutation(self.n)
        return prepare(graph) if form == "prepared" else prepare(graph, order=order)

    def check_path(self, path: list[int], source: int, target: int, distance: float) -> None:
        if abs(distance) == float("inf"):
            assert path == []
            return
        assert (path[0], path[-1]) == (source, target)
        assert len(set(path)) == len(path)
        assert sum(self.edges[edge] for edge in itertools.pairwise(path)) == distance

    def result(
        self,
        call: Callable[[], Any],
        ends: Iterable[tuple[int, int]],
        limit: float | None = None,
    ) -> Any:
        """Return what a call for these pairs gives; None if it raises an error that it must."""
        d, ends = self.distances, list(ends)
        try:
            found = call()
        except NegativeCycleError:
            assert any(CYCLE in d[source] for source, _ in ends)
        except DistanceRangeError:
            wanted = [d[s][t] for s, t in ends if limit is None or d[s][t] <= limit]
            assert not all(map(self.fits, wanted)) or self.may_be_refused
        else:
            return found
        return None


seeds = st.integers(0, 2**32 - 1)
few_and_all_dtypes = pytest.mark.parametrize(
    "dtypes",
    [(torch.float32, torch.int64), pytest.param(SPARSE_DTYPES, marks=pytest.mark.slow)],
    ids=["few", "all"],
)
"""Each dtype takes seconds to compile."""


@few_and_all_dtypes
@given(seeds)
@settings(max_examples=250, deadline=None)
def test_rows(dtypes: tuple[torch.dtype, ...], seed: int) -> None:
    case = Case(seed, dtypes)
    limit, graph = case.limit, case.graph()
    targets = range(case.n) if case.targets is None else case.targets
    of_roads = ["elimination"] if isinstance(graph, PreparedGraph) and graph.sweeps else []
    others = [method for method in ROW_METHODS if method != "elimination"]
    result = case.result(
        lambda: tri_apsp.shortest_paths(
            graph,
            sources=case.sources,
            targets=case.targets,
            limit=None if limit is None else limit * case.unit,
            method=case.random.choice(["auto", "auto", "johnson", *of_roads, *others]),
            predecessors=case.predecessors,
            negative_cycles="mark" if case.marks else "raise",
        ),
        itertools.product(case.sources, targets),
        limit,
    )
    if result is None:
        return
    on_paths = {(i, s) for i, s in enumerate(case.sources)}
    for (i, s), (j, t) in itertools.product(enumerate(case.sources), enumerate(targets)):
        distance = case.distances[s][t]
        assert result.distances[i, j].item() == case.expected(distance, limit)
        if case.predecessors:
            is_near = limit is None or distance <= limit
            path = result.path(s, t)
            case.check_path(path, s, t, distance if is_near else float("inf"))
            on_paths |= {(i, v) for v in path}
    if case.predecessors and case.targets is None:
        for (i, s), v in itertools.product(enumerate(case.sources), range(case.n)):
            assert (v == s or result.predecessors[i, v] >= 0) == ((i, v) in on_paths)


@few_and_all_dtypes
@given(seeds)
@settings(max_examples=100, deadline=None)
def test_nearest_source(dtypes: tuple[torch.dtype, ...], seed: int) -> None:
    case = Case(seed, dtypes)
    limit, graph = case.limit, case.graph()
    if any(CYCLE in row for row in case.distances):
        return
    result = case.result(
        lambda: tri_apsp.nearest(
            graph,
            case.sources,
            targets=case.targets,
            limit=None if limit is None else limit * case.unit,
            predecessors=case.predecessors,
        ),
        itertools.product(range(case.n), repeat=2),
    )
    if result is None:
        return
    for j, t in enumerate(range(case.n) if case.targets is None else case.targets):
        distance = min(case.distances[s][t] for s in case.sources)
        nearest = int(result.nearest[t])
        assert result.distances[0, j].item() == case.expected(distance, limit)
        if distance == float("inf") or (limit is not None and distance > limit):
            assert nearest == -1
            continue
        assert nearest in case.sources
        assert case.distances[nearest][t] == distance
        if case.predecessors:
            case.check_path(result.path(nearest, t), nearest, t, distance)


@few_and_all_dtypes
@given(seeds)
@settings(max_examples=100, deadline=None)
def test_pairs(dtypes: tuple[torch.dtype, ...], seed: int) -> None:
    case = Case(seed, dtypes)
    graph, targets, limit = case.graph(), case.vertices(len(case.sources)), case.limit
    ends = [*zip(case.sources, targets, strict=True)]
    farthest = None if limit is None else limit * case.unit
    distances = case.result(
        lambda: tri_apsp.paired_distances(graph, case.sources, targets, limit=farthest), ends, limit
    )
    paths = case.result(lambda: tri_apsp.paired_paths(graph, case.sources, targets), ends)
    for i, (s, t) in enumerate(ends):
        if distances is not None:
            assert distances[i].item() == case.expected(case.distances[s][t], limit)
        if paths is not None:
            assert case.fits(case.distances[s][t])
            case.check_path(paths[i].tolist(), s, t, case.distances[s][t])
