"""Whether a solve computes products by exponents: the rule on the CPU, and whole calls on a GPU."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import cases
import pytest
import torch

import tri_apsp
from tri_apsp import engines
from tri_apsp.engines import type_of
from tri_apsp.graphs import grid_of
from tri_apsp.semirings import no_edge
from tri_apsp.solver import exponents
from tri_apsp.solver.exponents import (
    least_by_exponents,
    least_of_product,
    ordinary_products,
    queue_edges_per_vertex,
)
from tri_apsp.solver.selection import select_dense
from tri_apsp.solver.values import Bounds

if TYPE_CHECKING:
    from tri_apsp.engines.triton_exponents import Remaining


@pytest.fixture(autouse=True)
def small_graphs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "gpu" not in request.keywords:
        monkeypatch.setattr(exponents, "_LEAST", 32)
        monkeypatch.setattr(exponents, "_LEAST_IF_FEW", 64)
        monkeypatch.setattr(exponents, "_LEAST_ALONE", 256)
        monkeypatch.setattr(exponents, "_FEWEST_VERTICES", 256)


@pytest.fixture
def multiplying(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = type_of("cpu")
    monkeypatch.setattr(
        engine, "multiplies_by_exponents", lambda matrix: matrix.dtype != torch.int64
    )
    monkeypatch.setattr(
        engine,
        "queue_edge_count",
        lambda *args, **options: partial(cases.count_edges, *args, **options),
    )


def graph(
    n: int, edges: int, highest: int, dtype: torch.dtype = torch.int16, device: str = "cpu"
) -> torch.Tensor:
    """`edges` per vertex, to the next ones, of weight 1 up to `highest`, which one edge has."""
    weights = torch.full((n, n), no_edge(dtype), dtype=dtype, device=device)
    start = torch.arange(n, device=device)
    for step in range(1, edges + 1):
        weights[start, (start + step) % n] = 1 + step % highest if highest else 0
    weights[0, 1] = highest
    return weights.fill_diagonal_(0)


def least(weights: torch.Tensor, highest: float | None) -> int | None:
    weights = weights if weights.dim() == 3 else weights[None]
    count = queue_edges_per_vertex(select_dense(weights, "auto", None), weights)
    return least_by_exponents(count and count(), highest)


@pytest.mark.parametrize("dtype", [torch.int16, torch.float32])
@pytest.mark.parametrize(
    ("n", "edges", "highest", "expected"),
    [
        (512, 64, 1, 32),
        (512, 10, 1, 32),
        (512, 9, 1, 64),
        (512, 3, 1, 64),
        (512, 2, 1, None),
        (512, 15, 10, 32),
        (512, 15, 11, 64),
        (512, 8, 8, 64),
        (512, 8, 9, None),
        (256, 100, 1, 32),
        (255, 100, 1, None),
        (512, 16, 0, 32),  # all weights are 0
        (512, 0, 1, None),
    ],
)
@pytest.mark.usefixtures("multiplying")
def test_the_least_product(
    n: int, edges: int, highest: int, expected: int | None, dtype: torch.dtype
) -> None:
    assert least(graph(n, edges, highest, dtype), highest if edges else None) == expected


@pytest.mark.usefixtures("multiplying")
def test_batches_count_all_graphs() -> None:
    assert least(torch.stack((graph(512, 6, 1), graph(512, 0, 1))), 1) == 64
    assert least(torch.stack((graph(512, 4, 1), graph(512, 0, 1))), 1) is None


@pytest.mark.usefixtures("multiplying")
def test_fractions() -> None:
    weights = graph(512, 16, 1, torch.float32)
    assert least(weights, 1) == 32
    weights[9, 10] = 0.5  # in one of the rows that are read
    assert least(weights, 1) is None


@pytest.mark.usefixtures("multiplying")
def test_fractions_on_the_diagonal_do_not_count() -> None:
    """A solve takes 0 in their place."""
    weights = graph(300, 32, 1, torch.float32).fill_diagonal_(0.5)
    assert tri_apsp.shortest_paths(weights, method="kleene").exponents
    assert tri_apsp.select(weights, read_values=True, method="kleene").exponents


@pytest.mark.usefixtures("multiplying")
def test_an_empty_batch() -> None:
    weights = torch.empty((0, 300, 300))
    found = tri_apsp.shortest_paths(weights)
    assert found.distances.shape == (0, 300, 300)
    assert not found.exponents
    assert not tri_apsp.select(weights, read_values=True).exponents


@pytest.mark.usefixtures("multiplying")
@pytest.mark.parametrize(("edges", "expected"), [(2, None), (3, 64)])
def test_the_diagonal_does_not_count(edges: int, expected: int | None) -> None:
    weights = graph(256, edges, 1)
    assert least(weights, 1) == expected
    assert least(weights.fill_diagonal_(no_edge(torch.int16)), 1) == expected


@pytest.mark.usefixtures("multiplying")
@pytest.mark.parametrize(
    ("diagonal", "expected"), [(0, True), (no_edge(torch.int16), True), (1000, False)]
)
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
def test_the_systems_of_the_papers_keep_their_products() -> None:
    weights = graph(512, 64, 1)[None]
    selection = select_dense(weights, "auto", None)
    assert queue_edges_per_vertex(selection, weights) is not None
    system = dataclasses.replace(selection, method="recursive_tuned")
    assert queue_edges_per_vertex(system, weights) is None


@pytest.mark.usefixtures("multiplying")
def test_packed_graphs() -> None:
    few, many = graph(40, 8, 1), graph(300, 32, 1)
    packed, offsets = (
        torch.cat((many.flatten(), few.flatten())),
        torch.tensor([0, 300**2, 300**2 + 40**2]),
    )
    assert tri_apsp.shortest_paths(packed, offsets=offsets, method="kleene").exponents
    assert not tri_apsp.shortest_paths(
        few.flatten(), offsets=torch.tensor([0, 1600]), method="kleene"
    ).exponents


def operand(
    rows: int, columns: int, highest: int, share: float, dtype: torch.dtype, device: str = "cpu"
) -> torch.Tensor:
    """Whole values from 1 to `highest`, and no_edge but for a share of them."""
    random = torch.Generator(device).manual_seed(rows + columns)
    values = torch.randint(1, highest + 1, (1, rows, columns), generator=random, device=device).to(
        dtype
    )
    return values.masked_fill_(
        torch.rand(values.shape, generator=random, device=device) >= share, no_edge(dtype)
    )


@pytest.mark.parametrize("dtype", [torch.int16, torch.float32], ids=str)
@pytest.mark.parametrize(
    ("m", "k", "n", "highest", "share", "expected"),
    [
        (256, 256, 256, 4, 1, True),
        (255, 256, 256, 4, 1, False),
        (256, 255, 256, 4, 1, False),
        (256, 256, 255, 4, 1, False),
        (
            256,
            700,
            256,
            100,
            1,
            True,
        ),  # 0.03 of all sums are at most 23 above 2: 21 for each result
        (256, 400, 256, 100, 1, False),  # 12
        (256, 700, 256, 100, 0.5, False),
        (
            256,
            256,
            256,
            12,
            0.1,
            True,
        ),  # no sum is more than 22 above 2, so that the product is exact
        (256, 256, 256, 14, 0.1, False),
        (256, 256, 256, 4, 0, False),
    ],
)
@pytest.mark.usefixtures("multiplying")
def test_products(
    m: int, k: int, n: int, highest: int, share: float, expected: bool, dtype: torch.dtype
) -> None:
    a, b = operand(m, k, highest, share, dtype), operand(k, n, highest, share, dtype)
    bounds = [Bounds(1, highest) if share else Bounds(0, None)] * 2
    assert (least_of_product("cpu", a, b, bounds) is not None) == expected


@pytest.mark.usefixtures("multiplying")
def test_products_that_are_never_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    a, bounds = operand(256, 256, 4, 1, torch.float32), [Bounds(1, 4)] * 2
    assert least_of_product("cpu", a, a, bounds) == 32
    assert least_of_product("cpu", a.long(), a.long(), bounds) is None
    assert least_of_product("cpu", a, a, [*bounds, Bounds(-1, 4)]) is None
    assert least_of_product("cpu", a, a, [Bounds(2699, 2702), Bounds(1, 4)]) == 32
    assert least_of_product("cpu", a, a, [Bounds(2700, 2703), Bounds(1, 4)]) is None
    with ordinary_products():
        assert least_of_product("cpu", a, a, bounds) is None
    monkeypatch.setattr(exponents, "fits_memory", lambda size, device: size < 8 * 256 * 256)
    assert least_of_product("cpu", a, a, bounds) is None


@pytest.mark.usefixtures("multiplying")
def test_products_whose_bounds_decide() -> None:
    few = operand(256, 256, 4, 0.1, torch.int16)
    assert (
        least_of_product("cpu", few, few, [Bounds(1, 12), Bounds(2, 14)]) == 32
    )  # no sum is more than 23 above 3
    assert least_of_product("cpu", few, few, [Bounds(1, 13), Bounds(2, 14)]) is None


@pytest.mark.usefixtures("multiplying")
def test_edges_of_a_product_are_counted_in_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponents, "_ROWS", 32)
    a, bounds = operand(256, 256, 4, 1, torch.float32), [Bounds(1, 4)] * 2
    for row, expected in ((8, 32), (9, None)):  # one of nine rows is read
        other = a.clone()
        other[0, row] += 0.5
        assert least_of_product("cpu", a, other, bounds) == expected
        assert least_of_product("cpu", other, a, bounds) == expected


@pytest.mark.parametrize(
    ("span_a", "span_b"), [(0, 0), (5, 40), (40, 5), (23, 23), (30, 99), (11, 12)]
)
def test_the_share_of_low_sums(span_a: int, span_b: int) -> None:
    sums = torch.arange(span_a + 1)[:, None] + torch.arange(span_b + 1)
    assert exponents._share_of_low_sums(span_a, span_b) == pytest.approx(
        float((sums <= 23).double().mean())
    )


@pytest.mark.usefixtures("multiplying")
def test_min_plus_follows_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    specs, make = [], engines.make
    monkeypatch.setattr(
        engines,
        "make",
        lambda name, spec, config: (specs.append(spec), make(name, spec, config))[1],
    )
    for highest in (4, 900):
        a = operand(256, 256, highest, 1, torch.int16)[0]
        assert torch.equal(tri_apsp.min_plus(a, a)[0], (a[0, :, None] + a).amin(0))
    assert [spec.exponents_from for spec in specs] == [32, None]


def test_a_cpu_uses_none() -> None:
    weights = graph(512, 16, 1)
    assert not tri_apsp.shortest_paths(weights).exponents
    assert not tri_apsp.select(weights, read_values=True).exponents


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.int16, torch.float32])
def test_counting_edges_does_not_block_the_host(dtype: torch.dtype) -> None:
    weights = torch.full((1, 8192, 8192), no_edge(dtype), dtype=dtype, device="cuda")
    weights[:, :, 1:5] = 1
    weights.diagonal(dim1=1, dim2=2).fill_(0)
    selection = select_dense(weights, "auto", None)
    torch.cuda.set_sync_debug_mode("error")
    try:
        count = queue_edges_per_vertex(selection, weights)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert count is not None
    assert 3.99 < count() <= 4


@pytest.mark.gpu
class TestCalls:
    N = 8200

    def random(self, dtype: torch.dtype, highest: int) -> torch.Tensor:
        generator = torch.Generator("cuda").manual_seed(highest)
        weights = torch.randint(
            1, highest + 1, (self.N, self.N), device="cuda", generator=generator
        ).to(dtype)
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

    def test_refused_weights_free_their_result_buffers(self) -> None:
        from tri_apsp.gpu import result_buffers

        weights = self.random(torch.float32, 4)
        weights[3, 4] = float("nan")
        used = len(result_buffers._IN_USE)
        with pytest.raises(tri_apsp.InputError):
            tri_apsp.shortest_paths(weights)
        assert len(result_buffers._IN_USE) == used

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
        weights, sizes = (
            torch.stack((self.random(torch.int16, 4),) * 2),
            torch.tensor([self.N, 5000], device="cuda"),
        )
        found = tri_apsp.shortest_paths(weights, sizes=sizes)
        assert found.exponents
        assert torch.equal(
            found.distances, tri_apsp.shortest_paths(weights, sizes=sizes, check=False).distances
        )

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


@pytest.mark.gpu
class TestProducts:
    @pytest.fixture
    def tried(self, monkeypatch: pytest.MonkeyPatch) -> list[Remaining]:
        """What each product by exponents left to an ordinary one."""
        engine, found = type_of("nvidia"), []
        multiply = engine.multiply_certain_tiles  # type: ignore[attr-defined]

        def record(*arguments: Any) -> Remaining:
            found.append(multiply(*arguments))
            return found[-1]

        monkeypatch.setattr(engine, "multiply_certain_tiles", record)
        return found

    def check(self, *operands: torch.Tensor) -> None:
        found = tri_apsp.min_plus(*operands)
        with ordinary_products():
            assert torch.equal(found, tri_apsp.min_plus(*operands))

    @pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.float32], ids=str)
    def test_dtypes(self, dtype: torch.dtype, tried: list[Remaining]) -> None:
        a, b = (
            operand(4100, 5000, 100, 1, dtype, "cuda"),
            operand(5000, 4203, 100, 1, dtype, "cuda"),
        )
        self.check(a, b, operand(4100, 4203, 9, 0.5, dtype, "cuda"))
        (remaining,) = tried
        assert not remaining.uncertain.any()

    def test_rows_without_small_values(self, tried: list[Remaining]) -> None:
        a, b = (
            operand(4100, 5000, 50, 1, torch.int16, "cuda"),
            operand(5000, 4203, 50, 1, torch.int16, "cuda"),
        )
        a[0, 256:400] = 3000
        a[0, 256:400, 7] = 0
        self.check(torch.cat((a, a)), torch.cat((b, b)))
        assert not tried

        rows = operand(4100, 5000, 50, 0.001, torch.int16, "cuda")[0, 256:400]
        a[0, 256:400] = rows  # few sums for each result
        self.check(torch.cat((a, a)), torch.cat((b, b)))
        (remaining,) = tried
        assert remaining.uncertain[:, 2:4].any()
        assert not remaining.uncertain[:, :2].any()

    def test_gradients(self, tried: list[Remaining]) -> None:
        a = operand(4100, 4100, 5, 1, torch.float32, "cuda").requires_grad_()
        (found,) = torch.autograd.grad(tri_apsp.min_plus(a, a.detach()).sum(), a)
        assert len(tried) == 1
        with ordinary_products():
            (expected,) = torch.autograd.grad(tri_apsp.min_plus(a, a.detach()).sum(), a)
        assert torch.equal(found, expected)
