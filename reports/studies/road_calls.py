"""The calls of the study of road networks: each phase of elimination, calls with and without an
order, and those of other projects. What a call needs before is done before it is timed.
"""

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

from reports.studies.calls import SolveCall, scipy_matrix
from tri_apsp.api import (
    accessibility,
    closeness,
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

    def spread(self, count: int) -> torch.Tensor:
        """Return `count` vertices, of which the first is 0."""
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
        expected: returns by SciPy's row what the first results are. A phase has none: the rows that
            follow from it are compared.
        distances: returns how many it finds of n vertices.
        series: of rows, what the calls of each number of them have in common; else "".
    """

    make: Callable[[RoadCase], _Work]
    expected: Callable[[RoadCase], torch.Tensor] = lambda case: torch.empty(0)
    distances: Callable[[int], int] = lambda n: 0
    series: str = ""

    def on(self, case: RoadCase) -> SolveCall:
        """Return the call of a case: of its results, it returns the first ones."""
        work, count = self.make(case), len(self.expected(case))

        def call() -> tuple[torch.Tensor, None]:
            result = work()
            return torch.as_tensor(result[:count] if count else []), None

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


def _table(make: Callable[..., _Work]) -> RoadCall:
    """Return the call of distances between 500 vertices and 500 others."""

    def ends(case: RoadCase) -> tuple[torch.Tensor, torch.Tensor]:
        return case.spread(500), case.n - 1 - case.spread(500)

    return RoadCall(
        lambda case: make(case, *ends(case)),
        lambda case: case.row[None, ends(case)[1]],
        lambda n: 500 * 500,
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


def _by_scipy(case: RoadCase, sources: torch.Tensor) -> _Work:
    return partial(dijkstra, case.matrix, indices=sources.numpy())


def _by_networkit(case: RoadCase, sources: torch.Tensor) -> _Work:
    networkit, edges = import_module("networkit"), case.matrix.tocoo()
    entries = edges.data, (edges.row, edges.col)
    graph = networkit.GraphFromCoo(entries, case.n, weighted=True, directed=True)
    search = partial(networkit.distance.SPSP, graph, sources.tolist())
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
    "table 500 x 500": _table(_prepared),
    "table 500 x 500, RoutingKit": _table(_by_routingkit),
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
}
OTHERS = {
    "SciPy": "scipy",
    "NetworKit": "networkit",
    "RoutingKit": "routingkit_cch",
    "METIS": "pymetis",
}
"""Other projects, and what they are imported by."""


def project_of(name: str) -> str | None:
    """Return the other project whose call this is."""
    project = name.partition(", ")[2]
    return project if project in OTHERS else None


def is_installed(name: str) -> bool:
    """Return whether the project of a call is."""
    project = project_of(name)
    return project is None or find_spec(OTHERS[project]) is not None
