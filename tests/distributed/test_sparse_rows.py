"""Several ranks write the blocks, and find the measures, of one process; blocks outlast ranks."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cases
import numpy as np
import pytest
import torch
import torch.distributed as dist
from distributed.ranks import Ranks

import tri_apsp
from tri_apsp.distributed import process_group, sparse_rows
from tri_apsp.errors import (
    ApspError,
    DistanceRangeError,
    InputError,
    InputTypeError,
    NegativeCycleError,
    RankError,
)
from tri_apsp.graphs import generate, sparse_graph
from tri_apsp.ranks.communicator import Communicator
from tri_apsp.ranks.threads import run_ranks
from tri_apsp.sparse.blocks import BlockSolve
from tri_apsp.sparse.run import SparseSolver

FILES = "distances.npy", "distances.zarr"
MEASURES = "eccentricities", "diameter", "closeness", "mean_distance"


def load(path: Path) -> torch.Tensor:
    if path.suffix == ".npy":
        return torch.from_numpy(np.load(path))
    import zarr

    return torch.from_numpy(zarr.open_array(str(path), mode="r")[:])


def called(name: str, arguments: tuple, options: dict) -> tuple[Any, list[str]]:
    """Return what a function returns or raises on this rank, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = getattr(sparse_rows, name)(*arguments, **options)
        except ApspError as error:
            found = error
    return found, [str(warning.message) for warning in caught]


def results(group: Ranks, name: str, *arguments: Any, **options: Any) -> list[Any]:
    """Return what a function returns or raises on each rank."""
    return [found for found, _ in group.run(called, name, arguments, options)]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("n", [0, 1, 2, 61])
def test_a_file_as_one_process(ranks, tmp_path: Path, n: int, dtype, name: str) -> None:
    count, group = ranks
    weights = cases.tensor(cases.negative_graph(61)[:n, :n], dtype)
    for rows in (None, 4):
        path = tmp_path / f"{rows}-{name}"
        found = results(group, "distance_blocks", weights, path, rows_per_block=rows)
        assert found == [path] * count
        assert torch.equal(load(path), tri_apsp.shortest_paths(weights).distances)


def test_a_complete_file(ranks, tmp_path: Path) -> None:
    """Rank 0 warns; one process takes it as complete, too."""
    count, group = ranks
    path = tmp_path / "d.npy"
    weights = cases.tensor(cases.random_graph(40), torch.float32)
    results(group, "distance_blocks", weights, path)
    found = group.run(called, "distance_blocks", (weights, path), {})
    message = f"{path} has all 40 rows of this graph already"
    assert found == [(path, [message])] + [(path, [])] * (count - 1)
    with pytest.warns(UserWarning, match="has all 40 rows"):
        tri_apsp.distance_blocks(weights, out=path)
    for error in results(group, "distance_blocks", weights + 1, path):
        assert isinstance(error, InputError)
        assert "is of another graph or dtype; remove it and 'd.npy.rows'" in str(error)


def test_a_path_of_another_type(ranks) -> None:
    for error in results(ranks[1], "distance_blocks", torch.ones(4, 4), 5):
        assert isinstance(error, InputTypeError)
        assert "`out` must be a path, but is 5; give a str or a pathlib.Path." in str(error)


GRAPHS = {
    "random": cases.tensor(cases.random_graph(130), torch.int64),
    "negative": cases.tensor(cases.negative_graph(40), torch.float32),
    "disconnected": cases.tensor(cases.CASES["disconnected"](70), torch.int32),
    "more than a slab": cases.tensor(cases.random_graph(600, degree=2), torch.float32),
    "no edge": torch.full((4, 4), torch.inf),
    "two vertices": torch.zeros(2, 2),
    "by elimination": generate("roads", 1000, seed=1),
}


@pytest.mark.parametrize("name_of_graph", GRAPHS)
def test_measures_as_one_process(ranks, name_of_graph: str) -> None:
    """The same bits, since sums are exact, or each is found by one rank."""
    _, group = ranks
    graph = GRAPHS[name_of_graph]
    if name_of_graph == "by elimination":
        graph = tri_apsp.prepare(graph)
    for name in MEASURES:
        for weighted in (False, True):
            expected = getattr(tri_apsp, name)(graph, weighted=weighted)
            for found in results(group, name, graph, weighted=weighted):
                torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    n = sparse_graph(graph).n
    for to_vertex in (False, True):
        for values in (None, torch.arange(n)):
            options = {"values": values, "to_vertex": to_vertex}
            for limits in (7, [3, 20]):
                expected = tri_apsp.accessibility(graph, limits, **options)
                for found in results(group, "accessibility", graph, limits, **options):
                    assert torch.equal(found, expected)


