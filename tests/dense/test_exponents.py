"""Which solves and products are computed by exponents: the rules, and whole calls on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch

import tri_apsp
from tri_apsp.arguments import check_weights
from tri_apsp.dense.exponents import (
    least_by_exponents,
    least_of_product,
    ordinary_products,
    queue_edges_per_vertex,
)
from tri_apsp.dense.plan import plan_dense
from tri_apsp.engines import type_of
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.semirings import no_edge
from tri_apsp.values import Bounds

if TYPE_CHECKING:
    from tri_apsp.engines.triton_exponents import Remaining

N = 8192
Multiplying = Callable[[float], list[tuple[torch.Size, int, bool]]]


@pytest.fixture
def multiplying(monkeypatch: pytest.MonkeyPatch) -> Multiplying:
    """Let the cpu engine multiply by exponents, and find `edges` per row that it reads; returns
    the list of what it counts.
    """

    def set_edges(edges: float) -> list[tuple[torch.Size, int, bool]]:
        counted = list[tuple[torch.Size, int, bool]]()

        def count(matrices: torch.Tensor, step: int, *, loops: bool) -> Callable[[], float]:
            counted.append((matrices.shape, step, loops))
            rows = len(matrices) * len(range(0, matrices.shape[1], step))
            return lambda: edges * rows

        monkeypatch.setattr(CpuEngine, "multiplies_by_exponents", lambda x: x.dtype != torch.int64)
        monkeypatch.setattr(CpuEngine, "queue_edge_count", count)
        return counted

    return set_edges


@pytest.mark.parametrize(
    ("edges", "highest", "expected"),
    [
        (64, 1, 2048),
        (10, 1, 2048),
        (9, 1, 4096),  # few edges
        (2.5, 1, 4096),
        (2.4, 1, None),  # long paths
        (15, 10, 2048),
        (15, 11, 4096),  # few light edges
        (8, 8.4, 4096),
        (8, 8.5, None),
        (16, 0, 2048),  # all weights are 0
        (0, None, None),
        (None, 1, None),
    ],
)
def test_the_least_product(
    edges: float | None, highest: float | None, expected: int | None
) -> None:
    assert least_by_exponents(edges, highest) == expected


def weights_of(n: int, dtype: torch.dtype = torch.int16) -> torch.Tensor:
    """Weights (1, n, n) of 1, in the memory of one row."""
    return torch.ones(1, 1, n, dtype=dtype).expand(1, n, n)


def test_which_solves_count_edges(
    multiplying: Multiplying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large ones of the dtypes that an engine takes, while memory suffices; at most 2048 rows, and
    an odd number of rows apart.
    """
    counted = multiplying(16)
    for weights, expected in (
        (weights_of(N), True),
        (weights_of(N, torch.int64), False),
        (weights_of(N - 1), False),
        (torch.empty(0, N, N), False),
    ):
        count = queue_edges_per_vertex(plan_dense(check_weights(weights)), weights)
        assert (count is not None) == expected
        assert count is None or count() == 16
    assert counted == [((1, N, N), 5, False)]
    plan, weights = plan_dense(check_weights(weights_of(N))), weights_of(N)
    with ordinary_products():
        assert queue_edges_per_vertex(plan, weights) is None
    monkeypatch.setattr("tri_apsp.dense.exponents.fits_memory", lambda size, _: size < 4 * N * N)
    assert queue_edges_per_vertex(plan, weights) is None


def test_select_reads_the_values(multiplying: Multiplying) -> None:
    multiplying(16)
    weights = weights_of(N)[0]
    assert tri_apsp.select(weights, read_values=True).exponents
    assert not tri_apsp.select(weights).exponents
    assert not tri_apsp.select(-weights, read_values=True).exponents
    multiplying(0)  # as fractions are counted
    assert not tri_apsp.select(weights, read_values=True).exponents


LIGHT = [Bounds(1, 4)] * 2


