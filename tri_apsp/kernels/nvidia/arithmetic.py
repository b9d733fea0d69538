"""The inner loop of the product without its global memory, in Gluon: the ceiling of every kernel
that has this loop.

    copy a [BLOCK_M, SLICE] and b [SLICE, BLOCK_N] to shared memory
    for each step:
        acc = min(acc, a b)                                # acc [BLOCK_M, BLOCK_N], in registers
    store acc

Each step computes the same; a barrier keeps the compiler from moving the loads of a and b out of
the loop.
"""

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon
from tri_apsp.kernels.nvidia.tiles import rank_k_update

SLICE = 16
"""Columns of a and rows of b: the operations of a step for each value of acc."""


@gluon.jit
def _arithmetic_kernel(
    acc_ptr,
    a_ptr,
    b_ptr,  # acc (programs, BLOCK_M, BLOCK_N), a (BLOCK_M, SLICE), b (SLICE, BLOCK_N), contiguous
    steps,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    SLICE: gl.constexpr,
    ACC: gl.constexpr,
    SHARED: gl.constexpr,
    STRATEGY: gl.constexpr,
):
    """acc <- min(acc, a b), `steps` times: axis 0 of the grid is the programs."""
    # Program id to tile of acc, a pointer to each value.
    offs_m = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, ACC))[:, None]  # [BLOCK_M, 1]
    offs_n = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, ACC))[None, :]  # [1, BLOCK_N]
    acc_ptrs = (
        acc_ptr + gl.program_id(0).to(gl.int64) * (BLOCK_M * BLOCK_N) + offs_m * BLOCK_N + offs_n
    )
    acc = gl.load(acc_ptrs)  # [BLOCK_M, BLOCK_N]
    # The slices of the product, which stay in shared memory.
    a_smem = gl.allocate_shared_memory(acc.dtype, [BLOCK_M, SLICE], SHARED)
    b_smem = gl.allocate_shared_memory(acc.dtype, [SLICE, BLOCK_N], SHARED)
    offs_ak = gl.arange(0, SLICE, layout=gl.SliceLayout(0, ACC))[None, :]  # [1, SLICE]
    a_smem.store(gl.load(a_ptr + offs_m * SLICE + offs_ak))
    offs_bk = gl.arange(0, SLICE, layout=gl.SliceLayout(1, ACC))[:, None]  # [SLICE, 1]
    b_smem.store(gl.load(b_ptr + offs_bk * BLOCK_N + offs_n))
    # Main loop.
    for _ in range(steps):
        barrier()
        acc = rank_k_update(acc, a_smem, b_smem, SLICE, ACC, STRATEGY)
    gl.store(acc_ptrs, acc)
