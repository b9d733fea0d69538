"""The products, compiled for GPUs that need not be here: the instructions of the main loop,
registers and spills.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import cases, needs_disassembler
from kernels.variants import CAPABILITIES, TYPES, nvidia_product, portable_product, product_cases

from tri_apsp.configs import default_config
from tri_apsp.engines.nvidia_constants import strategy

pytestmark = needs_disassembler


def _quick(dtype: torch.dtype, capability: int) -> bool:
    return capability == 90 or dtype == torch.float32


@cases("dtype, capability", [*itertools.product(TYPES, CAPABILITIES)], quick=_quick)
def test_portable_product(dtype: torch.dtype, capability: int) -> None:
    tiles = default_config("portable", dtype).product
    compiled = portable_product(dtype, capability).compile()
    assert compiled.spills == 0, "registers spill"
    threads = 32 * tiles.num_warps
    assert compiled.registers * threads * 2 <= 65536, "no two programs fit a multiprocessor"
    assert compiled.shared <= 48 * 1024
    loop = compiled.main_loop()
    pairs = (
        tiles.block_m * tiles.block_n * tiles.block_k // threads
    )  # (add, min) pairs of one thread and iteration
    assert _adds(loop, dtype) >= pairs
    assert _mins(loop, dtype) >= pairs
    # The most instructions of the loop per pair; int64 needs six for the pair alone.
    limit = {"fp32": 2.45, "i32": 2.45, "i16": 2.6, "fp64": 5.2, "i64": 7.0}[TYPES[dtype]]
    assert loop.total() <= limit * pairs, (
        f"{loop.total() / pairs:.2f} instructions per pair: {loop}"
    )


def _adds(loop: Mapping[str, int], dtype: torch.dtype) -> int:
    integer = ["IADD3", "IADD", "IMAD", "VIADDMNMX", "VIADD"]
    names = {torch.float32: ["FADD", "FADD2"], torch.float64: ["DADD"]}.get(dtype, integer)
    return sum(loop[name] * (2 if name == "FADD2" else 1) for name in names)


def _mins(loop: Mapping[str, int], dtype: torch.dtype) -> int:
    names = {
        torch.float32: {"FMNMX": 1, "FMNMX3": 2},
        torch.float64: {"DSETP": 1},
        torch.int64: {"ISETP": 0.5},
    }.get(dtype, {"IMNMX": 1, "VIMNMX": 1, "VIMNMX3": 2, "VIADDMNMX": 1})
    return int(sum(loop[name] * count for name, count in names.items()))


# The most instructions of the main loop per pair of add and min, by CAPABILITIES: 2% above the most
# of any release of Triton. The loop also contains the path for the last slice of k, which all other
# steps skip. The last column is for small tiles on capability 90, where fewer pairs share moves,
# loads from shared memory, and copies to it.
MOST = {
    "nonnegative": (2.26, 1.74, 1.74, 1.92),
    "float": (2.26, 2.27, 2.42, 2.43),
    "int32": (2.25, 1.23, 1.23, 1.4),
    "int16x2": (0, 0.58, 0.58, 0.607),
    "fp64": (4.88, 4.85, 4.8, 4.98),
    "i64": (6.7, 6.73, 6.71, 6.73),
}


def _quick_nvidia(dtype: torch.dtype, nonnegative: bool, capability: int, field: str) -> bool:
    return field == "product" and (capability == 90 or nonnegative)


@cases("dtype, nonnegative, capability, field", product_cases(), quick=_quick_nvidia)
def test_nvidia_product(dtype: torch.dtype, nonnegative: bool, capability: int, field: str) -> None:
    """An add and a min in two instructions, or fewer where the GPU has them; few others in the main
    loop, and no spill.
    """
    tiles = getattr(default_config("nvidia", dtype), field)
    compiled = nvidia_product(dtype, nonnegative, capability, field).compile()
    assert compiled.spills == 0, compiled.loops
    assert compiled.shared <= 48 * 1024
    loop = compiled.main_loop()
    pairs = tiles.block_m * tiles.block_n * tiles.block_k // (32 * tiles.num_warps)
    name = strategy(dtype, nonnegative)
    for opcode, count in _useful(name, dtype, capability, pairs).items():
        assert loop[opcode] >= count, loop
    column = -1 if field == "small_product" else CAPABILITIES.index(capability)
    most = MOST[name if dtype.itemsize < 8 else TYPES[dtype]][column]
    assert loop.total() <= most * pairs, f"{loop.total() / pairs:.3f} instructions per pair: {loop}"


def _useful(strategy: str, dtype: torch.dtype, capability: int, pairs: int) -> dict[str, int]:
    """Return the instructions that `pairs` of add and min need, where no release of Triton chooses
    others.
    """
    if dtype == torch.float64:
        return (
            {"DADD": pairs, "DSETP": pairs, "FSEL": 2 * pairs}
            if capability == 90
            else {"DADD": pairs, "DSETP": pairs}
        )
    if dtype == torch.int64:
        return {"ISETP": 2 * pairs}  # besides two adds and two selects, which have several opcodes
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
    return (
        {"FADD": pairs, "FMNMX": pairs} if capability == 90 else {}
    )  # Blackwell: FADD2 and FMNMX3 in later releases


@cases(
    "dtype, capability",
    [(torch.int16, 90), *itertools.product((torch.int32, torch.float32), (80, 90))],
    quick=lambda dtype, capability: dtype == torch.int16,
)
def test_product_of_needed_tiles(dtype: torch.dtype, capability: int) -> None:
    """As the product of all tiles, but for the loads that tell whether a tile is needed."""
    whole, needed = (
        nvidia_product(dtype, True, capability, needed_tile=tile).compile() for tile in (None, 128)
    )
    loop, of_all = needed.main_loop(), whole.main_loop()
    assert _adds(loop, dtype) == _adds(of_all, dtype)
    assert loop.total() <= 1.02 * of_all.total()  # Triton 3.9 adds two instructions in float32
    assert needed.spills <= whole.spills + 8
    assert needed.instructions["LDG"] >= whole.instructions["LDG"] + 1
