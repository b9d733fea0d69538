"""What a rank does with its rows, and how it plans that."""

from __future__ import annotations

import itertools

import pytest
import torch

import tri_apsp
from tri_apsp.configs import default_config
from tri_apsp.distributed.block_rows import BlockRowSolver
from tri_apsp.distributed.device_rows import StreamedRows, Visit, unchanged
from tri_apsp.distributed.layout import Layout, even_counts
from tri_apsp.distributed.plan import RowSpec
from tri_apsp.distributed.rows import TensorRows
from tri_apsp.ranks.communicator import Communicator


class SingleRank(Communicator):
    def check(self) -> None:
        pass

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
        host, host, lambda begin, part: strips.append(begin), rows[None, :0], strip=4
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
    streamed = StreamedRows(host, host, unchanged, rows[None, :0], strip=4)
    solver_of(streamed, Layout((80,), 8), SingleRank()).solve()
    streamed.close()
    kept = [visit for visit in announced if visit.keeps]
    own = [at for at, visit in enumerate(kept) if not visit.reads]
    # Two strips of each of ten pivot blocks, after which 16 others are multiplied; 18 of the last.
    assert len(own) == 20
    assert all(8 <= after - before <= 10 for before, after in itertools.pairwise(own))


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
