"""tri_apsp.csgraph against scipy.sparse.csgraph: every function, argument and kind of graph."""

import fractions
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import cases
import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph as scipy_csgraph

import tri_apsp
from tri_apsp import csgraph

INF = np.inf
examples = settings(max_examples=80, deadline=None)


@st.composite
def graphs(draw: st.DrawFn, *, signs: tuple[bool, ...] = (False, True)) -> npt.NDArray[np.float64]:
    """Weights with ties and zeros, whole or with fractions; with potentials added, of both signs
    without a negative cycle.
    """
    n = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = rng.integers(0, 6, (n, n)).astype(np.float64)
    if draw(st.booleans()):
        weights += np.where(weights > 0, rng.random((n, n)), 0)
    weights[rng.random((n, n)) >= draw(st.floats(0, 1))] = INF
    if draw(st.sampled_from(signs)):
        potential = rng.integers(0, 9, n)
        weights += potential[:, None] - potential[None, :]
        np.fill_diagonal(weights, INF)
    return weights


def sparse(weights: npt.NDArray[np.float64], form: str = "csr") -> Any:
    """Every finite weight as a stored entry, also 0."""
    row, column = np.nonzero(np.isfinite(weights))
    return scipy.sparse.coo_array(
        (weights[row, column], (row, column)), shape=weights.shape
    ).asformat(form)


