"""Device code only: what a GPU program or a CPU core runs. tri_apsp.engines launches it.

Every kernel computes on min-plus matrices: a sum takes the place of a product, and a minimum that
of a sum. One folder per engine, one file per kernel:

    portable/   plain Triton: product, closure, panels
    nvidia/     Gluon: product, closure, and solve (a whole solve in one launch), with their helpers
    shared/     plain Triton, launched by both GPU engines: initial_matrix, value_range, copy, paths
    cpu/        Numba

A reader who knows Triton's tutorial of the matrix product begins with portable/product.py and
portable/tiles.py, then reads nvidia/tiles.py and nvidia/product.py.

Arguments are pointers, then sizes, then strides (`stride_am` is that of A from row to row,
`stride_ab` from graph to graph of a batch), then constexprs in capitals; a kernel for two products
takes the first three for each. NO_EDGE is the value of "no path" (inf for floats), and FLOOR the
least value that a matrix may hold.
"""