@pytest.mark.parametrize(
    ("shape", "bounds", "edges", "expected"),
    [
        ((4096, 4096, 4096), LIGHT, 4096, True),
        ((4095, 4096, 4096), LIGHT, 4096, False),
        ((4096, 4095, 4096), LIGHT, 4096, False),
        ((4096, 4096, 4095), LIGHT, 4096, False),
        ((4096, 4096, 4096), LIGHT, 1, True),  # the spans decide: the product is exact
        ((4096, 4096, 4096), [Bounds(1, 12), Bounds(2, 14)], 1, True),  # at most 23 above 3
        ((4096, 4096, 4096), [Bounds(1, 13), Bounds(2, 14)], 1, False),
        ((4096, 4096, 4096), [Bounds(1, 100)] * 2, 4096, True),  # 300 / 10^4 of the sums are low
        ((4096, 4096, 4096), [Bounds(1, 100)] * 2, 1000, False),  # of 1000^2 / 4096 per result
        ((4096, 4096, 4096), [Bounds(1, 400)] * 2, 4096, False),
        ((4096, 4096, 4096), [*LIGHT, Bounds(-1, 4)], 4096, False),
        ((4096, 4096, 4096), [Bounds(2699, 2702), Bounds(1, 4)], 4096, True),
        ((4096, 4096, 4096), [Bounds(2700, 2703), Bounds(1, 4)], 4096, False),
        ((4096, 4096, 4096), [Bounds(0, None)] * 2, 0, False),
    ],
    ids=str,
)
def test_which_products_are_tried(
    shape: tuple[int, int, int],
    bounds: list[Bounds],
    edges: int,
    expected: bool,
    multiplying: Multiplying,
) -> None:
    multiplying(edges)
    m, k, n = shape
    a, b = (torch.ones(1, 1, 1, dtype=torch.int16).expand(1, *size) for size in ((m, k), (k, n)))
    assert least_of_product("cpu", a, b, bounds) == (2048 if expected else None)
    with ordinary_products():
        assert least_of_product("cpu", a, b, bounds) is None
    wide = torch.ones(1, 1, 1, dtype=torch.int64).expand(1, 4096, 4096)
    assert least_of_product("cpu", wide, wide, bounds) is None


def test_floats_of_a_product_are_counted(multiplying: Multiplying) -> None:
    """Since they may be fractions, of which none counts."""
    a = torch.ones(1, 1, 1).expand(1, 4096, 4096)
    for edges, expected in ((4096, 2048), (0, None)):
        counted = multiplying(edges)
        assert least_of_product("cpu", a, a, LIGHT) == expected
        assert counted == [((1, 4096, 4096), 3, True)] * 2


def test_a_cpu_uses_none() -> None:
    weights = weights_of(N)
    assert queue_edges_per_vertex(plan_dense(check_weights(weights)), weights) is None


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


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.int16, torch.float32])
def test_counting_edges_does_not_block_the_host(dtype: torch.dtype) -> None:
    weights = torch.full((1, 8192, 8192), no_edge(dtype), dtype=dtype, device="cuda")
    weights[:, :, 1:5] = 1
    weights.diagonal(dim1=1, dim2=2).fill_(0)
    plan = plan_dense(check_weights(weights))
    torch.cuda.set_sync_debug_mode("error")
    try:
        count = queue_edges_per_vertex(plan, weights)
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

    def test_other_weights(self) -> None:
        self.check(self.random(torch.int16, 3000), False)  # heavy ones
        weights = self.random(torch.float32, 4)
        weights[: self.N // 2] += 0.5
        assert not tri_apsp.shortest_paths(weights).exponents
        assert not tri_apsp.shortest_paths(self.random(torch.int64, 4)).exponents
        weights = self.random(torch.int16, 4)
        weights[3, 4] = -1
        assert not tri_apsp.shortest_paths(weights, negative_cycles="mark").exponents
        assert not tri_apsp.select(weights, read_values=True).exponents

    def test_overwritten_and_padded_weights(self) -> None:
        weights = self.random(torch.int16, 4)
        batch, sizes = weights.expand(2, self.N, self.N), torch.tensor([self.N, 5000]).cuda()
        padded = tri_apsp.shortest_paths(batch, sizes=sizes)
        found = tri_apsp.shortest_paths(weights.clone(), overwrite=True)
        assert padded.exponents
        assert found.exponents
        assert torch.equal(found.distances, padded.distances[0])
        expected = tri_apsp.shortest_paths(weights[:5000, :5000], check=False).distances
        assert torch.equal(padded.distances[1, :5000, :5000], expected)

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
