"""The calls of the study of road networks: each phase of elimination, calls with and without an
order, and those of other projects. What a call needs before is done before it is timed.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import Delaunay

from reports.studies.calls import SolveCall, networkit_graph, scipy_matrix
from tri_apsp.api import (
    accessibility,
    betweenness,
    closeness,
    edge_betweenness,
    edge_flows,
    nearest,
    paired_distances,
    prepare,
    shortest_paths,
)
from tri_apsp.elimination.dissection import nested_dissection
from tri_apsp.elimination.prepared import PreparedGraph
from tri_apsp.elimination.tree import EliminationTree, elimination_tree, symmetric_structure
from tri_apsp.elimination.weights import customize
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph
from tri_apsp.messages import counted

_PAIRS, _CHECKED = 1_000_000, 16
_SOURCES, _ZONES = 128, 1000  # of betweenness, and between which demand travels
_LOADS, _ROUNDING = 1000, 1e-5  # how many are compared, and their relative error


def _delaunay(n: int) -> csr_array:
    """Return the Delaunay triangulation of random points; weights are lengths, about 1000."""
    points = np.random.default_rng(0).random((n, 2))
    offsets, vertices = Delaunay(points).vertex_neighbor_vertices
    ends = points[np.repeat(np.arange(n), np.diff(offsets))] - points[vertices]
    weights = np.ceil(1000 * np.sqrt(n) * np.hypot(*ends.T))  # integers, whose sums are exact
    return csr_array((weights, vertices, offsets), (n, n))


GRAPHS: dict[str, Callable[[int], Any]] = {
    "roads": partial(generate, "roads", seed=0),
    "Delaunay triangulation": _delaunay,
}
"""By name; all are symmetric and connected."""


@dataclass(frozen=True, eq=False)
class RoadCase:
    """A graph on a device, and what its calls need."""

    plain: SparseGraph

    @classmethod
    def of(cls, graph: str, n: int, dtype: torch.dtype, device: torch.device) -> "RoadCase":
        """Return the case of a graph of `n` vertices."""
        case = cls(sparse_graph(GRAPHS[graph](n), dtype=dtype, device=device))
        _ = case.on_cpu.by_destination
        return case

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self.plain.n

    @cached_property
    def on_cpu(self) -> SparseGraph:
        """The graph on the CPU."""
        return self.plain.to(torch.device("cpu"))

    @cached_property
    def order(self) -> Array:
        """The order of elimination."""
        return ordered(self)

    @cached_property
    def graph(self) -> PreparedGraph:
        """The graph with this order."""
        return prepare(self.plain, order=torch.from_numpy(self.order))

    @property
    def tree(self) -> EliminationTree:
        """The elimination tree."""
        assert self.graph.tree is not None
        return self.graph.tree

    @cached_property
    def matrix(self) -> csr_array:
        """The graph as SciPy takes it."""
        return scipy_matrix(self.on_cpu)

    @cached_property
    def row(self) -> torch.Tensor:
        """SciPy's distances from vertex 0, which are those to it."""
        return torch.from_numpy(dijkstra(self.matrix, indices=0))

    @property
    def limit(self) -> float:
        """The limit of accessibility."""
        return float(self.row.max()) // 4

    @cached_property
    def lists(self) -> list[list[int]]:
        """The order, and the ends and weights of the edges, as RoutingKit takes them."""
        edges = self.matrix.tocoo()
        return [x.tolist() for x in (self.order, edges.row, edges.col, edges.data.astype(np.int64))]

    @cached_property
    def hierarchy(self) -> Any:
        """RoutingKit's, by the same order."""
        return _hierarchy(self)()

    @cached_property
    def passing(self) -> torch.Tensor:
        """What passes vertices of 1 from some sources to all."""
        return self._passing(self.spread(_SOURCES))

    @cached_property
    def passing_of_all(self) -> torch.Tensor:
        """What passes vertices of 1 from all to all."""
        return self._passing(torch.arange(self.n))

    def _passing(self, sources: torch.Tensor) -> torch.Tensor:
        """Return what passes the first vertices of 1 from each source to all, by the loads of
        edges, whose total distance is that of closeness.
        """
        edges, close = self.on_cpu.by_source, closeness(self.graph, weighted=True, improved=False)
        loads = edge_betweenness(self.graph, weighted=True, sources=sources)
        loads *= ((self.n - 1) / close[sources]).sum() / (loads @ edges.weights.double())
        ends = len(sources) - torch.bincount(sources, minlength=self.n)  # of what arrives
        return (torch.bincount(edges.vertices, loads) - ends)[:_LOADS]

    @cached_property
    def travelled(self) -> torch.Tensor:
        """The total distance of 1 from each zone to each other, by rows."""
        found = _prepared(self, self.zones, self.zones)()
        return torch.sum(found, dtype=torch.float64)[None].cpu()

    @property
    def zones(self) -> torch.Tensor:
        """The vertices between which demand travels."""
        return self.spread(_ZONES)

    def spread(self, count: int) -> torch.Tensor:
        """Return `count` vertices, or all if there are fewer, of which the first is 0."""
        count = min(count, self.n)
        return torch.arange(count) * self.n // count

    def pairs(self) -> torch.Tensor:
        """Return random vertices, (2, pairs), the first of which are pairs from vertex 0."""
        ends = torch.randint(self.n, (2, _PAIRS), generator=torch.Generator().manual_seed(0))
        ends[0, :_CHECKED] = 0
        return ends


