"""The value range of a tensor is what NumPy computes: by torch, by the cpu engine, and by the
kernel on a GPU or in Triton's interpreter.
"""

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import no_edge
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.gpu.value_range import ValueRangeReader
from tri_apsp.value_range import ValueRange, value_range

NAN, INF = float("nan"), float("inf")
Read = Callable[..., ValueRange]

# How a tensor may lie in memory.
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "batch last": lambda x: x.permute(1, 2, 0).contiguous().permute(2, 0, 1),
    "cut out": lambda x: torch.nn.functional.pad(x, (2, 3, 1, 1), value=99)[:, 1:-1, 2:-3],
    "every other": lambda x: torch.stack((x, torch.full_like(x, 99)), dim=-1)[..., 0],
    "expanded rows": lambda x: x[:, :1].expand_as(x),
    "expanded columns": lambda x: x[:, :, :1].expand_as(x),
    "one value": lambda x: x[:1, :1, :1].expand_as(x),
    "one graph": lambda x: x[:1].expand_as(x),
}
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
dtypes = pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)


def values(shape: tuple[int, ...], dtype: torch.dtype, *, missing: float = 0.5) -> torch.Tensor:
    """Random values of both signs, exact in every dtype; about `missing` of them are no_edge."""
    generator = torch.Generator().manual_seed(sum(shape))
    found = torch.randint(-50, 50, shape, generator=generator).to(dtype)
    return found.masked_fill_(torch.rand(shape, generator=generator) < missing, no_edge(dtype))


def expected(tensor: torch.Tensor, below: float | None, diagonal: bool) -> ValueRange:
    found = tensor.cpu().numpy()
    less = found[found < below] if below is not None else found[:0]
    loop = found.diagonal(axis1=1, axis2=2).min().item() if diagonal else None
    return ValueRange(
        found.min().item(), found.max().item(), less.max().item() if less.size else None, loop
    )


def check(read: Read, tensor: torch.Tensor, *more: int) -> None:
    """Compare the value range of `tensor` with NumPy, for the bounds of solves and `more`."""
    diagonal = tensor.shape[1] == tensor.shape[2]
    for below in (no_edge(tensor.dtype), None, *more):
        assert read(tensor, below, diagonal=diagonal) == expected(tensor, below, diagonal)
    if diagonal:
        assert read(tensor).lowest_diagonal is None


def check_extremes(read: Read, dtype: torch.dtype) -> None:
    """The extreme values of the dtype are reported exactly, and NaN, wherever they are."""
    ends = (
        (-INF, INF) if dtype.is_floating_point else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    )
    tensor = torch.zeros((2, 20, 20), dtype=dtype)
    tensor[1, -1, -1], tensor[0, 0, 3] = ends
    assert read(tensor, ends[1], diagonal=True) == ValueRange(ends[0], ends[1], 0, ends[0])
    nearly = (torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)).max
    tensor.fill_(nearly)
    assert read(tensor) == ValueRange(nearly, nearly)
    for place in ((0, 0, 0), (1, 4, 4), (1, 2, 3)) if dtype.is_floating_point else ():
        for nan in (NAN, -NAN):
            tensor = values((2, 5, 5), dtype)
            tensor[place] = nan
            assert np.isnan(read(tensor, INF, diagonal=True).lowest)


