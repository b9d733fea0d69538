"""Which graphs are solved by Johnson's algorithm, and that all forms of a graph give the same
distances.
"""

from __future__ import annotations

import cases
import pytest
import scipy.sparse
import torch

import tri_apsp
from tri_apsp import Config, InputError, TooLargeError, device
from tri_apsp.graphs import EdgeList, generate
from tri_apsp.graphs.sparse import sparse_graph
from tri_apsp.sparse import choice, dense_or_sparse

INF = float("inf")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules under which small graphs are sparse."""
    monkeypatch.setattr(choice, "_LEAST_VERTICES", {"cpu": 20, "cuda": 20})
    monkeypatch.setattr(choice, "_OPERATIONS_PER_EDGE", {"cpu": 4, "cuda": 4})


def forms(weights: torch.Tensor) -> list[object]:
    """One graph as a tensor of each sparse layout, SciPy's formats and a list of edges."""
    n = len(weights)
    sources, targets = (weights != tri_apsp.no_edge(weights.dtype)).nonzero().unbind(1)
    values = weights[sources, targets]
    coo = torch.sparse_coo_tensor(torch.stack((sources, targets)), values, (n, n))
    array = scipy.sparse.coo_array(
        (values.numpy(), (sources.numpy(), targets.numpy())), shape=(n, n)
    )
    return [
        coo,
        coo.to_sparse_csr(),
        coo.to_sparse_csc(),
        array,
        array.tocsr(),
        array.tocsc(),
        EdgeList(n, sources.numpy(), targets.numpy(), values.numpy()),
    ]


@pytest.mark.parametrize("method", ["auto", "johnson", "kleene"])
@pytest.mark.parametrize("name", ["random", "negative", "disconnected"])
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
        assert method in ("auto", found.method)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int16])
@pytest.mark.parametrize("method", ["auto", "floyd_warshall"])
def test_rows_of_dense_weights(method: str, dtype: torch.dtype, small: None) -> None:
    weights = cases.tensor(cases.random_graph(60), dtype)
    every = tri_apsp.shortest_paths(weights, predecessors=True)
    found = tri_apsp.shortest_paths(weights, sources=[7, 3], method=method, predecessors=True)
    assert torch.equal(found.distances, every.distances[[7, 3]])
    assert torch.equal(found.predecessors, every.predecessors[[7, 3]])
    assert found.sources.tolist() == [7, 3]
    assert found.path(3, 20) == every.path(3, 20)
    assert found.method == (
        "johnson" if method == "auto" and dtype != torch.int16 else "floyd_warshall"
    )
    assert tri_apsp.shortest_paths(weights, sources=7).distances.shape == (1, 60)


def test_auto_counts_the_edges(small: None) -> None:
    few, many = (
        cases.tensor(cases.random_graph(60, degree=degree), torch.float32) for degree in (4, 40)
    )
    for weights, method in (
        (few, "johnson"),
        (many, "floyd_warshall"),
        (few[:19, :19], "floyd_warshall"),
    ):
        found, chosen = tri_apsp.shortest_paths(weights), tri_apsp.select(weights, read_values=True)
        assert found.method == chosen.method == method
        assert (found.config is None) == (chosen.config is None) == (method == "johnson")
        sparse = weights.masked_fill(weights == INF, 0).to_sparse_csr()  # no weight is 0
        assert tri_apsp.select(sparse).method == method
        assert tri_apsp.select(weights).method == "floyd_warshall"
        assert torch.equal(
            found.distances, tri_apsp.shortest_paths(weights, method="kleene").distances
        )
    edges = int((few != INF).sum() - (few.diagonal() != INF).sum())
    reason = f"{edges} edges; up to 900, sparse rows take less time than a dense solve"
    assert tri_apsp.select(few, read_values=True).reason == reason
    assert tri_apsp.select(few[:19, :19].to_sparse_csr()).reason.startswith("one block")
    assert (
        tri_apsp.shortest_paths(few, config=Config(engine="cpu")).method == "johnson"
    )  # which runs on it
    assert tri_apsp.select(few, config=Config(engine="cpu"), read_values=True).method == "johnson"
    assert (
        tri_apsp.shortest_paths(few, config=Config(engine="cpu", block_size=16)).method
        == "floyd_warshall"
    )
    assert tri_apsp.shortest_paths(few, check=False).method == "floyd_warshall"
    assert (
        tri_apsp.shortest_paths(few.to(torch.int16)[None].clamp(max=16383)).method
        == "floyd_warshall"
    )
    with tri_apsp.tuned.using(Config(method="kleene")):
        assert tri_apsp.shortest_paths(few).method == "kleene"


