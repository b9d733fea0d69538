"""A product C = A B, and the first slice of k that has each minimum, in Gluon;
shared/argmin.py finds the first k of that slice.

    for each tile [BLOCK_M, BLOCK_N] of C:                 # one program
        least, first_slice = NO_EDGE, 0                    # [BLOCK_M, BLOCK_N], in registers
        for each slice of BLOCK_K of k:                    # copied as in product.py
            of_slice = A slice B slice
            first_slice = the slice, where of_slice < least
            least = min(least, of_slice)

Read product.py first. A slice costs its product, and a comparison, a selection and a minimum for
each element of the tile; so the search takes little longer than the product. Comparing every sum
would take 50% more instructions.
"""

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon, wait_group
from tri_apsp.kernels.nvidia.product import locate_slices, start_copies, tile_of_program
from tri_apsp.kernels.nvidia.tiles import rank_k_update


@gluon.jit
def _find_first_slice(
    a_ptr,
    b_ptr,
    m,
    n,
    start_m,
    start_n,
    depth,
    stride_am,
    stride_bk,
    NO_EDGE: gl.constexpr,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    NUM_STAGES: gl.constexpr,
    STRATEGY: gl.constexpr,
    LAYOUTS: gl.constexpr,
):
    """Return the minimum of each element of a tile [BLOCK_M, BLOCK_N], and the first slice of k
    that has it, 0 if all are NO_EDGE.
    """
    ACC: gl.constexpr = LAYOUTS.ACC
    dtype: gl.constexpr = a_ptr.dtype.element_ty
    slices = locate_slices(
        m, n, start_m, start_n, stride_am, stride_bk, BLOCK_M, BLOCK_N, BLOCK_K, LAYOUTS
    )
    a_smem = gl.allocate_shared_memory(dtype, [NUM_STAGES, BLOCK_M, BLOCK_K], LAYOUTS.SHARED)
    b_smem = gl.allocate_shared_memory(dtype, [NUM_STAGES, BLOCK_K, BLOCK_N], LAYOUTS.SHARED)
    # Prologue: start to fill all buffers but one.
    k_left = depth
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
    # Main loop, as in product.py.
    least = gl.full([BLOCK_M, BLOCK_N], NO_EDGE, dtype, layout=ACC)
    first_slice = gl.full([BLOCK_M, BLOCK_N], 0, gl.int32, layout=ACC)
    stage = 0
    for step in range(gl.cdiv(depth, BLOCK_K)):
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
        wait_group(NUM_STAGES - 1)
        barrier()
        # The product of this slice alone, so that it can be compared with those before it.
        of_slice = gl.full([BLOCK_M, BLOCK_N], NO_EDGE, dtype, layout=ACC)  # [BLOCK_M, BLOCK_N]
        of_slice = rank_k_update(
            of_slice, a_smem.index(stage), b_smem.index(stage), BLOCK_K, ACC, STRATEGY
        )
        first_slice = gl.where(of_slice < least, step, first_slice)
        least = gl.minimum(least, of_slice)
        stage = stage + 1 if stage + 1 < NUM_STAGES else 0
    return least, first_slice


@gluon.jit(do_not_specialize=["depth"])
def _argmin_kernel(
    c_ptr,  # C (batch, m, n), contiguous
    slices_ptr,  # (batch, m, n) of int32, contiguous
    a_ptr,
    b_ptr,  # A (batch, m, depth) and B (batch, depth, n), contiguous
    m,
    n,
    depth,
    stride_am,  # depth, but specialised: so the compiler knows what divides it
    NO_EDGE: gl.constexpr,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    GROUP_M: gl.constexpr,
    NUM_STAGES: gl.constexpr,
    STRATEGY: gl.constexpr,
    LAYOUTS: gl.constexpr,
):
    """C = A B, and slices[i, j] = the first slice of BLOCK_K values of k with the least term.

    A program owns one tile of one graph. The grid is one-dimensional: the tiles of one graph after
    another.
    """
    # Program id to tile. Triton turns a size of 1 into a constant, which has no dtype.
    n, stride_am = gl.to_tensor(n), gl.to_tensor(stride_am)
    tiles = gl.cdiv(m, BLOCK_M) * gl.cdiv(n, BLOCK_N)
    pid_b = (gl.program_id(0) // tiles).to(gl.int64)
    start_m, start_n = tile_of_program(gl.program_id(0) % tiles, m, n, BLOCK_M, BLOCK_N, GROUP_M)
    a_ptr += (pid_b * m + start_m) * stride_am
    b_ptr += pid_b * depth * n + start_n
    m_left, n_left = m - start_m, n - start_n
    least, first_slice = _find_first_slice(
        a_ptr,
        b_ptr,
        m,
        n,
        start_m,
        start_n,
        depth,
        stride_am,
        n,
        NO_EDGE,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        NUM_STAGES,
        STRATEGY,
        LAYOUTS,
    )
    # Epilogue.
    offs_m = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, LAYOUTS.ACC))[:, None]
    offs_n = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, LAYOUTS.ACC))[None, :]
    inside = (offs_m < m_left) & (offs_n < n_left)
    offs_c = (pid_b * m + start_m) * n + start_n + (offs_m.to(gl.int64) * n + offs_n)
    gl.store(c_ptr + offs_c, least, mask=inside)
    gl.store(slices_ptr + offs_c, first_slice, mask=inside)
