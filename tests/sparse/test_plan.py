"""Which graphs are solved by sparse methods, and by which; all forms of a graph give the same
distances.
"""

from collections.abc import Callable
from types import SimpleNamespace

import cases
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

import tri_apsp
from tri_apsp import Config, InputError, TooLargeError, no_edge
from tri_apsp.graphs import EdgeList, generate
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph
from tri_apsp.sparse.choice import choose, reason_for_sparse

INF = float("inf")
CPU, GPU = torch.device("cpu"), torch.device("cuda")  # which need not be there


@pytest.mark.parametrize(
    ("edges", "rows", "method"),
    [
        (99_999, 7, "dijkstra"),
        (99_999, 8, "many_sources"),
        (100_000, 7, "output_parallel"),
        (13 * 20_000, 20_000, "many_sources"),
    ],
)
def test_methods_of_rows_on_a_gpu(edges: int, rows: int, method: str) -> None:
    graph = SimpleNamespace(device=GPU, n=20_000, edges=edges, dtype=torch.float32)
    assert choose(graph, rows) == (method, False)


@pytest.mark.parametrize(
    ("kind", "rows", "eliminated"),
    [
        ("roads", 191, False),
        ("roads", 192, True),
        ("grid", 1249, False),
        ("grid", 1250, True),
        ("erdos_renyi", 10_000, False),
    ],
)
def test_when_a_gpu_eliminates(kind: str, rows: int, eliminated: bool) -> None:
    options = {"p": 4e-4} if kind == "erdos_renyi" else {}
    graph = sparse_graph(generate(kind, 10_000, seed=1, **options), dtype=torch.float32)
    of_gpu = SimpleNamespace(
        device=GPU,
        n=graph.n,
        edges=graph.edges,
        by_source=graph.by_source,
        by_destination=graph.by_destination,
    )
    assert choose(of_gpu, rows) == ("many_sources", eliminated)


def road_like(n: int) -> EdgeList:
    """A grid with two vertices more on each street: up to 2.4 edges at each vertex."""
    corners = int((n / 5) ** 0.5) ** 2
    grid = generate("grid", corners, seed=1)
    one_way = grid.sources < grid.targets
    sources, targets = grid.sources[one_way], grid.targets[one_way]
    first = corners + 2 * np.arange(len(sources))
    ends = np.concatenate([sources, first, first + 1]), np.concatenate([first, first + 1, targets])
    weights = np.tile(grid.weights[one_way], 3)
    return EdgeList(corners + 2 * len(sources), *ends, weights).both_ways()


def shuffled(edges: EdgeList) -> EdgeList:
    """The edges with other numbers of vertices."""
    order = np.random.default_rng(1).permutation(edges.n)
    return EdgeList(edges.n, order[edges.sources], order[edges.targets], edges.weights)


def forwards(edges: EdgeList) -> EdgeList:
    """The edges to later vertices."""
    ends, keep = (edges.sources, edges.targets), edges.sources < edges.targets
    return EdgeList(edges.n, *(x[keep] for x in ends), edges.weights[keep])


def of_networkx(graph: nx.Graph) -> EdgeList:
    graph = nx.convert_node_labels_to_integers(graph)
    ends = np.array(graph.edges).T
    weights = np.random.default_rng(1).integers(1, 1000, ends.shape[1]).astype(np.float64)
    return EdgeList(len(graph), *ends, weights).both_ways()