def test_one_row_of_a_complete_graph() -> None:
    """Edge lists that were given are searched; making them of dense weights takes as long as a
    dense solve.
    """
    weights = cases.tensor(cases.CASES["dense"](200), torch.float32)
    found = [
        tri_apsp.shortest_paths(given, sources=7) for given in (weights, sparse_graph(weights))
    ]
    assert [result.method for result in found] == ["floyd_warshall", "johnson"]
    assert torch.equal(found[0].distances, found[1].distances)


@pytest.mark.parametrize("kind", ["erdos_renyi", "grid"])
@pytest.mark.parametrize("sources", [7, [7], range(31), range(32), range(100), range(400)])
def test_select_with_sources(kind: str, sources: int | range, small: None) -> None:
    graph = sparse_graph(
        generate(kind, 400, p=6 / 400 if kind == "erdos_renyi" else None), dtype=torch.float32
    )
    chosen, found = (
        tri_apsp.select(graph, sources=sources),
        tri_apsp.shortest_paths(graph, sources=sources),
    )
    assert (chosen.method, chosen.engine) == (found.method, found.engine) == ("johnson", "cpu")
    method = tri_apsp.single_source(graph, sources).method
    rows = 1 if isinstance(sources, int) else len(sources)
    by = (
        f"elimination if it stays sparse, else {choice.choose(graph, rows)}"
        if 4 * rows >= 400
        else method
    )
    assert chosen.reason.endswith(f"sparse rows take less time than a dense solve; rows by {by}")
    assert method in by


def test_select_with_sources_of_dense_weights() -> None:
    weights = cases.tensor(cases.random_graph(40), torch.float32)
    for sources in (None, 3):
        found = tri_apsp.select(weights, sources=sources, read_values=True)
        assert found.method == tri_apsp.shortest_paths(weights, sources=sources).method
    assert tri_apsp.select(weights, sources=3, method="kleene").method == "kleene"
    with pytest.raises(InputError, match=r"`sources` must lie in \[0, 40\), but one is 40"):
        tri_apsp.select(weights, sources=40)
    with pytest.raises(InputError, match="`sources` need one graph"):
        tri_apsp.select(weights[None], sources=[0])


def test_edges_are_counted_without_the_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_or_sparse, "_AT_A_TIME", 300)
    for weights in (
        cases.tensor(cases.random_graph(60), torch.int32),
        torch.zeros(60, 60),
        torch.full((60, 60), INF),
    ):
        n = len(weights)
        edges = sum(
            int(weights[i, j] != tri_apsp.no_edge(weights.dtype))
            for i in range(n)
            for j in range(n)
            if i != j
        )
        assert dense_or_sparse._count_edges(weights, 10**6) == edges
        assert dense_or_sparse._count_edges(weights, edges - 1) is None
    assert dense_or_sparse._count_edges(torch.ones(30, 30, dtype=torch.bool), 10**6) == 30 * 29


def test_select_takes_negative_weights_and_no_vertex() -> None:
    weights = cases.tensor(cases.negative_graph(40), torch.float32)
    assert tri_apsp.select(weights, read_values=True).method == tri_apsp.select(weights).method
    for empty in (torch.empty(0, 0), torch.empty(0, 4, 4), torch.empty(3, 0, 0)):
        assert tri_apsp.select(empty, read_values=True).method == "floyd_warshall"


def test_negative_cycles(small: None) -> None:
    weights = torch.full((40, 40), INF)
    weights[0, 1], weights[1, 0], weights[2, 0], weights[3, 4] = 1, -2, 1, 1
    with pytest.raises(tri_apsp.NegativeCycleError) as caught:
        tri_apsp.shortest_paths(weights)
    assert sorted(caught.value.vertices) == [0, 1]
    marked = tri_apsp.shortest_paths(weights, negative_cycles="mark")
    assert marked.method == "johnson"
    assert torch.equal(
        marked.distances,
        tri_apsp.shortest_paths(weights, negative_cycles="mark", method="kleene").distances,
    )
    rows = tri_apsp.shortest_paths(weights, sources=[3], negative_cycles="raise")
    assert rows.distances[0, 4] == 1  # from which no negative cycle is reached


