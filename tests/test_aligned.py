"""How graphs are stored so that a GPU moves their rows 16 bytes at a time."""

from __future__ import annotations

import pytest
import torch

from tri_apsp.aligned import aligned, stored


def test_aligned() -> None:
    assert [aligned(n) for n in (0, 1, 16, 17, 1000)] == [0, 16, 16, 32, 1008]


def test_more_is_stored_where_that_pays_and_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def has_room(size: float, device: torch.device) -> bool:
        asked.append(size)
        return size < 10**7

    monkeypatch.setattr("tri_apsp.aligned.has_room", has_room)
    sizes = {n: stored(torch.empty(2, n, n, dtype=torch.int16, device="meta"), 2.5) for n in (0, 50, 64, 65, 1000, 1008, 1009)}
    assert sizes == {0: 0, 50: 50, 64: 64, 65: 80, 1000: 1000, 1008: 1008, 1009: 1009}
    assert asked == [2.5 * 2 * 80**2 * 2, 2.5 * 2 * 1008**2 * 2, 2.5 * 2 * 1024**2 * 2]
