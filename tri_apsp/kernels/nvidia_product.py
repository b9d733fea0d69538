"""C <- min(C, A * B) in Gluon, for two independent products in one launch, at the issue rate of an NVIDIA GPU.

    for each tile [BLOCK_M, BLOCK_N] of C                  # one program, 8x8 values of acc a thread
        acc = no_edge
        for each BLOCK_K of k
            a_smem, b_smem = A slice transposed, B slice   # shared memory, two buffers in turn; one barrier
            load the next slices into registers            # they arrive while the loop below runs
            for each pair of k: acc = min(acc, a_k + b_k, a_k' + b_k')
        C tile = max(min(C tile, acc), FLOOR)

A row of each buffer is loaded in the layout of acc itself, so that the sum broadcasts in registers: two 16-byte loads for 64
pairs of add and min. Plain Triton cannot say so.
"""

from __future__ import annotations

from tri_apsp.kernels.gluon_names import barrier, gl, gluon

__all__ = ["_product_kernel"]


@gluon.jit
def _two_sums_float(acc, a0, b0, a1, b1):
    """min(acc, a0 + b0, a1 + b1) for floats of any sign: FADD FMNMX FADD FMNMX."""
    return gl.minimum(gl.minimum(acc, a0 + b0), a1 + b1)


@gluon.jit
def _two_sums_nonnegative(acc, a0, b0, a1, b1):
    """The same for floats that are not negative, which order like their bits; acc holds bits: FADD FADD VIMNMX3.

    One block of PTX, because a minimum of three that LLVM sees it takes apart again.
    """
    return gl.inline_asm_elementwise(
        "{ .reg .f32 s, t; .reg .s32 u, v; add.f32 s, $1, $2; add.f32 t, $3, $4;"
        " mov.b32 u, s; mov.b32 v, t; min.s32 u, u, v; min.s32 $0, u, $5; }",
        "=r,f,f,f,f,r",
        [a0, b0, a1, b1, acc],
        gl.int32,
        True,
        1,
    )


@gluon.jit
def _sum_int32(acc, a, b):
    """min(acc, a + b) in one block of PTX, which ptxas fuses from sm_90 on: VIADDMNMX."""
    return gl.inline_asm_elementwise(
        "{ .reg .s32 s; add.s32 s, $1, $2; min.s32 $0, s, $3; }", "=r,r,r,r", [a, b, acc], gl.int32, True, 1
    )


@gluon.jit
def _two_sums(acc, a0, b0, a1, b1, STRATEGY: gl.constexpr):
    if STRATEGY == "int32":
        return _sum_int32(_sum_int32(acc, a0, b0), a1, b1)
    elif STRATEGY == "nonnegative":
        return _two_sums_nonnegative(acc, a0, b0, a1, b1)
    else:
        return _two_sums_float(acc, a0, b0, a1, b1)


