"""The GPU kernels, compiled for GPUs that need not be here, have the machine code that makes them fast."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.sass import TOOLS, Compiled, compile_kernel

from tri_apsp.configs import GpuTiles, default_config
from tri_apsp.engines.nvidia import closure_constants, product_layouts, product_registers, solve_constants, strategy
from tri_apsp.kernels.nvidia.closure import _closure_kernel as _nvidia_closure_kernel
from tri_apsp.kernels.nvidia.gluon_names import VIEWS_MAY_EXCEED
from tri_apsp.kernels.nvidia.product import _product_kernel as _nvidia_product_kernel
from tri_apsp.kernels.nvidia.solve import _solve_kernel as _nvidia_solve_kernel
from tri_apsp.kernels.portable.closure import _closure_kernel
from tri_apsp.kernels.portable.panels import _panels_kernel
from tri_apsp.kernels.portable.product import _product_kernel
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


# Instructions of the main loop for an add and a min, by CAPABILITIES: 2% above the most that a release of Triton makes. The
# loop also holds the path for the last slice of k, which all others step over. Last, of a small tile by capability 90: moves,
# loads from shared memory, and copies to it are shared by fewer pairs there.
MOST = {
    "nonnegative": (2.26, 1.74, 1.74, 1.92),
    "float": (2.26, 2.27, 2.42, 2.43),
    "int32": (2.25, 1.23, 1.23, 1.4),
    "int16x2": (0, 0.58, 0.58, 0.607),
    "fp64": (4.88, 4.85, 4.8, 4.98),
    "i64": (6.7, 6.73, 6.71, 6.73),
}
SIGNS = [(torch.float32, True), *((dtype, False) for dtype in TYPES)]


@pytest.mark.parametrize(("field", "capability"), [*(("product", c) for c in CAPABILITIES), ("small_product", 90)])
@pytest.mark.parametrize(("dtype", "nonnegative"), SIGNS, ids=str)
def test_nvidia_product(field: str, dtype: torch.dtype, nonnegative: bool, capability: int) -> None:
    """An add and a min in two instructions, or fewer where the GPU has them; few others in the main loop, and no spill."""
    if dtype == torch.int16 and capability < 90:
        return  # no instruction for pairs: the portable engine takes these
    tiles = getattr(default_config("nvidia", dtype), field)
    constants = {
        "STRATEGY": strategy(dtype, nonnegative), "STAGES": tiles.num_stages,
        **_tile_constants(tiles), **product_layouts(tiles, dtype),
    }  # fmt: skip
    constants |= {"NO_EDGE": no_edge(dtype), "FLOOR": -reach(dtype)}
    signature = _signature(_nvidia_product_kernel, dtype, constants) | {"locks_ptr": "*i32"}
    compiled = compile_kernel(
        _nvidia_product_kernel, signature, constants,
        capability=capability, num_warps=tiles.num_warps, maxnreg=product_registers((capability // 10, 0), tiles.num_warps),
    )  # fmt: skip
    assert compiled.spills == 0, compiled.loops
    assert compiled.shared <= 48 * 1024
    loop = compiled.main_loop()
    pairs = tiles.block_m * tiles.block_n * tiles.block_k // (32 * tiles.num_warps)
    useful = _useful(constants["STRATEGY"], dtype, capability, pairs)
    for name, count in useful.items():
        assert loop[name] >= count, loop
    place = -1 if field == "small_product" else CAPABILITIES.index(capability)
    most = MOST[constants["STRATEGY"] if dtype.itemsize < 8 else TYPES[dtype]][place]
    assert loop.total() <= most * pairs, f"{loop.total() / pairs:.3f} instructions a pair: {loop}"


def _useful(strategy: str, dtype: torch.dtype, capability: int, pairs: int) -> dict[str, int]:
    """Return the instructions that `pairs` of add and min need, where the release of Triton cannot choose others."""
    if dtype == torch.float64:
        return {"DADD": pairs, "DSETP": pairs, "FSEL": 2 * pairs} if capability == 90 else {"DADD": pairs, "DSETP": pairs}
    if dtype == torch.int64:
        return {"ISETP": 2 * pairs}  # besides two adds and two selects, in several spellings
    if strategy == "int16x2":
        return {"VIADDMNMX": pairs // 2} if capability == 90 else {}
    if capability == 80:
        return (
            {"FADD": pairs, "IMNMX" if strategy == "nonnegative" else "FMNMX": pairs}
            if strategy != "int32"
            else {"IMNMX": pairs}
        )
    if strategy == "int32":
        return {"VIADDMNMX": pairs}
    if strategy == "nonnegative":
        return {"FADD": pairs, "VIMNMX3": pairs // 2}
    return {"FADD": pairs, "FMNMX": pairs} if capability == 90 else {}  # Blackwell: FADD2 and FMNMX3 in later releases


CLOSURES = [
    ("closure", 4), ("closure", 1), ("solve", 4), ("solve", 1), ("solve packed", 4), ("solve packed", 1), ("solve one tile", 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "parts", "capability"),
    [("closure", 4, 80), ("closure", 4, 100), ("solve", 4, 80), ("solve", 4, 100), *((*kernel, 90) for kernel in CLOSURES)],
)
@pytest.mark.parametrize(("dtype", "nonnegative"), SIGNS, ids=str)
def test_nvidia_closure(kernel: str, parts: int, dtype: torch.dtype, nonnegative: bool, capability: int) -> None:
    """By several programs a graph, which divide tiles, or by one; alone, or as all of a solve."""
    if dtype == torch.int16 and capability < 90:
        return  # as above
    many, solves, one, packed = parts > 1, kernel != "closure", kernel == "solve one tile", kernel == "solve packed"
    if (packed or (solves and capability != 90)) and dtype not in (torch.float32, torch.int16):
        return  # a compilation takes seconds, and no loop counted here is another
    config = default_config("nvidia", dtype)
    assert config.closure_tile is not None
    assert config.closure_warps is not None
    tile, warps = config.closure_tile, config.closure_warps
    programs = config.closure_programs if many else config.batch_programs
    assert programs is not None
    constants = closure_constants(dtype, nonnegative, tile=tile, warps=warps, programs=programs, many=many)
    launched = {name: constants.pop(name) for name in ("num_warps", "maxnreg")}
    constants |= {"PARTS": parts, "SIZES": not many}
    if solves:
        if dtype == torch.float32 and not nonnegative:
            return  # one kernel for both signs
        constants |= solve_constants(dtype, tile=tile, warps=warps, one=one, pack=packed)
    source = _nvidia_solve_kernel if solves else _nvidia_closure_kernel
    signature = _signature(source, dtype, constants) | {"sizes_ptr": "*i64", "arrived_ptr": "*i64"}
    if solves:
        signature["done_ptr"] = "*i64"
    if solves and dtype == torch.int16:
        signature |= {"rows_ptr": "*i32", "found_ptr": "*i32"}
    compiled = compile_kernel(
        source, signature, constants, capability=capability, num_warps=launched["num_warps"], maxnreg=launched["maxnreg"]
    )
    assert compiled.registers <= launched["maxnreg"]
    assert compiled.shared <= 81 * 1024
    # A tile times a tile goes 8 or 16 rows of k at a time, without a barrier; a tile is closed in strips of 4, two at a time.
    values = tile**2 // (32 * warps)
    products = [loop for loop in compiled.loops if loop["BAR"] == loop["LDG"] == 0 and loop.total() >= 8 * values]
    barriers = 4 if VIEWS_MAY_EXCEED else 6
    closing = [loop for loop in compiled.loops if 4 <= loop["BAR"] <= barriers and loop["LDG"] == loop["STG"] == 0]
    assert one or len(products) >= 2, compiled.loops
    assert closing, compiled.loops
    if dtype.itemsize < 8:  # around them, a few addresses spill, so that three programs fit a multiprocessor
        few = {100: 1, 90: 0 if VIEWS_MAY_EXCEED else 2}.get(capability, 0)  # Triton 3.9 spills up to two more in them
        assert all(loop["STL"] + loop["LDL"] <= few for loop in (*products, *closing)), (products, closing)
    if capability == 90 and dtype == torch.int16:
        assert all(loop["VIADDMNMX"] == 8 * values for loop in products), products
        assert all(loop.total() <= 1.2 * loop["VIADDMNMX"] for loop in products), products
        assert all(loop.total() <= 3.3 * 4 * values for loop in closing), closing
    assert len(closing) == 1 + (solves and dtype.itemsize > 2 and dtype != torch.int32), closing
    if capability == 90 and dtype == torch.float32:
        pairs = 8 * values
        signed = [loop for loop in products if loop["VIMNMX3"] == 0]
        assert all(loop["FADD"] == (pairs if loop in signed else 2 * pairs) for loop in products)
        assert one or bool(signed) == (solves or not nonnegative), products
        assert all(loop.total() <= (2.15 if loop in signed else 1.65) * loop["FADD"] for loop in products), products
        # Closing a tile also clamps it, and closes strips of four rows: 24 pairs, and 12 a column of theirs.
        assert all(loop.total() <= (2.3 if loop["VIMNMX3"] else 3.25) * pairs for loop in closing), closing


def test_nvidia_closure_of_one_vertex() -> None:
    """Triton compiles for n = 1 apart, and folds what it then knows; its 3.6 crashes on a loop of one turn."""
    config = default_config("nvidia", torch.float32)
    assert config.closure_tile is not None
    assert config.closure_warps is not None
    constants = closure_constants(
        torch.float32, True, tile=config.closure_tile, warps=config.closure_warps, programs=3, many=False
    ) | {"PARTS": 1, "SIZES": False, "n": 1}  # fmt: skip
    launched = {name: constants.pop(name) for name in ("num_warps", "maxnreg")}
    signature = _signature(_nvidia_closure_kernel, torch.float32, constants) | {"sizes_ptr": "*i64", "arrived_ptr": "*i64"}
    assert compile_kernel(_nvidia_closure_kernel, signature, constants, capability=90, **launched).loops


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