@pytest.fixture(autouse=True)
def _several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensors of these tests are read in several parts too."""
    monkeypatch.setattr("tri_apsp.value_range._SMALL", 1 << 14)
    monkeypatch.setattr("tri_apsp.engines.cpu_tasks._LEAST_PASS", 20)


def by_cpu_engine(
    tensor: torch.Tensor, below: float | int | None = None, *, diagonal: bool = False
) -> ValueRange:
    return CpuEngine.value_ranges([tensor], below, diagonal=diagonal)[0]


on_a_cpu = pytest.mark.parametrize("read", [value_range, by_cpu_engine])


@on_a_cpu
@dtypes
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 7, 5), (2, 63, 63), (3, 90, 90), (40, 25, 25)], ids=str
)
def test_layouts(read: Read, dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    for layout in LAYOUTS.values():
        check(read, layout(values(shape, dtype)), 7, 0, -50)  # among and below the values


@on_a_cpu
@dtypes
def test_the_ends_of_the_dtype(read: Read, dtype: torch.dtype) -> None:
    check_extremes(read, dtype)


@on_a_cpu
@dtypes
def test_nothing_and_no_edges(read: Read, dtype: torch.dtype) -> None:
    for shape in ((0, 3, 3), (2, 0, 0), (2, 0, 3), (2, 3, 0)):
        assert read(
            torch.zeros(shape, dtype=dtype), 5, diagonal=shape[1] == shape[2]
        ) == ValueRange(0, 0)
    infinity = no_edge(dtype)
    assert read(
        torch.full((2, 3, 3), infinity, dtype=dtype), infinity, diagonal=True
    ) == ValueRange(infinity, infinity, None, infinity)


@on_a_cpu
def test_negative_zero_is_not_below_zero(read: Read) -> None:
    tensor = torch.tensor([[[-0.0, 0.0], [-3.0, 2.0]]])
    for zero in (0, 0.0, -0.0):
        assert read(tensor, zero) == ValueRange(-3, 2, -3)
        assert read(tensor[:, :1], zero) == ValueRange(0, 0)


@dtypes
@pytest.mark.parametrize("shape", [(3, 9, 9), (3, 90, 90), (40, 25, 25)], ids=str)
def test_padding_counts_as_no_edge(dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    tensor, infinity = values(shape, dtype), no_edge(dtype)
    padding = torch.arange(shape[1]) >= torch.arange(shape[0])[:, None] % 9
    filled = tensor.masked_fill(padding[:, :, None] | padding[:, None, :], infinity)
    tensor[padding] = -99
    before = tensor.clone()
    assert value_range(tensor, infinity, padding=padding) == expected(filled, infinity, False)
    assert torch.equal(tensor, before)


def by_kernel(
    tensor: torch.Tensor, below: float | int | None = None, *, diagonal: bool = False
) -> ValueRange:
    reader = ValueRangeReader(tensor)
    reader.queue(tensor, below, diagonal=diagonal)
    return reader.read()[0]


@cases.interpreted
class TestKernelInterpreted:
    @pytest.fixture(autouse=True)
    def _three_programs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Few programs, so that each processes several tiles."""
        monkeypatch.setattr("tri_apsp.gpu.value_range._PROGRAMS_PER_UNIT", 1)
        monkeypatch.setattr(
            "tri_apsp.gpu.value_range.describe", lambda device: SimpleNamespace(units=3)
        )

    @layouts
    def test_kernel(self, layout: Callable[[torch.Tensor], torch.Tensor]) -> None:
        for shape, dtype in (
            ((3, 7, 5), torch.float32),
            ((2, 63, 63), torch.int16),
            ((1, 5, 300), torch.float32),
        ):
            check(by_kernel, layout(values(shape, dtype)))

    @pytest.mark.parametrize("layout", ["contiguous", "cut out"])
    @cases.every_dtype  # the interpreter is slow, and int16, which is widened, takes other lines
    def test_many_tiles_per_program(self, dtype: torch.dtype, layout: str) -> None:
        """Of the matrix, and of the diagonal."""
        check(by_kernel, LAYOUTS[layout](values((9, 130, 130), dtype)), 7)

    @pytest.mark.filterwarnings("ignore:All-NaN slice encountered")  # by the interpreter of Triton
    @dtypes
    def test_ends_of_the_dtype(self, dtype: torch.dtype) -> None:
        check_extremes(by_kernel, dtype)

    def test_several_tensors_are_read_together(self) -> None:
        tensors = [values(shape, torch.float32) for shape in ((3, 7, 5), (2, 63, 63), (1, 5, 300))]
        reader = ValueRangeReader(tensors[0], 4)
        for tensor in tensors:
            reader.queue(tensor, INF)
        assert reader.read() == [expected(tensor, INF, False) for tensor in tensors]


def waits(call: Callable[[], object]) -> int:
    """Return how often `call` blocks until the GPU is done."""
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            call()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing CUDA operation" in str(warning.message) for warning in caught)


def on_gpu(
    tensor: torch.Tensor, below: float | int | None = None, *, diagonal: bool = False
) -> ValueRange:
    """Return the value range as the GPU engines compute it."""
    from tri_apsp.engines.triton_base import TritonEngine

    return TritonEngine.value_ranges([tensor], below, diagonal=diagonal)[0]