def ordered(case: RoadCase) -> Array:
    """Return the order by nested dissection."""
    order = nested_dissection(*symmetric_structure(case.on_cpu), case.n)  # whatever its fill-in
    assert order is not None
    return order


def _ordered_by_metis(case: RoadCase) -> Array:
    metis = import_module("pymetis")
    order, _ = metis.nested_dissection(metis.CSRAdjacency(*symmetric_structure(case.on_cpu)))
    return np.asarray(order, np.int32)


def filled_graph(case: RoadCase, order: Array) -> EliminationTree:
    """Return the elimination tree of an order."""
    tree = elimination_tree(case.on_cpu, order, case.n**2)
    assert tree is not None
    return tree


_Work = Callable[[], Any]


class RoadCall(NamedTuple):
    """A call of a case.

    Attributes:
        make: returns what is timed.
        expected: returns what the first results are, by SciPy's row, or for loads by distances. A
            phase has none: the rows that follow from it are compared.
        distances: returns how many it finds of n vertices.
        series: of rows, what the calls of each number of them have in common; else "".
        rounded: whether it adds up loads, which are rounded.
    """

    make: Callable[[RoadCase], _Work]
    expected: Callable[[RoadCase], torch.Tensor] = lambda case: torch.empty(0)
    distances: Callable[[int], int] = lambda n: 0
    series: str = ""
    rounded: bool = False

    def on(self, case: RoadCase) -> SolveCall:
        """Return the call of a case: of its results, it returns the first ones."""
        work, expected = self.make(case), self.expected(case)

        def call() -> tuple[torch.Tensor, None]:
            result = work()
            found = torch.as_tensor(result[: len(expected)] if len(expected) else [])
            if self.rounded:
                error = (found - expected).abs()
                found = expected.where(error < _ROUNDING * (expected + case.n), found.to(expected))
            return found, None

        return call


def _rows(
    series: str, make: Callable[..., _Work], *counts: int, times: int = 1
) -> dict[str, RoadCall]:
    """Return the calls of some rows by their names, whose weights are `times` those of the case."""

    def call(count: int) -> RoadCall:
        return RoadCall(
            lambda case: make(case, case.spread(count)),
            lambda case: times * case.row[None],
            lambda n: count * n,
            series,
        )

    return {f"{counted(count, 'row')}, {series}": call(count) for count in counts}


def _table(make: Callable[..., _Work], rows: int, columns: int) -> RoadCall:
    """Return the call of distances between some vertices and others."""

    def ends(case: RoadCase) -> tuple[torch.Tensor, torch.Tensor]:
        return case.spread(rows), case.n - 1 - case.spread(columns)

    return RoadCall(
        lambda case: make(case, *ends(case)),
        lambda case: case.row[None, ends(case)[1]],
        lambda n: rows * columns,
    )


def _plain(case: RoadCase, sources: torch.Tensor) -> _Work:
    return lambda: shortest_paths(case.plain, sources=sources).distances


def _prepared(
    case: RoadCase, sources: torch.Tensor | None, targets: torch.Tensor | None = None
) -> _Work:
    _ = case.graph.sweeps
    return lambda: shortest_paths(case.graph, sources=sources, targets=targets).distances


