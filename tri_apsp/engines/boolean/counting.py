"""Products of packed Boolean matrices by counting on tensor cores: the launches; see kernels.nvidia.counting."""

from __future__ import annotations

from functools import cache

import torch

from tri_apsp.engines.base import Block, Update
from tri_apsp.engines.boolean.base import PADDING
from tri_apsp.engines.boolean.triton_base import shape_of
from tri_apsp.engines.triton_base import in_parts
from tri_apsp.gpu.launcher import Launcher

__all__ = ["EXPANDED", "TILES", "product"]

TILES = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 128, "GROUP_M": 8, "num_warps": 8, "num_stages": 4}
"""The tiles of a product, and the options of its kernel; BLOCK_M and BLOCK_K divide 128."""
EXPANDED = 128
"""Edge of a tile of bytes that a program expands."""


def product(update: Update) -> None:
    """C <- C or A B, for blocks of words (batch, m, n / 32), m, n and k multiples of 128, with unit column stride.

    A and B are copied before C changes, so that C may be A or B. The skip of the update is ignored.

    Cost: batch m n k multiplications and additions on tensor cores, in int8. Workspace: batch (m k + n k) bytes.
    """
    m, n, k = (PADDING * size for size in shape_of(update))
    for c, a, b in in_parts(*update[:3]):
        operands = _expand(a, m, k, transposed=False), _expand(b, n, k, transposed=True)
        programs = m // TILES["BLOCK_M"] * -(-n // TILES["BLOCK_N"])
        _product_launcher()((programs, c.shape[0], 1), c, *operands, m, n, k, *c.stride()[:2])


def _expand(words: Block, lines: int, depth: int, *, transposed: bool) -> torch.Tensor:
    """Return a byte for each bit (batch, lines, depth), of the transposed matrix if `transposed`."""
    batch = words.shape[0]
    found = torch.empty((batch, lines, depth), dtype=torch.int8, device=words.device)
    programs = lines // EXPANDED * (depth // EXPANDED)
    _expand_launcher(transposed)((programs, batch, 1), found, words, lines, depth, *words.stride()[:2])
    return found


@cache
def _expand_launcher(transposed: bool) -> Launcher:
    from tri_apsp.kernels.nvidia.counting import _expand_kernel

    return Launcher(_expand_kernel, {"TRANSPOSED": transposed, "LINES": EXPANDED, "DEPTH": EXPANDED, "num_warps": 4})


@cache
def _product_launcher() -> Launcher:
    from tri_apsp.kernels.nvidia.counting import _counting_kernel

    return Launcher(_counting_kernel, TILES)
