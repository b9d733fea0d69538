"""C <- min(C, A * B) in Gluon, for two independent products in one launch, at the issue rate of an NVIDIA GPU.

    for each tile [BLOCK_M, BLOCK_N] of C                  # one program
        acc = no_edge
        for each BLOCK_K of k                              # STAGES buffers of shared memory in turn
            start to copy the slices of A and B that come STAGES - 1 steps later
            acc = min(acc, A slice * B slice)              # they arrive meanwhile
        C tile = max(min(C tile, acc), FLOOR)

Tiles from `whole` on, too few to keep every multiprocessor busy, are shared: each by `parts` programs, which take a part of k
each, and C <- min(C, acc) in turn. No sum depends on another, so that C gets the same bits whoever comes first.

Slices are copied straight to shared memory, which takes no register and few instructions. Packed int16 cannot be: every value
of A must stand in both halves of a word, so its slices pass through registers.
"""

from __future__ import annotations

from tri_apsp.kernels.nvidia.gluon_names import barrier, commit_group, copy_async, gl, gluon, wait_group
from tri_apsp.kernels.nvidia.int16x2 import halves, twice
from tri_apsp.kernels.nvidia.synchronization import lock, unlock
from tri_apsp.kernels.nvidia.tiles import rank_update

__all__ = ["_product_kernel"]


@gluon.jit
def _load_slices(a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, NO_EDGE: gl.constexpr):
    return gl.load(a_ptr + offs_a, mask=mask_a, other=NO_EDGE), gl.load(b_ptr + offs_b, mask=mask_b, other=NO_EDGE)


@gluon.jit
def _load_whole(a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, rest, BLOCK_K: gl.constexpr):
    """Load slices of BLOCK_K, if there are so many; what is masked is of rows and columns never stored."""
    whole = rest >= BLOCK_K
    return gl.load(a_ptr + offs_a, mask=mask_a & whole), gl.load(b_ptr + offs_b, mask=mask_b & whole)


@gluon.jit
def _copy_slices(
    a_smem, b_smem, a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, a_k, b_k, rest,
    NO_EDGE: gl.constexpr, BLOCK_K: gl.constexpr,
):  # fmt: skip
    """Start to copy the slices of A and B to shared memory; what is masked becomes 0, in rows and columns never stored."""
    if rest >= BLOCK_K:
        copy_async(a_smem, a_ptr + offs_a, mask=mask_a)
        copy_async(b_smem, b_ptr + offs_b, mask=mask_b)
    elif rest > 0:
        a, b = _load_slices(a_ptr, b_ptr, offs_a, offs_b, mask_a & (a_k < rest), mask_b & (b_k < rest), NO_EDGE)
        a_smem.store(a)
        b_smem.store(b)
    commit_group()


