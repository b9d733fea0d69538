"""Device code only: what a GPU program or a CPU core runs. tri_apsp.engines launches it. One file
is for tests and readers: nvidia/exponents_model.py, a kernel in NumPy.

Every kernel computes on min-plus matrices: a sum takes the place of a product, and a minimum that
of a sum. One folder per engine, one file per kernel:

    portable/   plain Triton: products, closure, panels
    nvidia/     Gluon: products, closure, a whole solve in one launch, many small graphs, and the
                sweep of an eliminated graph
    shared/     plain Triton: what both GPU engines launch (matrices, value ranges, paths,
                gradients, bits), the kernels of sparse graphs and of eliminated graphs, and the
                encoding of products by exponents
    cpu/        Numba

A reader who knows Triton's tutorial of the matrix product begins with portable/product.py and
portable/tiles.py. In nvidia/ follow product.py, tiles.py, tile_closure.py, closure.py and solve.py;
then small_graphs.py and exponents.py, in any order.

The kernels of elimination, in the order in which a call needs them, each with its loop nest as
pseudo-code at the top:

    cpu/dissection.py         an order of elimination
    cpu/elimination_tree.py   its tree, and the edges of the filled graph
    cpu/customization.py      the weights of these edges
    cpu/sweeps.py             rows, nearest sources and totals
    cpu/labels.py             tables, pairs and paths
    shared/sweeps.py          climbs, sweeps, tables and pairs on a GPU
    nvidia/sweeps.py          the sweep with live values in shared memory, and a schedule by example

Arguments are pointers, then sizes, then strides (`stride_am` is that of A from row to row,
`stride_ab` from graph to graph of a batch), then constexprs in capitals; a kernel for two products
takes the first three for each. A comment behind an argument may include those just above it that
have none. NO_EDGE is the value of "no path" (inf for floats), and FLOOR the least value that a
matrix may hold.
"""
