"""How graphs are stored so that a GPU moves their rows 16 bytes at a time."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

import cases
import pytest
import torch
from torch.nn.functional import pad

import tri_apsp
from tri_apsp import api
from tri_apsp.gpu.padding import aligned, stored
from tri_apsp.solver import verification as audit
from tri_apsp.solver.staging import start
from tri_apsp.solver.value_range import Scan, scan


def test_aligned() -> None:
    assert [aligned(n) for n in (0, 1, 16, 17, 1000)] == [0, 16, 16, 32, 1008]


def test_more_is_stored_where_that_pays_and_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def has_room(size: float, device: torch.device) -> bool:
        asked.append(size)
        return size < 10**7

    monkeypatch.setattr("tri_apsp.gpu.padding.has_room", has_room)
    sizes = {n: stored(torch.empty(2, n, n, dtype=torch.int16, device="meta"), 2.5) for n in (0, 50, 64, 65, 1000, 1008, 1009)}
    assert sizes == {0: 0, 50: 50, 64: 64, 65: 80, 1000: 1000, 1008: 1008, 1009: 1009}
    assert asked == [2.5 * 2 * 80**2 * 2, 2.5 * 2 * 1008**2 * 2, 2.5 * 2 * 1024**2 * 2]


class Findings:
    """Stands in for those of a GPU: makes the matrix that a solve starts from, and says what the weights hold."""

    made: ClassVar[list[weakref.ref[torch.Tensor]]] = []

    def __init__(self, weights: torch.Tensor, *, unread: bool) -> None:
        pass

    def copy(self, weights: torch.Tensor, sizes: torch.Tensor | None, stored: int) -> torch.Tensor:
        plain, _ = start(weights, sizes, in_place=False, check=False)
        self._found = scan(plain, tri_apsp.no_edge(weights.dtype))
        more = stored - weights.shape[1]
        matrix = pad(plain, (0, more, 0, more), value=tri_apsp.no_edge(weights.dtype))
        self.made.append(weakref.ref(matrix))
        return matrix

    def read(self) -> list[Scan]:
        return [self._found]


@pytest.mark.parametrize("make", [cases.random_graph, cases.negative_graph])
@pytest.mark.parametrize("method", ["floyd_warshall", "kleene", "squaring", "iterative"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16], ids=str)
@pytest.mark.parametrize("n", [96, 150])
def test_a_solve_in_a_larger_matrix(
    monkeypatch: pytest.MonkeyPatch, n: int, dtype: torch.dtype, method: str, make: Any
) -> None:
    """Whose memory is free again before the result is audited, which may take more."""
    monkeypatch.setattr(api, "has_kernels", lambda tensor: True)
    monkeypatch.setattr(api, "Findings", Findings)
    monkeypatch.setattr("tri_apsp.gpu.padding.has_room", lambda size, device: True)
    audited: list[bool] = []

    def look(distances: torch.Tensor, *rest: Any) -> None:
        (matrix,) = Findings.made
        audited.append(matrix() is None)
        auditing(distances, *rest)

    auditing = audit.audit
    monkeypatch.setattr(audit, "audit", look)
    Findings.made.clear()
    weights = make(n)
    result = tri_apsp.shortest_paths(
        cases.tensor(weights, dtype), method=method, config=tri_apsp.Config(block_size=32, cutoff=64)
    ).distances
    assert result.is_contiguous()
    cases.assert_distances(result, weights)
    assert audited == [n % 16 > 0]
