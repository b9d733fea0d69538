"""Columns of chosen targets, edges that count in both directions, a chosen value for no path."""

import math
from pathlib import Path

import cases
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

import tri_apsp
from tri_apsp import no_edge
from tri_apsp.errors import DistanceRangeError, InputError, InputTypeError
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import sparse_graph
from tri_apsp.semirings import largest_distance
from tri_apsp.sparse.plan import ROW_METHODS, plan_sparse
from tri_apsp.sparse.run import SparseSolver, run
from tri_apsp.sparse.settle import settle

SOURCES, TARGETS = [7, 0, 7], [5, 60, 5, 1]
DENSE = "floyd_warshall"


def graph_of(dtype: torch.dtype, name: str = "random") -> torch.Tensor:
    graphs = {"random": cases.random_graph(70), "negative": cases.negative_graph(70)}
    return cases.tensor(graphs[name], dtype)


@cases.every_sparse_dtype
@pytest.mark.parametrize("method", ["auto", "johnson", DENSE, *ROW_METHODS])
@pytest.mark.parametrize("name", ["random", "negative"])
def test_targets(name: str, method: str, dtype: torch.dtype) -> None:
    weights = graph_of(dtype, name)
    expected = tri_apsp.shortest_paths(weights).distances
    result = tri_apsp.shortest_paths(weights, sources=SOURCES, targets=TARGETS, method=method)
    assert torch.equal(result.distances, expected[SOURCES][:, TARGETS])
    assert result.targets.tolist() == TARGETS
    many = [*range(len(weights) - 1, 0, -1), 3]  # as many as there are vertices
    found = tri_apsp.shortest_paths(weights, sources=SOURCES, targets=many, method=method)
    assert torch.equal(found.distances, expected[SOURCES][:, many])
    one = tri_apsp.shortest_paths(weights, sources=7, targets=5, method=method).distances
    assert one.tolist() == [[expected[7, 5].item()]]


