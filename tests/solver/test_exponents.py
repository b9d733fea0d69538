"""Whether a solve computes products by exponents: the rule on the CPU, and whole calls on a GPU."""

from __future__ import annotations

import pytest
import torch

import tri_apsp
from tri_apsp.engines import type_of
from tri_apsp.graphs import grid_of
from tri_apsp.semirings import no_edge
from tri_apsp.solver import exponents
from tri_apsp.solver.exponents import least_by_exponents
from tri_apsp.solver.selection import select_dense


@pytest.fixture(autouse=True)
def small_graphs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "gpu" not in request.keywords:
        monkeypatch.setattr(exponents, "_LEAST", 32)
        monkeypatch.setattr(exponents, "_FEWEST_VERTICES", 256)
        monkeypatch.setattr(exponents, "_FEWEST_LIGHT_IN_ALL", 200)


@pytest.fixture
def multiplying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_of("cpu"), "multiplies_by_exponents", lambda method, matrix: matrix.dtype != torch.int64)


def graph(n: int, edges: int, highest: int, dtype: torch.dtype = torch.int16, device: str = "cpu") -> torch.Tensor:
    """`edges` per vertex, to the next ones, of weight 1 up to `highest`, which one edge has."""
    weights = torch.full((n, n), no_edge(dtype), dtype=dtype, device=device)
    start = torch.arange(n, device=device)
    for step in range(1, edges + 1):
        weights[start, (start + step) % n] = 1 + step % highest if highest else 0
    weights[0, 1] = highest
    return weights.fill_diagonal_(0)


def least(weights: torch.Tensor, highest: float | None) -> int | None:
    weights = weights if weights.dim() == 3 else weights[None]
    return least_by_exponents(select_dense(weights, "auto", None), weights, highest)


@pytest.mark.parametrize("dtype", [torch.int16, torch.float32])
@pytest.mark.parametrize(
    ("n", "edges", "highest", "expected"),
    [
        (512, 64, 1, 32),  # 64 edges of weight 1: 1 in a part of 8 vertices, but no product is that small
        (512, 16, 1, 32),
        (512, 8, 1, 64),
        (512, 8, 2, 64),  # products of an eighth of the vertices, although of 128 vertices alone each has a light edge
        (513, 8, 2, 64),
        (520, 8, 2, 64),
        (500, 8, 2, 32),
        (512, 3, 2, 64),
        (512, 4, 3, 256),  # products of half the vertices alone
        (512, 8, 8, 256),
        (512, 8, 9, None),
        (512, 3, 1, 64),
        (512, 2, 1, None),
        (256, 100, 1, 32),
        (255, 100, 1, None),
        (512, 16, 0, 32),  # all weights are 0
        (512, 0, 1, None),
    ],
)
@pytest.mark.usefixtures("multiplying")
def test_the_least_product(n: int, edges: int, highest: int, expected: int | None, dtype: torch.dtype) -> None:
    assert least(graph(n, edges, highest, dtype), highest if edges else None) == expected


@pytest.mark.usefixtures("multiplying")
def test_small_graphs_need_more_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponents, "_FEWEST_LIGHT_IN_ALL", 600)
    assert least(graph(512, 4, 4), 4) is None
    assert least(graph(512, 4, 3), 3) == 256
    assert least(graph(600, 4, 4), 4) == 256


@pytest.mark.usefixtures("multiplying")
def test_batches_count_all_graphs() -> None:
    assert least(torch.stack((graph(512, 12, 1), graph(512, 0, 1))), 1) == 64


@pytest.mark.usefixtures("multiplying")
def test_fractions() -> None:
    weights = graph(512, 16, 1, torch.float32)
    assert least(weights, 1) == 32
    weights[9, 10] = 0.5  # in one of the rows that are read
    assert least(weights, 1) is None


@pytest.mark.usefixtures("multiplying")
@pytest.mark.parametrize(("edges", "expected"), [(2, None), (3, 32)])
def test_the_diagonal_does_not_count(edges: int, expected: int | None) -> None:
    weights = graph(256, edges, 1)
    assert least(weights, 1) == expected
    assert least(weights.fill_diagonal_(no_edge(torch.int16)), 1) == expected


@pytest.mark.usefixtures("multiplying")
@pytest.mark.parametrize(("diagonal", "expected"), [(0, True), (no_edge(torch.int16), True), (1000, False)])
def test_a_heavy_diagonal_counts_as_the_greatest_weight(diagonal: int, expected: bool) -> None:
    weights = graph(300, 32, 1).fill_diagonal_(diagonal)
    assert tri_apsp.shortest_paths(weights, method="kleene").exponents == expected
    assert tri_apsp.select(weights, read_values=True, method="kleene").exponents == expected


@pytest.mark.usefixtures("multiplying")
def test_not_only_the_border_of_a_grid_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponents, "_FEWEST_LIGHT", 3.5)
    weights = grid_of(4096).to_weights(torch.int16)
    weights[(weights > 0) & (weights < no_edge(torch.int16))] = 1
    assert least(weights, 1) is not None