# Each class of graph, and for 1, 32, 128 and 1024 sources what takes the least time, or at most 1.3
# times that: see tri_apsp/sparse/choice.py.
CLASSES: dict[str, tuple[Callable[[], EdgeList], tuple[str, str, str, str]]] = {
    "roads": (lambda: road_like(20_000), ("dijkstra", "elimination", "elimination", "elimination")),
    "grid": (
        lambda: generate("grid", 10_000, seed=1),
        ("dijkstra", "dijkstra", "elimination", "elimination"),
    ),
    "small grid": (
        lambda: generate("grid", 1600, seed=1),
        ("dijkstra", "dijkstra", "elimination", "elimination"),
    ),
    "cube": (
        lambda: of_networkx(nx.grid_graph([30, 30, 30])),
        ("dijkstra", "dijkstra", "dijkstra", "dijkstra"),
    ),
    "random": (
        lambda: generate("erdos_renyi", 10_000, p=4e-4, seed=1),
        ("dijkstra", "many_sources", "many_sources", "many_sources"),
    ),
    "power law": (
        lambda: of_networkx(nx.barabasi_albert_graph(10_000, 2, seed=1)),
        ("dijkstra", "many_sources", "many_sources", "many_sources"),
    ),
    "cube of shuffled vertices": (
        lambda: shuffled(of_networkx(nx.grid_graph([30, 30, 30]))),
        ("dijkstra", "dijkstra", "dijkstra", "dijkstra"),
    ),
    "dense random": (
        lambda: generate("erdos_renyi", 2000, p=0.025, seed=1),
        ("dijkstra", "dijkstra", "many_sources", "many_sources"),
    ),
    "random that falls apart": (
        lambda: generate("erdos_renyi", 10_000, p=8e-5, seed=1),
        ("dijkstra", "dijkstra", "dijkstra", "dijkstra"),
    ),
    "chain": (
        lambda: generate("chain", 10_000),
        ("dijkstra", "many_sources", "many_sources", "many_sources"),
    ),
    "shuffled chain": (
        lambda: shuffled(generate("chain", 10_000)),
        ("dijkstra", "dijkstra", "dijkstra", "elimination"),
    ),
    "chain in both directions": (
        lambda: generate("chain", 10_000).both_ways(),
        ("dijkstra", "dijkstra", "elimination", "elimination"),
    ),
    "grid without a way back": (
        lambda: forwards(generate("grid", 10_000, seed=1)),
        ("dijkstra", "many_sources", "many_sources", "many_sources"),
    ),
    "tree": (
        lambda: of_networkx(nx.random_labeled_tree(20_000, seed=1)),
        ("dijkstra", "elimination", "elimination", "elimination"),
    ),
    "star": (
        lambda: of_networkx(nx.star_graph(9_999)),
        ("dijkstra", "many_sources", "many_sources", "many_sources"),
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_methods_of_rows_on_a_cpu(name: str) -> None:
    make, methods = CLASSES[name]
    graph = sparse_graph(make(), dtype=torch.float32)
    for rows, method in zip((1, 32, 128, 1024), methods, strict=True):
        found, eliminated = choose(graph, rows)
        assert ("elimination" if eliminated else found) == method, rows


@pytest.mark.parametrize(("limit", "method"), [(2.0, "dijkstra"), (1e4, "many_sources")])
def test_a_limit_that_few_vertices_are_within(limit: float, method: str) -> None:
    graph = sparse_graph(generate("erdos_renyi", 10_000, p=4e-4, seed=1))
    assert choose(graph, 32, torch.arange(32), limit) == (method, False)


@pytest.mark.parametrize(
    ("device", "n", "rows", "has_lists", "most"),
    [
        (CPU, 255, 255, True, 0),
        (CPU, 256, 256, True, 256**2 / 100),
        (CPU, 2047, 2047, False, 0),
        (CPU, 2048, 2048, False, 2048**2 / 100),
        (CPU, 2000, 500, False, 2000**3 / (100 * 500)),  # a quarter of the rows of fewer vertices
        (CPU, 2000, 501, False, 0),
        (CPU, 2000, 1, True, 2000**3 / 100),  # a complete graph too
        (CPU, 2000, 1, False, 2000**3 / (100 * 32)),
        (GPU, 8191, 8191, True, 0),
        (GPU, 8192, 8192, False, 8192**2 / 150),
        (GPU, 2000, 1, True, 2000**3 / (150 * 8)),
    ],
)
def test_reason_for_sparse(
    device: torch.device, n: int, rows: int, has_lists: bool, most: float
) -> None:
    assert bool(reason_for_sparse(n, int(most), rows, device, has_lists=has_lists)) == (most > 0)
    for edges in (int(most) + 1, None):
        assert not reason_for_sparse(n, edges, rows, device, has_lists=has_lists)


@pytest.mark.parametrize("n", [0, 5])
def test_methods_without_edges(n: int) -> None:
    graph = sparse_graph(torch.full((n, n), INF))
    assert choose(graph, 64) == ("many_sources", False)


def forms(weights: torch.Tensor) -> list[object]:
    """One graph as a tensor of each sparse layout, SciPy's formats, a list of edges, and prepared
    from each kind.
    """
    n = len(weights)
    sources, targets = (weights != no_edge(weights.dtype)).nonzero().unbind(1)
    values = weights[sources, targets]
    coo = torch.sparse_coo_tensor(torch.stack((sources, targets)), values, (n, n))
    array = scipy.sparse.coo_array(
        (values.numpy(), (sources.numpy(), targets.numpy())), shape=(n, n)
    )
    edges = EdgeList(n, sources.numpy(), targets.numpy(), values.numpy())
    given = [coo, coo.to_sparse_csr(), coo.to_sparse_csc(), array, array.tocsr(), array.tocsc()]
    return [*given, edges, *map(tri_apsp.prepare, (weights, given[1], given[4], edges))]


@pytest.mark.parametrize("method", ["auto", "johnson", "kleene"])
@pytest.mark.parametrize("name", ["random", "negative"])
def test_every_form_of_a_graph(method: str, name: str) -> None:
    weights = cases.tensor(cases.CASES[name](40), torch.float32)
    expected = tri_apsp.shortest_paths(weights, predecessors=True)
    for graph in forms(weights):
        found = tri_apsp.shortest_paths(graph, method=method, predecessors=True)
        assert found.distances.dtype == torch.float32
        assert torch.equal(found.distances, expected.distances)
        if name == "negative":  # ties may differ
            cases.assert_predecessors(found, weights)
        else:
            assert torch.equal(found.predecessors, expected.predecessors)
        eliminated = method == "auto" and isinstance(graph, tri_apsp.PreparedGraph)
        assert (found.plan.way == "sparse") == (method == "johnson" or eliminated)


@pytest.mark.filterwarnings("ignore:Sparse")  # of torch, about layouts in beta
def test_a_prepared_graph() -> None:
    """Every function of sparse graphs takes it; its dtype and device are those asked for."""
    given = cases.tensor(cases.random_graph(30), torch.int16)
    assert tri_apsp.prepare(given).dtype == torch.int32
    weights = given.float().masked_fill(given == no_edge(torch.int16), INF)
    graph = tri_apsp.prepare(weights, dtype=torch.int64, device="cpu")
    assert isinstance(graph, SparseGraph)
    assert (graph.n, graph.dtype, graph.device) == (30, torch.int64, CPU)
    assert tri_apsp.prepare(graph) is graph
    again = tri_apsp.prepare(graph, dtype=torch.float32)
    distances = tri_apsp.shortest_paths(weights).distances
    for sources in (range(30), 3):
        found = tri_apsp.shortest_paths(again, sources=sources, method="johnson").distances
        assert torch.equal(found, distances[sources].view(-1, 30))
    blocks = list(tri_apsp.distance_blocks(again, rows_per_block=20))
    assert [len(block.distances) for block in blocks] == [20, 10]
    csr = weights.masked_fill(weights == INF, 0).to_sparse_csr()
    for measure in (tri_apsp.hops, tri_apsp.closeness, tri_apsp.eccentricities):
        assert torch.equal(measure(graph), measure(csr))
    assert tri_apsp.diameter(graph) == tri_apsp.diameter(csr)
    with pytest.raises(InputError, match="`dtype` must be one of float32"):
        tri_apsp.prepare(weights, dtype=torch.int16)
    with pytest.raises(
        InputError, match="`device` must be auto, cpu, cuda or cuda:N, but is 'gpu'"
    ):
        tri_apsp.prepare(weights, device="gpu")
    with pytest.raises(InputError, match="must be square"):
        tri_apsp.prepare(weights[None])


@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.int64, marks=pytest.mark.slow), torch.int16]
)
@pytest.mark.parametrize("method", ["auto", "floyd_warshall"])
def test_rows_of_dense_weights(method: str, dtype: torch.dtype) -> None:
    weights = cases.tensor(cases.random_graph(300, degree=3), dtype)
    every = tri_apsp.shortest_paths(weights, predecessors=True)
    for sources in ([7, 3], torch.tensor([7, 3], dtype=torch.int32)):
        found = tri_apsp.shortest_paths(weights, sources=sources, method=method, predecessors=True)
        assert torch.equal(found.distances, every.distances[[7, 3]])
        assert torch.equal(found.predecessors, every.predecessors[[7, 3]])
        assert found.sources.tolist() == [7, 3]
        assert found.path(3, 20) == every.path(3, 20)
    sparse = method == "auto" and dtype != torch.int16
    assert found.plan.way == ("sparse" if sparse else "dense")
    assert tri_apsp.shortest_paths(weights, sources=7, method=method).distances.shape == (1, 300)


