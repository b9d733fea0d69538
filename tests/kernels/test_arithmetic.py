"""The kernel of the arithmetic ceiling: right on NumPy, and compiled to little but additions and
minima.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.gluon_stand_in import STRATEGIES, Pointer, import_kernels, launch
from kernels.marks import cases, needs_disassembler
from kernels.variants import arithmetic, arithmetic_cases

from tri_apsp.device import Device
from tri_apsp.engines import arithmetic as host
from tri_apsp.kernels.nvidia.arithmetic import SLICE

TWO_UNITS = Device("cuda", "a GPU", "a-gpu", 2, 7 << 30, capability=(9, 0))
on_numpy = import_kernels("kernels.nvidia.arithmetic")._arithmetic_kernel


def run_on_numpy(operands: list[np.ndarray], steps: int, constants: dict[str, Any]) -> None:
    programs, rows, columns = operands[0].shape
    assert (rows, columns) == (constants["BLOCK_M"], constants["BLOCK_N"])
    strides = [(rows * columns, columns, 1), (SLICE, 1), (columns, 1)]
    pointers = [Pointer(operand, stride) for operand, stride in zip(operands, strides, strict=True)]
    names = ("BLOCK_M", "BLOCK_N", "STRATEGY")
    values = {name: constants[name] for name in names}
    launch(on_numpy, (programs, 1), *pointers, steps, SLICE=SLICE, ACC=None, SHARED=None, **values)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_the_result_on_numpy(strategy: str, dtype: torch.dtype, steps: int) -> None:
    rng = np.random.default_rng(steps)
    numpy_dtype = torch.empty(0, dtype=dtype).numpy().dtype
    a, b = (rng.integers(0, 1000, shape).astype(numpy_dtype) for shape in ((8, SLICE), (SLICE, 16)))
    acc = np.full((2, 8, 16), 500, numpy_dtype)
    expected = np.minimum(500, (a[:, :, None] + b[None, :, :]).min(1))
    operands = [acc, a, b]
    if strategy == "int16x2":
        operands = [acc.view(np.int32), np.repeat(a, 2, axis=1).view(np.int32), b.view(np.int32)]
    _, rows, columns = operands[0].shape
    run_on_numpy(operands, steps, {"BLOCK_M": rows, "BLOCK_N": columns, "STRATEGY": strategy})
    np.testing.assert_array_equal(acc, np.broadcast_to(expected, acc.shape))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int16], ids=str)
def test_the_launch_gives_the_kernel_what_it_takes(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = []

    class Recorder:
        def __init__(self, kernel, constants):
            self.constants = constants

        def __call__(self, grid, *arguments):
            launched.append(grid)
            *operands, steps = arguments
            assert grid == (len(operands[0]), 1, 1)
            run_on_numpy([operand.numpy() for operand in operands], steps, self.constants)

    monkeypatch.setattr(host, "Launcher", Recorder)
    monkeypatch.setattr(host, "describe", lambda device: TWO_UNITS)
    for tiles in host.shapes(dtype):
        made = host.arithmetic(dtype, torch.device("cpu"), tiles, steps=2)
        found = made.run()
        assert torch.equal(found, made.expected.expand_as(found))
        assert made.operations == 2 * SLICE * len(found) * tiles.block_m * tiles.block_n
        assert found.dtype == dtype
        assert launched.pop() == (2 * 12 // tiles.num_warps, 1, 1)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int16], ids=str)
def test_the_result_on_a_gpu(dtype: torch.dtype) -> None:
    for tiles in host.shapes(dtype):
        made = host.arithmetic(dtype, torch.device("cuda"), tiles, steps=3)
        found = made.run()
        assert torch.equal(found, made.expected.expand_as(found))


@needs_disassembler
@cases(
    "dtype, capability",
    arithmetic_cases(),
    quick=lambda dtype, capability: capability == 90 or dtype == torch.float32,
)
def test_the_loop_is_little_but_additions_and_minima(dtype: torch.dtype, capability: int) -> None:
    """FADD FADD VIMNMX3 for two pairs, and VIADDMNMX for one, or for two of int16: from compute
    capability 9.0 on.

    The rest is 16-byte loads from shared memory: a few for each row and column of a thread.
    """
    for shape in range(len(host.shapes(dtype))):
        variant = arithmetic(dtype, capability, shape)
        compiled = variant.compile()
        assert compiled.spills == 0
        loop = compiled.main_loop()
        pairs = (
            SLICE
            * variant.constants["BLOCK_M"]
            * variant.constants["BLOCK_N"]
            // (32 * variant.num_warps)
        )
        useful = _useful(dtype, capability, pairs)
        loop["IMAD"] += loop.pop("IADD3", 0)  # an addition of integers either way
        assert {name: loop[name] for name in useful} == useful, loop
        assert loop.total() <= 1.1 * useful.total(), loop


def _useful(dtype: torch.dtype, capability: int, pairs: int) -> Counter[str]:
    if dtype == torch.float32:
        return Counter(
            {"FADD": pairs, **({"IMNMX": pairs} if capability < 90 else {"VIMNMX3": pairs // 2})}
        )
    return Counter({"IMAD": pairs, "IMNMX": pairs} if capability < 90 else {"VIADDMNMX": pairs})
