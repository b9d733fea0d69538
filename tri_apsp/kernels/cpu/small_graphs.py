"""D = W* for many small graphs on one CPU core, in Numba: a graph is read once, stays in the L1
cache, and is written once.

    for each graph:                                          # x [n, padded_n]: whole vectors
        x = W, but no_edge in the padding and at most 0 on the diagonal; its extremes
        for each k and i:  x[i, :] = min(x[i, :], x[i, k] + x[k, :])
        D = x

`_update_limits` and `relax` are written in LLVM's own vectors: its vectorizer would test at each
row whether two rows overlap.
"""

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.extending import intrinsic

from tri_apsp.kernels.cpu.compilation import kernel
from tri_apsp.kernels.cpu.vectors import VECTOR_BYTES, VectorCode, addresses


@intrinsic
def _update_limits(typing_context, x, limits, no_edge, smallest):
    """Merge the values of x [n, padded_n] into limits [3, values of a vector]; return whether one
    is negative or NaN.

    The rows of `limits` are the lowest value, the highest, and the highest below no_edge.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = VectorCode(context, builder, signature.args[2])
        x_base, limits_base = addresses(context, builder, signature.args[:2], args[:2])
        rows, padded_n = cgutils.unpack_tuple(
            builder, context.make_array(signature.args[0])(context, builder, args[0]).shape, 2
        )
        count = builder.udiv(builder.mul(rows, padded_n), ir.Constant(rows.type, code.type.count))
        none, least = code.broadcast(args[2]), code.broadcast(args[3])
        kept = [
            cgutils.alloca_once_value(builder, code.load(limits_base, item)) for item in range(3)
        ]
        negative = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(1), 0))
        # Main loop over vectors of x: three running extremes, and whether any value is below 0.
        with cgutils.for_range(builder, count) as loop:
            address = builder.add(
                x_base, builder.mul(loop.index, ir.Constant(rows.type, VECTOR_BYTES))
            )
            value = code.load(address)
            below = builder.select(code.less(value, none), value, least)
            low, high, high_below = (builder.load(place) for place in kept)
            builder.store(builder.select(code.less(value, low), value, low), kept[0])
            builder.store(builder.select(code.less(high, value), value, high), kept[1])
            builder.store(builder.select(code.less(high_below, below), below, high_below), kept[2])
            wrong = (
                builder.fcmp_unordered("<", value, code.zero)
                if code.is_float
                else code.less(value, code.zero)
            )
            builder.store(builder.or_(builder.load(negative), code.any_of([wrong])), negative)
        for item, place in enumerate(kept):
            code.store(builder.load(place), limits_base, item)
        return builder.load(negative)

    return types.boolean(x, limits, no_edge, smallest), emit


@intrinsic
def relax(typing_context, x, m, k, floor):
    """x[i, :] = max(min(x[i, :], x[i, k] + x[k, :]), floor) for all rows i of x [n, padded_n]; no
    maximum if floor is None.

    Unless it is None, m [n, padded_n] of int32 becomes k where that is less; it is at most k
    before.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = VectorCode(context, builder, signature.args[0].dtype)
        (x_base,) = addresses(context, builder, signature.args[:1], args[:1])
        rows, padded_n = cgutils.unpack_tuple(
            builder, context.make_array(signature.args[0])(context, builder, args[0]).shape, 2
        )

        def times(value: Any, factor: int) -> Any:
            return builder.mul(value, ir.Constant(rows.type, factor))

        # Row k, and what m becomes where the sum is less.
        pivot = builder.add(x_base, builder.mul(args[2], times(padded_n, code.bytes)))
        least = None if isinstance(signature.args[3], types.NoneType) else code.broadcast(args[3])
        m_base = None
        if not isinstance(signature.args[1], types.NoneType):
            (m_base,) = addresses(context, builder, signature.args[1:2], args[1:2])
            chosen = code.broadcast(builder.trunc(args[2], ir.IntType(32)))
        # Main loop: x[i, k] repeated in a vector, against the vectors of row k.
        with cgutils.for_range(builder, rows) as i:
            x_row = builder.add(x_base, builder.mul(i.index, times(padded_n, code.bytes)))
            to_k = builder.inttoptr(
                builder.add(x_row, times(args[2], code.bytes)), code.type.element.as_pointer()
            )
            a = code.broadcast(builder.load(to_k))
            with cgutils.for_range(
                builder, builder.udiv(padded_n, ir.Constant(rows.type, code.type.count))
            ) as j:
                address = builder.add(x_row, times(j.index, VECTOR_BYTES))
                total = code.add(a, code.load(builder.add(pivot, times(j.index, VECTOR_BYTES))))
                less, lower = code.less_and_lesser(total, code.load(address))
                if least is not None:
                    lower = builder.select(code.less(lower, least), least, lower)
                code.store(lower, address)
                if m_base is not None:
                    m_row = builder.add(m_base, builder.mul(i.index, times(padded_n, 4)))
                    m_address = builder.add(m_row, times(j.index, 4 * code.type.count))
                    # The larger of m and the new k, or -1: k only grows from call to call.
                    before = code.load_indices(m_address, 0)
                    index = builder.select(less, chosen, code.no_index)
                    code.store_indices(
                        builder.select(builder.icmp_signed("<", before, index), index, before),
                        m_address,
                        0,
                    )
        return context.get_dummy_value()

    return types.void(x, m, k, floor), emit


