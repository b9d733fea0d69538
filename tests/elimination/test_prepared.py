"""Prepared graphs: orders, other weights, files, and which graphs get an order."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from elimination.reference import graphs, road_grid
from hypothesis import given, settings
from hypothesis import strategies as st

import tri_apsp
from tri_apsp import InputError, PreparedGraph, no_edge, prepare
from tri_apsp.elimination.tree import elimination_tree
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph


def rows(graph: SparseGraph, method: str = "auto") -> torch.Tensor:
    return tri_apsp.shortest_paths(graph, sources=range(graph.n), method=method).distances


@given(graphs(most=20), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_tree_of_any_order(graph: SparseGraph, seed: int) -> None:
    """The filled graph is that of eliminating one vertex after another; each edge leads to an
    ancestor, a subtree is a range of positions, and live values share no slot.
    """
    order = np.random.default_rng(seed).permutation(graph.n)
    tree = elimination_tree(graph, order, 10**9)
    assert tree is not None
    neighbours = [set[int]() for _ in range(graph.n)]
    ends = graph.by_source.owners().tolist(), graph.by_source.vertices.tolist()
    for u, v in zip(*ends, strict=True):
        neighbours[u].add(v)
        neighbours[v].add(u)
    left = set(range(graph.n))
    for v in order.tolist():
        left.discard(v)
        later = neighbours[v] & left
        for u in later:
            neighbours[u] |= later - {u}
        p = tree.positions[v]
        ancestors = tree.ancestors[tree.offsets[p] : tree.offsets[p + 1]]
        assert ancestors.tolist() == sorted(tree.positions[list(later)].tolist())
        assert tree.parents[p] == (ancestors[-1] if len(ancestors) else -1)
        assert all(a < p < tree.ends[a] for a in ancestors)
    slots, live = tree.slots, dict[int, int]()
    last = {int(a): p for p in range(graph.n) for a in ancestors_of(tree, p)}
    for p in range(graph.n):
        live = {a: slot for a, slot in live.items() if last[a] >= p}
        for a in ancestors_of(tree, p):
            assert live[a] == slots[a]
        if p in last:
            live = {a: slot for a, slot in live.items() if last[a] > p}
            assert slots[p] not in live.values()
            assert 0 <= slots[p] < tree.slot_count
            live[p] = int(slots[p])
        else:
            assert slots[p] == -1
    places = np.sort(np.concatenate(tree.parts))
    assert np.array_equal(places, np.arange(graph.n))


def test_parts_of_small_components() -> None:
    """Each position is in one part."""
    weights = torch.full((100, 100), no_edge(torch.int32), dtype=torch.int32)
    weights[range(0, 100, 2), range(1, 100, 2)] = 1
    tree = elimination_tree(sparse_graph(weights), np.arange(100), 10**9)
    assert len(tree.parts) > 2
    assert np.array_equal(np.sort(np.concatenate(tree.parts)), np.arange(100))


def ancestors_of(tree: Any, p: int) -> list[int]:
    found: list[int] = tree.ancestors[tree.offsets[p] : tree.offsets[p + 1]].tolist()
    return found


@pytest.mark.parametrize("symmetric", [False, True])
def test_other_weights_are_as_prepared_anew(symmetric: bool) -> None:
    graph = road_grid(17, seed=1, directed=not symmetric)
    prepared = prepare(graph)
    generator = torch.Generator().manual_seed(1)
    weights = torch.randint(0, 50, (graph.edges,), generator=generator)
    again = prepared.with_weights(weights)
    expected = rows(graph.with_weights(weights), "dijkstra")
    assert again.tree is prepared.tree
    assert torch.equal(rows(again), expected)
    assert torch.equal(rows(prepare(graph.with_weights(weights))), expected)
    batch = prepared.with_weights(torch.stack((weights, 2 * weights)))
    assert [torch.equal(rows(one), k * expected) for k, one in enumerate(batch, 1)] == [True] * 2
    of_graph = prepared.with_weights(graph.with_weights(weights))
    assert torch.equal(rows(of_graph), expected)
    assert torch.equal(rows(prepared), rows(graph, "dijkstra"))


def test_lists_of_weights_and_weights_with_a_gradient() -> None:
    graph = prepare(sparse_graph(road_grid(9), dtype=torch.float64))
    weights = [0.1] * graph.edges
    assert graph.with_weights(weights).dtype == torch.float64
    wanted = torch.full((graph.edges,), 0.1, dtype=torch.float64, requires_grad=True)
    assert torch.equal(rows(graph.with_weights(wanted)), rows(graph.with_weights(weights)))


def test_closed_edges() -> None:
    """Without edges, the order stays; and with them again."""
    graph = road_grid(15, directed=True)
    prepared = prepare(graph)
    weights = graph.by_source.weights.to(torch.float64)
    weights[::7] = torch.inf
    closed = prepared.with_weights(weights)
    kept = weights.isfinite()
    ends = graph.by_source.owners()[kept], graph.by_source.vertices[kept].long()
    fewer = sparse_graph(torch.sparse_coo_tensor(torch.stack(ends), weights[kept], (225, 225)))
    assert closed.edges == fewer.edges < graph.edges
    assert torch.equal(rows(closed), rows(fewer, "dijkstra"))
    assert torch.equal(rows(prepared.with_weights(fewer)), rows(closed))
    assert torch.equal(rows(prepared.with_weights(graph)), rows(prepared))


def test_undirected_weights() -> None:
    one_way = generate("chain", 30)
    prepared = prepare(one_way, directed=False)
    again = prepared.with_weights(sparse_graph(one_way))
    assert torch.equal(rows(again), rows(prepared))
    assert torch.equal(rows(again), rows(again).mT)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.ones(3), r"must have one weight for each of the \d+ edges, but have shape \(3,\)"),
        (torch.ones(2, 2, 2), r"but have shape \(2, 2, 2\)"),
        ("short", "must be a graph of 225 vertices, but have 100; prepare that graph"),
        ("other", "must have no edge that the prepared graph lacks, but have one from 0 to 224"),
        ("nan", "nan"),
        ("names", "must have the vertices of the prepared graph, but the labels of some differ"),
        (torch.ones(840, dtype=torch.int16), "must have one of the dtypes float32"),
    ],
)
def test_weights_of_another_structure(weights: Any, message: str) -> None:
    prepared = prepare(road_grid(15))
    if weights == "short":
        weights = road_grid(10)
    elif weights == "other":
        weights = torch.sparse_coo_tensor([[0], [224]], [1.0], (225, 225))
    elif weights == "names":
        lists = prepared.by_source
        weights = SparseGraph(225, lists, [f"v{v}" for v in range(225)])
    elif weights == "nan":
        weights = torch.full((prepared.edges,), float("nan"))
    with pytest.raises(InputError, match=message):
        prepared.with_weights(weights)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (
            [0, 1],
            r"once, by integers, but is int64 of shape \(2,\)",
        ),
        ([0, 1, 2, 3, 4, 5, 6, 7, 7], "names vertex 7 2 times; give a permutation"),
        (
            [0, 1, 2, 3, 4, 5, 6, 7, 9],
            "must name vertices from 0 to 8, but names 9; give",
        ),
        ("metis", 'must be "auto", "none" or the vertices in an order, but is \'metis\''),
        ([0.5] * 9, r"by integers, but is float64 of shape \(9,\)"),
        (3, r"but is int64 of shape \(\)"),
    ],
)
def test_invalid_orders(order: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare(road_grid(3), order=order)


def test_orders() -> None:
    graph = road_grid(12)
    for order in (list(range(144)), torch.arange(144), np.arange(144)[::-1]):
        prepared = prepare(graph, order=order)
        assert torch.equal(rows(prepared), rows(graph, "dijkstra"))
        assert "as given" in str(prepared)
    assert prepare(graph, order="none").tree is None
    renewed = prepare(graph, order="none").with_order("auto")
    assert renewed.tree is not None
    assert re.search(
        "144 vertices, 528 edges\norder of elimination: by nested dissection.*\n.* filled edges "
        r"per vertex, height \d+, \d+ live slots\nrows, tables, pairs and measures by elimination",
        str(renewed),
    )


def test_graphs_without_small_separators() -> None:
    random = sparse_graph(generate("erdos_renyi", 3000, p=6 / 3000), dtype=torch.float32)
    prepared = prepare(random)
    assert prepared.tree is None
    assert "no small separators" in str(prepared)
    with pytest.raises(
        InputError, match=f"needs .* but 3000 vertices with {random.edges} edges do not; give meth"
    ):
        tri_apsp.shortest_paths(prepared, sources=0, method="elimination")
    assert tri_apsp.shortest_paths(prepared, sources=0).method == "dijkstra"
    for n in (0, 1, 2):
        empty = prepare(torch.full((n, n), torch.inf))
        assert tri_apsp.shortest_paths(empty).distances.shape == (n, n)


def test_select_explains_the_order() -> None:
    plan = tri_apsp.select(prepare(road_grid(20)), sources=3)
    assert plan.method == "elimination"
    assert plan.reason == "rows of a prepared graph; by its order of elimination"


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "roads.npz"
    graph = road_grid(15, directed=True)
    for labels in (range(3, 228), None):
        for order in ("auto", "none"):
            given = SparseGraph(graph.n, graph.by_source, labels)  # type: ignore[arg-type]
            prepared = prepare(given, order=order)
            prepared.save(path)
            loaded = PreparedGraph.load(path)
            assert (loaded.labels, loaded.reason) == (prepared.labels, prepared.reason)
            assert (loaded.tree is None) == (prepared.tree is None)
            assert torch.equal(rows(loaded), rows(prepared))
            assert loaded.directed
            if loaded.tree is not None:
                assert np.array_equal(loaded.tree.positions, prepared.tree.positions)  # type: ignore[union-attr]
                assert loaded.tree.edges == prepared.tree.edges  # type: ignore[union-attr]


@pytest.mark.parametrize("names", [["a", "b", "c"], [1, 5, 2**70], [-1, 5, 2**63 + 1]])
def test_labels_are_saved(tmp_path: Path, names: list[Any]) -> None:
    path = tmp_path / "g.csv"
    path.write_text("".join(f"{u},{v},1\n" for u, v in itertools.pairwise(names)))
    prepared = prepare(tri_apsp.read_sparse_graph(path))
    prepared.save(tmp_path / "g.npz")
    assert list(PreparedGraph.load(tmp_path / "g.npz").labels) == list(prepared.labels)


def test_files_that_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "roads.npz"
    prepare(road_grid(9)).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"damaged or another file .*; prepare the graph again"):
        PreparedGraph.load(path)
    np.savez(path, distances=np.zeros(3))
    with pytest.raises(InputError, match=r"of version 1, but is another file; prepare"):
        PreparedGraph.load(path)
    np.savez(path, tri_apsp_prepared=np.ones(3))
    with pytest.raises(InputError, match=r"must be a prepared graph of version 1"):
        PreparedGraph.load(path)
    np.savez(path, tri_apsp_prepared=1)
    with pytest.raises(InputError, match=r"must be a prepared graph of version 1"):
        PreparedGraph.load(path)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(InputError, match="but is another file"):
        PreparedGraph.load(path)
    np.savez(path, tri_apsp_prepared=7)
    with pytest.raises(InputError, match="has version 7; prepare the graph again"):
        PreparedGraph.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"damaged or another file"):
        PreparedGraph.load(path)
    with pytest.raises(InputError, match=r"must end in \.npz, but is roads\.txt"):
        prepare(road_grid(3)).save(tmp_path / "roads.txt")
    with pytest.raises(InputError, match=r"must be writable, but .* is not"):
        prepare(road_grid(3)).save(tmp_path / "nowhere" / "roads.npz")
    with pytest.raises(FileNotFoundError):
        PreparedGraph.load(tmp_path / "none.npz")


def test_measures_by_elimination() -> None:
    graph = road_grid(14, directed=True)
    prepared = prepare(graph)
    plain = prepare(graph, order="none")
    assert prepared.sweeps is not None
    for measure in (
        tri_apsp.closeness,
        tri_apsp.eccentricities,
        lambda g, weighted: torch.tensor(tri_apsp.diameter(g, weighted=weighted)),
        lambda g, weighted: torch.tensor(tri_apsp.mean_distance(g, weighted=weighted)),
    ):
        assert torch.equal(measure(prepared, weighted=True), measure(plain, weighted=True))


def test_nearest_and_betweenness_of_a_prepared_graph() -> None:
    """The further vertex of the first has no place in the order; the second needs equal sums."""
    graph = road_grid(14)
    tenths = graph.with_weights(graph.by_source.weights.to(torch.float64) * 0.1)
    prepared, plain = prepare(tenths), prepare(tenths, order="none")
    found, expected = (
        tri_apsp.nearest(g, [3, 77, 190], predecessors=True) for g in (prepared, plain)
    )
    assert found.method == expected.method == "dijkstra"
    assert torch.equal(found.predecessors, expected.predecessors)  # type: ignore[arg-type]
    measures = (tri_apsp.betweenness(g, weighted=True) for g in (prepared, plain))
    assert torch.equal(*measures)


def test_limits_of_any_form() -> None:
    graph = prepare(road_grid(9))
    expected = tri_apsp.accessibility(graph, [50, 100])
    for limits in ((50, 100), torch.tensor([50.0, 100.0]), np.array([50, 100])):
        assert torch.equal(tri_apsp.accessibility(graph, limits), expected)  # type: ignore[arg-type]
    assert torch.equal(tri_apsp.accessibility(graph, 50), expected[0])
    assert tri_apsp.accessibility(graph, 0, [0.1] * 81).tolist() == [0.1] * 81
    for wrong in (-1, "far", [None]):
        with pytest.raises(InputError, match="`limits` must be a number that is not negative"):
            tri_apsp.accessibility(graph, wrong)  # type: ignore[arg-type]
    for values, message in (
        (torch.ones(3), r"must have one value for each of the 81 vertices, .* shape \(3,\)"),
        (torch.full((81,), torch.nan), "must be finite, but that of vertex 0 is nan"),
    ):
        with pytest.raises(InputError, match=message):
            tri_apsp.accessibility(graph, 50, values)


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("offsets", lambda x: x[:-1]),
        ("offsets", lambda x: x + 1),
        ("offsets", lambda x: np.where(np.arange(len(x)) == 3, 10**6, x)),
        ("vertices", lambda x: x[:-1]),
        ("vertices", lambda x: x - 1),
        ("vertices", lambda x: x[::-1].copy()),
        ("weights", lambda x: x * np.nan),
        ("order", lambda x: x[:-1]),
        ("order", lambda x: x + 1),
        ("offsets", lambda x: x.astype(float)),
        ("offsets", lambda x: x[:, None]),
        ("offsets", lambda x: np.array([0, 2**63 - 1, -2, *x[3:]])),
        ("vertices", lambda x: x.astype(float)),
        ("weights", lambda x: x.astype(complex)),
        ("weights", lambda x: x.astype(">f4")),
        ("has_order", lambda x: np.empty(0, bool)),
        ("has_order", lambda x: np.array("no")),
        ("directed", lambda x: np.ones(2, bool)),
        ("kind_of_labels", lambda x: np.array("names")),
        ("labels", lambda x: np.array([0, 81, 0])),
        ("labels", lambda x: np.array([0, 80, 1])),
        ("labels", lambda x: np.array(["0", "81", "one"])),
        ("reason", lambda x: np.frombuffer(b"\xff" * 16, "U4")),
        ("reason", lambda x: np.frombuffer(b"\xff" * 16, "U4").reshape(())),
    ],
)
def test_files_with_other_content(tmp_path: Path, key: str, change: Any) -> None:
    path = tmp_path / "roads.npz"
    prepare(road_grid(9)).save(path)
    with np.load(path) as file:
        found = {name: file[name] for name in file.files}
    np.savez(path, **{**found, key: change(found[key])})
    with pytest.raises(
        InputError, match=r"must be a file that .*; prepare the graph again|`order`"
    ):
        PreparedGraph.load(path)


@pytest.mark.parametrize("labels", [["b", "a", "c"], ["a", "a", "b"]])
def test_labels_that_do_not_ascend(tmp_path: Path, labels: list[str]) -> None:
    path = tmp_path / "g.npz"
    prepare(torch.ones(3, 3)).save(path)
    with np.load(path) as file:
        found = {name: file[name] for name in file.files}
    np.savez(path, **found | {"kind_of_labels": "ids", "labels": labels})
    with pytest.raises(InputError, match="its labels do not ascend"):
        PreparedGraph.load(path)


def test_an_unknown_compression(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    prepare(torch.ones(3, 3)).save(path)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\1\2") + 10] ^= 64
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"another file .*compression method is not supported"):
        PreparedGraph.load(path)


def test_what_keeps_the_order() -> None:
    graph = road_grid(20, directed=True)
    prepared = prepare(graph)
    both = prepared.both_ways()
    assert both.tree is prepared.tree  # type: ignore[attr-defined]
    for options in ({"directed": False}, {"dtype": torch.float64}):
        found, expected = (
            tri_apsp.shortest_paths(g, sources=range(40), method=method, **options)
            for g, method in ((prepared, "auto"), (graph, "dijkstra"))
        )
        assert found.method == "elimination"
        assert torch.equal(found.distances, expected.distances)


def test_a_small_limit_takes_a_search() -> None:
    prepared = prepare(road_grid(60))
    for limit, method in ((60, "dijkstra"), (5000, "elimination")):
        assert tri_apsp.shortest_paths(prepared, sources=[5, 77], limit=limit).method == method


@pytest.mark.parametrize("weights", [None, "traffic", ["a"] * 840, object()])
def test_invalid_weights(weights: Any) -> None:
    with pytest.raises(InputError, match="`weights` must be numbers, one for each edge"):
        prepare(road_grid(15)).with_weights(weights)
