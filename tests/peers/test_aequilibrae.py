"""Against AequilibraE."""

import cases
import numpy as np
import pytest
from peers.graphs import GRAPHS, Graph, assert_paths, assert_same

import tri_apsp

pd = pytest.importorskip("pandas")
paths = pytest.importorskip(
    "aequilibrae.paths", reason="needs AequilibraE, which the extras leave out"
)

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
# Every vertex needs a link there.
LINKED = {
    name: graph
    for name, graph in GRAPHS.items()
    if graph.least >= 0 and len(np.unique(graph.edges)) == graph.n
}
each = pytest.mark.parametrize("graph", LINKED.values(), ids=LINKED)


def convert(graph: Graph, zones: np.ndarray) -> paths.Graph:
    """Vertex v is node v + 1; paths may pass through zones."""
    network = {
        "link_id": np.arange(len(graph.edges)) + 1,
        "a_node": graph.edges[:, 0] + 1,
        "b_node": graph.edges[:, 1] + 1,
        "direction": 1 if graph.directed else 0,
        "time": graph.weights.astype(float),
        "links": 1.0,
    }
    made = paths.Graph()
    made.network = pd.DataFrame(network)
    made.prepare_graph(zones + 1, remove_dead_ends=False)
    made.set_graph("time")
    made.set_skimming(["time", "links"])
    made.set_blocked_centroid_flows(False)
    return made


@each
def test_tables(graph: Graph) -> None:
    # With fewer zones, AequilibraE joins one-way links of opposite directions into one.
    zones = np.arange(0, graph.n, 1 if graph.directed else 3)
    skims = convert(graph, zones).compute_skims(cores=1).results.skims
    times, links = skims.get_matrix("time"), skims.get_matrix("links")
    ours = tri_apsp.shortest_paths(graph.ours, sources=zones, targets=zones, predecessors=True)
    distances, found = cases.values(ours.distances), ~np.isnan(times)
    assert found[np.isin(zones, [s for s, _ in graph.lightest])].all()  # the origin of some link
    assert_same(distances[found], times[found])
    if graph.weights.dtype == float:  # no two paths have the same weight
        for s, t in np.argwhere(found & (distances < cases.INF)):
            assert len(ours.path(zones[s], zones[t])) - 1 == links[s, t]


@pytest.mark.parametrize("name", [name for name, graph in LINKED.items() if graph.is_simple])
def test_paths(name: str) -> None:
    """Of parallel links, a heavier one may be taken there."""
    graph, found = LINKED[name], paths.PathResults()
    found.prepare(convert(graph, np.arange(graph.n)))
    distances, rows = graph.distances(), []
    for s in sorted({s for s, _ in graph.lightest})[:5]:
        found.compute_path(s + 1, 1 + (s == 0))
        assert_same(distances[s], found.skims[1:, 0])
        for t in {*range(graph.n)} - {s}:
            found.update_trace(t + 1)
            nodes = [] if found.path_nodes is None else found.path_nodes
            rows.append((s, t, [int(node) - 1 for node in nodes]))
    assert_paths(graph, rows)
