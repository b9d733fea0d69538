"""Edges in some rows are as many as torch counts: by the kernel on a GPU, and in Triton's interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace

import cases
import pytest
import torch

pytest.importorskip("triton", reason="the kernel needs Triton")

from tri_apsp import no_edge
from tri_apsp.gpu.edge_count import queue_edge_count

interpreted = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="for Triton's interpreter alone")
dtypes = pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.float32], ids=str)
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "cut out": lambda x: torch.nn.functional.pad(x, (2, 3, 1, 1))[:, 1:-1, 2:-3],
    "every other": lambda x: torch.stack((x, torch.zeros_like(x)), dim=-1)[..., 0],
}


def matrices(batch: int, m: int, n: int, dtype: torch.dtype, device: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(m + n)
    values = torch.randint(-3, 100, (batch, m, n), generator=generator).to(dtype)
    return values.masked_fill_(torch.rand(values.shape, generator=generator) < 0.5, no_edge(dtype)).to(device)


def check(dtype: torch.dtype, device: str, shapes: list[tuple[int, int, int]]) -> None:
    for shape in shapes:
        given = matrices(*shape, dtype, device)
        for name, layout in LAYOUTS.items():
            for step in (1, 3, 1000):
                for loops in (False, True):
                    expected = cases.count_edges(given, step, loops=loops)
                    assert queue_edge_count(layout(given), step, loops=loops)() == expected, (shape, name, step, loops)


def check_fractions(device: str) -> None:
    """They count in the rows that are read alone, and not on a diagonal that does not count."""
    whole = matrices(2, 9, 9, torch.float32, device)
    for row, column, value in ((6, 2, 0.5), (6, 6, 0.5), (0, 8, -1.25), (5, 2, 0.5), (6, 2, float("nan"))):
        given = whole.clone()
        given[1, row, column] = value
        for loops in (False, True):
            fails = row != 5 and value == value and (loops or row != column)
            expected = 0 if fails else cases.count_edges(given, 3, loops=loops)
            assert queue_edge_count(given, 3, loops=loops)() == expected, (row, column, value, loops)


@interpreted
@dtypes
def test_interpreted_counts(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.gpu.edge_count._PROGRAMS_PER_UNIT", 1)
    monkeypatch.setattr("tri_apsp.gpu.edge_count.describe", lambda device: SimpleNamespace(units=3))
    check(dtype, "cpu", [(1, 1, 1), (2, 7, 5), (3, 20, 4099)])


@interpreted
def test_interpreted_fractions() -> None:
    check_fractions("cpu")


@pytest.mark.gpu
@dtypes
def test_counts(dtype: torch.dtype) -> None:
    check(dtype, "cuda", [(1, 1, 1), (2, 7, 5), (3, 20, 4099), (70, 100, 100), (1, 5000, 4112)])


@pytest.mark.gpu
def test_fractions() -> None:
    check_fractions("cuda")


@pytest.mark.gpu
def test_addresses_past_two_to_the_31() -> None:
    n = 46400
    given = torch.full((1, n, n), no_edge(torch.int16), dtype=torch.int16, device="cuda")
    given[0, -1, 1:], given[0, 1:, -1] = 1, 1  # of the rows 0 and n - 1, which are read, the latter
    for matrix in (given, given.mT):
        assert queue_edge_count(matrix, 46399, loops=False)() == n - 2
        assert queue_edge_count(matrix, 46399, loops=True)() == n - 1
