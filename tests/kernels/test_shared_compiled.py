"""Kernels that read and copy matrices, compiled for GPUs that need not be here: wide loads, high
occupancy, no spill.
"""

from __future__ import annotations

import itertools

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import cases, needs_disassembler
from kernels.sass import Compiled, Variant
from kernels.variants import (
    CAPABILITIES,
    SUM_KERNELS,
    TYPES,
    argmin,
    bellman_ford,
    check_terms,
    copy,
    count_edges,
    gradient_sums,
    initial_matrix,
    nvidia_argmin,
    packed,
    value_range,
)

from tri_apsp.engines.triton_base import _COPIED
from tri_apsp.gpu.value_range import _PROGRAMS_PER_UNIT

pytestmark = needs_disassembler


def _quick(dtype: torch.dtype, capability: int) -> bool:
    return capability == 90


every_capability = cases(
    "dtype, capability", [*itertools.product(TYPES, CAPABILITIES)], quick=_quick
)


def _compile(variant: Variant) -> tuple[Compiled, int]:
    """Check that as many programs fit a multiprocessor as are launched per multiprocessor; also
    return values per thread.
    """
    compiled, threads = variant.compile(), 32 * variant.num_warps
    assert compiled.registers * threads * _PROGRAMS_PER_UNIT <= 65536, (
        f"{compiled.registers} registers are too many"
    )
    assert compiled.spills == 0, "registers spill"
    assert compiled.shared <= 4096
    return compiled, variant.constants["ROWS"] * variant.constants["BLOCK"] // threads


@every_capability
def test_value_range_of_one_row(dtype: torch.dtype, capability: int) -> None:
    """A dense tensor: all loads of a tile are in flight at once, and memory does not wait for
    instructions.
    """
    compiled, values = _compile(value_range(dtype, capability, rows=1, unit=True))
    loop = compiled.main_loop()
    assert loop["LDG"] == values
    assert loop.total() <= {torch.float64: 75, torch.int64: 45}.get(dtype, 26) * values, loop


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_value_range_of_rows_of_any_stride(dtype: torch.dtype) -> None:
    compiled, values = _compile(value_range(dtype, 90, rows=2, unit=False))
    assert compiled.main_loop()["LDG"] == values


INITIAL_MATRICES = [
    ("SIZES", 90),
    ("PADDED", 90),
    *(("", capability) for capability in CAPABILITIES),
]


def _quick_initial_matrix(dtype: torch.dtype, padding: str, capability: int) -> bool:
    return capability == 90 and (padding == "" or dtype == torch.float32)


@cases(
    "dtype, padding, capability",
    [(dtype, *case) for dtype in TYPES for case in INITIAL_MATRICES],
    quick=_quick_initial_matrix,
)
def test_initial_matrix(dtype: torch.dtype, padding: str, capability: int) -> None:
    """Values are loaded and stored 16 bytes at a time, but loaded one by one where sizes may end
    rows anywhere.
    """
    compiled, values = _compile(initial_matrix(dtype, capability, padding))
    loop = compiled.main_loop()
    wide = values * dtype.itemsize // 16
    assert loop["STG"] == wide
    assert loop["LDG"] == (values + wide if padding == "SIZES" else wide)  # and a size for each row
    assert loop.total() <= {torch.float64: 90, torch.int64: 60}.get(dtype, 27) * values, loop


@cases(
    "dtype, capability",
    [*itertools.product((torch.int16, torch.int32, torch.float32), CAPABILITIES)],
    quick=lambda dtype, capability: capability == 90 and dtype != torch.int32,
)
def test_counting_edges(dtype: torch.dtype, capability: int) -> None:
    """Where 16 divides n, 16 bytes are loaded at a time, and memory does not wait for instructions."""
    variant = count_edges(dtype, capability)
    compiled, values = variant.compile(), variant.constants["BLOCK"] // (32 * variant.num_warps)
    assert compiled.registers <= 80  # at least three programs run on each multiprocessor
    assert compiled.spills <= 3
    loop = compiled.main_loop()
    assert loop["LDG"] == values * dtype.itemsize // 16
    assert loop.total() <= 16 * values, loop


@every_capability
def test_copy_moves_16_bytes_at_a_time(dtype: torch.dtype, capability: int) -> None:
    compiled = copy(dtype, capability).compile()
    wide = _COPIED[0] * _COPIED[1] * dtype.itemsize // (128 * 16)
    assert compiled.instructions["LDG"] == 2 * wide  # for either pair
    assert compiled.instructions["STG"] == 2 * wide
    assert compiled.instructions["LDL"] == 0


