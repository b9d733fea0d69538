"""distributed.shortest_paths by processes of Gloo equals one process, and fails alike on all."""

from __future__ import annotations

import os

import cases
import numpy as np
import pytest
import torch
import torch.distributed as dist
from distributed.ranks import counts_of
from torch.distributed.device_mesh import init_device_mesh

import tri_apsp
from tri_apsp import distributed

N = 97


def rows_of(weights, counts):
    first = sum(counts[: dist.get_rank()])
    return weights[first : first + counts[dist.get_rank()]].clone()


def solved(weights, counts, in_place=False, **options):
    """Return what this rank finds, or the sentence of its error."""
    rows = weights if isinstance(weights, str) else rows_of(weights, counts)
    options |= {"out": rows} if in_place else {}
    try:
        result = distributed.shortest_paths(rows, **options)
    except tri_apsp.ApspError as error:
        return type(error), str(error)
    cycle = result.negative_cycle
    return result.distances, None if cycle is None else cycle.weight, result.sources


@cases.every_dtype
@pytest.mark.parametrize("name", ["random", "negative", "disconnected"])
def test_as_one_process(ranks, name, dtype):
    count, group = ranks
    graphs = {"random": cases.random_graph, "negative": cases.negative_graph}
    make = graphs.get(name) or cases.CASES["disconnected"]
    weights = cases.tensor(make(N), dtype)
    weights[:, 3] = tri_apsp.no_edge(dtype)
    weights[5, 5] = 7
    expected = tri_apsp.shortest_paths(weights).distances
    for split in ("even", "uneven"):
        streamed = {"in_place": True, "memory": 120 * N * dtype.itemsize}
        for options in ({}, {"in_place": True}, streamed):
            counts = counts_of(N, count, split)
            distances, _, sources = zip(*group.run(solved, weights, counts, **options), strict=True)
            assert torch.equal(torch.cat(distances), expected)
            assert torch.cat(sources).tolist() == list(range(N))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_vertices(ranks, n):
    count, group = ranks
    weights = torch.arange(n * n, dtype=torch.float32).reshape(n, n)
    found = group.run(solved, weights, counts_of(n, count, "even"))
    expected = tri_apsp.shortest_paths(weights).distances
    assert torch.equal(torch.cat([each[0] for each in found]), expected)


