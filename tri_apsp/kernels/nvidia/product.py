"""C <- min(C, A B) in Gluon, for two independent products in one launch, at the issue rate of an
NVIDIA GPU.

    for each tile [BLOCK_M, BLOCK_N] of C:                 # one program
        acc = NO_EDGE                                      # [BLOCK_M, BLOCK_N], in registers
        for each BLOCK_K of k:                             # NUM_STAGES buffers of shared memory, in rotation
            start to copy the slices of A and B that are needed NUM_STAGES - 1 steps later
            acc = min(acc, A slice B slice)                # while the copies are under way
        C tile = max(min(C tile, acc), FLOOR)

A slice of A is [BLOCK_M, BLOCK_K], a slice of B [BLOCK_K, BLOCK_N]. They are copied to shared
memory asynchronously, which takes no register and few instructions. In packed int16 both halves of
a word must hold the same value of A, so its slices, and those of B with them, pass through
registers. FLOOR keeps the sum of any two stored values within the dtype (see tri_apsp.semirings).

Two products per launch serve the row panel and the column panel of a solve, which are independent
of each other.

If there are too few tiles to occupy every multiprocessor, the last ones are computed by `split_k`
programs each, as in a split-K matrix product: each takes a part of k, and updates C under a lock. A
minimum does not depend on the order of its operands, so C gets the same bits whichever program is
first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tri_apsp.kernels.nvidia.gluon_names import (
    barrier,
    commit_group,
    copy_async,
    gl,
    gluon,
    wait_group,
)
from tri_apsp.kernels.nvidia.int16x2 import broadcast_int16x2, unpack_int16x2
from tri_apsp.kernels.nvidia.synchronization import acquire_lock, release_lock
from tri_apsp.kernels.nvidia.tiles import rank_k_update

__all__ = ["ProductLayouts", "_product_kernel", "start_copies", "tile_of_program"]


@dataclass(frozen=True)
class ProductLayouts:
    """How the values of a tile are divided among threads, and how they lie in shared memory.

    A frozen dataclass, as any hashable value, can be one constexpr of a kernel.

    Attributes:
        ACC: of acc [BLOCK_M, BLOCK_N], in words of two values for int16.
        LOAD_A, LOAD_B: of a slice of A or B on its way to shared memory, so that a thread moves 16
            bytes at a time.
        SHARED: of slices in shared memory, row by row.
    """

    ACC: Any
    LOAD_A: Any
    LOAD_B: Any
    SHARED: Any


@gluon.jit
def tile_of_program(pid, m, n, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, GROUP_M: gl.constexpr):
    """Return the first row and column of tile `pid`; GROUP_M rows of tiles in turn share columns of
    B in the L2 cache.
    """
    group = pid // (GROUP_M * gl.cdiv(n, BLOCK_N))
    group_m = gl.minimum(gl.cdiv(m, BLOCK_M) - group * GROUP_M, GROUP_M)
    within = pid % (GROUP_M * gl.cdiv(n, BLOCK_N))
    return (group * GROUP_M + within % group_m) * BLOCK_M, within // group_m * BLOCK_N


@gluon.jit
def _load_last(
    a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, offs_ak, offs_bk, k_left, NO_EDGE: gl.constexpr
):
    """Load slices that k cuts short; columns of A and rows of B past k become NO_EDGE, which
    changes no minimum.
    """
    mask_a = mask_a & (offs_ak < k_left)
    mask_b = mask_b & (offs_bk < k_left)
    return gl.load(a_ptr + offs_a, mask=mask_a, other=NO_EDGE), gl.load(
        b_ptr + offs_b, mask=mask_b, other=NO_EDGE
    )


@gluon.jit
def _load_full(a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, k_left, BLOCK_K: gl.constexpr):
    """Load slices if at least BLOCK_K columns of A are left. Masked values never reach C, so any
    value will do.
    """
    full = k_left >= BLOCK_K
    return gl.load(a_ptr + offs_a, mask=mask_a & full), gl.load(b_ptr + offs_b, mask=mask_b & full)


@gluon.jit
def start_copies(
    a_smem,
    b_smem,
    a_ptr,
    b_ptr,
    offs_a,
    offs_b,
    mask_a,
    mask_b,
    offs_ak,
    offs_bk,
    k_left,
    NO_EDGE: gl.constexpr,
    BLOCK_K: gl.constexpr,
):
    """Start to copy slices of A and B to shared memory, as one group. Masked values become 0, and
    never reach C.

    A last slice that k cuts short passes through registers, because an asynchronous copy cannot pad
    it with NO_EDGE. Past k the group is empty, but committed all the same: so each step of the main
    loop commits exactly one group.
    """
    if k_left >= BLOCK_K:
        copy_async(a_smem, a_ptr + offs_a, mask=mask_a)
        copy_async(b_smem, b_ptr + offs_b, mask=mask_b)
    elif k_left > 0:
        a_tile, b_tile = _load_last(
            a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, offs_ak, offs_bk, k_left, NO_EDGE
        )
        a_smem.store(a_tile)
        b_smem.store(b_tile)
    commit_group()


@gluon.jit
def _accumulate(
    a_ptr,
    b_ptr,
    offs_a,
    offs_b,
    mask_a,
    mask_b,
    offs_ak,
    offs_bk,
    k,
    stride_bk,
    NO_EDGE: gl.constexpr,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    NUM_STAGES: gl.constexpr,
    STRATEGY: gl.constexpr,
    LAYOUTS: gl.constexpr,
):
    """Return A B [BLOCK_M, BLOCK_N] of one tile by asynchronous copies, NUM_STAGES - 1 of which are
    under way at a time.

    A loop step starts the copy that a later step needs, into the buffer that the step before read;
    it then waits for the oldest copy only.
    """
    ACC: gl.constexpr = LAYOUTS.ACC
    dtype: gl.constexpr = a_ptr.dtype.element_ty
    k_left = k
    a_smem = gl.allocate_shared_memory(dtype, [NUM_STAGES, BLOCK_M, BLOCK_K], LAYOUTS.SHARED)
    b_smem = gl.allocate_shared_memory(dtype, [NUM_STAGES, BLOCK_K, BLOCK_N], LAYOUTS.SHARED)
    acc = gl.full([BLOCK_M, BLOCK_N], NO_EDGE, dtype, layout=ACC)
    # Prologue: start to fill all buffers but one.
    for stage in gl.static_range(NUM_STAGES - 1):
        start_copies(
            a_smem.index(stage),
            b_smem.index(stage),
            a_ptr,
            b_ptr,
            offs_a,
            offs_b,
            mask_a,
            mask_b,
            offs_ak,
            offs_bk,
            k_left,
            NO_EDGE,
            BLOCK_K,
        )
        a_ptr += BLOCK_K
        b_ptr += BLOCK_K * stride_bk.to(gl.int64)
        k_left -= BLOCK_K
    # Main loop: `stage` is the buffer of this step.
    stage = 0
    for _ in range(gl.cdiv(k, BLOCK_K)):
        # The buffer that the previous step read. Triton itself inserts a barrier before the copies,
        # because other warps may still be reading it; so a step has two barriers.
        free = stage - 1 if stage > 0 else NUM_STAGES - 1
        start_copies(
            a_smem.index(free),
            b_smem.index(free),
            a_ptr,
            b_ptr,
            offs_a,
            offs_b,
            mask_a,
            mask_b,
            offs_ak,
            offs_bk,
            k_left,
            NO_EDGE,
            BLOCK_K,
        )
        a_ptr += BLOCK_K
        b_ptr += BLOCK_K * stride_bk.to(gl.int64)
        k_left -= BLOCK_K
        wait_group(
            NUM_STAGES - 1
        )  # all groups but the newest NUM_STAGES - 1 have arrived: this step's is among them
        barrier()
        acc = rank_k_update(acc, a_smem.index(stage), b_smem.index(stage), BLOCK_K, ACC, STRATEGY)
        stage = stage + 1 if stage + 1 < NUM_STAGES else 0
    return acc


@gluon.jit
def _accumulate_int16x2(
    a_ptr,
    b_ptr,
    offs_a,
    offs_b,
    mask_a,
    mask_b,
    offs_ak,
    offs_bk,
    k,
    stride_bk,
    NO_EDGE: gl.constexpr,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    NUM_STAGES: gl.constexpr,
    LAYOUTS: gl.constexpr,
):
    """Return A B [BLOCK_M, BLOCK_N] of one tile of int16, which is computed as words [BLOCK_M,
    BLOCK_N // 2].

    The slices of the next step are loaded to registers before this step computes, and stored to
    shared memory after it: A as words that hold each value twice, B as it is.
    """
    ACC: gl.constexpr = LAYOUTS.ACC
    SHARED: gl.constexpr = LAYOUTS.SHARED
    k_left = k
    a_smem = gl.allocate_shared_memory(gl.int32, [NUM_STAGES, BLOCK_M, BLOCK_K], SHARED)
    b_smem = gl.allocate_shared_memory(gl.int16, [NUM_STAGES, BLOCK_K, BLOCK_N], SHARED)
    acc = gl.full(
        [BLOCK_M, BLOCK_N // 2], NO_EDGE * 65537, gl.int32, layout=ACC
    )  # times 2^16 + 1: NO_EDGE in both halves
    # Prologue: fill the first buffer.
    a_tile, b_tile = _load_full(a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, k_left, BLOCK_K)
    a_smem.index(0).store(broadcast_int16x2(a_tile))
    b_smem.index(0).store(b_tile)
    # Main loop, over full slices.
    for step in range(k // BLOCK_K):
        offs_k = (step + 1) * BLOCK_K
        k_left -= BLOCK_K
        a_tile, b_tile = _load_full(
            a_ptr + offs_k,
            b_ptr + stride_bk.to(gl.int64) * offs_k,
            offs_a,
            offs_b,
            mask_a,
            mask_b,
            k_left,
            BLOCK_K,
        )
        barrier()
        b_words = b_smem.index(step % NUM_STAGES).reinterpret(
            gl.int32, [BLOCK_K, BLOCK_N // 2], SHARED
        )
        acc = rank_k_update(acc, a_smem.index(step % NUM_STAGES), b_words, BLOCK_K, ACC, "int16x2")
        a_smem.index((step + 1) % NUM_STAGES).store(broadcast_int16x2(a_tile))
        b_smem.index((step + 1) % NUM_STAGES).store(b_tile)
    # A last slice that k cuts short.
    if k_left > 0:
        offs_k = k - k_left
        a_ptr += offs_k
        b_ptr += stride_bk.to(gl.int64) * offs_k
        a_tile, b_tile = _load_last(
            a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, offs_ak, offs_bk, k_left, NO_EDGE
        )
        barrier()
        a_smem.index(0).store(broadcast_int16x2(a_tile))
        b_smem.index(0).store(b_tile)
        barrier()
        b_words = b_smem.index(0).reinterpret(gl.int32, [BLOCK_K, BLOCK_N // 2], SHARED)
        acc = rank_k_update(acc, a_smem.index(0), b_words, BLOCK_K, ACC, "int16x2")
    return unpack_int16x2(acc)


@gluon.jit
def _update_c(
    c_ptr,
    acc,
    start_m,
    start_n,
    m,
    n,
    stride_cm,
    fresh,
    keep_start,
    keep_stop,
    is_split,
    locks_ptr,
    split_k,
    NO_EDGE: gl.constexpr,
    FLOOR: gl.constexpr,
):
    """C tile <- max(min(C tile, acc), FLOOR), all [BLOCK_M, BLOCK_N], except in rows and columns
    keep_start..keep_stop.

    The programs of a split tile update it one after another. If C is fresh, only the first of them
    treats it so.
    """
    OUT: gl.constexpr = acc.type.layout
    offs_m = start_m + gl.arange(0, acc.shape[0], layout=gl.SliceLayout(1, OUT))
    offs_n = start_n + gl.arange(0, acc.shape[1], layout=gl.SliceLayout(0, OUT))
    mask_m = (offs_m < m) & ((offs_m < keep_start) | (offs_m >= keep_stop))
    mask_n = (offs_n < n) & ((offs_n < keep_start) | (offs_n >= keep_stop))
    mask_c = mask_m[:, None] & mask_n[None, :]
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :]
    before = 0
    if is_split:
        before = acquire_lock(locks_ptr)  # twice the number of programs that held the lock before
        fresh = gl.where(before == 0, fresh, 0)
    c_tile = gl.load(c_ptrs, mask=mask_c & (fresh == 0), other=NO_EDGE)
    gl.store(c_ptrs, gl.maximum(gl.minimum(c_tile, acc), FLOOR), mask=mask_c)
    if is_split:
        release_lock(locks_ptr, before, split_k)


@gluon.jit
def _is_needed(
    needed_ptr,
    pid_b,
    start_m,
    start_n,
    m,
    n,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    NEEDED_TILE: gl.constexpr,
):
    """Return whether one of the tiles of NEEDED_TILE rows and columns is needed that a tile
    [BLOCK_M, BLOCK_N] overlaps.
    """
    tiles_m, tiles_n = gl.cdiv(m, NEEDED_TILE), gl.cdiv(n, NEEDED_TILE)
    found = 0
    for i in gl.static_range(0, BLOCK_M, NEEDED_TILE):
        for j in gl.static_range(0, BLOCK_N, NEEDED_TILE):
            tile_m, tile_n = (start_m + i) // NEEDED_TILE, (start_n + j) // NEEDED_TILE
            exists = (tile_m < tiles_m) & (tile_n < tiles_n)
            found |= gl.load(
                needed_ptr + (pid_b * tiles_m + tile_m) * tiles_n + tile_n, mask=exists, other=0
            )
    return found != 0


# Triton compiles separate variants for m and n that 16 divides, in which masks and copies work 16
# bytes at a time. k gains nothing by it, and specialising on k = 1 breaks the compiler of Triton
# 3.6.
@gluon.jit(do_not_specialize=["k0", "k1", "fresh0", "fresh1", "whole_tiles", "split_k"])
def _product_kernel(
    c0_ptr,
    a0_ptr,
    b0_ptr,  # first product: C (batch, m, n), A (batch, m, k), B (batch, k, n), unit column strides
    m0,
    n0,
    k0,
    fresh0,
    skip_start,
    skip_stop,  # rows and columns skip_start..skip_stop of the first C stay as they are
    stride_c0b,
    stride_c0m,
    stride_a0b,
    stride_a0m,
    stride_b0b,
    stride_b0k,
    c1_ptr,
    a1_ptr,
    b1_ptr,  # second product; m1 = 0 if there is none
    m1,
    n1,
    k1,
    fresh1,
    stride_c1b,
    stride_c1m,
    stride_a1b,
    stride_a1m,
    stride_b1b,
    stride_b1k,
    locks_ptr,  # one int32 per split tile, 0 before the launch and after it
    whole_tiles,
    split_k,  # tiles, over both products and all graphs, with one program each; programs per split tile
    needed_ptr,  # int32 (batch, tiles of NEEDED_TILE rows and columns of the first C): 0 for those that stay as they are
    NO_EDGE: gl.constexpr,
    FLOOR: gl.constexpr,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    GROUP_M: gl.constexpr,
    NUM_STAGES: gl.constexpr,
    STRATEGY: gl.constexpr,
    LAYOUTS: gl.constexpr,
    NEEDED_TILE: gl.constexpr,  # None: every tile is needed; else there is one product
):
    """C <- max(min(C, A B), FLOOR) for both products and each graph of the batch; a program owns
    one tile of one C.

    The grid is one-dimensional: the tiles of the first product, then those of the second, for one
    graph after another. A C that is `fresh` counts as all NO_EDGE, whatever it holds. C overlaps no
    A or B, except as Engine.product allows. Rows past m and columns past n are masked when C is
    stored, and everything past k counts as NO_EDGE.
    """
    # Program id to tile. From whole_tiles on, split_k consecutive programs have the same tile;
    # before that, pid_split is 0.
    pid = gl.program_id(0)
    is_split = pid >= whole_tiles
    pid_split = gl.maximum(pid - whole_tiles, 0)
    locks_ptr += pid_split // split_k
    pid += pid_split // split_k - pid_split
    tiles0 = gl.cdiv(m0, BLOCK_M) * gl.cdiv(n0, BLOCK_N)
    tiles = tiles0 + gl.cdiv(m1, BLOCK_M) * gl.cdiv(n1, BLOCK_N)
    pid_b = (pid // tiles).to(gl.int64)
    pid %= tiles
    c_ptr, a_ptr, b_ptr = (
        c0_ptr + pid_b * stride_c0b,
        a0_ptr + pid_b * stride_a0b,
        b0_ptr + pid_b * stride_b0b,
    )
    m, n, k, stride_cm, stride_am, stride_bk = m0, n0, k0, stride_c0m, stride_a0m, stride_b0k
    fresh, keep_start, keep_stop = fresh0, skip_start, skip_stop
    if pid >= tiles0:  # a tile of the second product
        pid -= tiles0
        c_ptr, a_ptr, b_ptr = (
            c1_ptr + pid_b * stride_c1b,
            a1_ptr + pid_b * stride_a1b,
            b1_ptr + pid_b * stride_b1b,
        )
        m, n, k, stride_cm, stride_am, stride_bk = m1, n1, k1, stride_c1m, stride_a1m, stride_b1k
        fresh, keep_start, keep_stop = fresh1, 0, 0
    start_m, start_n = tile_of_program(pid, m, n, BLOCK_M, BLOCK_N, GROUP_M)
    if NEEDED_TILE is not None:
        if not _is_needed(needed_ptr, pid_b, start_m, start_n, m, n, BLOCK_M, BLOCK_N, NEEDED_TILE):
            return

    # The part of k that this program sums over: all of it, or one of split_k parts.
    k_steps = gl.cdiv(k, BLOCK_K)
    if is_split:
        k_steps = gl.cdiv(k_steps, split_k)
    start_k = pid_split % split_k * k_steps * BLOCK_K
    k = gl.maximum(gl.minimum(k - start_k, k_steps * BLOCK_K), 0)

    # Pointers to the first slices of A and B. n * n passes 2**31 at n = 46341, so the start of a
    # tile is a 64-bit offset; offsets within a tile fit 32 bits.
    start_m = start_m.to(gl.int64)
    a_ptr += start_m * stride_am + start_k
    b_ptr += start_k.to(gl.int64) * stride_bk + start_n
    offs_am = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, LAYOUTS.LOAD_A))[
        :, None
    ]  # [BLOCK_M, 1]
    offs_ak = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, LAYOUTS.LOAD_A))[
        None, :
    ]  # [1, BLOCK_K]
    offs_bk = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, LAYOUTS.LOAD_B))[
        :, None
    ]  # [BLOCK_K, 1]
    offs_bn = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, LAYOUTS.LOAD_B))[
        None, :
    ]  # [1, BLOCK_N]
    offs_a = offs_am * stride_am + offs_ak  # [BLOCK_M, BLOCK_K]
    offs_b = offs_bk * stride_bk + offs_bn  # [BLOCK_K, BLOCK_N]
    mask_a = offs_am < m - start_m
    mask_b = offs_bn < n - start_n

    # Main loop: acc [BLOCK_M, BLOCK_N].
    if STRATEGY == "int16x2":
        acc = _accumulate_int16x2(
            a_ptr,
            b_ptr,
            offs_a,
            offs_b,
            mask_a,
            mask_b,
            offs_ak,
            offs_bk,
            k,
            stride_bk,
            NO_EDGE,
            BLOCK_M,
            BLOCK_N,
            BLOCK_K,
            NUM_STAGES,
            LAYOUTS,
        )
    else:
        acc = _accumulate(
            a_ptr,
            b_ptr,
            offs_a,
            offs_b,
            mask_a,
            mask_b,
            offs_ak,
            offs_bk,
            k,
            stride_bk,
            NO_EDGE,
            BLOCK_M,
            BLOCK_N,
            BLOCK_K,
            NUM_STAGES,
            STRATEGY,
            LAYOUTS,
        )

    # Epilogue: C tile <- max(min(C tile, acc), FLOOR).
    _update_c(
        c_ptr,
        acc,
        start_m,
        start_n,
        m,
        n,
        stride_cm,
        fresh,
        keep_start,
        keep_stop,
        is_split,
        locks_ptr,
        split_k,
        NO_EDGE,
        FLOOR,
    )