@pytest.mark.parametrize("method", ["johnson", "kleene"])
def test_only_cycles_that_a_source_reaches_count(method: str) -> None:
    weights = torch.full((30, 30), INF)
    weights[0, 1], weights[1, 0], weights[2, 3] = -2, 1, 1
    for choice_of in ("raise", "mark"):
        found = tri_apsp.shortest_paths(
            weights, sources=[2], method=method, negative_cycles=choice_of
        )
        assert found.distances[0, 3] == 1
        assert found.negative_cycle is None
    with pytest.raises(tri_apsp.NegativeCycleError):
        tri_apsp.shortest_paths(weights, sources=[2, 0], method=method)
    marked = tri_apsp.shortest_paths(weights, sources=[2, 0], method=method, negative_cycles="mark")
    assert sorted(marked.negative_cycle.vertices) == [0, 1]


@pytest.mark.parametrize("method", ["johnson", "kleene"])
def test_a_distance_beyond_floats(method: str) -> None:
    weights = torch.full((4, 4), INF)
    weights[0, 1], weights[1, 2] = 3e38, 3e38
    with pytest.raises(tri_apsp.DistanceRangeError):
        tri_apsp.shortest_paths(weights, method=method)
    assert tri_apsp.single_source(weights, 1).distances[0, 2] == weights[1, 2]


def test_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "free_memory", lambda _: 10**9)
    graph = sparse_graph(generate("chain", 1_000_000))
    for predecessors in (False, True):
        with pytest.raises(
            TooLargeError,
            match="distances from 100000 sources to 1000000 vertices must fit the memory",
        ):
            tri_apsp.single_source(graph, range(100_000), predecessors=predecessors)


def test_the_same_error_for_the_same_fault() -> None:
    """Whichever method the number of edges leads to."""
    wrong = torch.full((30, 30), INF)
    wrong[2, 0] = float("nan")
    beyond = torch.full((30, 30), tri_apsp.no_edge(torch.int32), dtype=torch.int32)
    beyond[1, 2] = 2**31 - 1
    for weights in (wrong, beyond):
        for method in ("johnson", "kleene"):
            with pytest.raises(InputError) as caught:
                tri_apsp.shortest_paths(weights, method=method)
            assert type(caught.value) is InputError


def test_a_sparse_graph_too_large_for_a_matrix() -> None:
    graph = generate("chain", 3_000_000)
    for method, message in (
        ("auto", "blocks of rows with all_pairs"),
        ("kleene", "3000000 vertices"),
    ):
        with pytest.raises(TooLargeError, match=message):
            tri_apsp.shortest_paths(graph, method=method)
    assert tri_apsp.shortest_paths(graph, sources=2_999_998).distances[0, -1] < INF


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"sources": [0], "overwrite": True},
            "`overwrite` is for dense methods .*, but is given with `sources`; leave one",
        ),
        (
            {"method": "johnson", "check": False},
            "`check=False` is for dense methods .*, but is given with method='johnson'",
        ),
        ({"sources": [40]}, r"`sources` must lie in \[0, 40\), but one is 40"),
        ({"sources": []}, "`sources` must name at least one vertex"),
        (
            {"weights": torch.zeros(2, 2).to_sparse_bsr((1, 1))},
            r"convert it with weights\.to_dense\(\)\.to_sparse_csr\(\)",
        ),
        (
            {"method": "johnson", "config": Config(engine="nvidia")},
            "`config` may only name .*'cpu' .*{'engine': 'nvidia'}",
        ),
        (
            {"method": "johnson", "config": Config(block_size=32)},
            "with method 'johnson', but sets {'block_size': 32}; leave",
        ),
        ({"method": "johnson", "config": "cpu"}, "config must be a tri_apsp.Config, but is str"),
        ({"method": "dijkstra"}, "`method` must be one of auto, .*johnson, but is 'dijkstra'"),
        ({"predecessors": 1, "method": "johnson"}, "`predecessors` must be True or False"),
        (
            {"negative_cycles": "skip", "method": "johnson"},
            "`negative_cycles` must be 'raise' or 'mark'",
        ),
    ],
)
def test_bad_arguments(arguments: dict, message: str) -> None:
    weights = cases.tensor(cases.random_graph(40), torch.float32)
    with pytest.raises(InputError, match=message):
        tri_apsp.shortest_paths(**{"weights": weights} | arguments)


def test_what_johnson_does_not_take() -> None:
    for weights, why in (
        (torch.zeros(2, 3, 3), "a batch is"),
        (torch.zeros(3, 3, dtype=torch.int16), "int16 is"),
    ):
        with pytest.raises(
            InputError,
            match=f"method 'johnson' needs one graph in float32.*, but {why} for dense methods",
        ):
            tri_apsp.shortest_paths(weights, method="johnson")
        if weights.dim() == 3:
            with pytest.raises(InputError, match="`sources` need one graph"):
                tri_apsp.shortest_paths(weights, sources=[0])
