"""C <- min(C, A B) in Gluon, for two independent products in one launch, as fast as an NVIDIA GPU
can issue the instructions.

Read portable/product.py first: the same product in plain Triton, without layouts and copies.

    for each tile [BLOCK_M, BLOCK_N] of C:                 # one program
        acc = NO_EDGE                                      # [BLOCK_M, BLOCK_N], in registers
        for each BLOCK_K of k:                             # NUM_STAGES buffers of shared memory
            start to copy the slices of A and B that are used NUM_STAGES - 1 steps later
            acc = min(acc, A slice B slice)                # while the copies are under way
        C tile = max(min(C tile, acc), FLOOR)

A slice of A is [BLOCK_M, BLOCK_K], a slice of B [BLOCK_K, BLOCK_N]. They are copied to shared
memory asynchronously, which takes no register and few instructions. In packed int16 both halves of
a word must hold the same value of A, so its slices, and those of B with them, pass through
registers. FLOOR keeps the sum of any two stored values within the dtype (see tri_apsp.semirings).

Two products per launch serve the row panel and the column panel of a solve, which are independent
of each other. If there are too few tiles to occupy every multiprocessor, the last ones are computed
by `split_k` programs each, as in a split-K matrix product: each takes a part of k, and updates C
under a lock. A minimum does not depend on the order of its operands, so C gets the same bits
whichever program is first.

The layout of acc. For float32, C has tiles of 64 x 128 and a program has 4 warps; then
ACC = BlockedLayout([1, 4], [4, 8], [2, 2], [1, 0]): a thread holds 1 x 4 values, a warp has 4 x 8
threads, all warps are 2 x 2, and columns come first. Together they hold 8 rows and 64 columns; the
tile repeats this 8 x 2 times. So a warp holds blocks of 4 rows and 32 columns,

    columns     0..31     32..63    64..95    96..127
    rows 0..3   warp 0    warp 1    warp 0    warp 1
    rows 4..7   warp 2    warp 3    warp 2    warp 3
    rows 8..11  warp 0    warp 1    warp 0    warp 1       # and so on, to row 63

and in each block, each thread holds four neighbours of one row:

    columns     0..3      4..7      ...       28..31
    row 0       thread 0  thread 1  ...       thread 7
    row 1       thread 8  thread 9  ...       thread 15
    row 2       thread 16 thread 17 ...       thread 23
    row 3       thread 24 thread 25 ...       thread 31

So thread 0 of warp 0 holds columns 0..3 and 64..67 of rows 0, 8, ..., 56: 64 values. For four
values of k it reads 8 x 4 values of A and 4 x 8 of B from shared memory, 16 loads of 16 bytes, and
computes 256 sums and minima. The threads of a block that lie side by side read the same values of
A, and those below each other the same values of B: shared memory sends such a value once.

Timeline of the stages, for NUM_STAGES = 3. Slice s is copied to buffer s % 3, from step s - 2 on
(in general, from step s - NUM_STAGES + 1 on), and used in step s. A step starts a copy into the
buffer that the step before used:

                prologue   step 0     step 1     step 2     step 3     step 4
    buffer 0    copy 0 ... use 0      copy 3 .............. use 3      copy 6 ...
    buffer 1    copy 1 .............. use 1      copy 4 .............. use 4
    buffer 2               copy 2 .............. use 2      copy 5 ..............
"""

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
def locate_slices(
    m,
    n,
    start_m,
    start_n,
    stride_am,
    stride_bk,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    LAYOUTS: gl.constexpr,
):
    """Return where the values of any slice of A and of B lie, for a tile of C [m, n] that starts at
    (start_m, start_n): the argument `slices` of other functions.

    Returns:
        offs_a [BLOCK_M, BLOCK_K] and offs_b [BLOCK_K, BLOCK_N]: from the first value of a slice.
        mask_a [BLOCK_M, 1] and mask_b [1, BLOCK_N]: the rows and columns that exist.
        offs_ak [1, BLOCK_K] and offs_bk [BLOCK_K, 1]: the k of each value in its slice.
    """
    # SliceLayout(d, L): of a vector that becomes one axis of a slice, whose layout is L; [:, None]
    # (d = 1) or [None, :] (d = 0) adds the other axis.
    A_ROWS: gl.constexpr = gl.SliceLayout(1, LAYOUTS.LOAD_A)
    A_COLUMNS: gl.constexpr = gl.SliceLayout(0, LAYOUTS.LOAD_A)
    B_ROWS: gl.constexpr = gl.SliceLayout(1, LAYOUTS.LOAD_B)
    B_COLUMNS: gl.constexpr = gl.SliceLayout(0, LAYOUTS.LOAD_B)
    offs_am = gl.arange(0, BLOCK_M, layout=A_ROWS)[:, None]  # [BLOCK_M, 1]
    offs_ak = gl.arange(0, BLOCK_K, layout=A_COLUMNS)[None, :]  # [1, BLOCK_K]
    offs_bk = gl.arange(0, BLOCK_K, layout=B_ROWS)[:, None]  # [BLOCK_K, 1]
    offs_bn = gl.arange(0, BLOCK_N, layout=B_COLUMNS)[None, :]  # [1, BLOCK_N]
    offs_a = offs_am * stride_am + offs_ak
    offs_b = offs_bk * stride_bk + offs_bn
    return offs_a, offs_b, offs_am < m - start_m, offs_bn < n - start_n, offs_ak, offs_bk


