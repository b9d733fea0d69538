"""The kernel for many small graphs, compiled for GPUs that need not be here: its loops, registers
and spills.
"""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import cases, needs_disassembler
from kernels.variants import CAPABILITIES, small_gradients, small_graphs

from tri_apsp.configs import SMALL_GRAPHS

pytestmark = needs_disassembler

DTYPES = (torch.float32, torch.int16, torch.int32, torch.float64, torch.int64)
ALL = [
    (size, dtype, sizes, capability)
    for size in (8, 16, 32, 64)
    for dtype in DTYPES
    for sizes in (False, True)
    for capability in CAPABILITIES
    if size <= SMALL_GRAPHS[dtype.itemsize]
    and (capability >= 90 or dtype != torch.int16)
    and (not sizes or (capability == 90 and dtype.itemsize <= 4))
]


def _quick(size: int, dtype: torch.dtype, sizes: bool, capability: int) -> bool:
    return capability == 90 and dtype == torch.float32 and size == 32 and not sizes


@cases("size, dtype, sizes, capability", ALL, quick=_quick)
def test_graphs_stay_in_registers(
    size: int, dtype: torch.dtype, sizes: bool, capability: int
) -> None:
    compiled = small_graphs(size, dtype, sizes, capability).compile()
    # Triton 3.9 spills a few registers of the widest groups.
    wide = dtype.itemsize == 8 or size == 64
    assert compiled.spills <= (32 if wide else 0)
    assert compiled.registers <= (255 if wide else 208)


@pytest.mark.parametrize(
    ("size", "dtype", "minimum", "most"),
    [
        (32, torch.float32, "VIMNMX3", {"SHFL": 112, "total": 660}),
        (32, torch.int16, "VIADDMNMX", {"SHFL": 64, "total": 300}),
        (64, torch.float32, "VIMNMX3", {"SHFL": 64, "STS": 16, "LDS": 28, "BAR": 5, "total": 1100}),
    ],
    ids=str,
)
def test_a_step_is_sums_minima_and_exchanges(
    size: int, dtype: torch.dtype, minimum: str, most: dict[str, int]
) -> None:
    """Of graphs without negative weights, for eight k: one minimum for each two sums, and few
    shuffles.

    For each pair of k, two warps exchange columns by 16-byte stores and loads with one barrier.
    """
    values = size * size // (32 if size == 32 else 64)  # of a thread
    loops = [
        loop
        for loop in small_graphs(size, dtype, False, 90).compile().loops
        if 4 * values <= loop[minimum] <= 5 * values
    ]
    loop = min(loops, key=lambda loop: loop.total())
    assert {
        name: count
        for name, count in most.items()
        if (loop.total() if name == "total" else loop[name]) > count
    } == {}


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
    """For eight k, a thread adds, compares and selects twice for each of its values; then it
    selects twice, and adds twice.

    Besides, a thread adds once per row to bring column k + 1 up to date.
    """
    compiled = small_gradients(size, dtype, capability).compile()
    forward, backward, _ = sorted(
        (loop for loop in compiled.loops if loop["LDG"] == 0), key=lambda loop: loop.total()
    )[-3:]
    assert (
        forward["LDL"] + forward["STL"] + backward["LDL"] + backward["STL"] <= 48
    )  # none under Triton 3.6
    if dtype == torch.float32 and capability == 90:
        steps = 32 * (4 if size < 32 else 8)
        assert steps < forward["FADD"] <= 1.13 * steps
        assert (
            forward.total() <= 8 * steps
        )  # 5.0 under Triton 3.6: later ones combine the comparisons of k and k + 1
        assert backward.total() <= 11 * steps
