"""Against pandana, which cuts weights to thousandths and takes 0.001 for 0."""

import cases
import numpy as np
import pytest
import torch
from peers.graphs import GRAPHS, Graph, assert_paths

import tri_apsp

pd = pytest.importorskip("pandas")
pandana = pytest.importorskip("pandana", reason="needs pandana, which the extras leave out")

THOUSANDTHS = {
    name: graph._replace(weights=np.maximum(0.001, np.floor(8 * graph.weights) / 8))
    for name, graph in GRAPHS.items()
    if graph.least >= 0
}
each = pytest.mark.parametrize("graph", THOUSANDTHS.values(), ids=THOUSANDTHS)


def convert(graph: Graph) -> pandana.Network:
    """Vertex v lies at (v, 0)."""
    x, ends = pd.Series(np.arange(graph.n, dtype=float)), graph.edges
    weights = pd.DataFrame({"weight": graph.weights})
    return pandana.Network(
        x, 0 * x, pd.Series(ends[:, 0]), pd.Series(ends[:, 1]), weights, twoway=not graph.directed
    )


def assert_close(ours: object, theirs: object) -> None:
    """Distances there are float32."""
    np.testing.assert_allclose(np.float64(ours), np.float64(theirs), rtol=1e-6, atol=1e-6)


@each
@pytest.mark.filterwarnings("ignore:Unsigned integer")
def test_pairs(graph: Graph) -> None:
    theirs, (s, t) = convert(graph), np.indices((graph.n, graph.n)).reshape(2, -1)
    found = np.array(theirs.shortest_path_lengths(s, t))
    found[found == 2**32 // 1000 + 0.295] = cases.INF
    assert_close(cases.values(tri_apsp.paired_distances(graph.ours, s, t)), found)
    paths = [[*map(int, path)] for path in theirs.shortest_paths(s, t)]
    rows = zip(s.tolist(), t.tolist(), paths, strict=True)
    assert_paths(graph, (row for row in rows if row[0] != row[1]))


@each
def test_accessibility(graph: Graph) -> None:
    theirs = convert(graph)
    jobs = np.random.default_rng(graph.n).integers(1, 50, graph.n).astype(float)
    theirs.set(pd.Series(range(graph.n)), pd.Series(jobs))
    for limit in (0, 5, 12.5, 30):
        ours = tri_apsp.accessibility(graph.ours, limit + 1e-4, torch.tensor(jobs))
        assert_close(ours, theirs.aggregate(limit, type="sum", decay="flat"))
        count = theirs.aggregate(limit, type="count", decay="flat")
        assert_close(tri_apsp.accessibility(graph.ours, limit + 1e-4), count)


@each
def test_nearest(graph: Graph) -> None:
    """From each vertex to the nearest depot, which is from that against the edges."""
    theirs, depots = convert(graph), sorted({0, graph.n // 3, graph.n // 2})
    theirs.set_pois(
        "depots", 1e3, 2, pd.Series(np.float64(depots)), pd.Series(np.zeros(len(depots)))
    )
    found = theirs.nearest_pois(
        1e3, "depots", num_pois=2, max_distance=cases.INF, include_poi_ids=True
    )
    ours = tri_apsp.nearest(graph.reverse.ours, depots, k=2)
    for rank, distances in enumerate(cases.values(ours.distances)):
        assert_close(distances, found[rank + 1])
        for v in np.isfinite(distances).nonzero()[0]:
            depot = depots[int(found[f"poi{rank + 1}"][v])]
            assert depot == ours.nearest[rank, v] or graph.distances()[v, depot] == pytest.approx(
                distances[v]
            )


@each
def test_limit(graph: Graph) -> None:
    found = convert(graph).nodes_in_range(range(graph.n), 12)
    near = np.full((graph.n, graph.n), cases.INF)
    near[found["source"], found["destination"]] = found["weight"]
    ours = tri_apsp.shortest_paths(graph.ours, sources=range(graph.n), limit=12 + 1e-4).distances
    assert_close(cases.values(ours), near)
