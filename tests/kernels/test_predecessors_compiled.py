"""Kernels that find predecessors, compiled for GPUs that need not be here: no spill, and few instructions for each sum."""

from __future__ import annotations

import itertools

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import cases, needs_disassembler
from kernels.variants import CAPABILITIES, PREDECESSOR_KERNELS, TYPES, predecessors

pytestmark = needs_disassembler


def _quick(name: str, dtype: torch.dtype, capability: int) -> bool:
    return capability == 90 and dtype == torch.float32


@cases("name, dtype, capability", [*itertools.product(PREDECESSOR_KERNELS, TYPES, CAPABILITIES)], quick=_quick)
def test_nothing_spills(name: str, dtype: torch.dtype, capability: int) -> None:
    variant = predecessors(name, dtype, capability)
    compiled = variant.compile()
    rare = name in ("_search_rest_kernel", "_fewest_edges_kernel")  # which most graphs do not need
    assert compiled.spills <= 2 * rare, "registers spill"
    if dtype.itemsize <= 4 and name != "_search_kernel":
        assert compiled.registers * 32 * variant.num_warps <= 65536 // 2, "two programs must fit a multiprocessor"


# Instructions of a step for each sum: add, compare, two selections, and its share of loads, addresses and the test for the end.
@pytest.mark.parametrize(("name", "most"), [("_search_lists_kernel", 14), ("_search_kernel", 7)])
def test_few_instructions_for_each_sum(name: str, most: int) -> None:
    variant = predecessors(name, torch.float32, 90)
    constants, threads = variant.constants, 32 * variant.num_warps
    values = constants["STRIP"] if "STRIP" in constants else constants["ROWS"] * constants["COLUMNS"]
    sums = constants["UNROLL"] * values // threads
    loop = variant.compile().main_loop()
    assert sums <= loop["FADD"] <= 1.2 * sums
    assert loop.total() <= most * sums, loop