def assert_close(
    found: npt.NDArray[np.float64], expected: npt.NDArray[np.float64], weights: Any = None
) -> None:
    """Assert equality: exact for integers."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    whole = (expected[np.isfinite(expected)] % 1 == 0).all() and (
        weights is None or (weights[np.isfinite(weights)] % 1 == 0).all()
    )
    if whole:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def assert_walks(
    weights: npt.NDArray[np.float64],
    sources: Any,
    distances: npt.NDArray[np.float64],
    predecessors: npt.NDArray[np.int32],
) -> None:
    """Assert that the predecessors lead to the source, along edges that add up to the distance."""
    n = len(weights)
    assert (predecessors.dtype, predecessors.shape) == (np.int32, distances.shape)
    rows = zip(
        np.ravel(sources), distances.reshape(-1, n), predecessors.reshape(-1, n), strict=True
    )
    for source, row, before in rows:
        for target in range(n):
            if row[target] == INF or target == source:
                assert before[target] == -9999
                continue
            vertex, total = target, 0.0
            for _ in range(n):
                total += weights[before[vertex], vertex]
                vertex = before[vertex]
                if vertex == source:
                    break
            assert vertex == source
            assert total == pytest.approx(row[target], rel=1e-12, abs=1e-12)


def both_ways(weights: npt.NDArray[np.float64], directed: bool) -> npt.NDArray[np.float64]:
    return weights if directed else np.minimum(weights, weights.T)


FUNCTIONS = ["shortest_path", "floyd_warshall", "johnson", "bellman_ford", "dijkstra"]


@pytest.mark.parametrize("name", [*FUNCTIONS, "reconstruct_path", "construct_dist_matrix"])
def test_signatures(name: str) -> None:
    ours, theirs = (
        inspect.signature(getattr(module, name)).parameters for module in (csgraph, scipy_csgraph)
    )
    assert [(p.name, p.default, p.kind) for p in ours.values()] == [
        (p.name, p.default, p.kind) for p in theirs.values()
    ]


@pytest.mark.filterwarnings(
    "ignore:Graph has negative weights"
)  # SciPy's shortest_path, which may choose Dijkstra
@examples
@given(
    graphs(), st.sampled_from(FUNCTIONS[:4]), st.booleans(), st.sampled_from(["csr", "csc", "lil"])
)
def test_all_pairs(
    weights: npt.NDArray[np.float64], name: str, unweighted: bool, form: str
) -> None:
    graph = sparse(weights, form)
    expected = getattr(scipy_csgraph, name)(graph, unweighted=unweighted)
    distances, predecessors = getattr(csgraph, name)(
        graph, return_predecessors=True, unweighted=unweighted
    )
    assert_close(distances, expected, weights)
    assert_close(getattr(csgraph, name)(graph, unweighted=unweighted), expected, weights)
    lengths = np.where(np.isfinite(weights), 1.0, INF) if unweighted else weights
    assert_walks(lengths, range(len(weights)), distances, predecessors)


@examples
@given(graphs(signs=(False,)), st.sampled_from(FUNCTIONS), st.booleans())
def test_dense_and_undirected(weights: npt.NDArray[np.float64], name: str, directed: bool) -> None:
    """In an array, 0 is no edge. SciPy's Bellman-Ford, in johnson too, may take rounding for a
    negative undirected cycle.
    """
    oracle = "dijkstra" if name in ("bellman_ford", "johnson") and not directed else name
    expected = getattr(scipy_csgraph, oracle)(weights, directed=directed)
    distances, predecessors = getattr(csgraph, name)(
        weights, directed=directed, return_predecessors=True
    )
    assert_close(distances, expected, weights)
    edges = both_ways(np.where(weights == 0, INF, weights), directed)
    assert_walks(edges, range(len(weights)), distances, predecessors)


@st.composite
def sources(draw: st.DrawFn, n: int) -> Any:
    vertex = st.integers(-n, n - 1)
    return draw(
        st.one_of(
            vertex,
            st.lists(vertex, max_size=5),
            st.lists(st.tuples(vertex, vertex), min_size=1, max_size=2),
        )
    )


@examples
@given(graphs(), st.sampled_from(["shortest_path", "johnson", "bellman_ford"]), st.data())
def test_indices(weights: npt.NDArray[np.float64], name: str, data: st.DataObject) -> None:
    indices, graph = data.draw(sources(len(weights))), sparse(weights)
    expected = getattr(scipy_csgraph, name)(graph, indices=indices)
    distances, predecessors = getattr(csgraph, name)(
        graph, indices=indices, return_predecessors=True
    )
    assert_close(distances, expected, weights)
    assert_walks(weights, np.asarray(indices, int) % len(weights), distances, predecessors)


limits = st.one_of(st.just(INF), st.integers(0, 12))


@examples
@given(graphs(signs=(False,)), limits, st.booleans(), st.data())
def test_dijkstra_with_a_limit(
    weights: npt.NDArray[np.float64], limit: float, directed: bool, data: st.DataObject
) -> None:
    graph = sparse(weights)
    indices = data.draw(st.one_of(st.none(), sources(len(weights))))
    options: dict[str, Any] = {"directed": directed, "indices": indices, "limit": limit}
    distances, predecessors = csgraph.dijkstra(graph, return_predecessors=True, **options)
    assert_close(distances, scipy_csgraph.dijkstra(graph, **options), weights)
    vertices = (
        np.arange(len(weights)) if indices is None else np.asarray(indices, int) % len(weights)
    )
    assert_walks(both_ways(weights, directed), vertices, distances, predecessors)


@examples
@given(graphs(signs=(False,)), limits, st.booleans(), st.booleans(), st.data())
def test_dijkstra_from_the_nearest_source(
    weights: npt.NDArray[np.float64],
    limit: float,
    directed: bool,
    unweighted: bool,
    data: st.DataObject,
) -> None:
    graph, n = sparse(weights), len(weights)
    indices = data.draw(st.one_of(st.none(), sources(n)))
    options: dict[str, Any] = {
        "directed": directed,
        "indices": indices,
        "limit": limit,
        "unweighted": unweighted,
        "min_only": True,
    }
    distances, predecessors, nearest = csgraph.dijkstra(graph, return_predecessors=True, **options)
    expected, _, _ = scipy_csgraph.dijkstra(graph, return_predecessors=True, **options)
    assert_close(distances, expected, weights)
    assert_close(csgraph.dijkstra(graph, **options), expected, weights)
    vertices = np.arange(n) if indices is None else np.ravel(np.asarray(indices, int)) % n
    lengths = both_ways(
        np.where(np.isfinite(weights), 1.0, INF) if unweighted else weights, directed
    )
    assert (nearest.dtype, nearest.shape) == (np.int32, (n,))
    assert (nearest[vertices] == vertices).all()
    assert ((nearest == -9999) == (distances == INF)).all()
    for source in np.unique(vertices):
        of_source = nearest == source
        row, before = np.where(of_source, distances, INF), np.where(of_source, predecessors, -9999)
        assert_walks(lengths, [source], row, before.astype(np.int32))


@pytest.mark.parametrize("negative", [False, True])
def test_rows_of_a_graph_too_large_for_a_matrix(
    monkeypatch: pytest.MonkeyPatch, negative: bool
) -> None:
    """No matrix (n, n) is made for `indices` of a sparse graph."""
    n = 10_000
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 8 * n * n // 2)
    rng = np.random.default_rng(5)
    places, sources = rng.integers(0, n, (2, 3 * n)), [5, 0]
    graph = scipy.sparse.csr_array(
        (rng.integers(1, 30, 3 * n).astype(np.float64), places), shape=(n, n)
    )
    expected = scipy_csgraph.dijkstra(graph, indices=sources)
    if negative:
        potential = rng.integers(0, 9, n)
        graph.data += potential[graph.tocoo().row] - potential[graph.indices]
        expected += potential[sources, None] - potential
        assert graph.data.min() < 0
    for name in ("dijkstra", "bellman_ford"):
        np.testing.assert_array_equal(getattr(csgraph, name)(graph, indices=sources), expected)
    limited = csgraph.dijkstra(graph, indices=sources, limit=40)
    np.testing.assert_array_equal(limited, np.where(expected > 40, INF, expected))
    np.testing.assert_array_equal(
        csgraph.dijkstra(graph, indices=sources, min_only=True), expected.min(axis=0)
    )


def test_a_masked_array() -> None:
    """Masked values are no edges, and an unmasked 0 is an edge, as in SciPy's Dijkstra, Johnson and
    Bellman-Ford.
    """
    values = np.array([[0, 0.0, 5, 1], [2, 0, np.nan, 3], [4, 7, 0, 9], [1, 0, INF, 0]])
    graph = np.ma.array(values, mask=values == 9)
    expected = scipy_csgraph.dijkstra(graph)
    for name in FUNCTIONS:
        np.testing.assert_array_equal(getattr(csgraph, name)(graph), expected)
    np.testing.assert_array_equal(
        csgraph.dijkstra(np.ma.array(values)), scipy_csgraph.dijkstra(sparse(values))
    )


@pytest.mark.parametrize(
    "graph",
    [
        [[0, 1, 2], [3, 0, 0], [0, 5, 0]],
        np.array([[0, 1, 0], [0, 0, 4], [2, 0, 0]], np.uint8),
        np.array([[0, 1, 0], [0, 0, 1], [1, 1, 0]], bool),
        np.array([[0, -INF, 3], [np.nan, 0, 1], [INF, 2, 0]]),
        np.array([[0, 1.5, 0], [0, 0, 4], [2, 0, 0]], np.float32),
        np.asfortranarray([[0, 1.5, 0], [0, 0, 4], [2, 0, 0]]),
        np.array([[0, 1.5, 0], [0, 0, 4], [2, 0, 0]], ">f8"),
        np.zeros((0, 0)),
    ],
)
def test_dense_graphs(graph: Any) -> None:
    """SciPy's shortest_path takes no list, and its Floyd-Warshall no array in Fortran order; its
    Dijkstra takes both.
    """
    np.testing.assert_array_equal(csgraph.shortest_path(graph), scipy_csgraph.dijkstra(graph))


def test_sparse_formats() -> None:
    """Entries of a coo matrix at one place are added up, as SciPy does; of those of a csr matrix
    the lightest counts.
    """
    repeated = scipy.sparse.coo_array(
        ([1.0, 2.0, 0.0, INF, np.nan], ([0, 0, 1, 2, 2], [1, 1, 2, 0, 1])), shape=(3, 3)
    )
    np.testing.assert_array_equal(csgraph.dijkstra(repeated), scipy_csgraph.dijkstra(repeated))
    lightest = scipy.sparse.csr_array(
        (np.array([3.0, 2.0]), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2)
    )
    np.testing.assert_array_equal(
        csgraph.floyd_warshall(lightest), scipy_csgraph.floyd_warshall(lightest)
    )
    weights = cases.random_graph(20)
    for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
        for graph in (
            sparse(weights, form),
            scipy.sparse.csr_matrix(sparse(weights)).asformat(form),
        ):
            np.testing.assert_array_equal(csgraph.dijkstra(graph), scipy_csgraph.dijkstra(graph))


@pytest.mark.parametrize("predecessors", [False, True])
@pytest.mark.parametrize(
    "weights", [cases.random_graph(30), cases.negative_graph(30)], ids=["nonnegative", "negative"]
)
def test_overwrite(weights: npt.NDArray[np.float64], predecessors: bool) -> None:
    np.fill_diagonal(weights, 0)
    expected = scipy_csgraph.johnson(weights)
    options: dict[str, Any] = {"overwrite": True, "return_predecessors": predecessors}

    def call(
        graph: npt.NDArray[np.float64], method: str = "auto", **more: Any
    ) -> npt.NDArray[np.float64]:
        found = csgraph.shortest_path(graph, method, **options, **more)
        return found[0] if predecessors else found

    for method in ("auto", "FW"):
        graph = weights.copy()
        found = call(graph, method)
        assert np.shares_memory(found, graph)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(graph, expected)
    read_only = weights.copy()
    read_only.flags.writeable = False
    unchanged: list[tuple[npt.NDArray[np.float64], dict[str, Any]]] = [
        (weights.copy(), {"method": "J"}),
        (weights.copy(), {"indices": np.arange(30)}),
        (np.asfortranarray(weights), {}),
        (read_only, {}),
    ]
    for graph, more in unchanged:
        np.testing.assert_array_equal(call(graph, **more), expected)
        np.testing.assert_array_equal(graph, weights)


def test_a_graph_is_unchanged() -> None:
    weights = cases.random_graph(20)
    np.fill_diagonal(weights, 0)
    for graph in (weights.copy(), sparse(weights)):
        for name in FUNCTIONS:
            getattr(csgraph, name)(graph, directed=False, unweighted=True)
        np.testing.assert_array_equal(
            graph
            if isinstance(graph, np.ndarray)
            else np.where(weights < INF, graph.toarray(), INF),
            weights,
        )


CALLS: list[Callable[[Any], Any]] = [
    csgraph.shortest_path,
    csgraph.floyd_warshall,
    csgraph.johnson,
    csgraph.bellman_ford,
    lambda graph: csgraph.bellman_ford(graph, indices=[0]),
    lambda graph: csgraph.bellman_ford(graph, indices=0, return_predecessors=True),
    lambda graph: csgraph.dijkstra(graph, min_only=True, indices=0),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_negative_cycle(call: Callable[[Any], Any]) -> None:
    graph = np.array([[0, 1.0, 0, 0], [0, 0, -3, 0], [0, 2, 0, 4], [0, 0, 0, 0]])
    for kind in (
        csgraph.NegativeCycleError,
        scipy_csgraph.NegativeCycleError,
        tri_apsp.NegativeCycleError,
        ValueError,
    ):
        with pytest.raises(kind, match="negative cycle"):
            call(graph)
    with pytest.raises(csgraph.NegativeCycleError) as caught:
        call(graph)
    assert sorted(caught.value.vertices) == [1, 2]
    assert caught.value.weight == -1
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (caught.type, str(caught.value))


def test_a_negative_cycle_that_no_source_reaches() -> None:
    """Bellman-Ford does not see it, in SciPy either; Johnson does."""
    graph = np.array([[0, 2.0, 0, 0], [0, 0, 0, 0], [1, 0, 0, -3], [0, 0, 2, 0]])
    for indices in (0, [1, 0], [[0], [1]]):
        distances, predecessors = csgraph.bellman_ford(
            graph, indices=indices, return_predecessors=True
        )
        np.testing.assert_array_equal(distances, scipy_csgraph.bellman_ford(graph, indices=indices))
        np.testing.assert_array_equal(predecessors == 0, distances == 2)
        with pytest.raises(csgraph.NegativeCycleError):
            csgraph.johnson(graph, indices=indices)
    for module in (csgraph, scipy_csgraph):
        with pytest.raises(module.NegativeCycleError):
            module.bellman_ford(graph, indices=[0, 2])


def test_a_negative_loop_and_a_negative_edge_both_ways() -> None:
    loop, edge = np.array([[-1.0, 2], [0, 0]]), np.array([[0, -1.0], [0, 0]])
    for name in FUNCTIONS:
        with pytest.raises(scipy_csgraph.NegativeCycleError):
            getattr(csgraph, name)(loop)
        with pytest.raises(scipy_csgraph.NegativeCycleError):
            getattr(csgraph, name)(edge, directed=False)
        assert getattr(csgraph, name)(edge)[0, 1] == -1


FIVE = np.ones((5, 5))
MINUS_INF = np.where(np.eye(5) > 0, -INF, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: csgraph.shortest_path(np.ones((2, 3))),
            r"`csgraph` must be square, but has shape \(2, 3\); add empty rows",
        ),
        (
            lambda: csgraph.dijkstra(np.ones((2, 2, 2))),
            r"must be square, but has shape \(2, 2, 2\)",
        ),
        (
            lambda: csgraph.johnson(scipy.sparse.coo_array((2, 3))),
            r"must be square, but has shape \(2, 3\)",
        ),
        (lambda: csgraph.floyd_warshall(None), r"must be square, but has shape \(\)"),
        (
            lambda: csgraph.floyd_warshall([[1, 2], [3]]),
            "inhomogeneous shape",
        ),
        (
            lambda: csgraph.bellman_ford(FIVE * 1j),
            r"must hold real numbers, but has dtype complex128; give the real part",
        ),
        (
            lambda: csgraph.bellman_ford(FIVE.astype(object)),
            r"has dtype object; .* convert others with \.astype\(float\)",
        ),
        (
            lambda: csgraph.dijkstra(np.ma.array(MINUS_INF)),
            "must be neither NaN nor -inf, but that from 0 to 0 is -inf",
        ),
        (lambda: csgraph.dijkstra(scipy.sparse.csr_array(MINUS_INF)), "nor -inf, but that from 0"),
        (
            lambda: csgraph.shortest_path(FIVE, "X"),
            "`method` must be one of auto, FW, D, BF, J, but is 'X'",
        ),
        (
            lambda: csgraph.shortest_path(FIVE, "FW", indices=[0]),
            '`indices` must be None with method="FW"',
        ),
        (
            lambda: csgraph.johnson(FIVE, indices=[0, 5]),
            r"`indices` must lie in \[-5, 5\), but one is 5; give vertices",
        ),
        (lambda: csgraph.johnson(FIVE, indices=-6), r"must lie in \[-5, 5\), but one is -6"),
        (lambda: csgraph.johnson(FIVE, indices=0.5), "`indices` must be integers, but is 0.5"),
        (lambda: csgraph.johnson(FIVE, indices="a"), "`indices` must be integers, but is 'a'"),
        (lambda: csgraph.johnson(FIVE, indices=[[0], [1, 2]]), "inhomogeneous shape"),
        (
            lambda: csgraph.dijkstra(FIVE, indices=[7], min_only=True),
            r"must lie in \[-5, 5\), but one is 7",
        ),
        (
            lambda: csgraph.dijkstra(FIVE, limit=-1),
            "`limit` must be a number of at least 0, but is -1; give inf",
        ),
        (
            lambda: csgraph.dijkstra(FIVE, limit=np.nan),
            "`limit` must be a number of at least 0, but is nan",
        ),
        (lambda: csgraph.dijkstra(FIVE, limit=None), "`limit` must be .*, but is None; give inf"),
    ],
)
def test_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_limit_of_any_kind_of_number() -> None:
    for limit in (np.float32(3), np.array(3.0), torch.tensor(3), fractions.Fraction(3)):
        found = csgraph.dijkstra(FIVE, indices=0, limit=limit)
        assert np.array_equal(found, scipy_csgraph.dijkstra(FIVE, indices=0, limit=3))
    far = csgraph.dijkstra(FIVE, indices=0, limit=10**400)
    assert np.array_equal(far, csgraph.dijkstra(FIVE, indices=0))


@pytest.mark.parametrize("min_only", [False, True])
def test_a_path_within_the_limit_through_a_vertex_beyond_it(min_only: bool) -> None:
    graph = scipy.sparse.csr_array(([10.0, -8.0], ([0, 1], [1, 2])), shape=(3, 3))
    found = csgraph.dijkstra(graph, indices=0, limit=5, min_only=min_only, return_predecessors=True)
    expected = [[0, np.inf, 2], [-9999, 0, 1], [0, -9999, 0]]
    assert [values.tolist() for values in found] == expected[: 2 + min_only]


@examples
@given(st.integers(0, 2**32), st.sampled_from([np.int32, np.int64]), st.booleans())
def test_entries_in_any_order(seed: int, dtype: Any, canonical: bool) -> None:
    """Rows of a matrix of edges that are sorted, or not, with several of a pair and loops."""
    rng = np.random.default_rng(seed)
    n, count = rng.integers(1, 9), rng.integers(0, 30)
    rows, columns = np.sort(rng.integers(0, n, count)), rng.integers(0, n, count)
    values = rng.integers(0, 9, count).astype(np.float64)
    if canonical:
        kept = np.unique(rows * n + columns, return_index=True)[1]
        kept = kept[rows[kept] != columns[kept]]
        rows, columns, values = rows[kept], columns[kept], values[kept]
    else:
        values[rng.random(count) < 0.1] = rng.choice([INF, np.nan])
    offsets = np.searchsorted(rows, np.arange(n + 1)).astype(dtype)
    matrix = scipy.sparse.csr_array((values, columns.astype(dtype), offsets), shape=(n, n))
    weights = np.full((n, n), INF)
    np.fmin.at(weights, (rows, columns), values)
    expected = scipy_csgraph.floyd_warshall(sparse(weights))
    np.testing.assert_array_equal(csgraph.shortest_path(matrix), expected)
    np.testing.assert_array_equal(csgraph.dijkstra(matrix, indices=[0]), expected[:1])


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_damaged_matrix(kind):
    """SciPy does not check a matrix whose arrays are replaced, and reads beyond them."""
    for offsets, index in ([0, 1, 2, 2], -(10**6)), ([0, 2**63 - 1, -2, 2], 1), ([0, 5, 1, 2], 1):
        matrix = scipy.sparse.csr_array(np.eye(3, k=1)).asformat(kind)
        matrix.indptr, matrix.indices = np.array(offsets), np.array([index, 2])
        with pytest.raises(tri_apsp.InputError, match="`csgraph` must be a valid sparse matrix"):
            csgraph.dijkstra(matrix)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("mapped", [False, True])
def test_arrays_that_cannot_be_written(layout, mapped, tmp_path):
    """Also with indices that are not sorted, and parallel entries."""
    entries = np.array([3.0, 1, 2, 5]), (np.array([0, 0, 1, 2]), np.array([2, 1, 2, 0]))
    given = scipy.sparse.coo_array(entries, shape=(3, 3)).asformat(layout)
    names = ["data", *(["row", "col"] if layout == "coo" else ["indices", "indptr"])]
    expected = [csgraph.shortest_path(given, directed=directed) for directed in (True, False)]
    for name in names:
        array = getattr(given, name)
        if mapped:
            np.save(tmp_path / name, array)
            setattr(given, name, np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
        else:
            array.flags.writeable = False
    indices = np.arange(3)
    indices.flags.writeable = False
    for function in (csgraph.shortest_path, csgraph.dijkstra, csgraph.johnson):
        for directed, distances in zip((True, False), expected, strict=True):
            assert np.array_equal(function(given, directed=directed, indices=indices), distances)
            assert np.array_equal(function(given, directed=directed), distances)
