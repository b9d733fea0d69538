"""The kernel for many small graphs, compiled for GPUs that need not be here: its loops, registers and spills."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import cases, needs_disassembler
from kernels.variants import CAPABILITIES, small_gradients, small_graphs

from tri_apsp.engines.nvidia import MOST_VERTICES

pytestmark = needs_disassembler

DTYPES = (torch.float32, torch.int16, torch.int32, torch.float64, torch.int64)
ALL = [
    (size, dtype, sizes, capability)
    for size in (8, 16, 32, 64)
    for dtype in DTYPES
    for sizes in (False, True)
    for capability in CAPABILITIES
    if size <= MOST_VERTICES[dtype.itemsize]
    and (capability >= 90 or dtype != torch.int16)
    and (not sizes or (capability == 90 and dtype.itemsize <= 4))
]


def _quick(size: int, dtype: torch.dtype, sizes: bool, capability: int) -> bool:
    return capability == 90 and dtype == torch.float32 and size == 32 and not sizes


@cases("size, dtype, sizes, capability", ALL, quick=_quick)
def test_graphs_stay_in_registers(size: int, dtype: torch.dtype, sizes: bool, capability: int) -> None:
    compiled = small_graphs(size, dtype, sizes, capability).compile()
    # Triton 3.9 spills a few registers of the widest groups.
    wide = dtype.itemsize == 8 or size == 64
    assert compiled.spills <= (24 if wide else 0)
    assert compiled.registers <= (255 if wide else 208)


@pytest.mark.parametrize(("dtype", "minimum"), [(torch.float32, "VIMNMX3"), (torch.int16, "VIADDMNMX")])
def test_a_step_is_sums_minima_and_shuffles(dtype: torch.dtype, minimum: str) -> None:
    """Of graphs of 32 vertices without negative weights, for eight k: one minimum for each two sums."""
    loops = [loop for loop in small_graphs(32, dtype, False, 90).compile().loops if loop[minimum] == 128]
    loop = min(loops, key=lambda loop: loop.total())
    assert loop["SHFL"] <= 14 * 8
    assert loop.total() <= (660 if dtype == torch.float32 else 250)


GRADIENTS = [
    (size, dtype, capability)
    for size in (8, 16, 32, 64)
    for dtype in (torch.float32, torch.float64)
    for capability in CAPABILITIES
    if capability == 90 or size == 32
]


def _quick_gradients(size: int, dtype: torch.dtype, capability: int) -> bool:
    return capability == 90 and dtype == torch.float32 and size in (32, 64)


@cases("size, dtype, capability", GRADIENTS, quick=_quick_gradients)
def test_gradients_stay_in_registers(size: int, dtype: torch.dtype, capability: int) -> None:
    """For eight k, a thread adds, compares and selects twice for each of its values; then it selects twice, and adds twice."""
    compiled = small_gradients(size, dtype, capability).compile()
    forward, backward, _ = sorted((loop for loop in compiled.loops if loop["LDG"] == 0), key=lambda loop: loop.total())[-3:]
    assert forward["LDL"] + forward["STL"] + backward["LDL"] + backward["STL"] <= 32  # none under Triton 3.6
    if dtype == torch.float32 and capability == 90:
        steps = 32 * (4 if size < 32 else 8)
        assert forward["FADD"] == steps
        assert forward.total() <= (5.7 if size == 64 else 5.1) * steps
        assert backward.total() <= (10.5 if size == 64 else 9.8) * steps
