"""Gradients of the weights of many graphs of at most 64 vertices by those of their distances, in
Gluon, in registers.

    for each group of GRAPHS graphs:                         # X, M, S [GRAPHS, SIZE, SIZE]
        p[j] = the least distance to j
        X[i, j] = max(0, W[i, j] + (p[i] - p[j]))
        for each k, ascending:
            where X[i, k] + X[k, j] < X[i, j], X[i, j] = that sum and M[i, j] = k
        S = the gradients of the distances
        while S is not 0 where M was set:
            for each k, descending: where M[i, j] = k, move S[i, j] to S[i, k] and to S[k, j]
        gradient = S

Of paths with equal sums, the edge itself is taken first, then the path whose greatest intermediate
vertex is least. Each sum is added up in the same order in every run.

The potentials p leave no weight negative and change no path: the sums of all paths from i to j
change by p[i] - p[j]. The rounding of W + (p[i] - p[j]) may still choose between paths that differ
by less.

If sums are exact, the paths from i to k and from k to j have vertices less than k between their
ends, and one pass over k moves everything. Rounding can hide that a path got shorter by a later k;
then further passes follow. The loop ends: X only falls, so X[i, j] >= X[i, k] and X[k, j] for k =
M[i, j]. In a circle of such references all X would be equal, so X[i, k] has not fallen since step
k. Step k itself does not change row or column k, because X[k, k] = 0. So M[i, k] < k, and likewise
M[k, j] < k: M would fall all the way round the circle.

Read small_graphs.py first: X, M and S have the layout of its X.
"""

from tri_apsp.kernels.nvidia.gluon_names import gl, gluon
from tri_apsp.kernels.nvidia.small_graphs import (
    allocate_columns,
    columns_of,
    graph_and_indices,
    row_of,
    to_blocks,
    to_values,
    value_across,
)


