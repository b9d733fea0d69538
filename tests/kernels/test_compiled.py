"""The portable kernels, compiled for GPUs that need not be here, have the machine code that makes them fast."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.sass import TOOLS, Compiled, compile_kernel

from tri_apsp.configs import GpuTiles, default_config
from tri_apsp.engines.nvidia import layouts, strategy
from tri_apsp.kernels.nvidia_product import _product_kernel as _nvidia_product_kernel
from tri_apsp.kernels.portable_closure import _closure_kernel
from tri_apsp.kernels.portable_panels import _panels_kernel
from tri_apsp.kernels.portable_product import _product_kernel
from tri_apsp.semirings import no_edge, reach

pytestmark = pytest.mark.skipif(not (TOOLS / "nvdisasm").exists(), reason="this Triton carries no disassembler")

CAPABILITIES = [80, 90, 100]
TYPES = {torch.float32: "fp32", torch.float64: "fp64", torch.int32: "i32", torch.int64: "i64", torch.int16: "i16"}


def _signature(kernel: object, dtype: torch.dtype, constants: dict[str, object]) -> dict[str, str]:
    """Pointers to `dtype`, 64-bit batch strides (a batch passes 2**31 values), the rest 32-bit integers."""
    return {
        name: f"*{TYPES[dtype]}" if name.endswith("_ptr") else "i64" if name.endswith("b") else "i32"
        for name in kernel.arg_names  # type: ignore[attr-defined]
        if name not in constants
    }


def _compile(kernel: object, dtype: torch.dtype, capability: int, num_warps: int, **constants: object) -> Compiled:
    constants = {"NO_EDGE": no_edge(dtype), "FLOOR": -reach(dtype), **constants}
    signature = _signature(kernel, dtype, constants)
    return compile_kernel(kernel, signature, constants, capability=capability, num_warps=num_warps)


def product(dtype: torch.dtype, capability: int) -> tuple[Compiled, GpuTiles]:
    tiles = default_config("portable", dtype).product
    assert isinstance(tiles, GpuTiles)
    return _compile(_product_kernel, dtype, capability, tiles.num_warps, **_tile_constants(tiles)), tiles


def _tile_constants(tiles: GpuTiles) -> dict[str, int]:
    return {"BLOCK_M": tiles.block_m, "BLOCK_N": tiles.block_n, "BLOCK_K": tiles.block_k, "GROUP_M": tiles.group_m}


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_product(dtype: torch.dtype, capability: int) -> None:
    compiled, tiles = product(dtype, capability)
    assert compiled.spills == 0, "registers spill"
    threads = 32 * tiles.num_warps
    assert compiled.registers * threads * 2 <= 65536, "no two programs fit a multiprocessor"
    assert compiled.shared <= 48 * 1024
    loop = compiled.main_loop()
    pairs = tiles.block_m * tiles.block_n * tiles.block_k // threads  # (add, min) pairs of one thread and iteration
    assert _adds(loop, dtype) >= pairs
    assert _mins(loop, dtype) >= pairs
    # How many instructions the loop may spend on a pair, all told; int64 needs six for the pair alone.
    limit = {"fp32": 2.45, "i32": 2.45, "i16": 2.6, "fp64": 5.2, "i64": 7.0}[TYPES[dtype]]
    assert loop.total() <= limit * pairs, f"{loop.total() / pairs:.2f} instructions a pair: {loop}"


def _adds(loop: dict[str, int], dtype: torch.dtype) -> int:
    integer = ["IADD3", "IADD", "IMAD", "VIADDMNMX", "VIADD"]
    names = {torch.float32: ["FADD", "FADD2"], torch.float64: ["DADD"]}.get(dtype, integer)
    return sum(loop[name] * (2 if name == "FADD2" else 1) for name in names)


def _mins(loop: dict[str, int], dtype: torch.dtype) -> int:
    names = {
        torch.float32: {"FMNMX": 1, "FMNMX3": 2},
        torch.float64: {"DSETP": 1},
        torch.int64: {"ISETP": 0.5},
    }.get(dtype, {"IMNMX": 1, "VIMNMX": 1, "VIMNMX3": 2, "VIADDMNMX": 1})
    return int(sum(loop[name] * count for name, count in names.items()))


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize(
    ("dtype", "nonnegative"), [(torch.float32, True), (torch.float32, False), (torch.int32, False)], ids=str
)
def test_nvidia_product(dtype: torch.dtype, nonnegative: bool, capability: int) -> None:
    """Two instructions for an add and a min, or fewer where the GPU has them, and at most 17% others in the main loop."""
    tiles = default_config("nvidia", dtype).product
    assert isinstance(tiles, GpuTiles)
    constants = {"STRATEGY": strategy(dtype, nonnegative), **_tile_constants(tiles), **layouts(tiles)}
    compiled = _compile(_nvidia_product_kernel, dtype, capability, tiles.num_warps, **constants)
    assert compiled.spills == 0
    assert compiled.registers <= 176
    loop = compiled.main_loop()
    pairs = tiles.block_m * tiles.block_n * tiles.block_k // (32 * tiles.num_warps)
    if capability == 80:
        useful = {"FADD": pairs, "FMNMX" if not nonnegative else "IMNMX": pairs}
        if dtype == torch.int32:
            useful = {"IMNMX": pairs}  # the add is an IADD3 or an IMAD
    elif dtype == torch.int32:
        useful = {"VIADDMNMX": pairs}
    elif nonnegative:
        useful = {"FADD": pairs, "VIMNMX3": pairs // 2}
    elif capability == 90:
        useful = {"FADD": pairs, "FMNMX": pairs}
    else:
        useful = {}  # FADD or FADD2, FMNMX or FMNMX3, as the release knows them
        assert _adds(loop, dtype) >= pairs
        assert _mins(loop, dtype) >= pairs
    for name, count in useful.items():
        assert loop[name] >= count, loop
    if capability == 90:
        assert loop.total() <= 1.17 * sum(useful.values()), loop


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_closure_and_panels(dtype: torch.dtype, capability: int) -> None:
    config = default_config("portable", dtype)
    assert isinstance(config.product, GpuTiles)
    assert config.closure_warps is not None
    assert config.panel_warps is not None
    block = {"BLOCK": config.block_size}
    closure = _compile(_closure_kernel, dtype, capability, config.closure_warps, **block)
    panels = _compile(
        _panels_kernel, dtype, capability, config.panel_warps, **block, BLOCK_K=config.product.block_k, PANEL=config.panel
    )
    for compiled in (closure, panels):
        assert compiled.spills == 0, "registers spill"
        assert compiled.shared <= 48 * 1024
    # A strip is read by all threads of its program before one writes: there is a barrier after the loops.
    assert panels.instructions["BAR"] > sum(loop["BAR"] for loop in panels.loops)
