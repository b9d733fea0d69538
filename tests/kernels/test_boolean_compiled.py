"""The Boolean kernels, compiled for GPUs that need not be here: one LOP3 for 32 operations, wide
loads, no spill.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import cases, needs_disassembler
from kernels.variants import (
    CAPABILITIES,
    boolean_pack,
    boolean_product,
    boolean_unpack,
    counting_product,
)

from tri_apsp.engines.boolean import counting
from tri_apsp.engines.boolean.nvidia import NvidiaBooleanEngine
from tri_apsp.engines.boolean.portable import PortableBooleanEngine
from tri_apsp.engines.boolean.triton_base import _PACK_TILE, _UNPACK_TILE

pytestmark = needs_disassembler

TILES = range(2)
# The most instructions of the main loop per LOP3 that "or" and "and" need: for large tiles, and for
# small ones. In plain Triton a thread owns a few columns of many rows, so that it expands a mask
# for nearly every word.
MOST = {"nvidia": (1.2, 1.36), "portable": (3.6, 4.5)}


def _quick(tile: int, capability: int) -> bool:
    return capability == 90


@cases(
    "tile, capability",
    [*itertools.product(TILES, CAPABILITIES)],
    quick=lambda tile, capability: tile == 0 or capability == 90,
)
def test_nvidia_product(tile: int, capability: int) -> None:
    """The main loop is little else than one LOP3 per word and row of B, so that the rate of LOP3
    bounds it.
    """
    tiles = NvidiaBooleanEngine.TILES[tile]
    compiled = boolean_product("nvidia", tile, capability).compile()
    assert compiled.spills == 0, compiled.loops
    threads = 32 * tiles.num_warps
    assert compiled.registers * threads * 3 <= 65536, "no three programs fit a multiprocessor"
    assert compiled.shared <= 48 * 1024
    loop = compiled.main_loop()
    useful = tiles.block_m * tiles.block_n * 32 // threads
    assert useful <= loop["LOP3"] <= 1.02 * useful, loop
    assert loop["LDGSTS"] == 32 * tiles.block_n * 4 // (threads * 16), (
        "copies to shared memory move 16 bytes at a time"
    )
    assert loop.total() <= MOST["nvidia"][tile] * useful, (
        f"{loop.total() / useful:.3f} instructions per LOP3: {loop}"
    )


@cases("tile, capability", [*itertools.product(TILES, CAPABILITIES)], quick=_quick)
def test_portable_product(tile: int, capability: int) -> None:
    tiles = PortableBooleanEngine.TILES[tile]
    compiled = boolean_product("portable", tile, capability).compile()
    assert compiled.spills == 0, compiled.loops
    loop = compiled.main_loop()
    useful = tiles.block_m * tiles.block_n * 32 // (32 * tiles.num_warps)
    assert loop["LOP3"] >= useful, loop
    assert loop.total() <= MOST["portable"][tile] * useful, (
        f"{loop.total() / useful:.3f} instructions per LOP3: {loop}"
    )


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32, torch.float64], ids=str)
def test_packing_loads_16_bytes_at_a_time(dtype: torch.dtype) -> None:
    compiled = boolean_pack(dtype, 90).compile()
    assert compiled.instructions["LDL"] == 0
    assert compiled.instructions["LDG"] == math.prod(_PACK_TILE) * 32 * dtype.itemsize // (128 * 16)


@pytest.mark.parametrize("transposed", [False, True])
def test_unpacking_stores_16_bytes_at_a_time(transposed: bool) -> None:
    compiled = boolean_unpack(transposed, 90).compile()
    assert compiled.instructions["LDL"] == 0
    assert compiled.instructions["STG"] == math.prod(_UNPACK_TILE) * 32 // (128 * 16)


@pytest.mark.parametrize(
    ("tiles", "programs"), [(counting.TILES, 2), (counting.LARGE_TILES, 1)], ids=["usual", "large"]
)
def test_counting_multiplies_on_tensor_cores(tiles: dict[str, int], programs: int) -> None:
    """A step of k has instructions for 64 rows, 128 columns and 32 values of k by groups of four
    warps, and wide copies.
    """
    compiled = counting_product(tiles).compile()
    assert compiled.spills == 0
    assert compiled.registers * 32 * tiles["num_warps"] * programs <= 65536
    assert (compiled.shared + 1024) * programs <= 228 * 1024
    loop = max(compiled.loops, key=lambda loop: loop["IGMMA"])
    assert loop["IGMMA"] == tiles["BLOCK_N"] // 32
    assert loop["LDGSTS"] == (128 + tiles["BLOCK_N"]) * 128 // (256 * 16)
    assert loop.total() <= 140