def _solve(w, d, sizes, no_edge, smallest, floor, width, extremes):
    """Solve graphs w [batch, n, n], of which `sizes` leading vertices count, into d; `width` values
    are a vector.

    extremes [5]: the lowest weight (NaN counts as `smallest`), distance, and distance on a
    diagonal; the highest weight, and the highest below no_edge. Zero may count as a value.
    """
    batch, n, _ = w.shape
    padded_n = (n + width - 1) // width * width
    x = np.empty((n, padded_n), w.dtype)
    limits = np.empty((3, width), w.dtype)
    limits[0], limits[1:] = no_edge, smallest
    extremes[1] = extremes[2] = 0
    has_nan = False
    for g in range(batch):
        # x = W, and its extremes.
        size = sizes[g]
        for i in range(n):
            x[i] = no_edge
        for i in range(size):
            for j in range(size):
                x[i, j] = w[g, i, j]
        negative = _update_limits(x, limits, no_edge, smallest)
        for i in range(size):
            x[i, i] = min(x[i, i], 0)
        # Floyd-Warshall; without negative values nothing falls below the floor.
        if negative:
            for i in range(size):
                for j in range(size):
                    has_nan |= w[g, i, j] != w[g, i, j]
            for k in range(size):
                relax(x, None, k, floor)
            for i in range(size):
                extremes[2] = min(extremes[2], x[i, i])
                for j in range(size):
                    extremes[1] = min(extremes[1], x[i, j])
        else:
            for k in range(size):
                relax(x, None, k, None)
        for i in range(n):
            for j in range(n):
                d[g, i, j] = x[i, j]
        if size < n:  # negative weights may have lowered the padding
            d[g, size:] = no_edge
            d[g, :, size:] = no_edge
    extremes[0] = smallest if has_nan else limits[0].min()
    extremes[3], extremes[4] = limits[1].max(), limits[2].max()


@cache
def small_graphs_kernel(dtype: np.dtype[Any]) -> Any:
    """Return the compiled `_solve` for a dtype; Numba compiles it once per machine, and keeps it on
    disk.
    """
    value = from_dtype(dtype)
    w, d = types.Array(value, 3, "A"), types.Array(value, 3, "C")
    signature = types.void(
        w,
        d,
        types.Array(types.intp, 1, "A"),
        value,
        value,
        value,
        types.intp,
        types.Array(value, 1, "C"),
    )
    return kernel(_solve, signature)