@pytest.mark.parametrize(("p", "way"), [(4 / 2048, "sparse"), (0.02, "dense")])
def test_auto_counts_the_edges(p: float, way: str) -> None:
    """Of all rows, of dense weights and of a sparse graph; dense weights only if they are read."""
    graph = tri_apsp.prepare(generate("erdos_renyi", 2048, p=p, seed=1), dtype=torch.float32)
    weights = graph.dense().fill_diagonal_(3)  # loops, which are no edges
    assert tri_apsp.select(weights).way == "dense"
    plans = tri_apsp.select(graph), tri_apsp.select(weights, read_values=True)
    assert [plan.way for plan in plans] == [way, way]
    if way == "sparse":
        reason = f"{graph.edges} edges; up to 41943, sparse rows take less time than a dense solve"
        for plan in plans:
            assert plan.reason == reason
            assert (plan.method, plan.engine) == ("many_sources", "cpu")
            assert (plan.config, plan.memory) == (None, 4 * 2048**2)
        found = tri_apsp.shortest_paths(weights)
        assert (found.plan.way, found.method) == ("sparse", "many_sources")
        rows = tri_apsp.shortest_paths(graph, sources=[5, 2000], method="dijkstra").distances
        assert torch.equal(found.distances[[5, 2000]], rows)