@gluon.jit
def _find_intermediates(x, n, smem, SMALL: gl.constexpr):
    """Return M [GRAPHS, BLOCKS_M, ROWS, BLOCKS_N, COLUMNS] for weights X: -1 where the edge itself
    is a shortest path.

    k and k + 1 share one exchange of columns, but the result is that of one k after the other.
    """
    STEP: gl.constexpr = SMALL.STEP
    BLOCKS: gl.constexpr = SMALL.BLOCKS
    intermediates = gl.full(x.shape, -1, gl.int32, BLOCKS)
    for first in range(gl.cdiv(n, STEP)):
        for place in gl.static_range(0, STEP, 2):
            # Step k + 1 reads column k + 1 as step k leaves it; so does row_of, after step k.
            k = first * STEP + place
            buffer = smem[place // 2 % 2]
            column, column1 = columns_of(x, k, place, buffer, SMALL)
            column1 = gl.minimum(
                column1, column + value_across(column1, buffer, k, place, 1, SMALL)
            )
            x, intermediates = _relax(x, intermediates, column + row_of(x, k, place, SMALL), k)
            x, intermediates = _relax(
                x, intermediates, column1 + row_of(x, k + 1, place + 1, SMALL), k + 1
            )
    return intermediates


@gluon.jit
def _relax(x, intermediates, sums, k):
    """Return X and M after the step of k, whose sums are X[:, k] + X[k, :]."""
    less = sums < x
    return gl.where(less, sums, x), gl.where(less, k, intermediates)


@gluon.jit
def _indices(SMALL: gl.constexpr):
    """Return the index of the block in which a value of X lies, and of the value in it: of its row,
    and of its column.
    """
    ROWS: gl.constexpr = gl.SliceLayout(3, gl.SliceLayout(4, SMALL.BLOCKS))
    BLOCK_N: gl.constexpr = gl.SliceLayout(
        0, gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(4, SMALL.BLOCKS)))
    )
    COLUMN: gl.constexpr = gl.SliceLayout(
        0, gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(3, SMALL.BLOCKS)))
    )
    block_m = gl.arange(0, SMALL.SIZE // SMALL.ROWS, gl.SliceLayout(0, gl.SliceLayout(2, ROWS)))
    row = gl.arange(0, SMALL.ROWS, gl.SliceLayout(0, gl.SliceLayout(1, ROWS)))
    block_n = gl.arange(0, SMALL.SIZE // SMALL.COLUMNS, BLOCK_N)
    column = gl.arange(0, SMALL.COLUMNS, COLUMN)
    return (
        block_m[None, :, None, None, None],
        row[None, None, :, None, None],
        block_n[None, None, None, :, None],
        column[None, None, None, None, :],
    )


@gluon.jit
def _propagate(s, intermediates, n, SMALL: gl.constexpr):
    """Return S after each gradient of a path was moved to its two parts, and on to theirs: the loop
    over k, descending.
    """
    STEP: gl.constexpr = SMALL.STEP
    block_m, row, block_n, column = _indices(SMALL)
    steps = gl.cdiv(n, STEP)
    for step in range(steps):
        for place in gl.static_range(STEP - 1, -1, -1):
            k = (steps - 1 - step) * STEP + place
            # S of the paths through k, added up along rows to column k, and along columns to row k.
            passed = gl.where(intermediates == k, s, 0)
            s = gl.where(intermediates == k, 0, s)
            to_column = gl.expand_dims(gl.expand_dims(gl.sum(gl.sum(passed, 4), 3), 3), 4)
            to_row = gl.expand_dims(gl.expand_dims(gl.sum(gl.sum(passed, 2), 1), 1), 2)
            s = gl.where(
                (column == place % SMALL.COLUMNS) & (block_n == k // SMALL.COLUMNS),
                s + to_column,
                s,
            )
            s = gl.where((row == place % SMALL.ROWS) & (block_m == k // SMALL.ROWS), s + to_row, s)
    return s


@gluon.jit(do_not_specialize=["batch"])
def _small_gradients_kernel(
    gradient_ptr,  # (batch, n, n), contiguous
    g_ptr,  # gradients of the distances (batch, n, n), contiguous
    w_ptr,
    d_ptr,  # W (batch, n, n), any strides; D (batch, n, n), contiguous
    batch,
    n,
    stride_wb,
    stride_wm,
    stride_wn,
    SMALL: gl.constexpr,  # SmallGraphs
):
    """gradient <- the sum of the gradients of all distances whose path uses an edge.

    Program p owns groups p, p + programs, and so on.
    """
    NO_EDGE: gl.constexpr = SMALL.NO_EDGE
    smem = allocate_columns(w_ptr.dtype.element_ty, SMALL)
    for group in range(gl.program_id(0), gl.cdiv(batch, SMALL.GRAPHS), gl.num_programs(0)):
        # Potentials: the least of each column of D, as a row and as a column.
        graph, i, j = graph_and_indices(group, batch, SMALL)
        inside = (i < n) & (j < n)
        offs = graph.to(gl.int64) * (n * n) + (i * n + j)
        d = gl.load(d_ptr + offs, mask=inside, other=NO_EDGE)
        least = gl.min(d, 1)  # [GRAPHS, SIZE]
        potential_j = gl.expand_dims(least, 1)
        potential_i = gl.expand_dims(gl.convert_layout(least, gl.SliceLayout(2, SMALL.VALUES)), 2)
        # Without a path the weight is arbitrary: it may lie in the padding.
        reached = (d < NO_EDGE) & (i != j)
        w_ptrs = (
            w_ptr
            + graph.to(gl.int64) * stride_wb
            + (i.to(gl.int64) * stride_wm + j.to(gl.int64) * stride_wn)
        )
        x = gl.maximum(
            gl.load(w_ptrs, mask=reached, other=NO_EDGE) + (potential_i - potential_j), 0
        )
        x = gl.where(i == j, 0, gl.where(reached, x, NO_EDGE))
        # M and S, in blocks.
        intermediates = _find_intermediates(to_blocks(x, SMALL), n, smem, SMALL)
        s = to_blocks(gl.load(g_ptr + offs, mask=reached, other=0), SMALL)
        # Move gradients until none is at a path that has an intermediate vertex.
        remaining = 1
        while remaining > 0:
            s = _propagate(s, intermediates, n, SMALL)
            remaining = gl.max(gl.ravel(gl.where((intermediates >= 0) & (s != 0), 1, 0)), 0)
        s = to_values(s, SMALL)
        graph, i, j = graph_and_indices(group, batch, SMALL)  # again, as in small_graphs.py
        gl.store(
            gradient_ptr + graph.to(gl.int64) * (n * n) + (i * n + j), s, mask=(i < n) & (j < n)
        )