@pytest.mark.parametrize("order", ["auto", "none"])
def test_flows_as_one_process(ranks, order: str) -> None:
    """Within the rounding of sums, also if there are fewer sources than ranks."""
    _, group = ranks
    graph = tri_apsp.prepare(generate("roads", 400, seed=1), order=order)
    for sources in (None, [3], [9, 2, 9]):
        options = {"weighted": True, "sources": sources}
        for name in ("betweenness", "edge_betweenness"):
            expected = getattr(tri_apsp, name)(graph, **options)
            for found in results(group, name, graph, **options):
                torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-15, equal_nan=True)
        starts, demand = sources or range(400), torch.tensor([1.0, 2.5]).to_sparse()
        expected = tri_apsp.edge_flows(graph, starts, [7, 50], [1.0, 2.5])
        for form in (demand, [1.0, 2.5]):
            for found in results(group, "edge_flows", graph, starts, [7, 50], form):
                for part, of_one in zip(found, expected, strict=True):
                    torch.testing.assert_close(part, of_one, rtol=1e-12, atol=1e-12)


def test_measures_of_rounded_sums(ranks) -> None:
    _, group = ranks
    weights = torch.rand(90, 90, generator=torch.Generator().manual_seed(2))
    expected = tri_apsp.closeness(weights, weighted=True)
    first = results(group, "closeness", weights, weighted=True)
    again = results(group, "closeness", weights, weighted=True)
    for found in (*first, *again):
        assert torch.equal(found, first[0])
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("sources", [None, [5], [3, 129, 3, 7]])
def test_hops_as_one_process(ranks, sources) -> None:
    """Also if there are fewer sources than ranks."""
    _, group = ranks
    for weights in (torch.from_numpy(cases.random_graph(130, degree=1.2)), torch.zeros(130, 130)):
        found = results(group, "hops", weights, sources, dtype=torch.uint8)
        expected = list(range(130)) if sources is None else sources
        assert torch.cat([own.sources for own in found]).tolist() == expected
        rows = tri_apsp.hops(weights, sources, dtype=torch.uint8)
        assert torch.equal(torch.cat([own.hops for own in found]), rows)


def test_no_vertex(ranks) -> None:
    _, group = ranks
    empty = torch.empty(0, 0)
    for found in results(group, "closeness", empty):
        assert found.shape == (0,)
    for error in results(group, "diameter", empty):
        assert "must have a vertex for a diameter" in str(error)


def called_with(name: str, of_others: tuple, of_last: tuple) -> Any:
    """Call with other arguments on the last rank."""
    last = dist.get_rank() == dist.get_world_size() - 1 > 0
    return called(name, of_last if last else of_others, {})


def test_every_rank_raises_the_error(ranks, tmp_path: Path) -> None:
    """Of one rank, or of ranks that differ."""
    count, group = ranks
    path, weights = tmp_path / "d.npy", cases.tensor(cases.random_graph(20), torch.float32)
    cycle = weights.clone()
    cycle[3, 4], cycle[4, 3] = 1.0, -2.0
    chain = torch.full((300, 300), torch.inf)
    chain.diagonal(1).fill_(1)
    for name, arguments, options, kind, message in (
        ("distance_blocks", (cycle, path), {}, NegativeCycleError, "there is one of weight -1"),
        ("distance_blocks", (weights, tmp_path / "no" / "d.npy"), {}, InputError, "No such file"),
        ("distance_blocks", (weights, path), {"method": "fast"}, InputError, "`method` must be"),
        ("closeness", (cycle,), {"weighted": True}, NegativeCycleError, "there is one"),
        ("hops", (chain,), {"dtype": torch.uint8}, DistanceRangeError, "at most 254 to fit uint8"),
    ):
        for error in results(group, name, *arguments, **options):
            assert isinstance(error, kind), name
            assert message in str(error)
    if count > 1:
        for name, of_others, of_last, argument in (
            ("distance_blocks", (weights, path), (weights + 1, path), "graph"),
            ("closeness", (weights,), (weights.double(),), "graph"),
            ("accessibility", (weights, [1, 2]), (weights, [1, 3]), "limits"),
            ("hops", (weights, torch.tensor([1])), (weights, torch.tensor([2])), "sources"),
        ):
            for error, _ in group.run(called_with, name, of_others, of_last):
                assert isinstance(error, InputError)
                assert str(error).startswith(f"`{argument}` must be the same on all ranks, but tha")
        for error, _ in group.run(called_with, "closeness", (weights,), ("no graph",)):
            assert "`graph` must be" in str(error)
    assert list(tmp_path.iterdir()) == []


