"""How many kernels the nvidia engine launches: small graphs are bound by launches. Nothing runs, so
that no GPU is needed.
"""

import dataclasses
from collections import Counter
from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="the nvidia engine needs Triton")

from tri_apsp import Config, engines
from tri_apsp.configs import default_config
from tri_apsp.device import Device
from tri_apsp.engines import Update, nvidia, triton_base
from tri_apsp.engines.exponents import ByExponents
from tri_apsp.engines.nvidia import NvidiaEngine
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.methods import METHODS, Observer

H200 = Device("cuda", "NVIDIA H200", "nvidia-h200", 132, 150 << 30, 227 << 10, (9, 0))
META = torch.device("meta")
PRODUCT, CLOSURE, SOLVE, COPY = (
    "_product_kernel",
    "_closure_kernel",
    "_solve_kernel",
    "_copy_kernel",
)
SMALL_GRAPHS = "_small_graphs_kernel"


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were launched so far."""
    names: list[str] = []

    def launch(launcher: Launcher, grid: tuple[int, int, int], *arguments: Any) -> None:
        assert all(0 < size < 1 << 31 for size in grid)
        assert max(grid[1:]) < 1 << 16
        names.append(launcher._kernel.fn.__name__)

    monkeypatch.setattr(Launcher, "__call__", launch)
    for module in (nvidia, triton_base):
        monkeypatch.setattr(module, "describe", lambda device: H200)
    monkeypatch.setattr("tri_apsp.gpu.padding.fits_memory", lambda size, device: True)
    return names


def engine(
    n: int, dtype: torch.dtype = torch.float32, nonnegative: bool = True, **fields: Any
) -> NvidiaEngine:
    config = Config(**fields).over(default_config("nvidia", dtype))
    return NvidiaEngine(engines.MatrixSpec(n, dtype, META, nonnegative), config)


def matrix(n: int, dtype: torch.dtype = torch.float32, batch: int = 1) -> torch.Tensor:
    return torch.empty((batch, n, n), dtype=dtype, device=META)


@pytest.mark.parametrize(
    ("batch", "n", "kernels"),
    [
        (1, 10, [SMALL_GRAPHS]),
        (4096, 64, [SMALL_GRAPHS]),
        (1 << 20, 16, [SMALL_GRAPHS]),
        (1, 1920, [SOLVE]),
        (5, 300, [SOLVE]),
        ((1 << 16) + 10, 70, [SOLVE, SOLVE]),  # more graphs than a grid has programs
    ],
)
def test_graphs_that_one_closure_solves_are_one_launch(
    launched: list[str], batch: int, n: int, kernels: list[str]
) -> None:
    weights = matrix(n, batch=batch)
    engine(n).queue_solve_of(weights)(weights, None)
    assert launched == kernels


@pytest.mark.parametrize(
    ("m", "n", "by_exponents"),
    [
        (1024, 1024, True),
        (1023, 1024, False),
        (512, 1500, True),
        (512, 1400, False),
        (511, 4096, False),
    ],
)
def test_large_products_by_exponents(
    launched: list[str], m: int, n: int, by_exponents: bool
) -> None:
    """After a sample the operands are encoded, and the tiles that are not certain are direct
    products.
    """
    made = ByExponents(engine(n, torch.int16), 1024)
    c, a, b = (
        torch.empty((1, *shape), dtype=torch.int16, device="meta")
        for shape in ((m, n), (m, n), (n, n))
    )
    made.product(Update(c, a, b), Update(c.clone(), a, b))
    one = ["_sample_kernel", "_encode_kernel", "_exponent_product_kernel", PRODUCT]
    assert launched == (2 * one if by_exponents else [PRODUCT])


@pytest.mark.parametrize(
    ("block_k", "stride", "by_exponents"),
    [(128, 1 << 22, True), (512, (1 << 22) - 16, True), (512, 1 << 22, False)],
)
def test_wide_strides_are_direct_products(
    launched: list[str], block_k: int, stride: int, by_exponents: bool
) -> None:
    """Encoding computes offsets in 32 bits, of a slice of B."""
    tiles = dataclasses.replace(default_config("nvidia", torch.int16).exponents, block_k=block_k)
    made = ByExponents(engine(1024, torch.int16, exponents=tiles), 1024)
    c, a = matrix(1024, torch.int16), matrix(1024, torch.int16)
    b = torch.empty_strided((1, 1024, 1024), (1 << 40, stride, 1), dtype=torch.int16, device=META)
    made.product(Update(c, a, b))
    assert ("_encode_kernel" in launched) == by_exponents


@pytest.mark.parametrize(
    ("dtype", "nonnegative"),
    [(torch.float32, True), (torch.int32, True), (torch.int32, False)],
    ids=str,
)
@pytest.mark.parametrize(("n", "levels"), [(2048, 1), (4096, 2), (16384, 4)])
def test_kleene(
    launched: list[str], dtype: torch.dtype, nonnegative: bool, n: int, levels: int
) -> None:
    """Two launches for the panels and two for the products of each level."""
    METHODS["kleene"].solve(matrix(n, dtype), engine(n, dtype, nonnegative), Observer())
    halvings = 2**levels - 1
    assert Counter(launched) == {PRODUCT: 4 * halvings, CLOSURE: halvings + 1}


@pytest.mark.parametrize(
    ("dtype", "of_panels"),
    [(torch.int32, [PRODUCT]), (torch.float32, [COPY, PRODUCT])],
    ids=["int32", "float32"],
)
def test_floyd_warshall(launched: list[str], dtype: torch.dtype, of_panels: list[str]) -> None:
    """A step is a closure, the panels before and behind the pivot, and a product."""
    n, steps = 4096, 4
    METHODS["floyd_warshall"].solve(matrix(n, dtype), engine(n, dtype, block_size=1024), Observer())
    first = [CLOSURE, *of_panels, PRODUCT]
    between = [CLOSURE, *of_panels, *of_panels, PRODUCT]
    assert launched == [*first, *between * (steps - 2), *first]
