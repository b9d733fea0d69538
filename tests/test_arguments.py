"""Arrays of NumPy and columns of pandas in place of tensors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.lib.format import open_memmap

import tri_apsp
from tri_apsp.errors import ApspError
from tri_apsp.graphs import DenseGraph, cast_weights

INF = float("inf")
WEIGHTS = np.array([[0, 3, INF, 9], [INF, 0, 1, 2], [2, INF, 0, 1], [1, 1, 1, 0]], np.float32)
TENSOR = torch.tensor(WEIGHTS)
# The labels are the vertices in another order.
COLUMN = pd.Series([3, 0, 1, 2])[lambda column: column > 0].sort_index(ascending=False)
VERTICES = [2, 1, 3]


def read_only(array, _):
    array = array.copy()
    array.flags.writeable = False
    return array


def mapped(array, folder):
    path = folder / "weights.npy"
    np.save(path, array)
    return open_memmap(path, "r")


def of_records(array, _):
    records = np.zeros(array.shape, [("kind", "u1"), ("weight", array.dtype)])
    records["weight"] = array
    return records["weight"]


FORMS = {
    "writable": lambda array, _: array,
    "read-only": read_only,
    "mapped": mapped,
    "big-endian": lambda array, _: array.astype(array.dtype.newbyteorder(">")),
    "negative strides": lambda array, _: np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1],
    "columns": lambda array, _: np.asfortranarray(array),
    "records": of_records,
    "matrix": lambda array, _: array.view(np.matrix),
}
CALLS = {
    "shortest_paths": lambda graph: tri_apsp.shortest_paths(graph).distances,
    "rows": lambda graph: tri_apsp.shortest_paths(graph, sources=VERTICES).distances,
    "dtype": lambda graph: tri_apsp.shortest_paths(graph, dtype=torch.float64).distances,
    "undirected": lambda graph: tri_apsp.shortest_paths(graph, directed=False).distances,
    "memory": lambda graph: tri_apsp.shortest_paths(graph, memory=1 << 20).distances,
    "select": lambda graph: tri_apsp.select(graph).method,
    "nearest": lambda graph: tri_apsp.nearest(graph, [1]).distances,
    "pairs": lambda graph: tri_apsp.paired_distances(graph, [0, 1], [2, 0]),
    "prepare": lambda graph: tri_apsp.prepare(graph).by_source.weights,
    "hops": tri_apsp.hops,
    "closeness": tri_apsp.closeness,
    "betweenness": tri_apsp.betweenness,
    "edge_betweenness": tri_apsp.edge_betweenness,
    "blocks": lambda graph: next(iter(tri_apsp.distance_blocks(graph))).distances,
    "min_plus": lambda graph: tri_apsp.min_plus(graph, graph, graph),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", FORMS)
def test_arrays_count_as_tensors(form, tmp_path):
    given = FORMS[form](WEIGHTS, tmp_path)
    for name, call in CALLS.items():
        found, expected = call(given), call(TENSOR)
        assert type(found) is type(expected), name
        same = torch.equal if isinstance(found, torch.Tensor) else str.__eq__
        assert same(found, expected), name
    assert np.array_equal(given, WEIGHTS)
    adjacency = FORMS[form]((WEIGHTS < INF).astype(np.int64), tmp_path)
    assert tri_apsp.reachability(adjacency).dtype == torch.bool


def test_no_copy():
    array = read_only(WEIGHTS, None)
    request = tri_apsp.api.Request.of(array)
    assert request.weights.data_ptr() == array.ctypes.data


def test_arrays_are_not_shared_with_results():
    """A write to a result leaves the data of the caller as they are."""
    array, vertices = read_only(WEIGHTS, None), read_only(np.array([0, 2]), None)
    graph = DenseGraph(array)
    assert (graph.edges, graph.to_weights(torch.float64).tolist()) == (
        DenseGraph(TENSOR).edges,
        DenseGraph(TENSOR).to_weights(torch.float64).tolist(),
    )
    assert len(list(graph.blocks())) == 1
    found = tri_apsp.shortest_paths(array, sources=vertices, targets=vertices)
    cast = cast_weights(array, graph.natural_dtype)
    for tensor, given in (
        (graph.weights, array),
        (cast, array),
        (found.sources, vertices),
        (found.targets, vertices),
    ):
        assert tensor.tolist() == given.tolist()
        assert tensor.data_ptr() != given.ctypes.data
    assert cast_weights(TENSOR, TENSOR.dtype) is TENSOR


def test_batches_of_arrays():
    batch, sizes = np.stack([WEIGHTS] * 2), pd.Series([4, 3], index=[1, 0])
    expected = tri_apsp.shortest_paths(TENSOR[None, :3, :3]).distances[0]
    found = tri_apsp.shortest_paths(batch, sizes=sizes).distances
    assert torch.equal(found[1, :3, :3], expected)
    packed = [each.numpy() for each in tri_apsp.pack(batch, sizes)]
    solved = tri_apsp.shortest_paths(packed[0], offsets=packed[1]).distances
    padded, found_sizes = tri_apsp.unpack(solved.numpy(), packed[1])
    assert torch.equal(padded[1, :3, :3], expected)
    assert found_sizes.tolist() == [4, 3]


@pytest.mark.parametrize(
    ("array", "parts"),
    [
        (WEIGHTS.astype(object), ["`graph`", "dtype object", ".astype(float)"]),
        (WEIGHTS.astype(np.float16), ["float16", "convert it to float32"]),
        (np.ones((2, 2), np.uint8), ["uint8", "convert it to float32"]),
        (np.ones((2, 2), np.uint16), ["uint16", "convert it to float32"]),
        (WEIGHTS.astype(complex), ["complex128", ".real"]),
        (WEIGHTS.astype(np.longdouble), ["`graph`", "dtype ", ".astype(float)"]),
        (np.array([["a", "b"], ["c", "d"]]), ["dtype <U1"]),
        (np.zeros((2, 2), [("a", "f4")]), ["dtype [('a', '<f4')]"]),
        (np.ma.masked_invalid(WEIGHTS), ["masked array", "from_numpy()"]),
        (WEIGHTS[0], ["must be square", "(4,)"]),
        (np.array(3.0), ["must be square", "()"]),
        (pd.DataFrame(WEIGHTS), ["DataFrame", "from_pandas()"]),
        (pd.Series([1.0]), ["Series"]),
    ],
)
@pytest.mark.parametrize("call", [tri_apsp.shortest_paths, tri_apsp.closeness, tri_apsp.prepare])
def test_arrays_that_are_no_weights(array, parts, call):
    with pytest.raises(ApspError) as error:
        call(array)
    assert all(part in str(error.value) for part in parts)
    assert str(error.value).count(". ") == 0


def test_out_stays_a_tensor():
    out = np.empty_like(WEIGHTS)
    with pytest.raises(ApspError, match=r"a tensor or a path, .*give torch.from_numpy\(out\)"):
        tri_apsp.shortest_paths(WEIGHTS, out=out)
    tri_apsp.shortest_paths(WEIGHTS, out=torch.from_numpy(out))
    assert np.array_equal(out, tri_apsp.shortest_paths(TENSOR).distances)


@pytest.mark.parametrize("dtype", ["int64", "Int64", "category", "object", "int8"])
def test_a_column_counts_by_position(dtype):
    column = COLUMN.astype(dtype)
    assert column.tolist() == VERTICES
    result = tri_apsp.shortest_paths(TENSOR, sources=column, targets=column)
    assert result.sources.tolist() == result.targets.tolist() == VERTICES
    back = column[::-1]
    expected = tri_apsp.paired_distances(TENSOR, VERTICES, VERTICES[::-1])
    assert torch.equal(tri_apsp.paired_distances(TENSOR, column, back), expected)
    paths = tri_apsp.paired_paths(TENSOR, column, back)
    assert [paths[i][0].item() for i in range(3)] == VERTICES
    assert torch.equal(tri_apsp.hops(TENSOR, column), tri_apsp.hops(TENSOR, VERTICES))
    assert tri_apsp.nearest(TENSOR, column).nearest.tolist() == [3, 1, 2, 3]


def test_values_limits_and_weights_by_position():
    values, limits = pd.Series([5.0, 1, 2, 3], index=[3, 1, 2, 0]), pd.Series([1, 2, 3])[1:]
    found = tri_apsp.accessibility(TENSOR, limits, values)
    assert torch.equal(found, tri_apsp.accessibility(TENSOR, [2, 3], values.tolist()))
    with pytest.raises(ApspError, match=r"or a dict with \[values\[x\] for x in graph.labels\]"):
        tri_apsp.accessibility(TENSOR, limits, {0: 1})
    graph = tri_apsp.prepare(TENSOR)
    weights = pd.Series(np.arange(1.0, graph.edges + 1))[::-1]
    assert graph.with_weights(weights).by_source.weights.tolist() == weights.tolist()
    order = pd.Series([3, 2, 1, 0], index=[0, 2, 1, 3])
    assert graph.with_order(order).tree.vertices.tolist() in ([3, 2, 1, 0], [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("sources", "remedy"),
    [
        (COLUMN == 3, r"give numpy.flatnonzero\(mask\)"),
        (COLUMN.astype(float), "dtype float64; convert it to int64"),
        (COLUMN.to_frame(), r"is \(3, 1\) of int64; give it as one list"),
        (pd.Series(["a"]), "one is 'a'"),
        (np.ma.array([1, 2], mask=[0, 1]), r"\.compressed\(\)"),
    ],
)
def test_columns_that_are_no_vertices(sources, remedy):
    with pytest.raises(ApspError, match=remedy):
        tri_apsp.shortest_paths(TENSOR, sources=sources)


@pytest.mark.parametrize(
    ("size", "count"),
    [(4096, 4096), ("4096", 4096), ("40MB", 40_000_000), ("1.5 KiB", 1536), ("2g", 2 * 10**9)],
)
def test_sizes(size, count):
    assert tri_apsp.api.Request.of(TENSOR, memory=size).memory == count


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("40 apples", "`memory` must be a number of bytes such as 6GiB, but is '40 apples'"),
        ("", "but is ''; give bytes, such as 4096"),
        ("4i", "but is '4i'"),
        ("5ib", "but is '5ib'"),
        ("0.1b", "`memory` must be at least 1, but is 0"),
        (0, "`memory` must be at least 1, but is 0"),
        (0.5, '`memory` must be an integer, but is 0.5; give bytes, such as .* or "6GiB"'),
    ],
)
def test_bad_sizes(size, message):
    for call in (tri_apsp.shortest_paths, tri_apsp.select):
        with pytest.raises(ApspError, match=message):
            call(TENSOR, memory=size)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64])
@pytest.mark.parametrize("number", [np.float16(2), np.float32(2), np.int8(2), np.uint64(2)])
def test_limits_of_numpy(number, dtype):
    graph = torch.tensor([[0, 2, 9], [9, 0, 1], [9, 9, 0]], dtype=dtype)
    expected = [0, 2, tri_apsp.no_edge(dtype)]
    found = tri_apsp.shortest_paths(graph, sources=0, limit=number)
    assert found.distances.tolist() == [expected]
    assert tri_apsp.paired_distances(graph, [0, 0], [1, 2], limit=number).tolist() == expected[1:]
    assert tri_apsp.accessibility(graph, number).tolist() == [2, 2, 1]