WEIGHTS = cases.tensor(cases.random_graph(60), torch.float32)
BLOCKS = 15


def written(path: Path, fault: Callable[[], None]) -> Any:
    """Write blocks slowly; on rank 1, one is written, and then there is a fault. Return what is
    returned or raised, and the seconds until then.
    """
    solve, count, begun = SparseSolver.solve, 0, time.monotonic()

    def slow(self: SparseSolver, sources: torch.Tensor) -> Any:
        nonlocal count
        count += 1
        time.sleep(0.2)
        if dist.get_rank() == 1 and count == 2:
            fault()
        return solve(self, sources)

    SparseSolver.solve = slow
    try:
        with patch.object(process_group, "_SILENCE", 3.0):
            found, _ = called("distance_blocks", (WEIGHTS, path), {"rows_per_block": 4})
    finally:
        SparseSolver.solve = solve
    return found, time.monotonic() - begun


def fail() -> None:
    raise DistanceRangeError("it is too far")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def left_blocks(path: Path) -> int:
    return path.with_name(path.name + ".rows").read_bytes().split(b"\n")[1].count(b"0")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_faults(tmp_path: Path, name: str) -> None:
    """If a rank fails or is killed, the others end, what is written stays, and another call with
    any number of ranks finishes it.
    """
    path, other, group = tmp_path / name, tmp_path / f"other-{name}", Ranks(3, tmp_path)
    expected = tri_apsp.shortest_paths(WEIGHTS).distances
    try:
        (first, _), (error, _), (last, seconds) = group.run(written, path, fail)
        assert isinstance(error, DistanceRangeError)
        for found in (first, last):
            assert isinstance(found, RankError)
            assert "rank 1 failed: it is too far" in str(found)
        assert seconds < 20
        assert 3 <= BLOCKS - left_blocks(path) < BLOCKS
        assert results(group, "distance_blocks", WEIGHTS, path) == [path] * 3
        group.start(written, other, die)
        left = group.results(2)
        assert sorted(left) == [0, 2]
        for error, seconds in left.values():
            assert isinstance(error, RankError)
            assert "rank 1 ended" in str(error)
            assert seconds < 60
        assert left_blocks(other) >= 1
    finally:
        group.kill()
    tri_apsp.distance_blocks(WEIGHTS, out=other)
    assert torch.equal(load(path), expected)
    assert torch.equal(load(other), expected)


@pytest.mark.parametrize("count", [1, 3])
def test_each_block_is_solved_once(tmp_path: Path, monkeypatch, count: int) -> None:
    """By one rank; these are threads."""
    path, solve, sources = tmp_path / "d.npy", SparseSolver.solve, list[int]()

    def noted(self: SparseSolver, some: torch.Tensor) -> Any:
        sources.extend(some.tolist())
        return solve(self, some)

    monkeypatch.setattr(SparseSolver, "solve", noted)
    task = BlockSolve.of(
        sparse_graph(WEIGHTS),
        rows_per_block=None,
        method="auto",
        negative_cycles="raise",
        progress=False,
        processes=count,
    )

    def write(ranks: Communicator) -> None:
        sparse_rows.write_blocks(ranks, task, path)

    run_ranks([torch.device("cpu")] * count, write)
    assert sorted(sources) == list(range(60))
    assert left_blocks(path) == 0
    monkeypatch.undo()
    assert torch.equal(load(path), tri_apsp.shortest_paths(WEIGHTS).distances)


def test_without_a_group(tmp_path: Path) -> None:
    for name, *arguments in (("closeness",), ("distance_blocks", tmp_path / "d.npy")):
        with pytest.raises(InputError, match=r"call torch\.distributed\.init_process_group first"):
            getattr(sparse_rows, name)(WEIGHTS, *arguments)