@pytest.mark.gpu
class TestOnTheGpu:
    # Dtypes, widths of a tile and bounds are compilations: pairs of them, and one layout of rows.
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("shape", [(300, 20, 20), (7, 257, 129), (1, 1000, 1000)], ids=str)
    def test_layouts(self, layout: str, shape: tuple[int, int, int]) -> None:
        check(on_gpu, LAYOUTS[layout](values(shape, torch.float32).cuda()))

    @dtypes
    @pytest.mark.parametrize("layout", ["contiguous", "cut out"])
    def test_dtypes(self, dtype: torch.dtype, layout: str) -> None:
        for shape in ((1, 1, 1), (2, 63, 63)):
            check(on_gpu, LAYOUTS[layout](values(shape, dtype).cuda()))

    @dtypes
    def test_ends_of_the_dtype(self, dtype: torch.dtype) -> None:
        def read(tensor: torch.Tensor, *args: Any, **options: Any) -> ValueRange:
            return on_gpu(tensor.cuda(), *args, **options)

        check_extremes(read, dtype)

    @pytest.mark.parametrize("layout", ["contiguous", "transposed", "cut out"])
    def test_addresses_past_two_to_the_31(self, layout: str) -> None:
        n = 46400
        whole = torch.zeros((1, n, n + 1), dtype=torch.int16, device="cuda")
        tensor = whole[:, :, :n] if layout == "cut out" else whole.view(-1)[: n * n].view(1, n, n)
        tensor = tensor.mT if layout == "transposed" else tensor
        tensor[0, -1, -1], tensor[0, -2, -1], tensor[0, -1, -2] = -7, 9, 30000
        assert on_gpu(tensor, 100, diagonal=True) == ValueRange(-7, 30000, 9, -7)

    def test_another_size_is_no_other_kernel(self) -> None:
        from tri_apsp.kernels.shared.value_range import _value_range_kernel

        def compiled() -> int:
            return sum(len(caches[0]) for caches in _value_range_kernel.device_caches.values())

        on_gpu(torch.zeros((1, 64, 64), device="cuda"), INF)
        before = compiled()
        for n in (1, 2, 16, 63, 100, 1000, 1024, 2049):
            on_gpu(torch.zeros((1, n, n), device="cuda"), INF)
            on_gpu(torch.zeros((2, n, n), device="cuda").mT, INF)
        assert compiled() == before

    @pytest.mark.parametrize(
        ("dtype", "n"),
        [
            (torch.float32, 63),
            (torch.float32, 1000),
            pytest.param(torch.int16, 63, marks=pytest.mark.slow),
            pytest.param(torch.float64, 1000, marks=pytest.mark.slow),
            pytest.param(torch.int16, 1000, marks=pytest.mark.slow),
        ],
        ids=str,
    )
    def test_a_checked_solve_blocks_once(self, dtype: torch.dtype, n: int) -> None:
        """Twice if the weights are overwritten, which must not happen before their values are
        checked.
        """
        weights = cases.tensor(cases.random_graph(n, degree=2), dtype, "cuda")
        for layout in (weights, weights.T, weights[None].expand(3, n, n)):
            tri_apsp.shortest_paths(layout)  # compiles
            assert waits(lambda layout=layout: tri_apsp.shortest_paths(layout)) == 1
            assert waits(lambda layout=layout: tri_apsp.shortest_paths(layout, check=False)) == 0
        copy = weights.clone()
        assert waits(lambda: tri_apsp.shortest_paths(copy, out=copy)) == 2

    @pytest.mark.parametrize("dtype", [torch.float32, torch.int32], ids=str)
    @pytest.mark.parametrize("connected", [True, False], ids=["connected", "two components"])
    def test_negative_integers_block_twice_where_a_distance_may_be_no_edge(
        self, dtype: torch.dtype, connected: bool
    ) -> None:
        """Beside negative weights, "no edge" begins at a lower bound than the one by which the
        solve read the distances.

        Not so for graphs that warps hold in registers (n <= 64): that kernel only bounds the
        highest distance.
        """
        graph = cases.negative_graph(70)
        if not connected:
            graph[:30, 30:] = graph[30:, :30] = cases.INF
        weights = cases.tensor(graph, dtype, "cuda")
        result = tri_apsp.shortest_paths(weights)
        assert bool((result.distances == tri_apsp.no_edge(dtype)).any()) != connected
        assert waits(lambda: tri_apsp.shortest_paths(weights)) == (
            1 if connected or dtype.is_floating_point else 2
        )

    @pytest.mark.parametrize("n", [63, 1000, 3000])
    def test_invalid_values_are_reported_though_the_solve_has_begun(self, n: int) -> None:
        weights = cases.tensor(cases.random_graph(n, degree=4), torch.float32, "cuda")
        for value, words in ((NAN, "NaN at"), (-INF, "-inf at")):
            weights[1, 2] = value
            with pytest.raises(tri_apsp.InputError, match=words):
                tri_apsp.shortest_paths(weights)
        wrong = torch.zeros((n, n), dtype=torch.int16, device="cuda")
        wrong[5, 7] = 20000
        with pytest.raises(tri_apsp.InputError, match="20000 at"):
            tri_apsp.shortest_paths(wrong)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.int16], ids=str)
    def test_a_product_blocks_once_for_all_operands(self, dtype: torch.dtype) -> None:
        weights = cases.tensor(cases.random_graph(100), dtype, "cuda")
        for operands in ((weights, weights), (weights, weights, weights)):
            tri_apsp.min_plus(*operands)  # compiles
            assert waits(lambda operands=operands: tri_apsp.min_plus(*operands)) == 1
        bad = weights.clone()
        bad[3, 4] = NAN if dtype.is_floating_point else torch.iinfo(dtype).min
        for name, operands in (
            ("a", (bad, weights)),
            ("b", (weights, bad)),
            ("c", (weights, weights, bad)),
        ):
            with pytest.raises(tri_apsp.InputError, match=f"`{name}`.*\\(3, 4\\)"):
                tri_apsp.min_plus(*operands)
