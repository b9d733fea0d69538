"""How graphs are padded so that a GPU moves their rows 16 bytes at a time."""

import weakref
from typing import Any, ClassVar

import cases
import pytest
import torch
from torch.nn.functional import pad

import tri_apsp
from tri_apsp import Config
from tri_apsp.dense import run
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.gpu.padding import pad_operands, padded_size
from tri_apsp.value_range import PendingRanges


def test_graphs_are_padded_where_that_pays_and_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def fits_memory(size: float, device: torch.device) -> bool:
        asked.append(size)
        return size < 10**7

    monkeypatch.setattr("tri_apsp.gpu.padding.fits_memory", fits_memory)
    graphs = {
        n: torch.empty(2, n, n, dtype=torch.int16, device="meta")
        for n in (0, 50, 64, 65, 1000, 1008, 1009)
    }
    sizes = {n: padded_size(tensor, 2.5) for n, tensor in graphs.items()}
    assert sizes == {0: 0, 50: 50, 64: 64, 65: 80, 1000: 1000, 1008: 1008, 1009: 1009}
    assert asked == [2.5 * 2 * 80**2 * 2, 2.5 * 2 * 1008**2 * 2, 2.5 * 2 * 1024**2 * 2]


def test_operands_are_padded_where_that_pays_and_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.gpu.padding._MIN_PRODUCT", 20 * 30 * 40)
    a, b, c = torch.rand(2, 20, 30), torch.rand(2, 30, 40), torch.rand(2, 20, 40)
    padded = pad_operands(a, b, c, torch.inf)
    assert padded is not None
    shapes = ((2, 20, 32), (2, 32, 48), (2, 20, 48))
    for whole, part, shape in zip(padded, (a, b, c), shapes, strict=True):
        assert whole.shape == shape
        assert torch.equal(whole[:, : part.shape[1], : part.shape[2]], part)
        assert whole.isinf().sum() == whole.numel() - part.numel()
    assert pad_operands(a[:, :19], b, c[:, :19], 0) is None, "too small"
    aligned_a, aligned_b = torch.rand(2, 20, 32), torch.rand(2, 32, 48)
    assert pad_operands(aligned_a, aligned_b, None, 0) is None, "aligned already"
    offset = torch.rand(2 * 20 * 32 + 1)[1:].view(2, 20, 32)
    strided = torch.rand(2, 20, 64)[:, :, ::2]
    for unaligned in (offset, strided):
        assert pad_operands(unaligned, aligned_b, None, 0) is not None
    monkeypatch.setattr("tri_apsp.gpu.padding.fits_memory", lambda size, device: False)
    assert pad_operands(a, b, c, 0) is None


class PaddingEngine(CpuEngine):
    """A cpu engine that stages as the GPU engines do, with padding."""

    made: ClassVar[list[weakref.ref[torch.Tensor]]] = []

    @classmethod
    def initial_matrix(
        cls, weights: torch.Tensor, sizes: torch.Tensor | None, *, matrices: float, **options: Any
    ) -> tuple[torch.Tensor, PendingRanges | None]:
        plain, found = super().initial_matrix(weights, sizes, matrices=matrices, **options)
        more = padded_size(weights, matrices) - weights.shape[1]
        matrix = pad(plain, (0, more, 0, more), value=tri_apsp.no_edge(weights.dtype))
        cls.made.append(weakref.ref(matrix))
        return matrix, found


@pytest.mark.parametrize("make", [cases.random_graph, cases.negative_graph])
@pytest.mark.parametrize(
    ("config", "dtype", "n"),
    [
        (Config(method="floyd_warshall", block_size=32), torch.float32, 150),
        (Config(method="kleene", block_size=32, cutoff=64), torch.float32, 150),
        (Config(method="kleene", block_size=32, cutoff=64), torch.int16, 150),
        (Config(method="squaring"), torch.float32, 150),
        (Config(method="kleene", block_size=32, cutoff=64), torch.float32, 96),
    ],
    ids=lambda value: value.method if isinstance(value, Config) else str(value),
)
def test_a_solve_in_a_padded_matrix(
    monkeypatch: pytest.MonkeyPatch, n: int, dtype: torch.dtype, config: Config, make: Any
) -> None:
    """The memory of the padded matrix is freed before the result is verified, which may allocate
    more.
    """
    monkeypatch.setattr("tri_apsp.engines.type_of", lambda name: PaddingEngine)
    monkeypatch.setattr("tri_apsp.gpu.padding.fits_memory", lambda size, device: True)
    freed: list[bool] = []
    verify = run.verify

    def record(*args: Any, **options: Any) -> bool:
        (matrix,) = PaddingEngine.made
        freed.append(matrix() is None)
        return verify(*args, **options)

    monkeypatch.setattr(run, "verify", record)
    PaddingEngine.made.clear()
    weights = make(n)
    result = tri_apsp.shortest_paths(cases.tensor(weights, dtype), config=config)
    assert result.distances.is_contiguous()
    cases.assert_distances(result.distances, weights)
    assert freed == [n % 16 > 0]
