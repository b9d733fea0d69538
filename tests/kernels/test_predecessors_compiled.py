"""Kernels that find predecessors, compiled for GPUs that need not be here: no spill, and few
instructions for each sum.
"""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import cases, needs_disassembler
from kernels.sass import Compiled
from kernels.variants import CAPABILITIES, PREDECESSOR_KERNELS, TYPES, predecessors

pytestmark = needs_disassembler


RARE = ("_search_rest_kernel", "_fewest_edges_kernel")
"""Kernels that most graphs do not need."""


def _quick(name: str, dtype: torch.dtype, capability: int) -> bool:
    return capability == 90 and dtype == torch.float32


def _inner_loop(compiled: Compiled) -> Counter[str]:
    return min(compiled.loops, key=lambda loop: loop.total(), default=Counter())


@cases(
    "name, dtype, capability",
    [*itertools.product(PREDECESSOR_KERNELS, TYPES, CAPABILITIES)],
    quick=_quick,
)
def test_no_inner_loop_spills(name: str, dtype: torch.dtype, capability: int) -> None:
    variant = predecessors(name, dtype, capability)
    compiled = variant.compile()
    inner = _inner_loop(compiled)
    assert name in RARE or inner["LDL"] + inner["STL"] == 0
    # _fewest_edges_kernel in int64 has 21 on sm_80 and 22 on sm_90.
    assert compiled.spills <= (24 if name in RARE else 4), "registers spill"
    if dtype.itemsize <= 4 and name != "_search_kernel":
        assert compiled.registers * 32 * variant.num_warps <= 65536 // 2, (
            "two programs must fit a multiprocessor"
        )


# Instructions of a step for each sum: add, compare, two selections, and its share of loads,
# addresses and the test for the end.
@pytest.mark.parametrize(("name", "most"), [("_search_lists_kernel", 9.5), ("_search_kernel", 7)])
def test_few_instructions_for_each_sum(name: str, most: float) -> None:
    variant = predecessors(name, torch.float32, 90)
    constants, threads = variant.constants, 32 * variant.num_warps
    values = (
        constants["LANES"] if "LANES" in constants else constants["ROWS"] * constants["COLUMNS"]
    )
    sums = constants["UNROLL"] * values // threads
    loop = _inner_loop(variant.compile())
    assert loop["FADD"] == sums
    assert loop.total() <= most * sums, loop