def _with_new_weights(case: RoadCase, sources: torch.Tensor) -> _Work:
    graph, weights = case.graph, 2 * case.graph.by_source.weights
    return lambda: shortest_paths(graph.with_weights(weights), sources=sources).distances


def _nearest(case: RoadCase) -> _Work:
    places = case.n - 1 - case.spread(100)
    return lambda: nearest(case.graph, places).distances[0]


def _betweenness(case: RoadCase) -> _Work:
    sources = case.spread(_SOURCES)
    call = partial(betweenness, case.graph, weighted=True, normalized=False, sources=sources)
    # What the estimate adds up, as igraph returns it.
    scale = (len(sources) - torch.bincount(sources, minlength=case.n)) / (case.n - 1)
    return lambda: scale * call()


def _flows(case: RoadCase) -> _Work:
    weights = case.on_cpu.by_source.weights.double()
    call = partial(edge_flows, case.graph, case.zones, case.zones, 1.0)
    return lambda: (call().loads @ weights)[None]


def _by_igraph(case: RoadCase) -> _Work:
    edges, sources = case.matrix.tocoo(), case.spread(_SOURCES).tolist()
    graph = import_module("igraph").Graph(case.n, np.transpose(edges.coords), directed=True)
    return partial(graph.betweenness, weights=edges.data.tolist(), sources=sources)


def _aequilibrae_graph(case: RoadCase) -> Any:
    os.environ.setdefault("AEQ_SHOW_PROGRESS", "FALSE")
    edges, graph = case.matrix.tocoo(), import_module("aequilibrae.paths").Graph()
    ends = {"a_node": edges.row + 1, "b_node": edges.col + 1}
    columns = {"link_id": np.arange(edges.nnz) + 1, **ends, "direction": 1, "time": edges.data}
    graph.network = import_module("pandas").DataFrame(columns)
    graph.prepare_graph(case.zones.numpy() + 1)
    graph.set_graph("time")
    graph.set_blocked_centroid_flows(False)
    return graph


def _table_by_aequilibrae(case: RoadCase) -> _Work:
    graph = _aequilibrae_graph(case)
    graph.set_skimming(["time"])
    return lambda: graph.compute_skims().results.skims.get_matrix("time")


def _flows_by_aequilibrae(case: RoadCase) -> _Work:
    graph, paths = _aequilibrae_graph(case), import_module("aequilibrae.paths")
    trips = import_module("aequilibrae.matrix").AequilibraeMatrix()
    loads = paths.AssignmentResults()
    trips.create_empty(zones=len(case.zones), matrix_names=["trips"])
    trips.index[:], trips.matrix["trips"][:] = case.zones.numpy() + 1, 1.0
    trips.computational_view()
    loads.prepare(graph, trips)

    def run() -> list[float]:
        paths.allOrNothing("trips", trips, graph, loads).execute()
        return [loads.get_load_results()["trips_ab"].to_numpy() @ case.matrix.data]

    return run


def _by_scipy(case: RoadCase, sources: torch.Tensor, targets: torch.Tensor | None = None) -> _Work:
    columns = slice(None) if targets is None else targets.numpy()
    return lambda: dijkstra(case.matrix, indices=sources.numpy())[:, columns]


def _by_networkit(case: RoadCase, sources: torch.Tensor) -> _Work:
    distance, graph = import_module("networkit.distance"), networkit_graph(case.matrix)
    search = partial(distance.SPSP, graph, sources.tolist())
    return lambda: search().run().getDistances(asarray=True)


def _hierarchy(case: RoadCase) -> _Work:
    return partial(import_module("routingkit_cch").CCH, *case.lists[:3], False)


def _metric(case: RoadCase) -> _Work:
    return partial(import_module("routingkit_cch").CCHMetric, case.hierarchy, case.lists[3])


def _by_routingkit(
    case: RoadCase, sources: torch.Tensor, targets: torch.Tensor | None = None
) -> _Work:
    """Rows are lists of Python, since it returns no others."""
    one_to_many = partial(import_module("routingkit_cch").CCHOneToMany, _metric(case)())
    ends = [*range(case.n)] if targets is None else targets.tolist()

    def run() -> list[list[int]]:
        search = one_to_many(ends)
        return [search.distances_from(source) for source in sources.tolist()]

    return run