@pytest.mark.parametrize(
    ("options", "way"),
    [
        ({}, "sparse"),
        ({"config": Config(engine="cpu")}, "sparse"),  # which runs on it
        ({"config": Config(engine="cpu", block_size=16)}, "dense"),
        ({"method": "kleene"}, "dense"),
        ({"sources": range(101)}, "dense"),  # more than a quarter of the rows
        ({"dtype": torch.int16}, "dense"),
        ({"sources": None, "check": False}, "dense"),
    ],
    ids=str,
)
def test_what_keeps_a_graph_dense(options: dict[str, object], way: str) -> None:
    weights = cases.tensor(cases.random_graph(400, degree=4), torch.float32)
    found = tri_apsp.shortest_paths(weights, **{"sources": [3]} | options)
    assert found.plan.way == way
    sources = [3] if options.get("sources", 3) == 3 else range(101)
    if options.get("sources", 3) is not None:
        expected = tri_apsp.shortest_paths(weights, method="kleene").distances[sources]
        assert np.array_equal(cases.values(found.distances), cases.values(expected))


def test_a_forced_configuration_keeps_a_graph_dense() -> None:
    weights = cases.tensor(cases.random_graph(400, degree=4), torch.float32)
    with tri_apsp.tuned.using(Config(method="kleene")):
        assert tri_apsp.select(weights, sources=3, read_values=True).method == "kleene"


