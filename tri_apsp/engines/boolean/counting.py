"""Products of packed Boolean matrices by counting on tensor cores: the launches; see
kernels.nvidia.counting.
"""

import torch

from tri_apsp.engines.base import Update
from tri_apsp.engines.boolean.base import PADDING
from tri_apsp.engines.boolean.triton_base import shape_of, to_bytes
from tri_apsp.engines.triton_base import in_parts
from tri_apsp.gpu.launcher import cached_launcher
from tri_apsp.kernels.nvidia.counting import _counting_kernel

TILES = {
    "BLOCK_M": 128,
    "BLOCK_N": 128,
    "BLOCK_K": 128,
    "GROUP_M": 8,
    "num_warps": 8,
    "num_stages": 3,
}
"""The tiles of a product, and the options of its kernel; BLOCK_M and BLOCK_K divide 128. Two
programs fit a multiprocessor.
"""
LARGE_TILES = {**TILES, "BLOCK_N": 256, "num_stages": 4}
"""Tiles of large products, which read less for each operation; one program fits a multiprocessor.
"""
# The least results of a product that takes large tiles. On an H200, products of 8192, 12288 and
# 16384 rows, columns and k run at 607, 622 and 605 T operations/s by the usual tiles, and at 585,
# 639 and 648 T by large ones.
_LARGE = 12288**2


def product(update: Update) -> None:
    """C <- C or A B, for blocks of words (batch, m, n / 32), m, n and k multiples of 128, with unit
    column stride.

    A and B are copied before C changes, so that C may be A or B. The skip of the update is ignored.

    Cost: batch m n k multiplications and additions on tensor cores, in int8. Workspace: batch (m k
    + n k) bytes.
    """
    m, n, k = (PADDING * size for size in shape_of(update))
    tiles = LARGE_TILES if m * n >= _LARGE else TILES
    launch = cached_launcher(_counting_kernel, **tiles)
    programs = m // tiles["BLOCK_M"] * -(-n // tiles["BLOCK_N"])
    a, b = (
        to_bytes(update.a, m, k).view(torch.int8),
        to_bytes(update.b, k, n, transposed=True).view(torch.int8),
    )
    for operands in in_parts(update.c, a, b):
        c = operands[0]
        launch((programs, len(c), 1), *operands, m, n, k, *c.stride()[:2])
