"""Every kernel, compiled for GPUs that need not be here: registers, spills and shared memory.

The instructions of the main loops are in test_instructions.py.
"""

from __future__ import annotations

import dataclasses

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import needs_disassembler
from kernels.sass import Variant
from kernels.variants import SUM_KERNELS, all_variants, exponent_product, gradient_sums
from kernels.variants import nvidia_argmin as argmin

from tri_apsp.configs import default_config, exponents_bytes
from tri_apsp.gpu.value_range import _PROGRAMS_PER_UNIT

pytestmark = needs_disassembler

# Programs that must fit the 65536 registers of a multiprocessor, by the beginning of a variant's
# name; of other kernels, one.
PROGRAMS = {
    "portable product": 2,
    "nvidia product": 2,
    "shared value_range": _PROGRAMS_PER_UNIT,
    "shared initial_matrix": _PROGRAMS_PER_UNIT,
    "shared bellman_ford": 4,
    "shared sparse": 4,
    "shared hops": 4,
    "shared packed": 4,
    "shared predecessors": 2,
    "shared predecessors _search_kernel": 1,
    "gradients check_terms": 4,
    "gradients": 2,
    "boolean product nvidia": 3,
    "boolean product by counting": 1,
    "exponents product": 2,
    "exponents count_edges": 3,
}
# Loads and stores of local memory that loops may hold; of other kernels, none.
SPILLS = {
    "nvidia closure": 80,  # addresses, outside of the loops that test_instructions.py checks
    "nvidia product int16 False 90 product 128": 8,
    "shared predecessors": 4,
    "shared predecessors _search_rest_kernel": 24,
    "shared predecessors _fewest_edges_kernel": 24,
    "shared sparse _push_kernel": 2,
    "gradients argmin": 64,  # addresses of a last slice that k cuts short
    "gradients edge_sums": 2,
    "small gradients": 128,  # mostly outside of the loops that test_instructions.py checks
    "small graphs": 32,  # Triton 3.9 spills a few registers of the widest groups
    "small graphs 32 float32": 0,
    "exponents product": 4,
    "exponents count_edges": 3,
}


def of(limits: dict[str, int], name: str, other: int) -> int:
    """Return the limit with the longest key that `name` begins with."""
    return max(
        ((len(key), limits[key]) for key in limits if name.startswith(key)), default=(0, other)
    )[1]


@pytest.mark.parametrize("name", all_variants())
def test_registers_spills_and_shared_memory(name: str) -> None:
    variant = all_variants()[name]()
    compiled = variant.compile()
    assert compiled.instructions
    assert compiled.spills <= of(SPILLS, name, 0), compiled.loops
    assert compiled.registers * 32 * variant.num_warps * of(PROGRAMS, name, 1) <= 65536
    assert compiled.shared <= (200 if name.startswith(("exponents", "boolean")) else 81) * 1024


@pytest.mark.parametrize(("columns", "length"), [(128, 128), (256, 512)])
def test_products_by_exponents_take_the_shared_memory_that_is_counted(
    columns: int, length: int
) -> None:
    fields = {"block_n": columns, "block_k": length}
    tiles = dataclasses.replace(default_config("nvidia", torch.int16).exponents, **fields)
    compiled = exponent_product(torch.int16, 90, **fields).compile()
    assert 0 <= compiled.shared - exponents_bytes(tiles) <= 16


ONE_VERTEX = [
    gradient_sums("largest", torch.float32, 90, values=1),
    gradient_sums("edge_sums", torch.float32, 90, n=1),
    gradient_sums("factor_sums", torch.float32, 90, m=1, n=1, depth=1),
    gradient_sums("scale", torch.float32, 90, values=1),
    argmin(torch.float32, True, False, 90, m=1, n=1),
]


@pytest.mark.parametrize("variant", ONE_VERTEX, ids=[*SUM_KERNELS, "argmin"])
def test_gradients_of_one_vertex(variant: Variant) -> None:
    """Triton takes a size of 1 for a constant, which has no dtype."""
    assert variant.compile().instructions
