"""Boolean kernels for one CPU core, in Numba, on matrices packed 64 per word: a product, and the
closure of a small block.

The product is the method of the four Russians on strips of C:

    for each strip of STRIP words of the columns:         # C: a buffer [m, STRIP] in the L2 cache
        for each 64 rows of B:                            # one word of each row of A
            tables[t, x] = or of the rows 8 t + bit of B, for the bits of x    # [8, 256, STRIP]
            for each row i of C:
                C[i] |= tables[0, byte 0 of A[i]] | ... | tables[7, byte 7 of A[i]]

So eight loads of a row of a table do 64 x 64 STRIP operations, at the cost of 8 x 256 of these for
each strip of B.

Source: Arlazarov, Dinic, Kronrod, Faradžev, On Economical Construction of the Transitive Closure of
a Directed Graph, 1970.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import types

from tri_apsp.kernels.cpu.compilation import kernel

# Words of C, and of a table's row: 64 bytes, a vector of AVX-512 and a line of the cache. All
# tables take 128 KB.
STRIP = 8


@kernel
def _fill_tables(tables, b):
    """tables[t, x] = or of the rows 8 t + bit of b [64, width <= STRIP] for the bits of x, 0 in
    columns past b.
    """
    # b, padded to the width of a strip: loops of a constant length compile in a fifth of the time
    # of loops of length `width`.
    rows = np.zeros((64, STRIP), b.dtype)
    for i in range(64):
        for j in range(b.shape[1]):
            rows[i, j] = b[i, j]
    # Row x of a table is row x without its highest bit, or the row of b for that bit.
    for t in range(8):
        tables[t, 0] = 0
        for bit in range(8):
            known = 1 << bit  # rows of the table, which the next row of b doubles
            for x in range(known):
                for j in range(STRIP):
                    tables[t, known + x, j] = tables[t, x, j] | rows[8 * t + bit, j]


def _product(c, a, b):
    """c |= a b for c [m, n] in words, a [m, 8 k] in bytes, b [64 k, n] in words, with unit column
    strides.

    `c` may lie in the memory of a or b: a is copied first, and a strip of b is read before a strip
    of c is written.
    """
    m, n = c.shape
    depth = a.shape[1] // 8
    a_packed = np.empty((depth, m, 8), np.uint8)  # the words of a column of A, one after another
    for i in range(m):
        for k in range(depth):
            for t in range(8):
                a_packed[k, i, t] = a[i, 8 * k + t]
    # Main loop over strips: load C, combine it with eight rows of tables per word of A, store it.
    tables = np.empty((8, 256, STRIP), c.dtype)
    acc = np.zeros((m, STRIP), c.dtype)
    for j0 in range(0, n, STRIP):
        width = min(STRIP, n - j0)
        for i in range(m):
            for j in range(width):
                acc[i, j] = c[i, j0 + j]
        for k in range(depth):
            _fill_tables(tables, b[64 * k : 64 * k + 64, j0 : j0 + width])
            for i in range(m):
                x = a_packed[k, i]
                t0, t1, t2, t3 = tables[0, x[0]], tables[1, x[1]], tables[2, x[2]], tables[3, x[3]]
                t4, t5, t6, t7 = tables[4, x[4]], tables[5, x[5]], tables[6, x[6]], tables[7, x[7]]
                for j in range(STRIP):
                    acc[i, j] |= ((t0[j] | t1[j]) | (t2[j] | t3[j])) | (
                        (t4[j] | t5[j]) | (t6[j] | t7[j])
                    )
        for i in range(m):
            for j in range(width):
                c[i, j0 + j] = acc[i, j]


def _closure(d):
    """d = d* for a block d [64 k, k] in words, by Warshall's algorithm: row i gets row k if it has
    bit k.
    """
    n, words = d.shape
    for k in range(n):
        word, bit = k // 64, k % 64
        for i in range(n):
            if d[i, word] >> bit & 1:
                for j in range(words):
                    d[i, j] |= d[k, j]


@cache
def product_kernel() -> Any:
    """Return the compiled `_product`; Numba compiles it once per machine, and keeps it on disk."""
    words, masks = types.Array(types.int64, 2, "A"), types.Array(types.uint8, 2, "A")
    return kernel(_product, types.void(words, masks, words))


@cache
def closure_kernel() -> Any:
    """Return the compiled `_closure`."""
    return kernel(_closure, types.void(types.Array(types.int64, 2, "A")))
