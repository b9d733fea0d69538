"""Sparse graphs from every container, in one canonical form."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
import scipy.sparse
import torch

import tri_apsp
from tri_apsp.errors import InputError
from tri_apsp.graphs import DenseGraph, EdgeList, load_graph
from tri_apsp.graphs.sparse import SPARSE_DTYPES, sparse_graph
from tri_apsp.semirings import dtype_name

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # of torch, about layouts in beta

INF = float("inf")
WEIGHTS = [[0, 2, INF, 0], [INF, 0, 1, INF], [4, INF, -1, INF], [INF, INF, INF, 0]]
DENSE = torch.tensor(WEIGHTS)
EDGES = [(0, 1, 2.0), (0, 3, 0.0), (1, 2, 1.0), (2, 0, 4.0), (2, 2, -1.0)]


def arrays(order=slice(None)):
    sources, targets, weights = (np.array(values) for values in zip(*EDGES, strict=True))
    return sources[order], targets[order], weights[order]


def expected(graph, dtype=torch.float32):
    assert graph.dtype == dtype
    assert graph.n == 4
    assert graph.by_source.offsets.tolist() == [0, 2, 3, 5, 5]
    assert graph.by_source.vertices.tolist() == [1, 3, 2, 0, 2]
    assert graph.by_source.weights.tolist() == [2, 0, 1, 4, -1]
    assert graph.by_destination.offsets.tolist() == [0, 1, 2, 4, 5]
    assert graph.by_destination.vertices.tolist() == [2, 0, 1, 2, 0]
    assert graph.by_destination.weights.tolist() == [4, 2, 1, -1, 0]
    assert graph.lowest == -1


def test_containers_of_torch():
    expected(sparse_graph(DENSE))
    assert torch.equal(sparse_graph(DENSE).dense(), DENSE)
    graph = sparse_graph(torch.tensor([[False, True], [False, False]]))
    assert graph.by_source.weights.tolist() == [1.0]
    assert (sparse_graph(torch.empty(0, 0)).edges, sparse_graph(torch.ones(1, 1)).lowest) == (0, 0)
    sources, targets, weights = map(torch.from_numpy, arrays())
    coo = torch.sparse_coo_tensor(torch.stack((sources, targets)), weights.float(), (4, 4))
    expected(sparse_graph(coo))
    expected(sparse_graph(coo.to_sparse_csr()))
    expected(sparse_graph(coo.to_sparse_csc()))


def test_containers_of_scipy_and_files():
    sources, targets, weights = arrays(slice(None, None, -1))
    for form in ("bsr", "dia"):  # which pad with zeros, so that a 0 is no edge
        matrix = scipy.sparse.csr_array((weights, (sources, targets)), shape=(4, 4)).asformat(form)
        assert sparse_graph(matrix).by_source.weights.tolist() == [2, 1, 4, -1]
    for container in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array):
        matrix = container((weights, (sources, targets)), shape=(4, 4))
        expected(sparse_graph(matrix), torch.float64)
        expected(sparse_graph(matrix, dtype=torch.int32), torch.int32)
    expected(sparse_graph(EdgeList(4, sources, targets, weights)))
    expected(sparse_graph(DenseGraph(DENSE)))
    small = torch.where(DENSE == INF, tri_apsp.no_edge(torch.int16), DENSE).to(torch.int16)
    expected(sparse_graph(DenseGraph(small)), torch.int32)
    expected(sparse_graph(small), torch.int32)


def test_a_reversed_graph_keeps_its_labels():
    edges = EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([3, 1]), ["a", "b", "c"])
    found = sparse_graph(edges).reversed()
    assert list(found.labels) == ["a", "b", "c"]
    assert (found.by_source.vertices.tolist(), found.by_source.rows.tolist()) == ([0, 1], [0, 1])


def test_of_several_entries_the_smallest_counts_and_missing_ones_are_left_out():
    sources = torch.tensor([1, 0, 1, 0, 0, 2])
    targets = torch.tensor([2, 1, 2, 1, 2, 2])
    weights = torch.tensor([5.0, 3.0, 4.0, 3.0, INF, 1.0])
    graph = sparse_graph(torch.sparse_coo_tensor(torch.stack((sources, targets)), weights, (3, 3)))
    assert graph.by_source.weights.tolist() == [3, 4]
    unsorted = torch.sparse_csr_tensor(
        torch.tensor([0, 3, 3]), torch.tensor([1, 0, 1]), torch.tensor([7, -3, 6]), (2, 2)
    )
    graph = sparse_graph(unsorted)
    assert graph.by_source.vertices.tolist() == [0, 1]
    assert graph.by_source.weights.tolist() == [-3, 6]


@pytest.mark.parametrize("dtype", SPARSE_DTYPES)
def test_a_stored_no_edge(dtype):
    missing = tri_apsp.no_edge(dtype)
    values = np.array([1, missing, 3], dtype_name(dtype))
    array = scipy.sparse.coo_array((values, ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    tensor = torch.sparse_coo_tensor(
        torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.from_numpy(values), (3, 3)
    )
    for given in (array, array.tocsr(), array.tocsc(), tensor):
        for wanted in (None, torch.int64, torch.float64):
            assert sparse_graph(given, dtype=wanted).by_source.weights.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (torch.zeros(2, 3), "must be square"),
        (
            torch.zeros(2, 2, device="meta"),
            "`graph` must be on the CPU or a CUDA device, but is on meta; move it",
        ),
        (torch.zeros(2, 2, dtype=torch.complex64), "must have one of the dtypes"),
        (torch.zeros(2, 2, requires_grad=True), "must not require a gradient"),
        (
            torch.tensor([[0.0, float("nan")], [0, 0]]),
            "neither NaN nor -inf, but that from 0 to 1 is nan; replace it by a weight",
        ),
        (torch.tensor([[0.0, -INF], [0, 0]]), "that from 0 to 1 is -inf"),
        (
            scipy.sparse.coo_array(([float("nan")], ([1], [0])), shape=(2, 2)),
            "that from 1 to 0 is nan",
        ),
        (scipy.sparse.csr_array(np.eye(2, dtype=np.int16)), "must have one of the dtypes"),
        (
            torch.zeros(2, 2).to_sparse_bsr((1, 1)),
            r"but has layout torch.sparse_bsr; convert it with graph.to_dense\(\)",
        ),
        (torch.full((2, 2), 2**31 - 1, dtype=torch.int32), "must lie in"),
        ("g.gr", r"must be a torch tensor, .* but is str; .* or read_sparse_graph\(\) of a file"),
        ([], r"a SciPy sparse array, or a graph that .* but is list; give torch.tensor\(\)"),
    ],
)
def test_bad_graphs(graph, message):
    with pytest.raises(InputError, match=message):
        sparse_graph(graph)
    for dtype in (torch.int16, torch.int64):
        with pytest.raises(InputError, match=r"one of float32, float64, int32, int64|0\.5"):
            sparse_graph(torch.tensor([[0, 0.5], [1, 0]]), dtype=dtype)


def test_bad_indices_and_values():
    offsets, vertices, weights = torch.tensor([0, 1, 1]), torch.tensor([5]), torch.tensor([1.0])
    with torch.sparse.check_sparse_tensor_invariants(False):
        beyond = torch.sparse_csr_tensor(offsets, vertices, weights, (2, 2))
        wrapped = torch.sparse_csr_tensor(
            torch.tensor([0, -3, 1]), torch.tensor([1]), weights, (2, 2)
        )
    outside = scipy.sparse.coo_array(([1.0], ([0], [1])), shape=(2, 2))
    outside.col[0] = 5
    for graph in (beyond, outside):
        with pytest.raises(
            InputError,
            match=r"each edge must join vertices in \[0, 2\), but one leads from 0 to 5",
        ):
            sparse_graph(graph)
    with pytest.raises(InputError, match="must rise from 0 to the number of entries"):
        sparse_graph(wrapped)
    damaged = scipy.sparse.csr_array(np.eye(4, k=1))
    damaged.indptr[1] = -77
    with pytest.raises(InputError, match="must be a valid sparse matrix, but is not"):
        sparse_graph(damaged)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc, torch.sparse_coo])
def test_random_damages_of_sparse_tensors(layout):
    """As arguments and in files: an error, or the graph of the entries; never a crash."""
    draw = random.Random(3)
    make = {torch.sparse_csr: torch.sparse_csr_tensor, torch.sparse_csc: torch.sparse_csc_tensor}
    far = [-1, -3, 4, 5, 2**31, 2**62, 2**63 - 1, -(2**63)]
    refused = 0
    for _ in range(300):
        columns = [draw.randrange(3) for _ in range(4)]
        values = torch.arange(4.0)
        if layout == torch.sparse_coo:
            first = [draw.randrange(3) for _ in range(4)]
        else:
            first = [0, *sorted(draw.randrange(5) for _ in range(2)), 4]
        for part in (first, columns):
            if draw.random() < 0.4:
                part[draw.randrange(len(part))] = draw.choice(far)
        if draw.random() < 0.1 and layout != torch.sparse_coo:
            draw.choice((first, columns)).pop()
        if layout == torch.sparse_coo:
            parts = (torch.tensor([first, columns]), values)
        else:
            parts = (torch.tensor(first), torch.tensor(columns), values)
        build = make.get(layout, torch.sparse_coo_tensor)
        tensor = build(*parts, (3, 3), check_invariants=False)
        torch.save(tensor, stream := io.BytesIO())
        stored = io.BytesIO(stream.getvalue())
        try:
            sparse_graph(tensor)
        except InputError:
            refused += 1
            with pytest.raises(InputError):
                load_graph(stored, format="pt")
        else:
            assert torch.equal(
                sparse_graph(load_graph(stored, format="pt")).dense(), sparse_graph(tensor).dense()
            )
    assert 100 < refused < 250
    # Differences of these offsets overflow to lengths that add up to the number of entries.
    if layout != torch.sparse_coo:
        wrapped = torch.tensor([0, 2**63 - 1, -2, 1]), torch.zeros(1, dtype=int), torch.ones(1)
        with pytest.raises(InputError, match="must rise from 0 to the number of entries, 1"):
            sparse_graph(make[layout](*wrapped, (3, 3), check_invariants=False))


@pytest.mark.parametrize("is_known", [False, True])
def test_edges_come_change_and_close(is_known):
    """Some of each kind at a time, on graphs whose lists by destination are known, and not."""
    n, random = 12, np.random.default_rng(0)
    starts, ends = np.divmod(np.arange(1, n * n, 5), n)
    starts, ends = starts[starts != ends], ends[starts != ends]
    lengths = random.random(len(starts))
    graph = sparse_graph(EdgeList(n, starts, ends, lengths), dtype=torch.float64)
    weights = dict(zip(zip(starts, ends, strict=True), lengths, strict=True))
    rows = dict(zip(weights, range(len(weights)), strict=True))
    for _ in range(60):
        if is_known:
            graph.by_destination.arrays()
        pairs = random.choice(n * n, size=random.integers(1, 20), replace=False)
        pairs = [(u, v) for u, v in zip(*np.divmod(pairs, n), strict=True) if u != v]
        values = np.where(random.random(len(pairs)) < 0.4, np.inf, random.random(len(pairs)))
        ends = torch.tensor(pairs).reshape(-1, 2).unbind(1)
        before = graph.by_source.weights.clone()
        changed = graph.with_edges(*ends, torch.from_numpy(values))
        assert torch.equal(graph.by_source.weights, before)
        weights |= dict(zip(pairs, values, strict=True))
        weights = {pair: value for pair, value in sorted(weights.items()) if value < np.inf}
        graph, lists = changed, changed.by_source
        found = [*zip(lists.owners().tolist(), lists.vertices.tolist(), strict=True)]
        assert found == [*weights]
        assert lists.weights.tolist() == [*weights.values()]
        rows = {pair: rows.get(pair, -1) for pair in weights}
        assert lists.rows.tolist() == [*rows.values()]
        into = changed.by_destination
        found = [*zip(into.vertices.tolist(), into.owners().tolist(), strict=True)]
        assert found == sorted(weights, key=lambda pair: pair[::-1])
        assert into.weights.tolist() == [weights[pair] for pair in found]
