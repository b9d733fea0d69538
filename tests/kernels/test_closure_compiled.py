"""Closures, panels and solves in one launch, compiled for GPUs that need not be here: their loops,
registers and spills.
"""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import cases, needs_disassembler
from kernels.sass import Compiled
from kernels.variants import (
    CAPABILITIES,
    TYPES,
    closure_cases,
    nvidia_closure,
    nvidia_closure_of_one_vertex,
    portable_closure,
    portable_panels,
)

from tri_apsp.configs import default_config
from tri_apsp.kernels.nvidia.gluon_names import OVERSIZED_VIEWS

pytestmark = needs_disassembler

Loops = list["Counter[str]"]


def _quick(kind: str, dtype: torch.dtype, nonnegative: bool, capability: int) -> bool:
    if capability != 90:
        return False
    if dtype == torch.float32:
        return kind in ("closure by many", "solve by many", "solve by one", "one tile")
    return kind == "closure by many" or (dtype == torch.int16 and kind == "solve by many")


@cases("kind, dtype, nonnegative, capability", closure_cases(), quick=_quick)
def test_nvidia_closure(kind: str, dtype: torch.dtype, nonnegative: bool, capability: int) -> None:
    """By several programs per graph, which divide tiles, or by one; alone, or in a solve."""
    one_tile = kind == "one tile"
    config = default_config("nvidia", dtype)
    variant = nvidia_closure(kind, dtype, nonnegative, capability)
    compiled = variant.compile()
    assert compiled.registers <= variant.maxnreg
    assert compiled.shared <= 81 * 1024
    values = config.closure_tile**2 // (32 * config.closure_warps)  # of a tile, per thread
    products, closing = _loops(compiled, values)
    assert one_tile or len(products) >= 2, compiled.loops
    assert len(closing) == 1, closing
    if (
        dtype.itemsize < 8
    ):  # a few addresses spill outside these loops, so that three programs fit a multiprocessor
        few = {100: 2, 90: 0 if OVERSIZED_VIEWS else 2}.get(
            capability, 0
        )  # Triton 3.9 spills up to two more in them
        assert all(loop["STL"] + loop["LDL"] <= few for loop in (*products, *closing)), (
            products,
            closing,
        )
    if capability == 90 and dtype == torch.int16:
        assert all(loop["VIADDMNMX"] == 8 * values for loop in products), products
        assert all(loop.total() <= 1.2 * loop["VIADDMNMX"] for loop in products), products
        assert all(loop.total() <= 3.3 * 4 * values for loop in closing), closing
    if capability == 90 and dtype == torch.float32:
        _check_float32(products, closing, 8 * values)
        signed = any(loop["VIMNMX3"] == 0 for loop in products)
        assert one_tile or signed == (not nonnegative), products


def _loops(compiled: Compiled, values: int) -> tuple[Loops, Loops]:
    """Return the loops that multiply two tiles, and those that close one, of `values` per thread.

    A product takes 8 or 16 rows of k at a time, without a barrier; a tile is closed in strips of 4
    rows, two at a time.
    """
    barriers = 4 if OVERSIZED_VIEWS else 6
    products = [
        loop
        for loop in compiled.loops
        if loop["BAR"] == loop["LDG"] == 0 and loop.total() >= 8 * values
    ]
    closing = [
        loop
        for loop in compiled.loops
        if 4 <= loop["BAR"] <= barriers and loop["LDG"] == loop["STG"] == 0
    ]
    assert closing, compiled.loops
    return products, closing


def _check_float32(products: Loops, closing: Loops, pairs: int) -> None:
    """Check the instructions per pair of add and min, with VIMNMX3 for weights without negatives,
    and without it for others.
    """
    for loop in products:
        nonnegative = loop["VIMNMX3"] > 0
        assert loop["FADD"] == pairs, products
        assert loop.total() <= (1.65 if nonnegative else 2.15) * loop["FADD"], products
    # Closing a tile also clamps it, and closes strips of four rows: 24 pairs, and 12 per column of
    # them.
    assert all(loop.total() <= (2.3 if loop["VIMNMX3"] else 3.25) * pairs for loop in closing), (
        closing
    )


def test_nvidia_closure_of_one_vertex() -> None:
    """Triton compiles a kernel of its own for n = 1, where it folds what it then knows; 3.6 crashes
    on a loop of one turn.
    """
    assert nvidia_closure_of_one_vertex().compile().loops


def _quick_portable(dtype: torch.dtype, capability: int) -> bool:
    return capability == 90


@cases("dtype, capability", [*itertools.product(TYPES, CAPABILITIES)], quick=_quick_portable)
def test_portable_closure_and_panels(dtype: torch.dtype, capability: int) -> None:
    closure, panels = (
        make(dtype, capability).compile() for make in (portable_closure, portable_panels)
    )
    for compiled in (closure, panels):
        assert compiled.spills == 0, "registers spill"
        assert compiled.shared <= 48 * 1024
    # All threads of a program read a strip before one of them writes: there is a barrier after the
    # loops.
    assert panels.instructions["BAR"] > sum(loop["BAR"] for loop in panels.loops)
