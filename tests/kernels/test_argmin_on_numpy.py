"""The kernel that finds the terms of a product, run on NumPy arrays: indices, masks, and the first of several equal terms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kernels.gluon_stand_in import Pointer, import_kernels, launch

from tri_apsp.kernels.nvidia.product import ProductLayouts

kernel = import_kernels("kernels.nvidia.argmin")._argmin_kernel

CONSTANTS = {
    "BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 8, "GROUP_M": 2, "NUM_STAGES": 2, "NO_EDGE": np.inf,
    "LAYOUTS": ProductLayouts(ACC=None, LOAD_A=None, LOAD_B=None, SHARED=None),
}  # fmt: skip


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 7, 3), (5, 7, 0), (33, 65, 17), (16, 32, 8), (40, 20, 24)], ids=str)
@pytest.mark.parametrize(("dtype", "strategy"), [(torch.float32, "float"), (torch.float64, "compare")], ids=str)
def test_terms(dtype: torch.dtype, strategy: str, shape: tuple[int, int, int]) -> None:
    """Two graphs with missing values; an element may have no term."""
    m, n, k = shape
    rng = np.random.default_rng(m)
    a, b = (torch.from_numpy(rng.integers(-9, 10, size)).to(dtype).numpy() for size in ((2, m, k), (2, k, n)))
    a[rng.random(a.shape) < 0.4] = np.inf
    sums = a[:, :, :, None] + b[:, None]
    c = sums.min(axis=2, initial=np.inf)
    expected = np.full(c.shape, -1)
    for place in np.argwhere((sums == c[:, :, None]) & np.isfinite(sums))[::-1]:
        expected[place[0], place[1], place[3]] = place[2]
    found = np.full(c.shape, -7, np.int32)
    tiles = 2 * -(-m // 16) * -(-n // 32)
    pointers = [Pointer(array, (*(s // array.itemsize for s in array.strides[:2]), 1)) for array in (found, a, b)]
    launch(kernel, (tiles, 1), *pointers, m, n, k, STRATEGY=strategy, **CONSTANTS)
    np.testing.assert_array_equal(found, expected)
