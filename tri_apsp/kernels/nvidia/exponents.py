"""C <- min(C, A B) by exponents on the tensor cores of compute capability 9.x, in Gluon; see kernels.shared.exponents.

    for each tile of C:                                    # one program of eight warps; two programs per multiprocessor
        X = 16383                                          # [BLOCK_M, BLOCK_N], in words of two columns
        for each slice of k:
            T = P slice Q slice                            # wgmma, [BLOCK_M, BLOCK_N] of float32 in registers
            start to copy the next slice to the buffers that are free
            X = min(X, r + c + s(T))                       # while the tensor cores work for the other program
        C tile = min(C tile, X) if all of it is certain, else the tile is reported

A slice is copied in parts of PART values of k, into BUFFERS buffers of shared memory in rotation. One program alone would leave
the tensor cores idle while it decodes; two take turns, which needs at most 128 registers per thread. Of 128 values of k, a
multiprocessor adds 128 x 128 results in 1024 clocks; decoding them takes three instructions per result, about 800 clocks.
"""

from __future__ import annotations

from tri_apsp.kernels.nvidia.gluon_names import (
    barrier,
    commit_group,
    copy_async,
    fence_async_shared,
    gl,
    gluon,
    wait_group,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from tri_apsp.kernels.nvidia.int16x2 import unpack_int16x2
from tri_apsp.kernels.nvidia.product import tile_of_program

__all__ = ["_exponent_product_kernel"]


@gluon.jit
def _decode(x, sums, r, c, DECODE: gl.constexpr):
    """Return min(x, r + c + s) for x [M, N // 2], sums [M, N], r [M, 1] and c [1, N // 2]; words but for the sums."""
    M: gl.constexpr = sums.shape[0]
    N: gl.constexpr = sums.shape[1]
    WORDS: gl.constexpr = x.type.layout
    low, high = gl.split(gl.reshape(sums, [M, N // 2, 2]))
    low, high = gl.convert_layout(low, WORDS, assert_trivial=True), gl.convert_layout(high, WORDS, assert_trivial=True)
    return gl.inline_asm_elementwise(DECODE, "=r,f,f,r,r,r", [low, high, x, r, c], gl.int32, True, 1)


@gluon.jit
def _start_copy(a_smem, b_smem, a_ptr, b_ptr, offs_a, offs_b, exists):
    """Start to copy a part of a slice of P and Q, if it exists."""
    copy_async(a_smem, a_ptr + offs_a, mask=exists)
    copy_async(b_smem, b_ptr + offs_b, mask=exists)
    commit_group()


@gluon.jit
def _accumulate(
    a_ptr, b_ptr, a_least_ptr, b_least_ptr, a_tile_least_ptr, b_tile_least_ptr,  # of the first slice of the tile
    tiles_m, tiles_n, slices,
    DECODE: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, SLICE: gl.constexpr, PART: gl.constexpr,
    BUFFERS: gl.constexpr,
):  # fmt: skip
    """Return X of one tile, words [BLOCK_M, BLOCK_N // 2], and the bound L."""
    WARPS: gl.constexpr = gl.num_warps()
    PARTS: gl.constexpr = SLICE // PART
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_N, 16])
    COPY_A: gl.constexpr = gl.BlockedLayout([1, 8], [32 // (PART // 8), PART // 8], [WARPS, 1], [1, 0])
    COPY_B: gl.constexpr = gl.BlockedLayout([1, 8], [32 // (BLOCK_N // 8), BLOCK_N // 8], [WARPS, 1], [1, 0])
    SHARED: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    offs_am = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, COPY_A))[:, None]
    offs_ak = gl.arange(0, PART, layout=gl.SliceLayout(0, COPY_A))[None, :]
    offs_bk = gl.arange(0, PART, layout=gl.SliceLayout(1, COPY_B))[:, None]
    offs_bn = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, COPY_B))[None, :]
    offs_a, offs_b = offs_am * PART + offs_ak, offs_bk * BLOCK_N + offs_bn
    a_smem = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [BUFFERS, BLOCK_M, PART], SHARED)
    b_smem = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [BUFFERS, PART, BLOCK_N], SHARED)
    # Prologue: start to copy the first slice.
    for part in gl.static_range(PARTS):
        _start_copy(a_smem.index(part), b_smem.index(part), a_ptr, b_ptr, offs_a, offs_b, slices > 0)
        a_ptr += BLOCK_M * PART
        b_ptr += BLOCK_N * PART
    sums = gl.full([BLOCK_M, BLOCK_N], 0, gl.float32, layout=SUMS)
    half, _other = gl.split(gl.reshape(sums, [BLOCK_M, BLOCK_N // 2, 2]))
    WORDS: gl.constexpr = half.type.layout
    ROWS: gl.constexpr = gl.SliceLayout(1, WORDS)
    COLUMNS: gl.constexpr = gl.SliceLayout(0, WORDS)
    offs_m, offs_w = gl.arange(0, BLOCK_M, layout=ROWS), gl.arange(0, BLOCK_N // 2, layout=COLUMNS)
    x = gl.full([BLOCK_M, BLOCK_N // 2], 0x3FFF3FFF, gl.int32, layout=WORDS)
    bound = gl.to_tensor(32767)
    buffer = 0
    for slice_ in range(slices):
        wait_group(0)
        fence_async_shared()
        barrier()
        last = buffer
        token = warpgroup_mma(a_smem.index(last), b_smem.index(last), sums, use_acc=False, is_async=True)
        for _ in gl.static_range(1, PARTS):
            last = last + 1 if last + 1 < BUFFERS else 0
            token = warpgroup_mma(a_smem.index(last), b_smem.index(last), token, is_async=True)
        # Copy the next slice: to the buffers that are free, and when the tensor cores have read the others, to these.
        for part in gl.static_range(PARTS):
            if part == BUFFERS - PARTS:
                sums = warpgroup_mma_wait(0, deps=[token])
                barrier()
            last = last + 1 if last + 1 < BUFFERS else 0
            _start_copy(a_smem.index(last), b_smem.index(last), a_ptr, b_ptr, offs_a, offs_b, slice_ + 1 < slices)
            a_ptr += BLOCK_M * PART
            b_ptr += BLOCK_N * PART
        if BUFFERS == 2 * PARTS:
            sums = warpgroup_mma_wait(0, deps=[token])
        r = (gl.load(a_least_ptr + offs_m).to(gl.int32) & 0xFFFF) * 65537  # twice in a word
        c = gl.load(b_least_ptr + offs_w)
        x = _decode(x, sums, r[:, None], c[None, :], DECODE)
        bound = gl.minimum(bound, gl.load(a_tile_least_ptr) + gl.load(b_tile_least_ptr))
        a_least_ptr += tiles_m * BLOCK_M
        b_least_ptr += tiles_n * (BLOCK_N // 2)
        a_tile_least_ptr += tiles_m
        b_tile_least_ptr += tiles_n
        buffer = (buffer + PARTS) % BUFFERS
    wait_group(0)
    return x, bound


@gluon.jit
def _update_if_certain(
    c_ptr, x, bound, start_m, start_n, m, n, fresh, skip_start, skip_stop, stride_cm,
    NO_EDGE: gl.constexpr, WINDOW: gl.constexpr,
):  # fmt: skip
    """C tile <- min(C tile, X), but for skipped rows and columns, if all of it is certain; return 1 if it is not, else 0."""
    values = unpack_int16x2(x)  # [BLOCK_M, BLOCK_N]
    VALUES: gl.constexpr = values.type.layout
    line = start_m + gl.arange(0, values.shape[0], layout=gl.SliceLayout(1, VALUES))[:, None]
    column = start_n + gl.arange(0, values.shape[1], layout=gl.SliceLayout(0, VALUES))[None, :]
    kept = ((line >= skip_start) & (line < skip_stop)) | ((column >= skip_start) & (column < skip_stop))
    inside = (line < m) & (column < n) & ~kept
    c_ptrs = c_ptr + (line.to(gl.int64) * stride_cm + column)
    dtype: gl.constexpr = c_ptr.dtype.element_ty
    before = gl.load(c_ptrs, mask=inside & (fresh == 0), other=NO_EDGE)
    found = gl.minimum(before, gl.where(values < 16383, values.to(dtype), NO_EDGE).to(dtype))
    compared = gl.where(found < NO_EDGE, found, 16383)
    uncertain = gl.max(gl.max(gl.where(inside & (compared > bound + WINDOW), 1, 0), 1), 0)
    gl.store(c_ptrs, found, mask=inside & (uncertain == 0))
    return uncertain


@gluon.jit(do_not_specialize=["slices", "fresh"])
def _exponent_product_kernel(
    c_ptr, uncertain_ptr,  # as in kernels.portable.exponents
    a_ptr, b_ptr,  # see _encode_kernel
    a_least_ptr, b_least_ptr,  # r in int16; c as words of two neighbours
    a_tile_least_ptr, b_tile_least_ptr,
    m, n, slices, fresh, skip_start, skip_stop, stride_cb, stride_cm,  # as in product.py
    NO_EDGE: gl.constexpr, WINDOW: gl.constexpr, DECODE: gl.constexpr,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, SLICE: gl.constexpr, PART: gl.constexpr, BUFFERS: gl.constexpr,
    GROUP_M: gl.constexpr,
):  # fmt: skip
    """A program owns one tile of one graph."""
    n, batch = gl.to_tensor(n), gl.program_id(1).to(gl.int64)
    tiles_m, tiles_n = gl.cdiv(m, BLOCK_M), gl.cdiv(n, BLOCK_N)
    start_m, start_n = tile_of_program(gl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP_M)
    pid_m, pid_n = start_m // BLOCK_M, start_n // BLOCK_N
    a_ptr += (batch * tiles_m + pid_m) * slices * (BLOCK_M * SLICE)
    b_ptr += (batch * tiles_n + pid_n) * slices * (BLOCK_N * SLICE)
    tile_a, tile_b = batch * slices * tiles_m + pid_m, batch * slices * tiles_n + pid_n
    x, bound = _accumulate(
        a_ptr, b_ptr, a_least_ptr + tile_a * BLOCK_M, b_least_ptr + tile_b * (BLOCK_N // 2), a_tile_least_ptr + tile_a,
        b_tile_least_ptr + tile_b, tiles_m, tiles_n, slices, DECODE, BLOCK_M, BLOCK_N, SLICE, PART, BUFFERS,
    )  # fmt: skip
    uncertain = _update_if_certain(
        c_ptr + batch * stride_cb, x, bound, start_m, start_n, m, n, fresh, skip_start, skip_stop, stride_cm, NO_EDGE, WINDOW
    )
    gl.store(uncertain_ptr + batch * (tiles_m * tiles_n) + pid_m * tiles_n + pid_n, uncertain)