@gluon.jit
def _load_last(a_ptr, b_ptr, slices, k_left, NO_EDGE: gl.constexpr):
    """Load slices that k cuts short; columns of A and rows of B past k become NO_EDGE, which
    changes no minimum.
    """
    offs_a, offs_b, mask_a, mask_b, offs_ak, offs_bk = slices
    mask_a = mask_a & (offs_ak < k_left)
    mask_b = mask_b & (offs_bk < k_left)
    a_tile = gl.load(a_ptr + offs_a, mask=mask_a, other=NO_EDGE)
    b_tile = gl.load(b_ptr + offs_b, mask=mask_b, other=NO_EDGE)
    return a_tile, b_tile


@gluon.jit
def _load_full(a_ptr, b_ptr, slices, k_left, BLOCK_K: gl.constexpr):
    """Load slices if at least BLOCK_K columns of A are left. Masked values never reach C, so any
    value will do.
    """
    offs_a, offs_b, mask_a, mask_b, _, _ = slices
    full = k_left >= BLOCK_K
    return gl.load(a_ptr + offs_a, mask=mask_a & full), gl.load(b_ptr + offs_b, mask=mask_b & full)


@gluon.jit
def start_copies(
    a_smem,
    b_smem,
    a_ptr,
    b_ptr,
    slices,
    k_left,
    stride_bk,
    NO_EDGE: gl.constexpr,
    BLOCK_K: gl.constexpr,
):
    """Start to copy slices of A and B to shared memory, as one group; return the pointers to the
    next slices, and what is left of k then. Masked values become 0, and never reach C.

    A last slice that k cuts short passes through registers, because an asynchronous copy cannot pad
    it with NO_EDGE. Past k the group is empty, but committed all the same: so each step of the main
    loop commits exactly one group.
    """
    offs_a, offs_b, mask_a, mask_b, _, _ = slices
    if k_left >= BLOCK_K:
        copy_async(a_smem, a_ptr + offs_a, mask=mask_a)
        copy_async(b_smem, b_ptr + offs_b, mask=mask_b)
    elif k_left > 0:
        a_tile, b_tile = _load_last(a_ptr, b_ptr, slices, k_left, NO_EDGE)
        a_smem.store(a_tile)
        b_smem.store(b_tile)
    commit_group()
    return a_ptr + BLOCK_K, b_ptr + BLOCK_K * stride_bk.to(gl.int64), k_left - BLOCK_K


