"""What the Boolean engines of a GPU launch: few launches, each with enough programs. Nothing runs, so that no GPU is needed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="the GPU engines need Triton")

from tri_apsp.device import Device
from tri_apsp.engines import Update
from tri_apsp.engines.boolean import packed_size, triton_base
from tri_apsp.engines.boolean.nvidia import NvidiaBooleanEngine
from tri_apsp.engines.boolean.portable import PortableBooleanEngine
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.methods import Observer
from tri_apsp.methods.kleene import Kleene

H200 = Device("cuda", "NVIDIA H200", "nvidia-h200", 132, 150 << 30, 227 << 10, (9, 0))
META = torch.device("meta")


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of programs of each launch so far."""
    counts: list[int] = []

    def launch(launcher: Launcher, grid: tuple[int, int, int], *arguments: Any) -> None:
        assert all(0 < size < 1 << 31 for size in grid)
        assert max(grid[1:]) < 1 << 16
        counts.append(grid[0] * grid[1])

    monkeypatch.setattr(Launcher, "__call__", launch)
    monkeypatch.setattr(triton_base, "describe", lambda device: H200)
    return counts


def matrix(n: int, batch: int = 1) -> torch.Tensor:
    size = packed_size(n)
    return torch.empty((batch, size, size // 32), dtype=torch.int32, device=META)


@pytest.mark.parametrize("engine", [NvidiaBooleanEngine, PortableBooleanEngine])
@pytest.mark.parametrize(("n", "blocks"), [(2000, 1), (3000, 2), (8192, 4), (32768, 16)])
def test_launches_of_a_closure(programs: list[int], engine: type[triton_base.TritonBooleanEngine], n: int, blocks: int) -> None:
    """Eleven for each diagonal block, and four where a graph is split; each occupies all but a few multiprocessors."""
    Kleene().solve(matrix(n), engine(n, META), Observer())
    assert len(programs) == 11 * blocks + 4 * (blocks - 1)
    assert min(programs) >= 120


def test_small_graphs(programs: list[int]) -> None:
    """As many squarings as the longest path needs, and one launch for each; none where there is no path to extend."""
    for n, squarings in ((1, 0), (2, 0), (3, 1), (10, 4), (129, 7), (130, 8)):
        Kleene().solve(matrix(n, batch=70_000), NvidiaBooleanEngine(n, META), Observer())
        assert len(programs) == 2 * squarings, n  # a grid takes 65535 graphs
        programs.clear()


def test_programs_share_the_k_of_a_tile_where_there_are_few_tiles(programs: list[int]) -> None:
    engine = NvidiaBooleanEngine(32768, META)
    large, small = engine.TILES
    assert engine._tiles_and_parts([(128, 128, 128), (128, 128, 128)], 1) == (large, 1)
    assert engine._tiles_and_parts([(32, 32, 32)], 1) == (large, 8)
    assert engine._tiles_and_parts([(8, 8, 8)], 1) == (small, 8)
    assert engine._tiles_and_parts([(8, 8, 8)], 1000) == (large, 1)


def test_a_product_of_three_updates(programs: list[int]) -> None:
    d = matrix(256)
    NvidiaBooleanEngine(256, META).product(Update(d, d, d), Update(d, d, d), Update(d, d, d))
    assert len(programs) == 2