def test_a_table_is_solved_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the whole graph, of which only ten are held at a time, are not needed."""
    monkeypatch.setattr("tri_apsp.sparse.plan._PER_BLOCK", 10 * 1600)
    graph = tri_apsp.prepare(sparse_graph(generate("grid", 1600, seed=1), dtype=torch.int64))
    sources, targets = torch.arange(0, 1600, 3), torch.arange(20)
    plan = plan_sparse(graph, reason="a test", sources=sources, targets=targets)
    fractions = list[float]()
    found = run(graph, plan, progress=fractions.append)
    assert fractions == [1.0]
    expected = tri_apsp.shortest_paths(graph, sources=sources).distances
    assert torch.equal(found.distances, expected[:, targets])


def test_blocks_of_rows_go_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the next are solved; an error leaves what was there."""
    for module in ("request", "sparse.plan", "sparse.run"):
        monkeypatch.setattr(f"tri_apsp.{module}.ROWS", 10)
    graph = tri_apsp.prepare(sparse_graph(generate("grid", 400, seed=1), dtype=torch.int64))
    sources, path = torch.arange(0, 400, 9), tmp_path / "d.npy"
    for targets in (None, torch.arange(399, 0, -1)):
        for predecessors in (False, True):
            options = {"sources": sources, "targets": targets, "predecessors": predecessors}
            expected = tri_apsp.shortest_paths(graph, **options)
            found = tri_apsp.shortest_paths(graph, **options, out=path)
            assert found.plan.memory < expected.plan.memory
            assert torch.equal(torch.from_numpy(np.load(path)), expected.distances)
            assert torch.equal(found.distances, expected.distances)
            if predecessors:
                assert found.path(9, 2) == expected.path(9, 2)
    before = path.read_bytes()
    far = sparse_graph(scipy.sparse.eye_array(40, k=1) * 2e38, dtype=torch.float32)
    with pytest.raises(DistanceRangeError):
        tri_apsp.shortest_paths(far, sources=range(40), out=path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["d.npy"]


@pytest.mark.gpu
def test_blocks_of_rows_go_to_the_host() -> None:
    graph = tri_apsp.prepare(
        sparse_graph(generate("roads", 3000, seed=1), device=torch.device("cuda"))
    )
    sources, targets = torch.arange(0, 3000, 2), torch.arange(2999, 0, -1)
    expected = tri_apsp.shortest_paths(graph, sources=sources, targets=targets).distances
    out = torch.empty(expected.shape)
    found = tri_apsp.shortest_paths(graph, sources=sources, targets=targets, out=out)
    assert found.distances is out
    assert torch.equal(out, expected.cpu())
    options = {"sources": sources, "predecessors": True}
    found = tri_apsp.shortest_paths(graph, **options, out=torch.empty(1500, 3000))
    expected = tri_apsp.shortest_paths(graph, **options)
    assert found.path(8, 2999) == expected.path(8, 2999)


def test_targets_of_many_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are solved together; also to the nearest source, within a limit, and in a file."""
    monkeypatch.setattr("tri_apsp.sparse.plan._PER_BLOCK", 500)
    graph = sparse_graph(generate("grid", 400, seed=1), dtype=torch.int64)
    expected = tri_apsp.shortest_paths(graph.dense()).distances
    sources, targets = torch.arange(0, 400, 3), torch.arange(399, 0, -5)
    found = tri_apsp.shortest_paths(graph, sources=sources, targets=targets, method="johnson")
    assert torch.equal(found.distances, expected[sources][:, targets])
    nearest = tri_apsp.nearest(graph, sources, targets=targets)
    assert torch.equal(nearest.distances[0], expected[sources].amin(0)[targets])
    limited = tri_apsp.shortest_paths(graph, sources=sources, targets=targets, limit=9)
    beyond = expected[sources][:, targets] > 9
    assert torch.equal(limited.distances, found.distances.masked_fill(beyond, no_edge(torch.int64)))


def test_a_search_ends_at_its_targets() -> None:
    """In a chain whose end is far beyond the range of the dtype."""
    n, dtype = 40, torch.int32
    weights = torch.full((n, n), no_edge(dtype), dtype=dtype)
    weights[range(n - 1), range(1, n)] = 1 << 27
    found = tri_apsp.shortest_paths(weights, sources=0, targets=3, limit=1 << 29, method="dijkstra")
    assert found.distances.tolist() == [[3 << 27]]
    for options in {}, {"predecessors": True}:
        found = tri_apsp.shortest_paths(weights, sources=0, targets=3, method="dijkstra", **options)
        assert found.distances.tolist() == [[3 << 27]]
        with pytest.raises(DistanceRangeError):
            tri_apsp.shortest_paths(weights, sources=0, targets=39, method="dijkstra", **options)
    pairs = tri_apsp.paired_distances(weights, [0, 36], [3, 39])
    assert pairs.tolist() == [3 << 27, 3 << 27]  # though 39 is too far from 0


@cases.every_sparse_dtype
def test_columns_in_their_order(dtype: torch.dtype) -> None:
    """As many targets as vertices, and sums that may not fit."""
    prepared = tri_apsp.prepare(sparse_graph(generate("roads", 400, seed=1), dtype=dtype))
    expected = tri_apsp.shortest_paths(prepared, sources=[0]).distances
    scale = 2 ** int(math.log2(largest_distance(dtype) / expected.max()))
    graph = prepared.with_weights(prepared.by_source.weights * torch.tensor(scale, dtype=dtype))
    assert not graph.sums_fit
    found = tri_apsp.shortest_paths(graph, sources=[0], targets=range(graph.n)[::-1]).distances
    assert torch.equal(found, expected.flip(1) * torch.tensor(scale, dtype=dtype))


@pytest.mark.parametrize("order", ["auto", "none"])
def test_no_pairs(order: str) -> None:
    graph = tri_apsp.prepare(sparse_graph(generate("roads", 400, seed=1)), order=order)
    assert tri_apsp.paired_distances(graph, [], []).shape == (0,)
    assert len(tri_apsp.paired_paths(graph, [], [])) == 0


def test_accessibility_within_limits_needs_no_farther_distance() -> None:
    weights = torch.full((4, 4), no_edge(torch.int32), dtype=torch.int32)
    weights[0, 1], weights[1, 2], weights[2, 3] = 5, 2**29, 2**29
    assert tri_apsp.accessibility(weights, [4, 5, 10])[:, 0].tolist() == [1, 2, 2]


@pytest.mark.parametrize("order", ["auto", "none"])
@pytest.mark.parametrize("sources", [None, range(1, 1400)])
def test_many_rows_in_out(order: str, sources: range | None) -> None:
    """In its memory, without another matrix; also where that has gaps."""
    graph = tri_apsp.prepare(sparse_graph(generate("roads", 1400, seed=1)), order=order)
    expected = tri_apsp.shortest_paths(graph, sources=sources).distances
    both = torch.full((2, *expected.shape), -1, dtype=graph.dtype)
    for out in both[0], both.permute(1, 2, 0)[:, :, 1]:
        found = tri_apsp.shortest_paths(graph, sources=sources, out=out)
        assert found.distances is out
        assert torch.equal(out, expected)
    plan = tri_apsp.select(graph, sources=sources, out=both[0])
    assert plan.memory == 1024 * graph.n * graph.dtype.itemsize


def test_blocks_in_any_order() -> None:
    """Of all vertices, solved together in another order, as processes that share them may do."""
    graph = tri_apsp.prepare(sparse_graph(generate("roads", 300, seed=1)))
    solver = SparseSolver(settle(graph, plan_sparse(graph, reason="a test")))
    whole = solver.solve(solver.sources).distances
    assert torch.equal(solver.solve(solver.sources.flip(0)).distances, whole.flip(0))


@pytest.mark.parametrize("method", ["auto", DENSE, *ROW_METHODS])
@pytest.mark.parametrize("name", ["random", "negative"])
def test_paths_to_targets(name: str, method: str) -> None:
    weights = graph_of(torch.int32, name)
    options = {"sources": SOURCES, "method": method, "predecessors": True}
    whole = tri_apsp.shortest_paths(weights, **options)
    found = tri_apsp.shortest_paths(weights, targets=TARGETS, **options)
    assert torch.equal(found.distances, whole.distances[:, TARGETS])
    assert torch.equal(found.predecessors, whole.predecessors)
    ends = [source for source in SOURCES for _ in TARGETS], TARGETS * len(SOURCES)
    assert all(map(torch.equal, found.paths(*ends), whole.paths(*ends)))
    with pytest.raises(InputError, match="must be one of the result's 4 targets, but one is 2"):
        found.path(7, 2)
    with pytest.raises(InputError, match="must be one of the result's 3 sources, but one is 1"):
        found.path(1, 5)


def test_targets_are_refused() -> None:
    weights = graph_of(torch.float32)
    refused = [
        ({"targets": 1}, "`targets` needs `sources`"),
        ({"sources": 1, "targets": []}, "`targets` must name at least one vertex"),
        ({"sources": 1, "targets": 70}, r"`targets` must lie in \[0, 70\), but one is 70"),
    ]
    for options, message in refused:
        with pytest.raises(InputError, match=message):
            tri_apsp.shortest_paths(weights, **options)


@cases.every_sparse_dtype
def test_both_directions(dtype: torch.dtype) -> None:
    graph = nx.gnm_random_graph(50, 80, seed=1, directed=True)
    for source, target in graph.edges:
        graph[source][target]["weight"] = (source * target) % 11
    weights = tri_apsp.from_networkx(graph, dtype=dtype)
    expected = tri_apsp.shortest_paths(torch.minimum(weights, weights.mT)).distances
    given = weights.clone()
    for found in (
        tri_apsp.shortest_paths(weights, directed=False),
        tri_apsp.shortest_paths(tri_apsp.prepare(weights), directed=False),
        tri_apsp.shortest_paths(tri_apsp.prepare(weights, directed=False)),
        tri_apsp.shortest_paths(torch.stack((weights, weights)), directed=False),
    ):
        assert torch.equal(found.distances.expand(2, 50, 50), expected.expand(2, 50, 50))
    assert torch.equal(weights, given)
    hops = tri_apsp.hops(tri_apsp.prepare(weights, directed=False))
    assert torch.equal(hops, hops.T)
    with pytest.raises(InputError, match="`directed=False` must not be given with `out=graph`"):
        tri_apsp.shortest_paths(weights, directed=False, out=weights)


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_a_value_for_no_path(dtype: torch.dtype, tmp_path: object) -> None:
    weights = cases.tensor(cases.CASES["disconnected"](20), dtype)
    plain = tri_apsp.shortest_paths(weights, predecessors=True)
    missing = plain.distances == no_edge(dtype)
    expected = plain.distances.masked_fill(missing, -1)
    assert torch.equal(plain.filled(-1), expected)
    assert torch.equal(plain.distances == no_edge(dtype), missing)  # unchanged
    path = tmp_path / "d.npy"  # type: ignore[operator]
    tri_apsp.write_distances(plain.distances, path, no_path=-1)
    assert np.array_equal(np.load(path), expected.numpy())
    tri_apsp.write_distances(plain.distances, path.with_suffix(".csv"), no_path=-1)
    assert np.array_equal(np.loadtxt(path.with_suffix(".csv"), delimiter=","), expected.numpy())


def test_a_value_for_no_path_is_refused() -> None:
    result = tri_apsp.shortest_paths(graph_of(torch.int16))
    for value, error, message in (
        (0, InputError, "must differ from every distance, but one is 0"),
        (1 << 15, InputError, "must be a value of int16, as the others are, but is 32768"),
        (0.5, InputError, "must be a value of int16, as the others are, but is 0.5"),
        ("none", InputTypeError, "must be a value of int16, as the others are, but is 'none'"),
    ):
        with pytest.raises(error, match=message):
            result.filled(value)  # type: ignore[arg-type]