@gluon.jit
def _accumulate(
    a_ptr,
    b_ptr,
    slices,
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
    k_left = k  # of the slices that are copied next; below 0 past the end
    a_smem = gl.allocate_shared_memory(dtype, [NUM_STAGES, BLOCK_M, BLOCK_K], LAYOUTS.SHARED)
    b_smem = gl.allocate_shared_memory(dtype, [NUM_STAGES, BLOCK_K, BLOCK_N], LAYOUTS.SHARED)
    acc = gl.full([BLOCK_M, BLOCK_N], NO_EDGE, dtype, layout=ACC)  # [BLOCK_M, BLOCK_N]
    # Prologue: start to fill all buffers but one.
    for stage in gl.static_range(NUM_STAGES - 1):
        a_ptr, b_ptr, k_left = start_copies(
            a_smem.index(stage),
            b_smem.index(stage),
            a_ptr,
            b_ptr,
            slices,
            k_left,
            stride_bk,
            NO_EDGE,
            BLOCK_K,
        )
    # Main loop: `stage` is the buffer of this step.
    stage = 0
    for _ in range(gl.cdiv(k, BLOCK_K)):
        # The buffer that the previous step read. Triton itself inserts a barrier before the copies,
        # because other warps may still be reading it; so a step has two barriers.
        free = stage - 1 if stage > 0 else NUM_STAGES - 1
        a_ptr, b_ptr, k_left = start_copies(
            a_smem.index(free),
            b_smem.index(free),
            a_ptr,
            b_ptr,
            slices,
            k_left,
            stride_bk,
            NO_EDGE,
            BLOCK_K,
        )
        # All groups but the newest NUM_STAGES - 1 have arrived: this step's is among them. Each
        # thread waits for its own copies, and the barrier for those of the others.
        wait_group(NUM_STAGES - 1)
        barrier()
        acc = rank_k_update(acc, a_smem.index(stage), b_smem.index(stage), BLOCK_K, ACC, STRATEGY)
        stage = stage + 1 if stage + 1 < NUM_STAGES else 0
    return acc


@gluon.jit
def _accumulate_int16x2(
    a_ptr,
    b_ptr,
    slices,
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
    """Return A B [BLOCK_M, BLOCK_N] of one tile of int16, which is computed as words [BLOCK_M,
    BLOCK_N // 2].

    The slices of the next step are loaded to registers before this step computes, and stored to
    shared memory after it: A as words that hold each value twice, B as it is.
    """
    ACC: gl.constexpr = LAYOUTS.ACC
    SHARED: gl.constexpr = LAYOUTS.SHARED
    WORDS: gl.constexpr = [BLOCK_K, BLOCK_N // 2]  # a slice of B, two columns per word
    k_left = k
    a_smem = gl.allocate_shared_memory(gl.int32, [NUM_STAGES, BLOCK_M, BLOCK_K], SHARED)
    b_smem = gl.allocate_shared_memory(gl.int16, [NUM_STAGES, BLOCK_K, BLOCK_N], SHARED)
    # 65537 = 2^16 + 1: times that, a value lies in both halves of a word.
    acc = gl.full([BLOCK_M, BLOCK_N // 2], NO_EDGE * 65537, gl.int32, layout=ACC)
    # Prologue: fill the first buffer.
    a_tile, b_tile = _load_full(a_ptr, b_ptr, slices, k_left, BLOCK_K)
    a_smem.index(0).store(broadcast_int16x2(a_tile))
    b_smem.index(0).store(b_tile)
    # Main loop, over full slices.
    for step in range(k // BLOCK_K):
        offs_k = (step + 1) * BLOCK_K
        k_left -= BLOCK_K
        a_tile, b_tile = _load_full(
            a_ptr + offs_k, b_ptr + stride_bk.to(gl.int64) * offs_k, slices, k_left, BLOCK_K
        )
        # All threads have stored the slices of this step, and read those of the step before.
        barrier()
        b_words = b_smem.index(step % NUM_STAGES).reinterpret(gl.int32, WORDS, SHARED)
        acc = rank_k_update(acc, a_smem.index(step % NUM_STAGES), b_words, BLOCK_K, ACC, STRATEGY)
        a_smem.index((step + 1) % NUM_STAGES).store(broadcast_int16x2(a_tile))
        b_smem.index((step + 1) % NUM_STAGES).store(b_tile)
    # A last slice that k cuts short.
    if k_left > 0:
        offs_k = k - k_left
        a_ptr += offs_k
        b_ptr += stride_bk.to(gl.int64) * offs_k
        a_tile, b_tile = _load_last(a_ptr, b_ptr, slices, k_left, NO_EDGE)
        barrier()
        a_smem.index(0).store(broadcast_int16x2(a_tile))
        b_smem.index(0).store(b_tile)
        barrier()
        b_words = b_smem.index(0).reinterpret(gl.int32, WORDS, SHARED)
        acc = rank_k_update(acc, a_smem.index(0), b_words, BLOCK_K, ACC, STRATEGY)
    return unpack_int16x2(acc)  # [BLOCK_M, BLOCK_N]


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
    # Pointers to the tile in the layout of acc, so that no value moves between threads.
    OUT: gl.constexpr = acc.type.layout
    offs_m = start_m + gl.arange(0, acc.shape[0], layout=gl.SliceLayout(1, OUT))  # [BLOCK_M]
    offs_n = start_n + gl.arange(0, acc.shape[1], layout=gl.SliceLayout(0, OUT))  # [BLOCK_N]
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
    whole_tiles,  # tiles, over both products and all graphs, with one program each
    split_k,  # programs per split tile
    needed_ptr,  # int32 (batch, tiles of NEEDED_TILE rows and columns of C0): 0 to skip one
    NO_EDGE: gl.constexpr,
    FLOOR: gl.constexpr,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    GROUP_M: gl.constexpr,  # see tile_of_program
    NUM_STAGES: gl.constexpr,
    STRATEGY: gl.constexpr,  # how to multiply and take the minimum: see tiles.py
    LAYOUTS: gl.constexpr,  # ProductLayouts
    NEEDED_TILE: gl.constexpr,  # None: every tile is needed; else there is one product
):
    """C <- max(min(C, A B), FLOOR) for both products and each graph of the batch; a program owns
    one tile of one C.

    The grid is one-dimensional: the tiles of the first product, then those of the second, for one
    graph after another. A C that is `fresh` counts as all NO_EDGE, whatever it holds. C overlaps no
    A or B (one exception, a rank-1 update: see Engine.product). Rows past m and columns past n are
    masked when C is stored, and everything past k counts as NO_EDGE.
    """
    # Program id to tile number. From whole_tiles on, split_k consecutive programs have the same
    # tile: whole_tiles + pid_split becomes whole_tiles + pid_split // split_k. Before that,
    # pid_split is 0.
    pid = gl.program_id(0)
    is_split = pid >= whole_tiles
    pid_split = gl.maximum(pid - whole_tiles, 0)
    locks_ptr += pid_split // split_k
    pid += pid_split // split_k - pid_split
    # Tile number to graph, product and tile.
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
    # keep: the rows and columns of this C that are skipped; of the second C none.
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

    # The part of k that this program sums over: all of it, or one of split_k parts. The last parts
    # may be empty (k = 0): their acc stays NO_EDGE.
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
    slices = locate_slices(
        m, n, start_m, start_n, stride_am, stride_bk, BLOCK_M, BLOCK_N, BLOCK_K, LAYOUTS
    )

    # Main loop: acc [BLOCK_M, BLOCK_N] = A B over this part of k.
    if STRATEGY == "int16x2" or STRATEGY == "max_int16x2":
        acc = _accumulate_int16x2(
            a_ptr,
            b_ptr,
            slices,
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
    else:
        acc = _accumulate(
            a_ptr,
            b_ptr,
            slices,
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