ORDERS = {"order": ordered, "order, METIS": _ordered_by_metis}
"""Functions that return an order, by the name of their phase."""
FIRST_CALLS = ("order", "filled graph", "weights", "256 rows, prepared")
"""What the first calls of a process are, each of which needs those before it."""
ALL_ROWS = "all rows, prepared"
"""The call that only a GPU has the memory for."""
ALL_SOURCES = "betweenness"
"""The call that takes longest."""
PHASES: dict[str, RoadCall] = {
    **{name: RoadCall(partial(partial, order)) for name, order in ORDERS.items()},
    "filled graph": RoadCall(lambda case: partial(filled_graph, case, case.order)),
    "filled graph, RoutingKit": RoadCall(_hierarchy),
    "weights": RoadCall(
        lambda case: partial(
            customize, case.tree, case.on_cpu, case.tree.weight_indices_of(case.on_cpu)
        )
    ),
    "weights, RoutingKit": RoadCall(_metric),
    **_rows("prepared", _prepared, 256),
}
CALLS: dict[str, RoadCall] = {
    **_rows("prepared", _prepared, 1, 32, 128, 256),
    ALL_ROWS: RoadCall(
        lambda case: _prepared(case, None),
        lambda case: case.row[None],
        lambda n: n * n,
        "prepared",
    ),
    **_rows("not prepared", _plain, 1, 32, 128, 256),
    **_rows("new weights", _with_new_weights, 256, times=2),
    **_rows("SciPy", _by_scipy, 32),
    **_rows("NetworKit", _by_networkit, 32),
    **_rows("RoutingKit", _by_routingkit, 32),
    "table 500 x 500": _table(_prepared, 500, 500),
    "table 500 x 500, RoutingKit": _table(_by_routingkit, 500, 500),
    "table 4,000 x 4,000": _table(_prepared, 4000, 4000),
    "table 4,000 x 4,000, RoutingKit": _table(_by_routingkit, 4000, 4000),
    "table 500 x 4,000, SciPy": _table(_by_scipy, 500, 4000),
    "table 1,000 x 1,000, AequilibraE": RoadCall(
        _table_by_aequilibrae,
        lambda case: case.row[None, case.zones],
        lambda n: _ZONES**2,
    ),
    "1,000,000 pairs": RoadCall(
        lambda case: partial(paired_distances, case.graph, *case.pairs()),
        lambda case: case.row[case.pairs()[1, :_CHECKED]],
        lambda n: _PAIRS,
    ),
    "nearest of 100": RoadCall(
        _nearest,
        lambda case: case.row[case.n - 1 - case.spread(100)].min()[None],
        lambda n: n,
    ),
    "closeness": RoadCall(
        lambda case: partial(closeness, case.graph, weighted=True, improved=False),
        lambda case: torch.tensor([(case.n - 1) / float(case.row.sum())], dtype=torch.float64),
        lambda n: n * n,
    ),
    "accessibility": RoadCall(
        lambda case: partial(accessibility, case.graph, case.limit),
        lambda case: (case.row <= case.limit).sum()[None],
        lambda n: n * n,
    ),
    ALL_SOURCES: RoadCall(
        lambda case: partial(betweenness, case.graph, weighted=True, normalized=False),
        lambda case: case.passing_of_all,
        lambda n: n * n,
        rounded=True,
    ),
    **{
        f"betweenness, {_SOURCES} sources{other}": RoadCall(
            make, lambda case: case.passing, lambda n: _SOURCES * n, rounded=True
        )
        for other, make in {"": _betweenness, ", igraph": _by_igraph}.items()
    },
    **{
        f"edge flows, {_ZONES:,} zones{other}": RoadCall(
            make, lambda case: case.travelled, lambda n: _ZONES**2, rounded=True
        )
        for other, make in {"": _flows, ", AequilibraE": _flows_by_aequilibrae}.items()
    },
}
LONG = {"Delaunay triangulation": ALL_SOURCES}
"""The call on a graph that takes more than a minute on a few cores."""
OTHERS = {
    "SciPy": "scipy",
    "NetworKit": "networkit",
    "RoutingKit": "routingkit_cch",
    "AequilibraE": "aequilibrae",
    "igraph": "igraph",
    "METIS": "pymetis",
}
"""Other projects, and what they are imported by."""


def project_of(name: str) -> str | None:
    """Return the other project whose call this is."""
    project = name.rpartition(", ")[2]
    return project if project in OTHERS else None


def is_installed(name: str) -> bool:
    """Return whether the project of a call is."""
    project = project_of(name)
    return project is None or find_spec(OTHERS[project]) is not None
