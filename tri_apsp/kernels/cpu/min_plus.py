"""Min-plus kernels for one CPU core, in Numba: a register-tiled product and the closure of a small
block.

The product is the classical matrix-multiplication nest (Goto and van de Geijn, 2008) with (min, +)
inside, or with the greater of two values, or their product, in place of the sum (OPERATIONS):

    for each slice of BLOCK_K values of k:               # packed B stays in the L2 or L3 cache
        pack b[k, :] into panels of TILE_N columns       # [panels, BLOCK_K, TILE_N], contiguous
        for each BLOCK_M rows of c:
            pack a[rows, k] into panels of TILE_M rows   # [panels, BLOCK_K, TILE_M], contiguous
            for each tile [TILE_M, TILE_N] of c:         # _update_tile, in vector registers
                for each k: c_tile = min(c_tile, a_k + b_k)

With AVX-512, a tile of float32 is 6 x 64: 24 vectors of 16 values. A step of k loads 4 vectors of b
and 6 values of a, each repeated in a vector, for 24 sums and 24 minima.

`_update_tile` is written in LLVM's own vectors, because a loop that is left to LLVM's vectorizer
reloads c at every k.
"""

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, typeof, types
from numba.core import cgutils
from numba.extending import intrinsic

from tri_apsp.kernels.cpu.compilation import kernel
from tri_apsp.kernels.cpu.vectors import VECTOR_BYTES, VECTORS, VectorCode, addresses

# TILE_M * VECTORS accumulators, one row of b and one broadcast of a must fit the vector registers.
TILE_M = 6


OPERATIONS = {"plus": (), "max": (0,), "times": (0, 0)}
"""The operations of tri_apsp.semirings as constants: Numba knows the length of a tuple when it
compiles.
"""


def tile_n(dtype: np.dtype[Any]) -> int:
    """Return the columns of a register tile: VECTORS vectors of `dtype`."""
    return VECTORS * VECTOR_BYTES // dtype.itemsize


@intrinsic(prefer_literal=True)
def _update_tile(typing_context, c, a, b, floor, nonnegative, operation):
    """c = max(min(c, min over k of a[k, :] * b[k, :]), floor) for one tile.

    Args:
        c: [TILE_M, TILE_N] with unit column stride.
        a, b: [k, TILE_M] and [k, TILE_N], contiguous.
        nonnegative: a constant; True compares floats as integers, which gives non-negative floats
            the same order: 82 instead of 52 G/s on two cores of an EPYC 9004, where the minimum and
            the sum of floats seem to share execution ports.
        operation: the times, *; see OPERATIONS.
    """
    counts = {name: len(items) for name, items in OPERATIONS.items()}

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code, index = VectorCode(context, builder, floor), ir.IntType(64)
        c_base, a_base, b_base = addresses(context, builder, signature.args[:3], args[:3])
        bits = ir.VectorType(ir.IntType(floor.bitwidth), code.type.count)

        def smaller(x: Any, y: Any) -> Any:
            if not nonnegative.literal_value:
                return builder.select(code.less(x, y), x, y)
            x, y = builder.bitcast(x, bits), builder.bitcast(y, bits)
            least = builder.select(builder.icmp_signed("<", x, y), x, y)
            return builder.bitcast(least, code.type)

        def times(x: Any, y: Any) -> Any:
            if operation.count == counts["max"]:
                return builder.select(code.less(x, y), y, x)
            return code.multiply(x, y) if operation.count == counts["times"] else code.add(x, y)

        def constant(value: int) -> Any:
            return ir.Constant(index, value)

        def c_at(row: int, item: int) -> Any:
            offset = builder.add(
                builder.mul(c_row_bytes, constant(row)), constant(item * VECTOR_BYTES)
            )
            return builder.add(c_base, offset)

        # Load the tile of c, as TILE_M * VECTORS vectors that LLVM keeps in registers.
        c_row_bytes = cgutils.unpack_tuple(
            builder, context.make_array(c)(context, builder, args[0]).strides, 2
        )[0]
        tile = [(row, item) for row in range(TILE_M) for item in range(VECTORS)]
        acc = {place: cgutils.alloca_once_value(builder, code.load(c_at(*place))) for place in tile}
        # Main loop over k: a row of b, [TILE_N] as vectors, and one value of a after another.
        depth = cgutils.unpack_tuple(
            builder, context.make_array(a)(context, builder, args[1]).shape, 2
        )[0]
        with cgutils.for_range(builder, depth) as loop:
            a_row = builder.add(a_base, builder.mul(loop.index, constant(TILE_M * code.bytes)))
            b_row = builder.add(b_base, builder.mul(loop.index, constant(VECTORS * VECTOR_BYTES)))
            b_tile = [code.load(b_row, item) for item in range(VECTORS)]
            for row in range(TILE_M):
                address = builder.add(a_row, constant(row * code.bytes))
                value = builder.load(builder.inttoptr(address, code.type.element.as_pointer()))
                a_tile = code.broadcast(value)
                for item in range(VECTORS):
                    total = times(a_tile, b_tile[item])
                    builder.store(smaller(total, builder.load(acc[row, item])), acc[row, item])
        # Epilogue: no value below the floor.
        least = code.broadcast(args[3])
        for place in tile:
            value = builder.load(acc[place])
            code.store(builder.select(code.less(least, value), value, least), c_at(*place))
        return context.get_dummy_value()

    return types.void(c, a, b, floor, nonnegative, operation), emit


