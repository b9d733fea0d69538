"""The rules of "auto", which only read what a graph is like."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from tri_apsp.sparse.choice import choose, dense_or_johnson

CPU, GPU = torch.device("cpu"), torch.device("cuda")  # which need not be there


@pytest.mark.parametrize(
    ("device", "n", "edges", "rows", "method"),
    [
        (CPU, 1000, 8000, 1, "dijkstra"),
        (CPU, 1000, 8000, 31, "dijkstra"),
        (CPU, 1000, 8000, 32, "many_sources"),
        (
            CPU,
            200_000,
            1_000_000,
            64,
            "dijkstra",
        ),  # few edges at each vertex, and 64 rows of 4 bytes beyond 32 MiB
        (CPU, 200_000, 1_000_001, 64, "many_sources"),
        (CPU, 100_000, 500_000, 64, "many_sources"),
        (GPU, 1000, 99_999, 7, "dijkstra"),
        (GPU, 1000, 99_999, 8, "many_sources"),
        (GPU, 1000, 100_000, 7, "output_parallel"),
        (GPU, 200_000, 1_000_000, 64, "many_sources"),
    ],
)
def test_methods_of_rows(device: torch.device, n: int, edges: int, rows: int, method: str) -> None:
    assert (
        choose(SimpleNamespace(device=device, n=n, edges=edges, dtype=torch.float32), rows)
        == method
    )


@pytest.mark.parametrize(
    ("device", "n", "rows", "has_lists", "most"),
    [
        (CPU, 2047, 2047, True, 0),
        (CPU, 2048, 2048, True, 2048**2 / 125),
        (
            CPU,
            2000,
            500,
            True,
            2000**3 / (125 * 500),
        ),  # fewer vertices, but only a quarter of the rows
        (CPU, 2000, 501, True, 0),
        (CPU, 2000, 1, True, 2000**3 / 125),  # a complete graph too
        (CPU, 2000, 1, False, 2000**3 / (125 * 32)),
        (GPU, 8191, 8191, True, 0),
        (GPU, 8192, 8192, False, 8192**2 / 150),
        (GPU, 2000, 1, True, 2000**3 / (150 * 8)),
    ],
)
def test_dense_or_johnson(
    device: torch.device, n: int, rows: int, has_lists: bool, most: float
) -> None:
    assert dense_or_johnson(n, int(most), rows, device, has_lists=has_lists).sparse == (most > 0)
    for edges in (int(most) + 1, None):
        assert not dense_or_johnson(n, edges, rows, device, has_lists=has_lists).sparse