@every_capability
def test_a_round_of_bellman_ford(dtype: torch.dtype, capability: int) -> None:
    """For each vertex k, one load per weight, and three more: k, its label and its potential."""
    variant = bellman_ford(dtype, capability)
    compiled = variant.compile()
    assert compiled.spills == 0
    assert compiled.registers <= 128
    values = variant.constants["BLOCK"] // (32 * variant.num_warps)
    assert compiled.main_loop()["LDG"] == values + 3


@cases(
    "capability",
    [(capability,) for capability in CAPABILITIES],
    quick=lambda capability: capability == 90,
)
def test_argmin_of_a_product(capability: int) -> None:
    """For each term an addition, a comparison and a selection, from registers."""
    compiled = argmin(torch.float32, capability).compile()
    assert compiled.spills == 0
    assert compiled.registers <= 168
    loop = max(compiled.loops, key=lambda loop: loop.total())
    terms = 8 * 64 * 64 // 128
    assert loop["FSETP"] == terms
    assert loop["FADD"] + 2 * loop["FADD2"] == terms
    assert loop.total() <= (4.4 if capability >= 90 else 5.8) * terms


ARGMINS = [
    *itertools.product((torch.float32, torch.float64), (False, True), (False,), CAPABILITIES),
    *itertools.product((torch.int32, torch.int64), (False,), (False,), (90,)),
    *itertools.product((torch.float32, torch.float64), (True,), (True,), (90,)),
]


@cases(
    "dtype, nonnegative, small, capability",
    [
        case for case in ARGMINS if case[0] == torch.float32 or case[1] == case[2]
    ],  # of which alone the sign counts
    quick=lambda dtype, nonnegative, small, capability: capability == 90 and dtype == torch.float32,
)
def test_argmin_of_a_product_in_gluon(
    dtype: torch.dtype, nonnegative: bool, small: bool, capability: int
) -> None:
    """For each term a pair of add and min from registers, and of 16 terms one comparison and one
    selection.
    """
    variant = nvidia_argmin(dtype, nonnegative, small, capability)
    compiled = variant.compile()
    loop = max(compiled.loops, key=lambda loop: loop["LDS"])
    elements = variant.constants["BLOCK_M"] * variant.constants["BLOCK_N"] // 128  # of a thread
    # Addresses of a last slice that k cuts short, above all.
    assert loop["LDL"] + loop["STL"] <= (64 if capability == 80 else 16)
    if dtype == torch.float32:
        assert loop["FADD"] + 2 * loop["FADD2"] == 16 * elements
        assert loop["FSETP"] == elements
        assert loop["LDGSTS"] == (2 if small else 4)  # 16 bytes each
        assert (
            loop.total()
            <= (2.85 if small else 2.15 if nonnegative and capability >= 90 else 2.65)
            * 16
            * elements
        )


@cases(
    "dtype, capability",
    [
        *((dtype, 90) for dtype in TYPES if dtype != torch.int16),
        (torch.float32, 80),
        (torch.float32, 100),
    ],
    quick=lambda dtype, capability: capability == 90,
)
def test_predecessors_from_a_product(dtype: torch.dtype, capability: int) -> None:
    compiled = check_terms(dtype, capability).compile()
    assert compiled.spills == 0
    assert compiled.registers <= 128


@cases(
    "name, dtype, capability",
    [
        *itertools.product(SUM_KERNELS, (torch.float32,), CAPABILITIES),
        *((name, torch.float64, 90) for name in SUM_KERNELS),
    ],
    quick=lambda name, dtype, capability: capability == 90 and dtype == torch.float32,
)
def test_sums_of_gradients(name: str, dtype: torch.dtype, capability: int) -> None:
    compiled = gradient_sums(name, dtype, capability).compile()
    assert compiled.spills <= 2  # one address, of float64
    assert compiled.registers <= 128


def test_gradients_of_one_vertex() -> None:
    """Triton takes a size of 1 for a constant, which has no dtype."""
    sizes = {
        "largest": ["values"],
        "edge_sums": ["n"],
        "factor_sums": ["m", "n", "depth"],
        "scale": ["values"],
    }
    for name in SUM_KERNELS:
        assert (
            gradient_sums(name, torch.float32, 90, **dict.fromkeys(sizes[name], 1))
            .compile()
            .instructions
        )
    for one in ({"m": 1}, {"n": 1}, {"m": 1, "n": 1}):
        assert nvidia_argmin(torch.float32, True, False, 90, **one).compile().instructions


@cases(
    "pack, wide, capability",
    [*itertools.product((False, True), (False, True), CAPABILITIES)],
    quick=lambda pack, wide, capability: capability == 90,
)
def test_moving_packed_graphs(pack: bool, wide: bool, capability: int) -> None:
    compiled = packed(pack, wide, capability).compile()
    assert compiled.spills == 0
    assert compiled.registers <= (128 if wide else 64)
