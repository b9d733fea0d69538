"""The predecessors of several ranks equal those of one process, bit for bit."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

import cases
import pytest
import torch
from hard_graphs import HARD

import tri_apsp
from tri_apsp import InputError, TooLargeError, engines
from tri_apsp.arguments import DenseBatch
from tri_apsp.configs import default_config
from tri_apsp.distributed import predecessors as module
from tri_apsp.distributed import run
from tri_apsp.distributed.process_group import ProcessGroup
from tri_apsp.distributed.rows import TensorRows
from tri_apsp.engines import MatrixSpec
from tri_apsp.paths.predecessors import find_predecessors
from tri_apsp.ranks.threads import run_ranks
from tri_apsp.request import Request
from tri_apsp.value_range import ValueRange, value_range

SPLITS = {
    "one": lambda n: (n,),
    "even": lambda n: (n // 2, n - n // 2),
    "uneven": lambda n: (n // 3 + 1, 0, 5, n - n // 3 - 6),
    "small": lambda n: (7, n - 40, 3, 30, 0),
}
every_split = pytest.mark.parametrize("split", SPLITS)


def layered(n: int, size: int = 12) -> torch.Tensor:
    """Many paths of weights in tenths, whose sums are rounded differently: a rank that searches
    other sources together finds other predecessors.
    """
    generator = torch.Generator().manual_seed(n)
    layer = torch.randperm(n, generator=generator) // size
    weights = torch.randint(1, 10, (n, n), generator=generator).float() / 10
    is_next = (layer[:, None] + 1) % (n // size) == layer % (n // size)
    return weights.masked_fill(~is_next, cases.INF)


def of_one_process(
    weights: torch.Tensor, distances: torch.Tensor, engine: str = "cpu", lowest: float | None = None
) -> torch.Tensor:
    if lowest is None:
        lowest = value_range(weights[None]).lowest
    spec = MatrixSpec(len(weights), weights.dtype, weights.device, False)
    made = engines.make(spec, default_config(engine, weights.dtype))
    values = ValueRange(lowest, 0)
    return find_predecessors(DenseBatch(weights[None], True), distances[None], values, made)[0]


def of_ranks(
    weights: torch.Tensor, distances: torch.Tensor, counts: Sequence[int], engine: str = "cpu"
) -> torch.Tensor:
    ends = [0, *itertools.accumulate(counts)]
    config = default_config(engine, weights.dtype)
    nonnegative = value_range(weights[None]).lowest >= 0

    def find(ranks):
        own = slice(ends[ranks.rank], ends[ranks.rank + 1])
        return module.find_row_predecessors(
            ranks, weights[own], distances[own], counts, config, nonnegative=nonnegative
        )

    found = run_ranks([weights.device] * len(counts), find)
    assert [len(part) for part in found] == list(counts)
    return torch.cat(found)


def check(weights: torch.Tensor, counts: Sequence[int], engine: str = "cpu") -> None:
    """Assert that ranks with so many rows find what one process finds for the same distances."""
    config = tri_apsp.Config(engine="cpu" if weights.device.type == "cpu" else engine)
    distances = tri_apsp.shortest_paths(weights, config=config).distances
    expected = of_one_process(weights, distances, engine)
    assert torch.equal(of_ranks(weights, distances, counts, engine), expected)


@every_split
@cases.every_dtype
def test_as_one_process(dtype, split):
    for case in cases.CASES:
        for n in (90, 300):
            check(cases.tensor(cases.CASES[case](n), dtype), SPLITS[split](n))


@every_split
@cases.every_float
@pytest.mark.parametrize("name", HARD)
def test_hard_graphs(name, dtype, split):
    for n in (65, 200):
        check(HARD[name](n).to(dtype), SPLITS[split](n))


@every_split
def test_rounded_sums(split):
    for n in (300, 401):
        check(layered(n), SPLITS[split](n))


@every_split
def test_vertices_in_doubt_are_received_in_parts(split, monkeypatch):
    monkeypatch.setattr(module, "_RECEIVED", 3000)
    for n in (90, 200):
        check(cases.tensor(cases.CASES["zero weights"](n), torch.int32), SPLITS[split](n))
        check(HARD["powers"](n), SPLITS[split](n))


@every_split
def test_distances_below_every_sum(split):
    """The tolerance grows until an edge reaches a vertex whose distances are too small."""
    n, eps = 90, torch.finfo(torch.float32).eps
    vertices = torch.arange(n - 1)
    weights = torch.full((n, n), cases.INF)
    weights[vertices, (vertices + 1) % (n - 1)], weights[3, n - 1] = 0, 1
    distances = tri_apsp.shortest_paths(weights).distances
    distances[torch.arange(n) % 4 != 3, n - 1] *= 1 - 64 * eps
    found = of_ranks(weights, distances, SPLITS[split](n))
    assert found[:-1, -1].tolist() == [3] * (n - 1)
    assert torch.equal(found, of_one_process(weights, distances))


@pytest.mark.parametrize("n", [0, 1, 2, 64])
def test_few_vertices(n):
    weights = torch.arange(n * n, dtype=torch.float32).reshape(n, n) % 7
    for counts in ((n,), (0, n), (n // 2, 0, n - n // 2)):
        check(weights, counts)


def solved(
    weights: torch.Tensor, counts: Sequence[int], **options: object
) -> tuple[tri_apsp.Result, ...]:
    """Return the results of ranks with so many rows."""
    parts = weights.split(list(counts))

    def solve(ranks):
        own = parts[ranks.rank]
        request = Request.of(own, predecessors=True, block_rows_because="a test", **options)
        return run.solve_rows(ranks, TensorRows(own), None, request, own.device)

    return run_ranks([weights.device] * len(counts), solve)


@every_split
@cases.every_dtype
def test_solves(dtype, split):
    for make in (cases.random_graph, cases.negative_graph, cases.CASES["zero weights"]):
        weights = cases.tensor(make(130), dtype)
        expected = tri_apsp.shortest_paths(weights, predecessors=True)
        found = solved(weights, SPLITS[split](130))
        assert torch.equal(torch.cat([each.distances for each in found]), expected.distances)
        assert torch.equal(torch.cat([each.predecessors for each in found]), expected.predecessors)


@every_split
@pytest.mark.parametrize("dtype", [torch.int32, torch.float32], ids=str)
def test_marked_negative_cycles(dtype, split):
    """Two components with negative cycles, one of which leads to a part of the graph."""
    n = 150
    weights = cases.tensor(cases.negative_graph(n, degree=3), dtype)
    weights[:100, 100:] = weights[100:, :100] = tri_apsp.no_edge(dtype)
    weights[20, 30], weights[30, 20] = 4, -5
    weights[120, 140], weights[140, 120] = 7, -9
    expected = tri_apsp.shortest_paths(weights, predecessors=True, negative_cycles="mark")
    found = solved(weights, SPLITS[split](n), negative_cycles="mark")
    assert torch.equal(torch.cat([each.distances for each in found]), expected.distances)
    assert torch.equal(torch.cat([each.predecessors for each in found]), expected.predecessors)
    assert (expected.predecessors[20] == -1).sum() > 50


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("kind", cases.ROUNDED)
def test_rounding_that_makes_a_cycle_look_negative(kind, marked, monkeypatch):
    """Predecessors are those of the graph that was solved, with potentials and without vertices."""
    calls = dict[int, tuple[torch.Tensor, torch.Tensor, bool]]()
    original = run.find_row_predecessors

    def find(ranks, weights, distances, counts, config, *, nonnegative):
        calls[ranks.rank] = weights.clone(), distances.clone(), nonnegative
        return original(ranks, weights, distances, counts, config, nonnegative=nonnegative)

    monkeypatch.setattr(run, "find_row_predecessors", find)
    n = 80
    weights = torch.from_numpy(cases.rounded_graphs(kind, n)[0])
    if marked:
        weights[:, :3] = weights[:3] = cases.INF
        weights[0, 1], weights[1, 0], weights[1, 50] = 3, -8, 1
    counts = SPLITS["uneven"](n)
    found = solved(weights, counts, negative_cycles="mark" if marked else "raise")
    edges, distances = (
        torch.cat([calls[rank][place] for rank in range(len(counts))]) for place in (0, 1)
    )
    lowest = 0 if calls[0][2] else -1
    assert lowest == 0 or edges.amin() < 0
    expected = of_one_process(edges, distances, lowest=lowest)
    final = torch.cat([each.distances for each in found])
    expected.masked_fill_(final == -cases.INF, -1)
    assert torch.equal(torch.cat([each.predecessors for each in found]), expected)


def test_devices_and_files(tmp_path):
    weights = cases.tensor(cases.random_graph(300, low=0), torch.int32)
    expected = tri_apsp.shortest_paths(weights, predecessors=True).predecessors
    for out in (None, tmp_path / "distances.npy"):
        found = tri_apsp.shortest_paths(
            weights.T.contiguous().T, device=["cpu"] * 3, out=out, predecessors=True
        )
        parts = [each.predecessors for each in found.blocks or [found]]
        assert torch.equal(torch.cat(parts), expected)


def solved_by_processes(weights: torch.Tensor, counts: Sequence[int]) -> torch.Tensor:
    """Return the predecessors of this process."""
    with ProcessGroup() as ranks:
        own = weights.split(list(counts))[ranks.rank]
        request = Request.of(own, predecessors=True, block_rows_because="a test")
        return run.solve_rows(ranks, TensorRows(own), None, request, own.device).predecessors


def test_processes(ranks):
    count, group = ranks
    counts = {1: (110,), 2: (0, 110), 3: (50, 0, 60), 4: (50, 0, 57, 3)}[count]
    for weights in (
        cases.tensor(cases.CASES["zero weights"](110), torch.int16),
        cases.tensor(cases.negative_graph(110), torch.float64),
    ):
        found = group.run(solved_by_processes, weights, counts)
        expected = tri_apsp.shortest_paths(weights, predecessors=True).predecessors
        assert torch.equal(torch.cat(found), expected)


def test_streamed_rows_are_refused():
    weights = torch.rand(300, 300)
    with pytest.raises(InputError, match="needs rows that stay on their devices, but 300 rows"):
        tri_apsp.shortest_paths(
            weights, out=torch.empty(300, 300), memory=200_000, predecessors=True
        )


def test_lists_that_do_not_fit_are_refused_by_all_ranks(monkeypatch):
    weights = torch.rand(300, 300)
    monkeypatch.setattr("tri_apsp.memory.is_small", lambda size, device: False)
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 1000)
    distances = tri_apsp.reference.floyd_warshall(weights.double().numpy())
    errors = []

    def find(ranks):
        own = slice(150 * ranks.rank, 150 * (ranks.rank + 1))
        rows = weights[own], torch.from_numpy(distances).float()[own]
        config = default_config("cpu", weights.dtype)
        try:
            module.find_row_predecessors(ranks, *rows, (150, 150), config, nonnegative=True)
        except TooLargeError as error:
            errors.append(str(error))

    run_ranks([weights.device] * 2, find)
    assert len(errors) == 2
    assert "a list of the tight edges of 300 vertices, which predecessors need on each" in errors[0]


@cases.interpreted
class TestGpuEnginesInterpreted:
    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch):
        """Strips of few sources; and one launch at a time, as the interpreter needs."""
        from tri_apsp.engines import triton_predecessors
        from tri_apsp.gpu.launcher import Launcher

        launch, lock = Launcher.__call__, threading.Lock()

        def locked(*arguments):
            with lock:
                launch(*arguments)

        monkeypatch.setattr(Launcher, "__call__", locked)
        monkeypatch.setattr(triton_predecessors, "MOST_SEARCHED_WHOLE", 0)
        monkeypatch.setattr(triton_predecessors, "_WIDTH", 4)
        self.module = triton_predecessors

    @pytest.mark.parametrize("pairs", [1, 1 << 30], ids=["lists", "all edges"])
    @pytest.mark.parametrize("counts", [(11,), (0, 5, 2, 4)], ids=str)
    def test_as_one_process_interpreted(self, counts, pairs, monkeypatch):
        monkeypatch.setattr(self.module, "_PAIRS_PER_EDGE", pairs)
        n = sum(counts)
        graphs = [
            cases.tensor(cases.negative_graph(n), torch.float64),
            cases.tensor(cases.random_graph(n, low=0, high=1), torch.int16),
            *(HARD[name](n).float() for name in ("shifted", "thirds")),
        ]
        for weights in graphs:
            check(weights, counts, "portable")


@pytest.mark.gpu
class TestOnGpu:
    """Ranks that share one GPU."""

    @pytest.mark.parametrize("counts", [(2300,), (1152, 1148), (1001, 0, 1299)], ids=str)
    def test_as_one_process(self, counts):
        n = sum(counts)
        graphs = [
            cases.tensor(cases.random_graph(n), torch.int32),
            cases.tensor(cases.random_graph(n, low=0, high=1), torch.int16),
            cases.tensor(cases.negative_graph(n), torch.float64),
            torch.rand(n, n, generator=torch.Generator().manual_seed(n)),
            layered(n, 46),
            *(HARD[name](n).float() for name in ("narrow", "powers", "shifted", "thirds", "road")),
        ]
        for weights in graphs:
            check(weights.cuda(), counts, "nvidia")

    def test_few_vertices(self):
        check(cases.tensor(cases.random_graph(200), torch.int32).cuda(), (90, 110), "nvidia")