def _product(c, a, b, no_edge, floor, nonnegative, operation, width, block_m, block_k):
    """c = max(min(c, a b), floor) for c [m, n], a [m, k], b [k, n], with unit column strides;
    `operation` is one of OPERATIONS, `width` is TILE_N.

    What is missing of a last panel is filled with no_edge. `c` may be `b` if k <= block_k, and may
    be `a` if also n <= k: each is then packed before c is written.
    """
    m, n = c.shape
    depth = a.shape[1]
    b_panels = (n + width - 1) // width
    edge = np.empty((TILE_M, width), c.dtype)
    for k0 in range(0, depth, block_k):
        # Pack a slice of b: b_packed[panel] is [deep, TILE_N].
        deep = min(block_k, depth - k0)
        b_packed = np.empty((b_panels, deep, width), c.dtype)
        for p in range(b_panels):
            j0 = p * width
            wide = min(width, n - j0)
            for k in range(deep):
                for j in range(wide):
                    b_packed[p, k, j] = b[k0 + k, j0 + j]
                for j in range(wide, width):
                    b_packed[p, k, j] = no_edge
        for m0 in range(0, m, block_m):
            # Pack block_m rows of a: a_packed[panel] is [deep, TILE_M].
            high = min(block_m, m - m0)
            a_panels = (high + TILE_M - 1) // TILE_M
            a_packed = np.empty((a_panels, deep, TILE_M), c.dtype)
            for p in range(a_panels):
                for i in range(TILE_M):
                    row = p * TILE_M + i
                    for k in range(deep):
                        a_packed[p, k, i] = a[m0 + row, k0 + k] if row < high else no_edge
            # Update tiles; one that reaches past c is updated in the buffer `edge` and copied back.
            for q in range(b_panels):
                j0 = q * width
                wide = min(width, n - j0)
                for p in range(a_panels):
                    i0 = m0 + p * TILE_M
                    tall = min(TILE_M, m0 + high - i0)
                    if tall == TILE_M and wide == width:
                        tile = c[i0 : i0 + TILE_M, j0 : j0 + width]
                    else:
                        tile = edge[:, :]
                        for i in range(tall):
                            for j in range(wide):
                                tile[i, j] = c[i0 + i, j0 + j]
                    if nonnegative:
                        _update_tile(tile, a_packed[p], b_packed[q], floor, True, operation)
                    else:
                        _update_tile(tile, a_packed[p], b_packed[q], floor, False, operation)
                    if tall < TILE_M or wide < width:
                        for i in range(tall):
                            for j in range(wide):
                                c[i0 + i, j0 + j] = tile[i, j]


def _closure(d, no_edge, floor, operation, width):
    """d = d* for one small block d [n, n], by Floyd-Warshall on a copy padded with no_edge;
    `operation` is one of OPERATIONS, `width` is TILE_N.
    """
    n = d.shape[0]
    rows, columns = (n + TILE_M - 1) // TILE_M * TILE_M, (n + width - 1) // width * width
    tile = np.empty((rows, columns), d.dtype)
    tile[:] = no_edge
    for i in range(n):
        for j in range(n):
            tile[i, j] = d[i, j]
    # Main loop over k: a product of depth 1, of copies of column k and row k.
    column = np.empty((1, rows), d.dtype)
    row = np.empty((1, columns), d.dtype)
    for k in range(n):
        for i in range(rows):
            column[0, i] = tile[i, k]
        for j in range(columns):
            row[0, j] = tile[k, j]
        for i in range(0, rows, TILE_M):
            for j in range(0, columns, width):
                _update_tile(
                    tile[i : i + TILE_M, j : j + width],
                    column[:, i : i + TILE_M],
                    row[:, j : j + width],
                    floor,
                    False,
                    operation,
                )
    for i in range(n):
        for j in range(n):
            d[i, j] = tile[i, j]


@cache
def product_kernel(dtype: np.dtype[Any], operation: tuple[int, ...] = ()) -> Any:
    """Return the compiled `_product` for a dtype and one of OPERATIONS; Numba compiles it once per
    machine, and keeps it on disk.
    """
    value, block = from_dtype(dtype), types.Array(from_dtype(dtype), 2, "A")
    sizes = types.intp, types.intp, types.intp
    signature = types.void(
        block, block, block, value, value, types.boolean, typeof(operation), *sizes
    )
    return kernel(_product, signature)


@cache
def closure_kernel(dtype: np.dtype[Any], operation: tuple[int, ...] = ()) -> Any:
    """Return the compiled `_closure` for a dtype and one of OPERATIONS."""
    value, block = from_dtype(dtype), types.Array(from_dtype(dtype), 2, "A")
    return kernel(_closure, types.void(block, value, value, typeof(operation), types.intp))
