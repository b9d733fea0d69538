"""The rows of several ranks equal those of one process, bit for bit where sums are exact."""

from __future__ import annotations

import itertools

import cases
import pytest
import torch
from distributed.ranks import counts_of

import tri_apsp
from tri_apsp.configs import default_config
from tri_apsp.distributed.block_rows import BlockRowSolver
from tri_apsp.distributed.communicator import Communicator
from tri_apsp.distributed.device_rows import ResidentRows, StreamedRows, Visit, unchanged
from tri_apsp.distributed.layout import Layout, even_counts
from tri_apsp.distributed.plan import RowSpec
from tri_apsp.distributed.process_group import ProcessGroup
from tri_apsp.distributed.rows import TensorRows
from tri_apsp.semirings import distance_range


def solved(weights, layout, strip=None):
    """Return the rows of this rank, or None if a diagonal value is negative; streamed in strips of
    so many rows, or as a whole.

    Walks over a missing edge, and negative ones, end near no_edge; see verify.
    """
    with ProcessGroup() as ranks:
        first = layout.first(ranks.rank)
        rows = weights[first : first + layout.counts[ranks.rank]].clone()

        def start(begin, part):
            part[0, :, first + begin :].diagonal().clamp_(max=0)

        if strip is None:
            start(0, rows[None])
            device_rows = ResidentRows(rows[None], weights.shape[1])
        else:
            like = rows.new_empty(1, 0, weights.shape[1] + 3)
            host = TensorRows(rows)
            device_rows = StreamedRows(host, host, start, like, strip=strip, slots=3)
        config = default_config("cpu", weights.dtype)
        nonnegative = bool((weights >= 0).all())
        solver = BlockRowSolver(
            device_rows,
            layout,
            ranks,
            config,
            nonnegative=nonnegative,
            on_solved=lambda begin, part: None,
        )
        beyond = distance_range(weights.dtype, negative=not nonnegative).beyond
        try:
            if not solver.solve():
                return None
        finally:
            device_rows.close()
        return rows.masked_fill(rows >= beyond, tri_apsp.no_edge(weights.dtype))


class SingleRank(Communicator):
    rank, size = 0, 1

    def broadcast(self, tensor, owner):
        return lambda: None

    def gather(self, fact):
        return [fact]

    def next(self):
        return 0


def solver_of(rows: StreamedRows, layout: Layout, ranks: SingleRank) -> BlockRowSolver:
    return BlockRowSolver(
        rows,
        layout,
        ranks,
        default_config("cpu", torch.float32),
        nonnegative=True,
        on_solved=lambda begin, part: None,
    )


def test_a_failed_rank_is_noticed_within_a_pivot_block():
    """A block of streamed rows may take minutes."""

    class Failing(SingleRank):
        left = 3

        def check(self):
            self.left -= 1
            if not self.left:
                raise tri_apsp.RankError("another rank failed")

    rows, strips = torch.ones(40, 40), []
    host = TensorRows(rows)
    streamed = StreamedRows(
        host, host, lambda begin, part: strips.append(begin), rows[None, :0], strip=4, slots=3
    )
    solver = solver_of(streamed, Layout((40,), 20), Failing())
    with pytest.raises(tri_apsp.RankError):
        solver.solve()
    streamed.close()
    assert len(strips) == 3