@pytest.mark.usefixtures("multiplying")
def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponents, "fits_memory", lambda size, device: size < 4 * 512 * 512)
    assert least(graph(512, 16, 1), 1) is None


@pytest.mark.usefixtures("multiplying")
@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.float32, torch.int64], ids=str)
def test_what_select_says_is_what_a_solve_does(dtype: torch.dtype) -> None:
    weights = graph(300, 32, 1) < 16383 if dtype == torch.bool else graph(300, 32, 1, dtype)
    expected = dtype != torch.int64
    assert tri_apsp.select(weights, read_values=True, method="kleene").exponents == expected
    assert tri_apsp.shortest_paths(weights, method="kleene").exponents == expected
    assert not tri_apsp.select(weights, method="kleene").exponents
    assert not tri_apsp.shortest_paths(weights, method="kleene", check=False).exponents


@pytest.mark.usefixtures("multiplying")
def test_packed_graphs() -> None:
    few, many = graph(40, 8, 1), graph(300, 32, 1)
    packed, offsets = torch.cat((many.flatten(), few.flatten())), torch.tensor([0, 300**2, 300**2 + 40**2])
    assert tri_apsp.shortest_paths(packed, offsets=offsets, method="kleene").exponents
    assert not tri_apsp.shortest_paths(few.flatten(), offsets=torch.tensor([0, 1600]), method="kleene").exponents


def test_a_cpu_uses_none() -> None:
    weights = graph(512, 16, 1)
    assert not tri_apsp.shortest_paths(weights).exponents
    assert not tri_apsp.select(weights, read_values=True).exponents


@pytest.mark.gpu
class TestCalls:
    N = 8200

    def random(self, dtype: torch.dtype, highest: int) -> torch.Tensor:
        generator = torch.Generator("cuda").manual_seed(highest)
        weights = torch.randint(1, highest + 1, (self.N, self.N), device="cuda", generator=generator).to(dtype)
        missing = torch.rand(self.N, self.N, device="cuda", generator=generator) > 0.02
        return weights.masked_fill_(missing, no_edge(dtype))

    def check(self, weights: torch.Tensor, expected: bool, **options: str) -> None:
        found = tri_apsp.shortest_paths(weights, **options)  # type: ignore[arg-type]
        assert found.exponents == expected
        assert tri_apsp.select(weights, read_values=True, **options).exponents == expected  # type: ignore[arg-type]
        assert torch.equal(found.distances, tri_apsp.shortest_paths(weights, check=False).distances)

    @pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.float32], ids=str)
    def test_dtypes(self, dtype: torch.dtype) -> None:
        self.check(self.random(dtype, 4), True)

    @pytest.mark.parametrize("method", ["kleene", "floyd_warshall", "squaring"])
    def test_methods(self, method: str) -> None:
        self.check(self.random(torch.int16, 16), True, method=method)

    def test_heavy_weights(self) -> None:
        self.check(self.random(torch.int16, 3000), False)

    def test_other_weights(self) -> None:
        weights = self.random(torch.float32, 4)
        weights[: self.N // 2] += 0.5
        assert not tri_apsp.shortest_paths(weights).exponents
        assert not tri_apsp.shortest_paths(self.random(torch.int64, 4)).exponents
        weights = self.random(torch.int16, 4)
        weights[3, 4] = -1
        assert not tri_apsp.shortest_paths(weights, negative_cycles="mark").exponents
        assert not tri_apsp.select(weights, read_values=True).exponents

    def test_unread_values(self) -> None:
        weights = self.random(torch.int16, 4)
        assert not tri_apsp.select(weights).exponents
        assert not tri_apsp.shortest_paths(weights, check=False).exponents

    def test_overwrite(self) -> None:
        weights = self.random(torch.int16, 4)
        expected = tri_apsp.shortest_paths(weights).distances
        found = tri_apsp.shortest_paths(weights, overwrite=True)
        assert found.exponents
        assert torch.equal(found.distances, expected)

    def test_sizes(self) -> None:
        weights, sizes = torch.stack((self.random(torch.int16, 4),) * 2), torch.tensor([self.N, 5000], device="cuda")
        found = tri_apsp.shortest_paths(weights, sizes=sizes)
        assert found.exponents
        assert torch.equal(found.distances, tri_apsp.shortest_paths(weights, sizes=sizes, check=False).distances)

    def test_predecessors(self) -> None:
        weights = self.random(torch.int16, 4)
        found = tri_apsp.shortest_paths(weights, predecessors=True)
        assert found.exponents
        assert found.predecessors is not None
        last = found.predecessors.long()
        other = torch.arange(self.N, device="cuda") != torch.arange(self.N, device="cuda")[:, None]
        assert torch.equal(last >= 0, other)  # all are reached
        last.clamp_(min=0)
        sums = found.distances.gather(1, last) + weights.gather(0, last)
        assert torch.equal(sums[other], found.distances[other])
