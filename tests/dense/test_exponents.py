"""Whether a solve computes products by exponents: the rules, and whole calls on a GPU."""

import dataclasses
from functools import partial
from typing import Any

import cases
import pytest
import torch

import tri_apsp
from tri_apsp.arguments import check_weights
from tri_apsp.dense import exponents
from tri_apsp.dense.exponents import (
    direct_products,
    product_threshold,
    queue_edges_per_vertex,
    solve_threshold,
    with_exponents_threshold,
)
from tri_apsp.dense.plan import plan_dense
from tri_apsp.semirings import no_edge
from tri_apsp.value_range import ValueRange

N = 8192  # the fewest vertices of a solve that may multiply by exponents
K = 4096  # the fewest rows, columns and k of a product that may


@pytest.fixture
def supported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products by exponents count as supported on the CPU, and torch counts edges there."""
    monkeypatch.setattr(exponents, "are_supported", lambda engine, like: like.dtype != torch.int64)
    monkeypatch.setattr(
        exponents,
        "queue_edge_count",
        lambda *args, **options: partial(cases.count_edges, *args, **options),
    )


@pytest.mark.parametrize(
    ("edges", "highest", "expected"),
    [
        (64, 1, 2048),
        (10, 1, 2048),
        (9.9, 1, 4096),
        (2.5, 1, 4096),
        (2.4, 1, None),
        (15, 10, 2048),
        (15, 11, 4096),
        (8, 8.4, 4096),
        (8, 8.5, None),
        (16, 0, 2048),  # all weights are 0
        (16, None, None),
        (None, 1, None),
    ],
)
def test_the_threshold_of_a_solve(
    edges: float | None, highest: float | None, expected: int | None
) -> None:
    assert solve_threshold(edges, highest) == expected
    with with_exponents_threshold(100):
        assert solve_threshold(edges, highest) == 100
    with direct_products():
        assert solve_threshold(edges, highest) is None


def graph(n: int, edges: int, dtype: torch.dtype = torch.int16) -> torch.Tensor:
    """`edges` of weight 1 per vertex, to the next ones."""
    weights = torch.full((n, n), no_edge(dtype), dtype=dtype)
    for step in range(1, edges + 1):
        weights.diagonal(step).fill_(1)
        weights.diagonal(step - n).fill_(1)
    return weights.fill_diagonal_(0)


def edges_per_vertex(*graphs: torch.Tensor, method: Any = None) -> float | None:
    weights = torch.stack(graphs) if len(graphs) > 1 else graphs[0][None]
    plan = plan_dense(check_weights(weights))
    if method is not None:
        plan = dataclasses.replace(plan, method=method)
    count = queue_edges_per_vertex(plan, weights)
    return count and count()


@pytest.mark.usefixtures("supported")
def test_edges_per_vertex() -> None:
    weights = graph(N, 3)
    assert edges_per_vertex(weights) == 3
    assert edges_per_vertex(weights.fill_diagonal_(no_edge(torch.int16))) == 3
    assert edges_per_vertex(weights, graph(N, 0)) == 1.5
    assert edges_per_vertex(weights[1:, 1:]) is None
    with direct_products():
        assert edges_per_vertex(weights) is None
    assert edges_per_vertex(weights, method="simple") is None  # a paper's system


@pytest.mark.usefixtures("supported")
def test_a_fraction_in_a_row_that_is_read_excludes_products_by_exponents() -> None:
    weights = graph(N, 16, torch.float32)
    weights.fill_diagonal_(0.5)  # a solve takes 0 in its place
    assert edges_per_vertex(weights) == 16
    weights[:9, 40] = 0.5
    assert edges_per_vertex(weights) == 0


@pytest.mark.usefixtures("supported")
def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exponents, "fits_memory", lambda size, device: size < 4 * N * N)
    assert edges_per_vertex(graph(N, 16)) is None


@pytest.mark.usefixtures("supported")
def test_what_select_says() -> None:
    weights = graph(N, 16)
    assert tri_apsp.select(weights, read_values=True).exponents
    assert not tri_apsp.select(weights).exponents
    weights[5, 5] = 1000  # a diagonal counts as the greatest weight
    assert not tri_apsp.select(weights, read_values=True).exponents
    assert not tri_apsp.select(torch.empty((0, N, N)), read_values=True).exponents


def operand(
    rows: int, columns: int, highest: int, share: float, dtype: torch.dtype, device: str = "cpu"
) -> torch.Tensor:
    """Integers from 1 to `highest`, and no_edge but for a share of them."""
    random = torch.Generator(device).manual_seed(rows + columns)
    values = torch.randint(1, highest + 1, (1, rows, columns), generator=random, device=device).to(
        dtype
    )
    return values.masked_fill_(
        torch.rand(values.shape, generator=random, device=device) >= share, no_edge(dtype)
    )


def between(lowest: float, highest: float | None) -> ValueRange:
    return ValueRange(lowest, torch.inf, highest)


@pytest.mark.usefixtures("supported")
class TestProductThreshold:
    def found(
        self,
        a: ValueRange,
        b: ValueRange = between(1, 4),  # noqa: B008 (immutable)
        *,
        shape: tuple[int, int, int] = (K, K, K),
        missing: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> int | None:
        """The threshold for values of which one in `missing` columns, if not 0, are edges."""
        m, n, k = shape
        lines = torch.ones(max(n, k), dtype=dtype)
        if missing:
            lines[torch.arange(len(lines)) % missing > 0] = no_edge(dtype)
        left, right = lines[:k].expand(1, m, k), lines[:n].expand(1, k, n)
        return product_threshold("cpu", left, right, [a, b])

    @pytest.mark.parametrize("shape", [(K - 1, K, K), (K, K - 1, K), (K, K, K - 1)])
    def test_small_ones(self, shape: tuple[int, int, int]) -> None:
        assert self.found(between(1, 4)) == 2048
        assert self.found(between(1, 4), shape=shape) is None

    def test_bounds(self) -> None:
        assert self.found(between(2699, 2702)) == 2048
        assert self.found(between(2700, 2703)) is None
        assert self.found(between(-1, 4)) is None
        assert self.found(between(0, None)) is None
        assert self.found(between(1, 4), dtype=torch.int64) is None
        with direct_products():
            assert self.found(between(1, 4)) is None

    def test_the_share_of_low_sums(self) -> None:
        """Of sums of two values from 1 to h, 300 / h^2 are at most 23 above the least."""
        for highest, expected in ((270, 2048), (280, None)):  # 16.9 and 15.7 per result
            assert self.found(between(1, highest), between(1, highest)) == expected

    def test_exact_products_need_no_low_sums(self) -> None:
        """No sum is more than 23 above the least."""
        for highest, expected in ((20, 2048), (21, None)):
            ranges = between(1, highest), between(1, 5)
            assert self.found(*ranges, missing=20) == expected

    def test_fractions(self) -> None:
        ones, fractions = torch.ones(1, K, K), torch.ones(1, K, K)
        fractions[0, :3] = 0.5
        for operands in ((ones, fractions), (fractions, ones)):
            assert product_threshold("cpu", *operands, [between(0.5, 4)] * 2) is None

    def test_too_little_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(exponents, "fits_memory", lambda size, device: size < 8 * K * K)
        assert self.found(between(1, 4)) is None


@pytest.mark.gpu
def test_counting_edges_does_not_block_the_host() -> None:
    weights = torch.full((1, N, N), no_edge(torch.int16), dtype=torch.int16, device="cuda")
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


@pytest.fixture
def hopper() -> None:
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("products by exponents run on compute capability 9.x")


@pytest.mark.gpu
@pytest.mark.usefixtures("hopper")
class TestCalls:
    N = 8200

    def random(self, dtype: torch.dtype, highest: int) -> torch.Tensor:
        generator = torch.Generator("cuda").manual_seed(highest)
        weights = torch.randint(
            1, highest + 1, (self.N, self.N), device="cuda", generator=generator
        ).to(dtype)
        missing = torch.rand(self.N, self.N, device="cuda", generator=generator) > 0.02
        return weights.masked_fill(missing, no_edge(dtype))

    @pytest.mark.parametrize(
        ("dtype", "method", "highest"),
        [
            (torch.int16, "kleene", 4),
            (torch.int16, "floyd_warshall", 16),
            (torch.int16, "squaring", 16),
            (torch.float32, "auto", 4),
            pytest.param(torch.int32, "auto", 4, marks=pytest.mark.slow),
        ],
        ids=str,
    )
    def test_solves(self, dtype: torch.dtype, method: Any, highest: int) -> None:
        """Unless values are read, all products are direct."""
        weights = self.random(dtype, highest)
        found = tri_apsp.shortest_paths(weights, method=method)
        assert found.exponents
        assert tri_apsp.select(weights, read_values=True, method=method).exponents
        expected = tri_apsp.shortest_paths(weights, check=False)
        assert not expected.exponents
        assert torch.equal(found.distances, expected.distances)

    def test_other_weights(self) -> None:
        half = self.random(torch.float32, 4)
        half[: self.N // 2] += 0.5
        negative = self.random(torch.int16, 4)
        negative[3, 4] = -1
        for weights in (self.random(torch.int16, 3000), half, self.random(torch.int64, 4)):
            assert not tri_apsp.shortest_paths(weights).exponents
        assert not tri_apsp.shortest_paths(negative, negative_cycles="mark").exponents
        assert not tri_apsp.select(negative, read_values=True).exponents

    def test_refused_weights_free_their_result_buffers(self) -> None:
        from tri_apsp.gpu import result_buffers

        weights = self.random(torch.float32, 4)
        weights[3, 4] = float("nan")
        used = len(result_buffers._IN_USE)
        with pytest.raises(tri_apsp.InputError):
            tri_apsp.shortest_paths(weights)
        assert len(result_buffers._IN_USE) == used

    def test_overwrite_and_predecessors(self) -> None:
        weights = self.random(torch.int16, 4)
        found = tri_apsp.shortest_paths(weights, predecessors=True)
        assert found.exponents
        last = found.predecessors.long()
        other = ~torch.eye(self.N, dtype=torch.bool, device="cuda")
        assert torch.equal(last >= 0, other)  # all are reached
        last.clamp_(min=0)
        sums = found.distances.gather(1, last) + weights.gather(0, last)
        assert torch.equal(sums[other], found.distances[other])
        overwritten = tri_apsp.shortest_paths(weights, out=weights)
        assert overwritten.exponents
        assert torch.equal(overwritten.distances, found.distances)

    def test_sizes(self) -> None:
        weights = torch.stack((self.random(torch.int16, 4),) * 2)
        sizes = torch.tensor([self.N, 5000], device="cuda")
        found = tri_apsp.shortest_paths(weights, sizes=sizes)
        assert found.exponents
        expected = tri_apsp.shortest_paths(weights, sizes=sizes, check=False)
        assert torch.equal(found.distances, expected.distances)


@pytest.mark.gpu
@pytest.mark.usefixtures("hopper")
class TestProducts:
    def remaining(self, *operands: torch.Tensor) -> list[torch.Tensor]:
        """Compare min_plus with a direct product; return what products by exponents left to it."""
        from tri_apsp.engines.exponents import recorded_products

        with recorded_products() as recorded:
            found = tri_apsp.min_plus(*operands)
        with direct_products():
            assert torch.equal(found, tri_apsp.min_plus(*operands))
        return [one.uncertain for one in recorded]

    @pytest.mark.parametrize(
        "dtype",
        [torch.int16, torch.float32, pytest.param(torch.int32, marks=pytest.mark.slow)],
        ids=str,
    )
    def test_dtypes(self, dtype: torch.dtype) -> None:
        a, b, c = (
            operand(*shape, *values, dtype, "cuda")
            for shape, values in (
                ((4100, 5000), (100, 1)),
                ((5000, 4203), (100, 1)),
                ((4100, 4203), (9, 0.5)),
            )
        )
        (uncertain,) = self.remaining(a, b, c)
        assert not uncertain.any()

    def test_rows_without_small_values(self) -> None:
        a = operand(4100, 5000, 50, 1, torch.int16, "cuda")
        b = operand(5000, 4203, 50, 1, torch.int16, "cuda")
        a[0, 256:400] = 3000
        a[0, 256:400, 7] = 0
        assert not self.remaining(torch.cat((a, a)), torch.cat((b, b)))
        few = operand(4100, 5000, 50, 0.001, torch.int16, "cuda")[0, 256:400]
        a[0, 256:400] = few  # few sums for each result
        (uncertain,) = self.remaining(torch.cat((a, a)), torch.cat((b, b)))
        assert uncertain[:, 2:4].any()
        assert not uncertain[:, :2].any()

    def test_gradients(self) -> None:
        from tri_apsp.engines.exponents import recorded_products

        a = operand(4100, 4100, 5, 1, torch.float32, "cuda").requires_grad_()
        with recorded_products() as recorded:
            (found,) = torch.autograd.grad(tri_apsp.min_plus(a, a.detach()).sum(), a)
        assert len(recorded) == 1
        with direct_products():
            (expected,) = torch.autograd.grad(tri_apsp.min_plus(a, a.detach()).sum(), a)
        assert torch.equal(found, expected)