def test_rows_of_a_pivot_block_are_written_between_those_that_are_multiplied(monkeypatch):
    announced = list[Visit]()
    monkeypatch.setattr(StreamedRows, "announce", lambda self, visits: announced.extend(visits))
    monkeypatch.setattr(StreamedRows, "visit", lambda self, visit: iter(()))
    rows = torch.ones(80, 80)
    host = TensorRows(rows)
    streamed = StreamedRows(host, host, unchanged, rows[None, :0], strip=4, slots=3)
    solver_of(streamed, Layout((80,), 8), SingleRank()).solve()
    streamed.close()
    kept = [visit for visit in announced if visit.keeps]
    own = [at for at, visit in enumerate(kept) if not visit.reads]
    # Two strips of each of ten pivot blocks, after which 16 others are multiplied; 18 of the last.
    assert len(own) == 20
    assert all(8 <= after - before <= 10 for before, after in itertools.pairwise(own))


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("name", ["random", "negative", "disconnected"])
def test_as_one_process(ranks, name, dtype):
    count, group = ranks
    graphs = {"random": cases.random_graph, "negative": cases.negative_graph}
    make = graphs.get(name) or cases.CASES["disconnected"]
    for n, split, block in ((61, "even", 16), (61, "uneven", 7), (130, "even", 64)):
        weights = cases.tensor(make(n), dtype)
        layout = Layout(counts_of(n, count, split), block)
        for strip in (None, 10):
            found = torch.cat(group.run(solved, weights, layout, strip))
            assert torch.equal(found, tri_apsp.shortest_paths(weights).distances)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_vertices(ranks, n):
    count, group = ranks
    weights = torch.arange(n * n, dtype=torch.float32).reshape(n, n)
    found = torch.cat(group.run(solved, weights, Layout(even_counts(n, count), 4)))
    assert torch.equal(found, tri_apsp.shortest_paths(weights).distances)


def test_rounded_floats(ranks):
    """Within the rounding of sums, and the same bits again."""
    count, group = ranks
    weights = torch.rand(90, 90, generator=torch.Generator().manual_seed(2))
    layout = Layout(even_counts(90, count), 16)
    first, again = (torch.cat(group.run(solved, weights, layout)) for _ in range(2))
    assert torch.equal(first, again)
    torch.testing.assert_close(first, tri_apsp.shortest_paths(weights).distances, rtol=1e-6, atol=0)


def test_a_negative_cycle_is_seen_by_all(ranks):
    count, group = ranks
    weights = cases.tensor(cases.random_graph(50), torch.int32)
    weights[40, 3], weights[3, 40] = 1, -2
    assert group.run(solved, weights, Layout(even_counts(50, count), 8)) == [None] * count


def gpu_plan(rows, threshold, memory=1 << 40):
    spec = RowSpec((rows,) * 4, torch.float32, torch.device("cuda"), memory, source="device")
    return spec.plan(default_config("nvidia", torch.float32), threshold=threshold)


@pytest.mark.parametrize(
    ("rows", "threshold", "block"),
    [
        (4000, None, 512),
        (4000, 2048, 2048),
        (4000, 8192, 512),
        (16384, None, 2048),
        (16384, 2048, 4096),
    ],
)
def test_blocks_of_products_by_exponents_are_wide(rows, threshold, block):
    plan = gpu_plan(rows, threshold)
    assert (plan.block, plan.exponents) == (block, threshold == 2048)


@pytest.mark.parametrize("threshold", [None, 2048])
def test_pivot_blocks_are_narrower_where_memory_is_short(threshold):
    most = gpu_plan(16384, threshold)
    less = gpu_plan(16384, threshold, most.memory - 1)
    assert less.memory < most.memory
    assert (less.block, less.exponents) == (most.block // 2, most.exponents)


def test_a_memory_that_is_large_enough_for_a_wider_pivot_block():
    """This one is enough for 2,049 vertices, but not for the 2,048 that fill tiles."""
    spec = RowSpec(even_counts(65536, 4), torch.float32, torch.device("cpu"), 1_765_361_156)
    plan = spec.plan(default_config("cpu", torch.float32))
    assert plan.memory <= 1_765_361_156
    assert plan.block % 128


def test_pivot_blocks():
    layout = Layout((5, 0, 3), 2)
    assert [layout.first(rank) for rank in range(3)] == [0, 5, 5]
    assert layout.pivots() == [(0, 0, 2), (0, 2, 4), (0, 4, 5), (2, 5, 7), (2, 7, 8)]
