"""What the Boolean engines of a GPU launch, without running it; and the results of products that
count paths.
"""

import dataclasses
from collections import Counter
from typing import Any

import cases
import pytest
import torch

pytest.importorskip("triton", reason="the GPU engines need Triton")

import tri_apsp
from tri_apsp.device import Device
from tri_apsp.engines import Update
from tri_apsp.engines.boolean import nvidia, packed_size, triton_base
from tri_apsp.engines.boolean.nvidia import NvidiaBooleanEngine
from tri_apsp.engines.boolean.portable import PortableBooleanEngine
from tri_apsp.engines.boolean.triton_base import shape_in_units
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.methods import Observer
from tri_apsp.methods.kleene import Kleene

H200 = Device("cuda", "NVIDIA H200", "nvidia-h200", 132, 150 << 30, 227 << 10, (9, 0))
META = torch.device("meta")
MARGIN = 7


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of programs of each launch so far."""
    counts: list[int] = []

    def launch(launcher: Launcher, grid: tuple[int, int, int], *arguments: Any) -> None:
        assert all(0 < size < 1 << 31 for size in grid)
        assert max(grid[1:]) < 1 << 16
        counts.append(grid[0] * grid[1])

    monkeypatch.setattr(Launcher, "__call__", launch)
    monkeypatch.setattr(triton_base, "describe", lambda device: H200)
    monkeypatch.setattr(
        nvidia, "describe", lambda device: dataclasses.replace(H200, capability=(8, 0))
    )  # all on bits
    return counts


def matrix(n: int, batch: int = 1) -> torch.Tensor:
    size = packed_size(n)
    return torch.empty((batch, size, size // 32), dtype=torch.int32, device=META)


@pytest.mark.parametrize("engine", [NvidiaBooleanEngine, PortableBooleanEngine])
@pytest.mark.parametrize(("n", "blocks"), [(2000, 1), (3000, 2), (8192, 4), (32768, 16)])
def test_launches_of_a_closure(
    programs: list[int], engine: type[triton_base.TritonBooleanEngine], n: int, blocks: int
) -> None:
    """Eleven for each diagonal block, and four where a graph is split; each occupies all but a few
    multiprocessors.
    """
    Kleene().solve(matrix(n), engine(n, META), Observer())
    assert len(programs) == 11 * blocks + 4 * (blocks - 1)
    assert min(programs) >= 120


def test_small_graphs(programs: list[int]) -> None:
    """As many squarings as the longest path needs, and one launch for each; none where there is no
    path to extend.
    """
    for n, squarings in ((1, 0), (2, 0), (3, 1), (10, 4), (129, 7), (130, 8)):
        Kleene().solve(matrix(n, batch=70_000), NvidiaBooleanEngine(n, META), Observer())
        assert len(programs) == 2 * squarings, n  # a grid takes 65535 graphs
        programs.clear()


@pytest.mark.parametrize(
    ("n", "capability", "expected"),
    [
        (32768, (9, 0), {16384: 6, 8192: 12, 4096: 24}),
        (5760, (9, 0), {2816: 6}),
        (5505, (9, 0), {2816: 6}),
        (5504, (9, 0), {}),
        (32768, (8, 0), {}),
        (32768, (10, 0), {}),
    ],
)
@pytest.mark.usefixtures("programs")
def test_large_products_are_counted(
    monkeypatch: pytest.MonkeyPatch, n: int, capability: tuple[int, int], expected: dict[int, int]
) -> None:
    """A graph that is split has six products of half its vertices."""
    products: Counter[int] = Counter()
    monkeypatch.setattr(
        nvidia, "describe", lambda device: dataclasses.replace(H200, capability=capability)
    )
    monkeypatch.setattr(
        nvidia,
        "counting_product",
        lambda update: products.update([128 * min(shape_in_units(update))]),
    )
    engine = NvidiaBooleanEngine(n, META)
    Kleene().solve(matrix(n), engine, Observer())
    assert products == expected
    assert engine.counts_paths == bool(expected)


def words_of(bits: torch.Tensor) -> torch.Tensor:
    """Pack bool (batch, m, n) into int32 (batch, m, n // 32), a view of rows with 4 words more,
    each MARGIN.
    """
    places = torch.arange(32, device=bits.device)
    words = (bits.unflatten(2, (-1, 32)).long() << places).sum(3)
    wide = torch.full(
        (*words.shape[:2], words.shape[2] + 4), MARGIN, dtype=torch.int32, device=bits.device
    )
    wide[:, :, :-4] = torch.where(words < 1 << 31, words, words - (1 << 32))
    return wide[:, :, :-4]


def check_counting(device: str, *shapes: tuple[int, int, int]) -> None:
    random = torch.Generator(device).manual_seed(0)

    def draw(rows: int, columns: int, share: float) -> torch.Tensor:
        return torch.rand((2, rows, columns), generator=random, device=device) < share

    for m, n, k in shapes:
        a, b, c = draw(m, k, 0.03), draw(k, n, 0.03), draw(m, n, 0.1)
        b[0] = False
        a[1, 0] = b[1, :, 0] = True  # k paths
        expected = c | ((a.float() @ b.float()) > 0)
        found = words_of(c)
        nvidia.counting_product(Update(found, words_of(a), words_of(b)))
        assert torch.equal(found, words_of(expected)), (m, n, k)
        assert (found._base[:, :, -4:] == MARGIN).all(), (m, n, k)
    a = draw(256, 256, 0.01)
    d = words_of(a)
    nvidia.counting_product(Update(d, d, d))
    assert torch.equal(d, words_of(a | ((a.float() @ a.float()) > 0)))


@pytest.mark.parametrize("large", [False, True])
@cases.interpreted
def test_interpreted_counting(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    monkeypatch.setattr(nvidia, "_LARGE", 0 if large else 1 << 40)
    check_counting("cpu", (128, 128, 128), (256, 384, 128), (128, 256, 384))


@pytest.mark.gpu
@pytest.mark.parametrize("large", [False, True])
def test_counting(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    monkeypatch.setattr(nvidia, "_LARGE", 0 if large else 1 << 40)
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("products are counted on compute capability 9.x")
    check_counting("cuda", (128, 128, 128), (256, 384, 128), (384, 640, 1024), (2048, 1920, 2176))


@pytest.mark.gpu
def test_a_closure_of_counted_products_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the size from which products are counted: halves of 2944 and 2816 vertices."""
    edges = (
        torch.rand((5760, 5760), device="cuda", generator=torch.Generator("cuda").manual_seed(0))
        < 1 / 5760
    )
    found = tri_apsp.reachability(edges)
    monkeypatch.setattr(NvidiaBooleanEngine, "LEAST_COUNTED", 1 << 30)
    assert torch.equal(found, tri_apsp.reachability(edges))


@pytest.mark.gpu
def test_operands_of_more_than_2_31_bytes() -> None:
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("products are counted on compute capability 9.x")
    m, n, k = 33024, 128, 65536
    random = torch.Generator("cuda").manual_seed(0)
    a = torch.randint(
        -(2**31), 2**31 - 1, (1, m, k // 32), generator=random, device="cuda", dtype=torch.int32
    )
    b = torch.zeros((1, k, n // 32), device="cuda", dtype=torch.int32)
    b[0, -1] = 5
    found, expected = (
        torch.zeros((1, m, n // 32), device="cuda", dtype=torch.int32) for _ in range(2)
    )
    nvidia.counting_product(Update(found, a, b))
    expected[0] = torch.where(a[0, :, -1:] < 0, 5, 0)  # the last bit of each row
    assert torch.equal(found, expected)