def test_one_row_of_a_complete_graph() -> None:
    """Edge lists that were given are searched; making them of dense weights takes as long as a
    dense solve.
    """
    weights = cases.tensor(cases.CASES["dense"](200), torch.float32)
    found = [
        tri_apsp.shortest_paths(given, sources=7) for given in (weights, sparse_graph(weights))
    ]
    assert [result.plan.way for result in found] == ["dense", "sparse"]
    assert torch.equal(found[0].distances, found[1].distances)


@pytest.mark.parametrize("kind", ["erdos_renyi", "grid"])
@pytest.mark.parametrize("sources", [7, range(31), range(127), range(150)])
def test_select_with_sources(kind: str, sources: int | range) -> None:
    p = 6 / 400 if kind == "erdos_renyi" else None
    graph = sparse_graph(generate(kind, 400, p=p), dtype=torch.float32)
    plan, found = (
        call(graph, sources=sources) for call in (tri_apsp.select, tri_apsp.shortest_paths)
    )
    rows = 1 if isinstance(sources, int) else len(sources)
    eliminated = rows == 150 and kind == "grid"
    assert (plan.way, plan.engine) == (found.plan.way, found.engine) == ("sparse", "cpu")
    assert plan.method == ("dijkstra" if rows < 8 or kind == "grid" else "many_sources")
    assert found.method == ("elimination" if eliminated else plan.method)
    assert ("by elimination if" in plan.reason) == eliminated


def test_select_of_values_that_decide_nothing() -> None:
    weights = cases.tensor(cases.negative_graph(40), torch.float32)
    assert tri_apsp.select(weights, read_values=True).method == tri_apsp.select(weights).method
    for empty in (torch.empty(0, 0), torch.empty(0, 4, 4), torch.empty(3, 0, 0)):
        assert tri_apsp.select(empty, read_values=True).method == "floyd_warshall"


@pytest.mark.parametrize("method", ["johnson", "kleene"])
def test_the_same_error_for_the_same_fault(method: str) -> None:
    """Whichever method the number of edges leads to."""
    wrong = torch.full((30, 30), INF)
    wrong[2, 0] = float("nan")
    beyond = torch.full((30, 30), no_edge(torch.int32), dtype=torch.int32)
    beyond[1, 2] = 2**31 - 1
    for weights in (wrong, beyond):
        with pytest.raises(InputError) as caught:
            tri_apsp.shortest_paths(weights, method=method)
        assert type(caught.value) is InputError
    far = torch.full((4, 4), INF)
    far[0, 1], far[1, 2] = 3e38, 3e38
    with pytest.raises(tri_apsp.DistanceRangeError):
        tri_apsp.shortest_paths(far, method=method)
    assert tri_apsp.shortest_paths(far, sources=1, method="johnson").distances[0, 2] == far[1, 2]


def test_a_sparse_graph_too_large_for_a_matrix() -> None:
    graph = sparse_graph(generate("chain", 3_000_000))
    for method, message in (
        ("auto", "blocks of rows with distance_blocks"),
        ("kleene", "3000000 vertices"),
    ):
        with pytest.raises(TooLargeError, match=message):
            tri_apsp.shortest_paths(graph, method=method)
    found = tri_apsp.shortest_paths(graph, sources=2_999_998)
    assert found.distances[0, -1] < INF
    assert "sparse rows take less time" in found.plan.reason


def test_integers_that_a_dense_solve_does_not_hold() -> None:
    """Beside negative weights it holds fewer; sparse methods hold all."""
    edges = EdgeList(5, *np.array([[0, 1], [1, 2], [3, 4], [0, 3]]).T, np.array([3, -5, 10**9, 2]))
    found = tri_apsp.shortest_paths(edges, dtype=torch.int32)
    assert found.distances[0].tolist() == [0, 3, -2, 2, 10**9 + 2]
    assert found.plan.reason == "a dense solve does not hold these integers"
