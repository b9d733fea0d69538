"""Products by exponents on a GPU of compute capability 9.x: an engine whose large products sample,
encode and multiply on tensor cores; see kernels.shared.exponents.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple

import torch

from tri_apsp.configs import EXPONENT_DTYPES, EXPONENTS_PART, GpuTiles, exponents_of
from tri_apsp.engines.base import Update
from tri_apsp.engines.nvidia import NvidiaEngine
from tri_apsp.engines.triton_base import has_wide_strides, in_parts, shape_of, strides_of
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.nvidia.exponents import _exponent_product_kernel
from tri_apsp.kernels.shared.exponents import _encode_kernel, _sample_kernel
from tri_apsp.semirings import no_edge

BLOCK_EDGE = 128
"""Edge of a block of C, of which one flag tells whether a direct product must compute it; and rows
of a tile.
"""
# A program encodes _ENCODED values: a slice of _ENCODED / SLICE lines. On an H200, for n = 16384 in
# int16, A by itself takes 0.31 and B 0.43 ms; with twice the values and warps 0.31 and 0.48 ms.
_ENCODED, _ENCODING_WARPS = 2048, 2
# A product fails, and computes no more tiles, once at least _LEAST_TRIED are computed and fewer
# than one in _WORTHWHILE of them are certain: a direct product takes 8 times as long, on an H200 in
# int16, so that fewer gain nothing.
_LEAST_TRIED, _WORTHWHILE = 64, 8
# A product does not begin if fewer than one in _SAMPLE_WORTHWHILE of _SAMPLED tiles, a power of 2,
# seem certain. On an H100 in int16, where a direct product of 4096 takes 2 ms, the sample lowers
# the time of a failed product from 0.18 to 0.03 ms, and raises that of one that succeeds from 0.39
# to 0.40 ms: a fifth of the tiles must be certain to gain. The sample has _SAMPLE_EDGE^2 results of
# each tile, at least _MARGIN below their bounds. Without the margin, failing products of meshes of
# 16384 vertices with 23 edges per vertex begin, which takes 5% of the solve.
_SAMPLED, _SAMPLE_WORTHWHILE, _SAMPLE_EDGE, _MARGIN = 64, 4, 8, 4
# Values of k that a program of the sample reads at a time, its warps, and the stages of its loop:
# values are copied three iterations ahead. On an H100, for 2048 and 4096 values of k in int16 and
# float32, each time is within 7% of the least of ten such triples.
_SAMPLE_K, _SAMPLE_WARPS, _SAMPLE_STAGES = 256, 8, 4

_RECORDED: ContextVar[list[Remaining] | None] = ContextVar("recorded products", default=None)


class ByExponents(NvidiaEngine):
    """An nvidia engine whose large products run by exponents; a direct product computes the tiles
    that are not certain. The results are the same.

    Args:
        engine: of a GPU of compute capability 9.x, for weights of EXPONENT_DTYPES without negative
            values.
        threshold: a product (m, k) by (k, n) is large if m n k >= threshold^3, and m, n and k >=
            threshold / 2.
    """

    def __init__(self, engine: NvidiaEngine, threshold: int) -> None:
        assert engine.spec.nonnegative, "weights must not be negative"
        assert engine.spec.dtype in EXPONENT_DTYPES, "weights must be of another dtype"
        super().__init__(engine.spec, engine.config)
        self.threshold = threshold

    def product(self, *updates: Update) -> None:
        direct = []
        for update in updates:
            if not self._is_large(update):
                direct.append(update)
                continue
            for c, a, b in in_parts(*update[:3]):
                part = update._replace(c=c, a=a, b=b)
                remaining = exponent_product(part, self.config.exponents)
                if (found := _RECORDED.get()) is not None:
                    found.append(remaining)
                self.product_of_blocks(part, remaining.uncertain, BLOCK_EDGE)
        super().product(*direct)

    def _is_large(self, update: Update) -> bool:
        (_, m, n), k = update.c.shape, update.a.shape[2]
        rows = max(BLOCK_EDGE, self.config.product.block_m, self.config.exponents.block_k)
        return (
            min(m, n, k) >= self.threshold // 2
            and m * n * k >= self.threshold**3
            and not has_wide_strides(update, rows)
        )


@contextmanager
def recorded_products() -> Iterator[list[Remaining]]:
    """Yield a list to which each product by exponents of this thread adds what it leaves."""
    found: list[Remaining] = []
    token = _RECORDED.set(found)
    try:
        yield found
    finally:
        _RECORDED.reset(token)


class Remaining(NamedTuple):
    """What a direct product must still compute.

    Attributes:
        uncertain: int32 (batch, blocks of BLOCK_EDGE rows, blocks of BLOCK_EDGE columns): 1 for a
            block that a direct product must compute; 0 for one that is done, or whose rows or
            columns are all skipped.
        counts: int32 (2,): the tiles that were computed, and how many of them were certain; 64 and
            0 if too few tiles of the sample were certain.
    """

    uncertain: torch.Tensor
    counts: torch.Tensor


def exponent_product(update: Update, tiles: GpuTiles) -> Remaining:
    """C <- min(C, A B) in the tiles of C in which every result is certain; the others stay
    unchanged.

    Args:
        update: of int16, int32 or float32, all with unit column stride; no value of C is negative.
            BLOCK_EDGE rows of A, and block_k rows of B, span less than 2^31 values, and there are
            at most MAX_GRAPHS graphs.
        tiles: BLOCK_EDGE rows, and BLOCK_EDGE or twice as many columns; block_k is the length of a
            slice.

    Returns:
        The blocks that a direct product must still compute: those with a result that is not
        certain, and, once the product has failed, all that were not yet computed. No tile is
        computed if, by a sample of the results, fewer than one in 4 tiles seem certain. A row of A
        or a column of B with a value that is no integer from 0 on makes its results uncertain.

    Cost: batch m n k multiplications and additions on tensor cores, of bfloat16 in float32; 64
    results of each of 64 tiles for the sample. Workspace: 2 bytes for each value of A and B, and
    for each line of each slice of them, with m, n and k rounded up to whole tiles and slices.
    """
    c, a, b = update[:3]
    (batch, m, depth), n = a.shape, b.shape[2]
    tiles_m, tiles_n, slices = (
        -(-m // BLOCK_EDGE),
        -(-n // tiles.block_n),
        -(-depth // tiles.block_k),
    )
    uncertain = c.new_empty((batch, tiles_m, -(-n // BLOCK_EDGE)), dtype=torch.int32)
    # The sample is first, since all that follows is set to 0; counts are last, so that ranges stay
    # aligned to 16 bytes.
    sizes = _SAMPLED, 2 * batch * tiles_m * BLOCK_EDGE, 2 * batch * tiles_n * tiles.block_n, 2
    memory = c.new_empty(sum(sizes), dtype=torch.int32)
    sample, a_ranges, b_ranges, counts = memory.split_with_sizes(sizes)
    if not uncertain.numel():
        return Remaining(uncertain, counts.zero_())
    _sample(sample, memory[_SAMPLED:], update, tiles)
    a_powers, a_scores, b_powers, b_scores = _encode(
        a, b, counts, sample, a_ranges, b_ranges, tiles
    )
    _product_launcher(c.dtype, tiles)(
        (tiles_m * tiles_n, batch, 1),
        c,
        uncertain,
        counts,
        a_powers,
        b_powers,
        a_scores,
        b_scores.view(torch.int32),
        a_ranges,
        b_ranges,
        m,
        n,
        slices,
        int(update.fresh),
        *update.skip,
        *c.stride()[:2],
    )
    return Remaining(uncertain, counts)


def _sample(sample: torch.Tensor, zeros: torch.Tensor, update: Update, tiles: GpuTiles) -> None:
    """Store in `sample`, int32 (_SAMPLED,), which tiles of a sample seem certain (see
    _sample_kernel); `zeros` become 0.
    """
    _sample_launcher(update.c.dtype, tiles)(
        (_SAMPLED, 1, 1),
        sample,
        zeros,
        zeros.numel(),
        *update[:3],
        update.c.shape[0],
        *shape_of(update),
        int(update.fresh),
        *update.skip,
        *strides_of(update),
    )


@cache
def _sample_launcher(dtype: torch.dtype, tiles: GpuTiles) -> Launcher:
    numbers = exponents_of(tiles.block_k)
    constants = {
        "NO_EDGE": no_edge(dtype),
        "WINDOW": numbers.WINDOW,
        "REACH": numbers.REACH,
        "ZERO": numbers.ZERO,
        "BLOCK_M": tiles.block_m,
        "BLOCK_N": tiles.block_n,
        "EDGE": _SAMPLE_EDGE,
        "BLOCK_K": _SAMPLE_K,
        "MARGIN": _MARGIN,
        "STAGES": _SAMPLE_STAGES,
        "num_warps": _SAMPLE_WARPS,
    }
    return Launcher(_sample_kernel, constants)


def _encode(
    a: torch.Tensor,
    b: torch.Tensor,
    counts: torch.Tensor,
    sample: torch.Tensor,
    a_ranges: torch.Tensor,
    b_ranges: torch.Tensor,
    tiles: GpuTiles,
) -> tuple[torch.Tensor, ...]:
    """Encode A and B, if enough tiles of the sample are certain.

    Otherwise `counts` become those of a product that has failed. The ranges must be zeros.
    Returns the powers and the scores of A, then those of B.
    """
    (batch, m, depth), n, length = a.shape, b.shape[2], tiles.block_k
    slices, memory, all_lines = -(-depth // length), list[torch.Tensor](), 0
    for lines, tile in ((m, BLOCK_EDGE), (n, tiles.block_n)):
        count = -(-lines // tile)
        memory.append(a.new_empty((batch, count, slices, tile * length), dtype=torch.bfloat16))
        memory.append(a.new_empty((batch, slices, count * tile), dtype=torch.int16))
        all_lines += count * tile
    a_powers, a_scores, b_powers, b_scores = memory
    if slices:
        _encode_launcher(a.dtype, tiles)(
            (all_lines // (_ENCODED // length), slices, batch),
            counts,
            sample,
            a_powers,
            a_scores,
            a_ranges,
            b_powers,
            b_scores,
            b_ranges,
            a,
            b,
            m,
            n,
            depth,
            slices,
            *a.stride()[:2],
            *b.stride()[:2],
        )
    return a_powers, a_scores, b_powers, b_scores


@cache
def _encode_launcher(dtype: torch.dtype, tiles: GpuTiles) -> Launcher:
    numbers = exponents_of(tiles.block_k)
    constants = {
        "NO_EDGE": no_edge(dtype),
        "BLOCK_M": tiles.block_m,
        "BLOCK_N": tiles.block_n,
        "LINES": _ENCODED // tiles.block_k,
        "SLICE": tiles.block_k,
        "PART": EXPONENTS_PART,
        "UNITS": numbers.UNITS,
        "WINDOW": numbers.WINDOW,
        "ZERO": numbers.ZERO,
        "SAMPLED": _SAMPLED,
        "SAMPLE_WORTHWHILE": _SAMPLE_WORTHWHILE,
        "LEAST_TRIED": _LEAST_TRIED,
        "num_warps": _ENCODING_WARPS,
    }
    return Launcher(_encode_kernel, constants)


@cache
def _product_launcher(dtype: torch.dtype, tiles: GpuTiles) -> Launcher:
    constants = {
        "NO_EDGE": no_edge(dtype),
        **exponents_of(tiles.block_k)._asdict(),
        "BLOCK_M": tiles.block_m,
        "BLOCK_N": tiles.block_n,
        "SLICE": tiles.block_k,
        "PART": EXPONENTS_PART,
        "BUFFERS": tiles.num_stages,
        "GROUP_M": tiles.group_m,
        "LEAST_TRIED": _LEAST_TRIED,
        "WORTHWHILE": _WORTHWHILE,
        "num_warps": tiles.num_warps,
        # With 128 registers two programs fit a multiprocessor; 256 columns need twice as many.
        "maxnreg": 128 if tiles.block_n == BLOCK_EDGE else 255,
    }
    return Launcher(_exponent_product_kernel, constants)
