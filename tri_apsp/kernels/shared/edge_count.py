"""The edges in some rows of matrices, counted in one pass in plain Triton.

    for each of the rows of this program, and each block of a row:
        edges += x < NO_EDGE, on the diagonal only with LOOPS       # [BLOCK], in registers
    counts[pid] = sum(edges), or -1 if an edge is not an integer

Positions past the end of a row load as NO_EDGE.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows", "rows_read", "step"])
def _count_edges_kernel(
    x_ptr,  # X (batch, m, n), of any strides
    counts_ptr,  # int32 (programs,): the count of each program
    rows,
    rows_read,
    n,
    step,  # rows 0, step, ... of each matrix are read, rows_read of them; rows = batch * rows_read
    stride_xb,
    stride_xm,
    stride_xn,
    NO_EDGE: tl.constexpr,
    LOOPS: tl.constexpr,  # whether the diagonal counts
    BLOCK: tl.constexpr,
):
    """Store the count of one program, which owns rows pid, pid + programs, ... of those that are
    read in all matrices; rows < 2**30.
    """
    pid = tl.program_id(0)
    edges = tl.zeros([BLOCK], tl.int32)
    fractions = tl.zeros([BLOCK], tl.int32)  # 1 where an edge is not an integer
    for index in range(pid, rows, tl.num_programs(0)):
        # Index to a matrix and a row of it; offsets may need 64 bits.
        row = index % rows_read * step
        x_row = x_ptr + (index // rows_read).to(tl.int64) * stride_xb + row.to(tl.int64) * stride_xm
        for start in range(0, n, BLOCK):
            offs = start + tl.arange(0, BLOCK)
            x = tl.load(x_row + offs.to(tl.int64) * stride_xn, mask=offs < n, other=NO_EDGE)
            is_edge = x < NO_EDGE
            if not LOOPS:
                is_edge = is_edge & (offs != row)
            edges += is_edge.to(tl.int32)
            if x.dtype.is_floating():
                fractions |= (is_edge & (x != tl.floor(x))).to(tl.int32)
    tl.store(counts_ptr + pid, tl.where(tl.max(fractions) > 0, -1, tl.sum(edges)))
