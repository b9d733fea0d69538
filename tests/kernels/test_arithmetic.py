"""The kernel of the arithmetic ceiling, on NumPy arrays and on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.gluon_stand_in import STRATEGIES, Pointer, import_kernels, launch

from tri_apsp.engines import arithmetic as host
from tri_apsp.kernels.nvidia.arithmetic import SLICE

on_numpy = import_kernels("kernels.nvidia.arithmetic")._arithmetic_kernel


@pytest.mark.parametrize(("strategy", "dtype"), STRATEGIES, ids=str)
def test_the_result_on_numpy(strategy: str, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(3)
    numpy_dtype = torch.empty(0, dtype=dtype).numpy().dtype
    a, b = (rng.integers(0, 1000, shape).astype(numpy_dtype) for shape in ((8, SLICE), (SLICE, 16)))
    acc = np.full((2, 8, 16), 500, numpy_dtype)
    expected = np.minimum(500, (a[:, :, None] + b[None, :, :]).min(1))
    operands = [acc, a, b]
    if strategy == "int16x2":
        operands = [acc.view(np.int32), np.repeat(a, 2, axis=1).view(np.int32), b.view(np.int32)]
    _, rows, columns = operands[0].shape
    strides = [(rows * columns, columns, 1), (SLICE, 1), (columns, 1)]
    pointers = [Pointer(operand, stride) for operand, stride in zip(operands, strides, strict=True)]
    values = {"BLOCK_M": rows, "BLOCK_N": columns, "STRATEGY": strategy}
    launch(on_numpy, (len(acc), 1), *pointers, 2, SLICE=SLICE, ACC=None, SHARED=None, **values)
    np.testing.assert_array_equal(acc, np.broadcast_to(expected, acc.shape))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int16], ids=str)
def test_the_result_on_a_gpu(dtype: torch.dtype) -> None:
    for tiles in host.shapes(dtype):
        made = host.arithmetic(dtype, torch.device("cuda"), tiles, steps=3)
        found = made.run()
        assert torch.equal(found, made.expected.expand_as(found))
