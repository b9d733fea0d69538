"""Min-plus kernels for one CPU core, in Numba: a register-tiled product and the closure of a small
block.

The product is the classical matrix-multiplication nest (Goto and van de Geijn, 2008) with (min, +)
inside:

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
from numba import from_dtype, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from tri_apsp.kernels.cpu.vectors import VECTOR_BYTES, VECTORS, broadcast, vector_of

# TILE_M * VECTORS accumulators, one row of b and one broadcast of a must fit the vector registers.
TILE_M = 6


def tile_n(dtype: np.dtype[Any]) -> int:
    """Return the columns of a register tile: VECTORS vectors of `dtype`."""
    return VECTORS * VECTOR_BYTES // dtype.itemsize


def _emit_update_tile(
    context: Any, builder: Any, signature: Any, args: Any, *, by_bits: bool
) -> Any:
    """Emit c[TILE_M, TILE_N] = max(min(c, min over k of a[k, :] + b[k, :]), floor).

    `by_bits` compares floats as integers, which gives non-negative floats the same order: 82
    instead of 52 G/s on two cores of an EPYC 9004, where the minimum and the sum of floats seem to
    share execution ports.
    """
    floor_type = signature.args[3]
    c, a, b = (
        context.make_array(t)(context, builder, v)
        for t, v in zip(signature.args[:3], args[:3], strict=True)
    )
    is_float = isinstance(floor_type, types.Float)
    value_bytes = floor_type.bitwidth // 8
    vector = vector_of(context, floor_type)
    bits = ir.VectorType(ir.IntType(floor_type.bitwidth), vector.count)
    index = ir.IntType(64)

    def smaller(x: Any, y: Any) -> Any:
        if is_float and not by_bits:
            return builder.select(builder.fcmp_ordered("<", x, y), x, y)
        if is_float:
            x, y = builder.bitcast(x, bits), builder.bitcast(y, bits)
        least = builder.select(builder.icmp_signed("<", x, y), x, y)
        return builder.bitcast(least, vector) if is_float else least

    def larger(x: Any, y: Any) -> Any:
        above = builder.fcmp_ordered(">", x, y) if is_float else builder.icmp_signed(">", x, y)
        return builder.select(above, x, y)

    def vector_at(base: Any, offset: Any) -> Any:
        return builder.inttoptr(builder.add(base, offset), vector.as_pointer())

    def constant(value: int) -> Any:
        return ir.Constant(index, value)

    def c_at(row: int, column: int) -> Any:
        return vector_at(
            c_base,
            builder.add(builder.mul(c_row_bytes, constant(row)), constant(column * VECTOR_BYTES)),
        )

    tile = [(row, column) for row in range(TILE_M) for column in range(VECTORS)]
    c_base, a_base, b_base = (builder.ptrtoint(array.data, index) for array in (c, a, b))
    c_row_bytes = cgutils.unpack_tuple(builder, c.strides, 2)[0]
    depth = cgutils.unpack_tuple(builder, a.shape, 2)[0]

    # Load the tile of c, as TILE_M * VECTORS vectors that LLVM keeps in registers.
    acc = {at: cgutils.alloca_once(builder, vector) for at in tile}
    for at in tile:
        builder.store(builder.load(c_at(*at), align=value_bytes), acc[at])
    # Main loop over k: a row of b, [TILE_N] as vectors, and one value of a after another.
    with cgutils.for_range(builder, depth) as loop:
        a_row = builder.add(a_base, builder.mul(loop.index, constant(TILE_M * value_bytes)))
        b_row = builder.add(b_base, builder.mul(loop.index, constant(VECTORS * VECTOR_BYTES)))
        b_tile = [
            builder.load(vector_at(b_row, constant(column * VECTOR_BYTES)), align=value_bytes)
            for column in range(VECTORS)
        ]
        for row in range(TILE_M):
            address = builder.add(a_row, constant(row * value_bytes))
            value = builder.load(builder.inttoptr(address, vector.element.as_pointer()))
            a_tile = broadcast(builder, value, vector)
            for column in range(VECTORS):
                total = (
                    builder.fadd(a_tile, b_tile[column])
                    if is_float
                    else builder.add(a_tile, b_tile[column])
                )
                builder.store(smaller(total, builder.load(acc[row, column])), acc[row, column])
    # Epilogue: no value below the floor.
    floor = broadcast(builder, args[3], vector)
    for at in tile:
        builder.store(larger(builder.load(acc[at]), floor), c_at(*at), align=value_bytes)
    return context.get_dummy_value()


@intrinsic
def _update_tile(typing_context, c, a, b, floor):  # type: ignore[no-untyped-def]
    """For weights of any sign: c [TILE_M, TILE_N] with unit column stride, a [k, TILE_M] and b [k,
    TILE_N] contiguous.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _emit_update_tile(context, builder, signature, args, by_bits=False)

    return types.void(c, a, b, floor), emit


@intrinsic
def _update_tile_nonnegative(typing_context, c, a, b, floor):  # type: ignore[no-untyped-def]
    """The same, for weights without negative values."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _emit_update_tile(context, builder, signature, args, by_bits=True)

    return types.void(c, a, b, floor), emit


def _product(c, a, b, no_edge, floor, nonnegative, width, block_m, block_k):  # type: ignore[no-untyped-def]
    """c = max(min(c, a b), floor) for c [m, n], a [m, k], b [k, n], with unit column strides;
    `width` is TILE_N.

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
                        _update_tile_nonnegative(tile, a_packed[p], b_packed[q], floor)
                    else:
                        _update_tile(tile, a_packed[p], b_packed[q], floor)
                    if tall < TILE_M or wide < width:
                        for i in range(tall):
                            for j in range(wide):
                                c[i0 + i, j0 + j] = tile[i, j]


def _closure(d, no_edge, floor, width):  # type: ignore[no-untyped-def]
    """d = d* for one small block d [n, n], by Floyd-Warshall on a copy padded with no_edge; `width`
    is TILE_N.
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
                )
    for i in range(n):
        for j in range(n):
            d[i, j] = tile[i, j]


@cache
def product_kernel(dtype: np.dtype[Any]) -> Any:
    """Return the compiled `_product` for a dtype; Numba compiles it once per machine, and keeps it
    on disk.
    """
    value, block = from_dtype(dtype), types.Array(from_dtype(dtype), 2, "A")
    signature = types.void(
        block, block, block, value, value, types.boolean, types.intp, types.intp, types.intp
    )
    return njit(signature, nogil=True, cache=True)(_product)


@cache
def closure_kernel(dtype: np.dtype[Any]) -> Any:
    """Return the compiled `_closure` for a dtype."""
    value, block = from_dtype(dtype), types.Array(from_dtype(dtype), 2, "A")
    return njit(types.void(block, value, value, types.intp), nogil=True, cache=True)(_closure)
