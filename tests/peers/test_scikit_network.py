"""Against scikit-network, which counts edges."""

import cases
import numpy as np
import pytest
from peers.graphs import REMEDY, Graph, assert_same, each
from scipy.sparse import csr_matrix

import tri_apsp

pytest.importorskip("sknetwork", reason=f"needs scikit-network; {REMEDY}")
from sknetwork.path import breadth_first_search, get_distances
from sknetwork.ranking import Betweenness, Closeness


def convert(graph: Graph) -> csr_matrix:
    made = csr_matrix(graph.unit.matrix)
    return made if graph.directed else csr_matrix(made + made.T)


def distances(matrix: csr_matrix, source: int | list[int], **options: bool) -> np.ndarray:
    found = get_distances(matrix, source, **options)
    return np.where(found == -1, cases.INF, found)


@each()
def test_distances(graph: Graph) -> None:
    theirs, ours = convert(graph), cases.values(tri_apsp.hops(graph.ours))
    vertices = range(graph.n)
    assert_same(ours, [distances(theirs, s) for s in vertices])
    assert_same(ours.T, [distances(theirs, s, transpose=True) for s in vertices])
    reached = [sorted(breadth_first_search(theirs, s)) for s in vertices]
    assert [row.nonzero()[:, 0].tolist() for row in tri_apsp.reachability(graph.ours)] == reached


@each()
def test_nearest(graph: Graph) -> None:
    depots = sorted({0, graph.n // 2})
    found = tri_apsp.nearest(graph.unit.ours, depots).distances[0]
    assert_same(cases.values(found), distances(convert(graph), depots))


@each(connected=True)
def test_measures(graph: Graph) -> None:
    """Closeness is that of the distances from a vertex, and each betweenness is halved."""
    assert_same(tri_apsp.closeness(graph.reverse.ours), Closeness().fit_predict(convert(graph)))
    found = Betweenness().fit_predict(convert(graph))
    ours = tri_apsp.betweenness(graph.ours, normalized=False)
    np.testing.assert_allclose(ours / 2, found, rtol=1e-5)  # in float32
