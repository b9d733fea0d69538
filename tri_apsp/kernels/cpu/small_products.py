"""Min-plus products of many small matrices in one call: calling a kernel for each takes longer than
its product.
"""

# mypy: allow-untyped-defs

from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, typeof, types

from tri_apsp.kernels.cpu.compilation import inner, kernel
from tri_apsp.kernels.cpu.min_plus import _product

_one_product = inner(_product)


def _small_products(c, a, b, no_edge, floor, nonnegative, operation, width, block_m, block_k):
    """c = max(min(c, a b), floor) for each c [m, n] of c [batch, m, n]; see min_plus."""
    for item in range(c.shape[0]):
        _one_product(
            c[item],
            a[item],
            b[item],
            no_edge,
            floor,
            nonnegative,
            operation,
            width,
            block_m,
            block_k,
        )


@cache
def small_products_kernel(dtype: np.dtype[Any], operation: tuple[int, ...] = ()) -> Any:
    """Return the compiled `_small_products` for a dtype and one of min_plus.OPERATIONS."""
    value, blocks = from_dtype(dtype), types.Array(from_dtype(dtype), 3, "A")
    sizes = types.intp, types.intp, types.intp
    signature = types.void(
        blocks, blocks, blocks, value, value, types.boolean, typeof(operation), *sizes
    )
    return kernel(_small_products, signature)
