"""The kernel that finds the slices of a product, run on NumPy arrays: indices, masks, and the first
of several with equal terms.
"""

import numpy as np
import pytest
import torch
from kernels.gluon_stand_in import STRATEGIES, Pointer, import_kernels, launch

from tri_apsp.kernels.nvidia.product import ProductLayouts
from tri_apsp.semirings import no_edge

pytestmark = pytest.mark.compiled

kernel = import_kernels("kernels.nvidia.argmin")._argmin_kernel

CONSTANTS = {
    "BLOCK_M": 16,
    "BLOCK_N": 32,
    "BLOCK_K": 8,
    "GROUP_M": 2,
    "NUM_STAGES": 2,
    "LAYOUTS": ProductLayouts(ACC=None, LOAD_A=None, LOAD_B=None, SHARED=None),
}


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 7, 0), (33, 65, 17), (40, 20, 24)], ids=str)
@pytest.mark.parametrize(
    ("strategy", "dtype"), [case for case in STRATEGIES if case[0] != "int16x2"], ids=str
)
def test_slices(strategy: str, dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    """Two graphs with missing values; an element may have no term."""
    m, n, k = shape
    rng, missing = np.random.default_rng(m), no_edge(dtype)
    least = 0 if strategy == "nonnegative" else -9
    a, b = (
        torch.from_numpy(rng.integers(least, 10, size)).to(dtype).numpy()
        for size in ((2, m, k), (2, k, n))
    )
    a[rng.random(a.shape) < 0.4] = missing
    sums = a[:, :, :, None] + b[:, None]
    sums[np.broadcast_to((a == missing)[:, :, :, None], sums.shape)] = missing
    c = sums.min(axis=2, initial=missing)
    expected = np.full(c.shape, -1)
    for place in np.argwhere((sums == c[:, :, None]) & (sums < missing))[::-1]:
        expected[place[0], place[1], place[3]] = place[2]
    found, product = np.full(c.shape, -7, np.int32), np.full(c.shape, -7, a.dtype)
    tiles = 2 * -(-m // 16) * -(-n // 32)
    pointers = [
        Pointer(array, (*(s // array.itemsize for s in array.strides[:2]), 1))
        for array in (product, found, a, b)
    ]
    launch(
        kernel, (tiles, 1), *pointers, m, n, k, k, STRATEGY=strategy, NO_EDGE=missing, **CONSTANTS
    )
    reached = (
        c < missing
    )  # elsewhere a missing value and a negative one may be taken for a term of integers
    np.testing.assert_array_equal(found[reached], expected[reached] // CONSTANTS["BLOCK_K"])
    np.testing.assert_array_equal(product[reached], c[reached])
    assert (found[~reached] >= 0).all()