@gluon.jit
def _product_kernel(
    c0_ptr, a0_ptr, b0_ptr,  # first product: C (batch, m, n), A (batch, m, k), B (batch, k, n), unit column strides
    m0, n0, k0, skip_start, skip_stop,  # rows and columns skip_start..skip_stop of the first C stay as they are
    stride_c0b, stride_c0m, stride_a0b, stride_a0m, stride_b0b, stride_b0k,
    c1_ptr, a1_ptr, b1_ptr,  # second product; m1 = 0 if there is none
    m1, n1, k1,
    stride_c1b, stride_c1m, stride_a1b, stride_a1m, stride_b1b, stride_b1k,
    NO_EDGE: gl.constexpr, FLOOR: gl.constexpr,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr,
    STRATEGY: gl.constexpr,  # "float", "nonnegative" or "int32"
    ACC: gl.constexpr, LOAD_A: gl.constexpr, LOAD_B: gl.constexpr, SHARED: gl.constexpr,  # layouts
):  # fmt: skip
    """C <- max(min(C, A * B), FLOOR) for both products and each graph of the batch; a program owns one tile of one C.

    C overlaps no A or B, except as Engine.product allows. Rows past m, columns past n and everything past k load NO_EDGE.
    """
    pid = gl.program_id(0)
    item = gl.program_id(1).to(gl.int64)
    tiles0 = gl.cdiv(m0, BLOCK_M) * gl.cdiv(n0, BLOCK_N)
    c_ptr, a_ptr, b_ptr = c0_ptr + item * stride_c0b, a0_ptr + item * stride_a0b, b0_ptr + item * stride_b0b
    m, n, k, stride_cm, stride_am, stride_bk = m0, n0, k0, stride_c0m, stride_a0m, stride_b0k
    left_start, left_stop = skip_start, skip_stop
    if pid >= tiles0:
        pid -= tiles0
        c_ptr, a_ptr, b_ptr = c1_ptr + item * stride_c1b, a1_ptr + item * stride_a1b, b1_ptr + item * stride_b1b
        m, n, k, stride_cm, stride_am, stride_bk = m1, n1, k1, stride_c1m, stride_a1m, stride_b1k
        left_start, left_stop = 0, 0

    group = pid // (GROUP_M * gl.cdiv(n, BLOCK_N))
    group_m = gl.minimum(gl.cdiv(m, BLOCK_M) - group * GROUP_M, GROUP_M)
    within = pid % (GROUP_M * gl.cdiv(n, BLOCK_N))
    start_m = (group * GROUP_M + within % group_m) * BLOCK_M
    start_n = within // group_m * BLOCK_N

    # n * n passes 2**31 at n = 46341, so rows are multiplied in 64 bits.
    a_m = start_m + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, LOAD_A))
    a_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, LOAD_A))
    b_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, LOAD_B))
    b_n = start_n + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, LOAD_B))
    a_ptrs = a_ptr + a_m.to(gl.int64)[:, None] * stride_am + a_k[None, :]
    b_ptrs = b_ptr + b_k.to(gl.int64)[:, None] * stride_bk + b_n[None, :]
    mask_a = (a_m < m)[:, None]
    mask_b = (b_n < n)[None, :]

    dtype: gl.constexpr = c0_ptr.dtype.element_ty
    a_smem = gl.allocate_shared_memory(dtype, [2, BLOCK_K, BLOCK_M], SHARED)
    b_smem = gl.allocate_shared_memory(dtype, [2, BLOCK_K, BLOCK_N], SHARED)
    acc = gl.full([BLOCK_M, BLOCK_N], NO_EDGE, dtype, layout=ACC)
    if STRATEGY == "nonnegative":
        acc = acc.to(gl.int32, bitcast=True)
    a = gl.load(a_ptrs, mask=mask_a & (a_k < k)[None, :], other=NO_EDGE)
    b = gl.load(b_ptrs, mask=mask_b & (b_k < k)[:, None], other=NO_EDGE)
    for step in range(gl.cdiv(k, BLOCK_K)):
        a_slice = a_smem.index(step % 2)
        b_slice = b_smem.index(step % 2)
        a_slice.permute((1, 0)).store(a)
        b_slice.store(b)
        barrier()  # the other buffer is not written before the next one, which all threads reach after this loop over k
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
        rest = k - (step + 1) * BLOCK_K
        a = gl.load(a_ptrs, mask=mask_a & (a_k < rest)[None, :], other=NO_EDGE)
        b = gl.load(b_ptrs, mask=mask_b & (b_k < rest)[:, None], other=NO_EDGE)
        for x in gl.static_range(0, BLOCK_K, 2):
            a0 = a_slice.slice(x, 1, dim=0).permute((1, 0)).load(ACC)  # [BLOCK_M, 1]
            b0 = b_slice.slice(x, 1, dim=0).load(ACC)  # [1, BLOCK_N]
            a1 = a_slice.slice(x + 1, 1, dim=0).permute((1, 0)).load(ACC)
            b1 = b_slice.slice(x + 1, 1, dim=0).load(ACC)
            acc = _two_sums(acc, a0, b0, a1, b1, STRATEGY)
    if STRATEGY == "nonnegative":
        acc = acc.to(dtype, bitcast=True)

    offs_m = start_m + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, ACC))
    offs_n = start_n + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, ACC))
    store_m = (offs_m < m) & ((offs_m < left_start) | (offs_m >= left_stop))
    store_n = (offs_n < n) & ((offs_n < left_start) | (offs_n >= left_stop))
    mask_c = store_m[:, None] & store_n[None, :]
    c_ptrs = c_ptr + offs_m.to(gl.int64)[:, None] * stride_cm + offs_n[None, :]
    c = gl.load(c_ptrs, mask=mask_c, other=NO_EDGE)
    gl.store(c_ptrs, gl.maximum(gl.minimum(c, acc), FLOOR), mask=mask_c)