# m and n stay specialised, a compilation for each divisibility: it lets masks and copies go 16 bytes at a time. k gains
# nothing by it, and k = 1 known in advance breaks the compiler of Triton 3.6.
@gluon.jit(do_not_specialize=["k0", "k1", "fresh0", "fresh1", "whole", "parts"])
def _product_kernel(
    c0_ptr, a0_ptr, b0_ptr,  # first product: C (batch, m, n), A (batch, m, k), B (batch, k, n), unit column strides
    m0, n0, k0, fresh0, skip_start, skip_stop,  # rows and columns skip_start..skip_stop of the first C stay as they are
    stride_c0b, stride_c0m, stride_a0b, stride_a0m, stride_b0b, stride_b0k,
    c1_ptr, a1_ptr, b1_ptr,  # second product; m1 = 0 if there is none
    m1, n1, k1, fresh1,
    stride_c1b, stride_c1m, stride_a1b, stride_a1m, stride_b1b, stride_b1k,
    locks_ptr,  # of int32, one a shared tile, which are 0, and will be again
    whole, parts,  # tiles of both products that a program has to itself, and programs that share each of the others
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr,
    STAGES: gl.constexpr, STRATEGY: gl.constexpr, ACC: gl.constexpr, LOAD_A: gl.constexpr, LOAD_B: gl.constexpr,
    SHARED: gl.constexpr,
):  # fmt: skip
    """C <- max(min(C, A * B), FLOOR) for both products and each graph of the batch; see above.

    A C that is fresh counts as all NO_EDGE, whatever it holds. C overlaps no A or B, except as Engine.product allows. Rows
    past m, columns past n and everything past k load NO_EDGE.
    """
    pid = gl.program_id(0)
    shared = pid >= whole
    turn = gl.maximum(pid - whole, 0)
    locks_ptr += turn // parts
    pid += turn // parts - turn
    tiles0 = gl.cdiv(m0, BLOCK_M) * gl.cdiv(n0, BLOCK_N)
    tiles = tiles0 + gl.cdiv(m1, BLOCK_M) * gl.cdiv(n1, BLOCK_N)
    item = (pid // tiles).to(gl.int64)
    pid %= tiles
    c_ptr, a_ptr, b_ptr = c0_ptr + item * stride_c0b, a0_ptr + item * stride_a0b, b0_ptr + item * stride_b0b
    m, n, k, stride_cm, stride_am, stride_bk = m0, n0, k0, stride_c0m, stride_a0m, stride_b0k
    fresh, left_start, left_stop = fresh0, skip_start, skip_stop
    if pid >= tiles0:
        pid -= tiles0
        c_ptr, a_ptr, b_ptr = c1_ptr + item * stride_c1b, a1_ptr + item * stride_a1b, b1_ptr + item * stride_b1b
        m, n, k, stride_cm, stride_am, stride_bk = m1, n1, k1, stride_c1m, stride_a1m, stride_b1k
        fresh, left_start, left_stop = fresh1, 0, 0

    group = pid // (GROUP_M * gl.cdiv(n, BLOCK_N))
    group_m = gl.minimum(gl.cdiv(m, BLOCK_M) - group * GROUP_M, GROUP_M)
    within = pid % (GROUP_M * gl.cdiv(n, BLOCK_N))
    start_m = (group * GROUP_M + within % group_m) * BLOCK_M
    start_n = within // group_m * BLOCK_N

    slices = gl.cdiv(k, BLOCK_K)
    if shared:
        slices = gl.cdiv(slices, parts)
    start_k = turn % parts * slices * BLOCK_K
    k = gl.maximum(gl.minimum(k - start_k, slices * BLOCK_K), 0)

    # n * n passes 2**31 at n = 46341, so tiles are addressed in 64 bits; offsets within one fit 32.
    start_m = start_m.to(gl.int64)
    a_ptr += start_m * stride_am + start_k
    b_ptr += start_k.to(gl.int64) * stride_bk + start_n
    a_m = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, LOAD_A))[:, None]
    a_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, LOAD_A))[None, :]
    b_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, LOAD_B))[:, None]
    b_n = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, LOAD_B))[None, :]
    offs_a = a_m * stride_am + a_k
    offs_b = b_k * stride_bk + b_n
    mask_a = a_m < m - start_m
    mask_b = b_n < n - start_n
    rest = k

    dtype: gl.constexpr = c0_ptr.dtype.element_ty
    if STRATEGY == "int16x2":
        a_smem = gl.allocate_shared_memory(gl.int32, [STAGES, BLOCK_M, BLOCK_K], SHARED)
        b_smem = gl.allocate_shared_memory(gl.int16, [STAGES, BLOCK_K, BLOCK_N], SHARED)
        acc = gl.full([BLOCK_M, BLOCK_N // 2], NO_EDGE * 65537, gl.int32, layout=ACC)
        a, b = _load_whole(a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, rest, BLOCK_K)
        a_smem.index(0).store(twice(a))
        b_smem.index(0).store(b)
        for step in range(k // BLOCK_K):
            at = (step + 1) * BLOCK_K
            rest -= BLOCK_K
            a, b = _load_whole(a_ptr + at, b_ptr + stride_bk.to(gl.int64) * at, offs_a, offs_b, mask_a, mask_b, rest, BLOCK_K)
            barrier()
            words = b_smem.index(step % STAGES).reinterpret(gl.int32, [BLOCK_K, BLOCK_N // 2], SHARED)
            acc = rank_update(acc, a_smem.index(step % STAGES), words, BLOCK_K, ACC, STRATEGY)
            a_smem.index((step + 1) % STAGES).store(twice(a))
            b_smem.index((step + 1) % STAGES).store(b)
        if rest > 0:
            at = k - rest
            a_ptr += at
            b_ptr += stride_bk.to(gl.int64) * at
            a, b = _load_slices(a_ptr, b_ptr, offs_a, offs_b, mask_a & (a_k < rest), mask_b & (b_k < rest), NO_EDGE)
            barrier()
            a_smem.index(0).store(twice(a))
            b_smem.index(0).store(b)
            barrier()
            words = b_smem.index(0).reinterpret(gl.int32, [BLOCK_K, BLOCK_N // 2], SHARED)
            acc = rank_update(acc, a_smem.index(0), words, BLOCK_K, ACC, STRATEGY)
        tile = halves(acc)
    else:
        a_smem = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_M, BLOCK_K], SHARED)
        b_smem = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_K, BLOCK_N], SHARED)
        tile = gl.full([BLOCK_M, BLOCK_N], NO_EDGE, dtype, layout=ACC)
        for stage in gl.static_range(STAGES - 1):
            _copy_slices(
                a_smem.index(stage), b_smem.index(stage), a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, a_k, b_k, rest,
                NO_EDGE, BLOCK_K,
            )  # fmt: skip
            a_ptr += BLOCK_K
            b_ptr += BLOCK_K * stride_bk.to(gl.int64)
            rest -= BLOCK_K
        stage = 0
        for _ in range(gl.cdiv(k, BLOCK_K)):
            last = stage - 1 if stage > 0 else STAGES - 1  # whose slices were used in the step before
            _copy_slices(
                a_smem.index(last), b_smem.index(last), a_ptr, b_ptr, offs_a, offs_b, mask_a, mask_b, a_k, b_k, rest,
                NO_EDGE, BLOCK_K,
            )  # fmt: skip
            a_ptr += BLOCK_K
            b_ptr += BLOCK_K * stride_bk.to(gl.int64)
            rest -= BLOCK_K
            wait_group(STAGES - 1)
            barrier()
            tile = rank_update(tile, a_smem.index(stage), b_smem.index(stage), BLOCK_K, ACC, STRATEGY)
            stage = stage + 1 if stage + 1 < STAGES else 0

    OUT: gl.constexpr = tile.type.layout
    offs_m = start_m + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, OUT))
    offs_n = start_n + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, OUT))
    store_m = (offs_m < m) & ((offs_m < left_start) | (offs_m >= left_stop))
    store_n = (offs_n < n) & ((offs_n < left_start) | (offs_n >= left_stop))
    mask_c = store_m[:, None] & store_n[None, :]
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :]
    before = 0
    if shared:
        before = lock(locks_ptr)
        fresh = gl.where(before == 0, fresh, 0)
    c = gl.load(c_ptrs, mask=mask_c & (fresh == 0), other=NO_EDGE)
    gl.store(c_ptrs, gl.maximum(gl.minimum(c, tile), FLOOR), mask=mask_c)
    if shared:
        unlock(locks_ptr, before, parts)