def test_rounded_floats(ranks):
    """Within the rounding of sums, and the same bits again."""
    count, group = ranks
    weights = torch.rand(N, N, generator=torch.Generator().manual_seed(2))
    first, again = (
        torch.cat([each[0] for each in group.run(solved, weights, counts_of(N, count, "even"))])
        for _ in range(2)
    )
    assert torch.equal(first, again)
    torch.testing.assert_close(first, tri_apsp.shortest_paths(weights).distances, rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_negative_cycles_are_marked(ranks, dtype):
    count, group = ranks
    weights = cases.tensor(cases.random_graph(N, degree=2), dtype)
    for one, other in ((40, 3), (60, 61)):  # of which neither need lead to the other
        weights[one, other], weights[other, one] = 1, -2
    expected = tri_apsp.shortest_paths(weights, negative_cycles="mark")
    counts = counts_of(N, count, "uneven")
    found = group.run(solved, weights, counts, negative_cycles="mark")
    assert torch.equal(torch.cat([each[0] for each in found]), expected.distances)
    assert {each[1] for each in found} == {-1}
    errors = group.run(solved, weights, counts)
    assert len(set(errors)) == 1
    assert errors[0][0] is tri_apsp.NegativeCycleError
    assert "of weight -1 through" in errors[0][1]
    overwritten = group.run(solved, weights, counts, in_place=True)
    assert len(set(overwritten)) == 1
    assert "another `out`" in overwritten[0][1]


def test_rounding_is_no_negative_cycle(ranks):
    """A cycle of weight 0 that rounding makes lighter is solved with potentials."""
    count, group = ranks
    potential = torch.rand(N, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = torch.full((N, N), float("inf"))
    for step in (1, 2, 5):
        place = torch.arange(N)
        target = (place + step) % N
        weights[place, target] = (potential[place] - potential[target]).float()
    expected = tri_apsp.shortest_paths(weights).distances
    found = group.run(solved, weights, counts_of(N, count, "even"))
    torch.testing.assert_close(torch.cat([each[0] for each in found]), expected)


def test_files(ranks, tmp_path):
    """Each rank reads its share of one file, and writes it to another."""
    _, group = ranks
    weights = cases.tensor(cases.random_graph(N), torch.int32)
    np.save(tmp_path / "w.npy", weights.numpy())
    expected = tri_apsp.shortest_paths(weights).distances.numpy()
    options = {"out": str(tmp_path / "d.npy"), "memory": 120 * N * 4}
    found = group.run(solved, str(tmp_path / "w.npy"), None, **options)
    assert np.array_equal(torch.cat([each[0] for each in found]), expected)
    assert np.array_equal(np.load(tmp_path / "d.npy"), expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.npy", "w.npy"]
    assert np.array_equal(np.load(tmp_path / "w.npy"), weights)
    group.run(solved, str(tmp_path / "w.npy"), None, in_place=True)
    assert np.array_equal(np.load(tmp_path / "w.npy"), expected)


def of_files(graph, out):
    try:
        return distributed.shortest_paths(graph[dist.get_rank()], out=out[dist.get_rank()])
    except tri_apsp.ApspError as error:
        return str(error)


def test_one_file_for_all_ranks(ranks, tmp_path):
    count, group = ranks
    paths = [tmp_path / f"w{rank}.npy" for rank in range(count)]
    for path in paths:
        np.save(path, np.ones((60, 60), np.float32))
    out = str(tmp_path / "d.npy")
    if count > 1:
        for error in group.run(of_files, paths, [out] * count):
            assert error.startswith("`local_rows` must be the same file on all ranks")
    same = [os.path.relpath(paths[0]), *[paths[0]] * (count - 1)]
    found = group.run(of_files, same, [*[out] * (count - 1), os.path.relpath(out)])
    assert sum(each.distances.sum() for each in found) == 60 * 59


def is_out(weights, counts):
    """Return whether the distances are the tensor that was given, and hold the right ones."""
    rows = rows_of(weights, counts)
    out = torch.empty_like(rows)
    result = distributed.shortest_paths(rows, out=out)
    return result.distances is out and torch.equal(out, distributed.shortest_paths(rows).distances)


def test_distances_are_out(ranks):
    count, group = ranks
    weights = cases.tensor(cases.random_graph(N), torch.float32)
    assert all(group.run(is_out, weights, counts_of(N, count, "uneven")))


def wrong_rows(kind):
    """Return the error of rows that do not fit those of other ranks."""
    last = dist.get_rank() == dist.get_world_size() - 1
    rows = torch.ones(8, 8 * dist.get_world_size())
    rows = {
        "too many": torch.ones(9, rows.shape[1]),
        "dtype": rows.double(),
        "columns": torch.ones(8, rows.shape[1] + 1),
        "nan": rows.masked_fill(rows == 1, float("nan")),
        "batch": rows[None],
        "out": rows,
        "options": rows,
        "file": rows,
        "array": rows,
    }[kind if last else "out"]
    out = torch.empty(3, 3) if kind == "out" and last else None
    options = {"predecessors": True} if kind == "options" and last else {}
    if kind == "file" and last:
        out = "distances.npy"
    if kind == "array" and last:
        out = rows.numpy()
    try:
        distributed.shortest_paths(rows, out=out, **options)
    except tri_apsp.ApspError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("too many", "must add up to a square"),
        ("dtype", "the same dtype"),
        ("columns", "the same number of columns"),
        ("nan", "`local_rows` must hold numbers, but has NaN at"),
        ("batch", "must be rows of one matrix"),
        ("out", "`out` must be a dense tensor"),
        ("file", "`out` must be the same file on all ranks"),
        ("array", "`out` must be a tensor or a path, but is ndarray"),
        ("options", "`predecessors` must be the same on all ranks"),
    ],
)
def test_the_same_error_on_every_rank(ranks, kind, sentence):
    count, group = ranks
    if count == 1 and kind in ("dtype", "columns", "options", "file"):
        pytest.skip("there is no other rank to differ from")
    errors = group.run(wrong_rows, kind)
    assert len(set(errors)) == 1
    assert sentence in errors[0]


def another_call():
    """Return the error of a rank that makes another call than the others."""
    other = distributed.closeness, distributed.eccentricities, distributed.shortest_paths
    calls = distributed.diameter, *other
    try:
        calls[dist.get_rank()](torch.ones(3, 3))
    except tri_apsp.InputError as error:
        return str(error)
    return None


def test_another_call_on_each_rank(ranks):
    count, group = ranks
    (error,) = set(group.run(another_call))
    assert (error is None) == (count == 1)
    if count > 1:
        assert "but rank 1 calls closeness, and rank 0 diameter" in error


def wrong_group(kind):
    """Return the error of a group that is none, of two dimensions, or without the last rank."""
    last = dist.get_world_size() - 1
    if kind == "mesh":
        kind = init_device_mesh("cpu", (1, last + 1), mesh_dim_names=("one", "all"))
    group = dist.new_group(list(range(last))) if kind == "left out" else kind
    if kind == "left out" and dist.get_rank() < last:
        return None
    try:
        distributed.shortest_paths(torch.zeros(2, 2), group)
    except tri_apsp.InputError as error:
        return str(error)
    return None


def test_a_wrong_group(ranks):
    count, group = ranks
    assert "but is 'gloo'" in group.run(wrong_group, "gloo")[0]
    assert "but has 2 dimensions; give one of them" in group.run(wrong_group, "mesh")[0]
    if count > 1:
        assert "but does not have it" in group.run(wrong_group, "left out")[-1]


def test_without_a_group():
    with pytest.raises(tri_apsp.InputError, match="init_process_group"):
        distributed.shortest_paths(torch.zeros(2, 2))
