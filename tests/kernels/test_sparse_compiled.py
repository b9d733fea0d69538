"""The kernels of sparse methods, compiled for GPUs that need not be here: no spill, and what each
loop reads.
"""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import cases, needs_disassembler
from kernels.variants import CAPABILITIES, HOP_KERNELS, SPARSE_KERNELS, hop_kernel, sparse

from tri_apsp.graphs.sparse import SPARSE_DTYPES

pytestmark = needs_disassembler

ALL = [
    (name, tile, dtype, capability)
    for name, tiles in SPARSE_KERNELS.items()
    for tile in tiles
    for dtype in SPARSE_DTYPES
    for capability in CAPABILITIES
    if capability == 90 or dtype == torch.float32
]


def _quick(name: str, tile: tuple[int, ...], dtype: torch.dtype, capability: int) -> bool:
    return capability == 90 and dtype == torch.float32


@cases("name, tile, dtype, capability", ALL, quick=_quick)
def test_no_kernel_spills(
    name: str, tile: tuple[int, ...], dtype: torch.dtype, capability: int
) -> None:
    variant = sparse(name, tile, dtype, capability)
    compiled = variant.compile()
    assert compiled.spills <= (2 if name == "_push_kernel" else 0)
    assert compiled.registers <= 128


HOPS = [
    (name, *rest, capability)
    for name, all_ in HOP_KERNELS.items()
    for rest in all_
    for capability in CAPABILITIES
]


def _quick_hops(name: str, number: int, digits: int, capability: int) -> bool:
    return capability == 90


@cases("name, number, digits, capability", HOPS, quick=_quick_hops)
def test_no_kernel_of_hops_spills(name: str, number: int, digits: int, capability: int) -> None:
    compiled = hop_kernel(name, number, digits, capability).compile()
    assert compiled.spills == 0
    assert compiled.registers <= 128


def test_a_step_over_edges_gathers_once_for_each() -> None:
    """Two loads of the lists and one of the distance for each edge, and no division."""
    compiled = sparse("_pull_kernel", (32, 8), torch.float32, 90).compile()
    loop = compiled.main_loop()
    assert loop["FADD"] > 0
    assert loop["LDG"] == 3 * loop["FADD"]
    assert loop["MUFU"] == 0


def test_hops_are_written_in_whole_words() -> None:
    """Four neighbouring values of a thread are one store, and nothing is exchanged between threads."""
    compiled = hop_kernel("unpack", 255, 4, 90).compile()
    assert compiled.main_loop()["STG"] == 1
    assert sum(compiled.instructions[name] for name in ("STS", "LDS", "SHFL")) == 0
