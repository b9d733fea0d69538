"""The climb and the sweep over an elimination tree for a vector of lanes at a time, in Numba.

    for the positions p that are ancestors of a lane's vertex, descending:     # climb
        for edges e from p:   x[ancestor] = min(x[ancestor], x[p] + climb[e])
    for p in ascending positions:                                              # sweep
        for edges e from p:   x[p] = min(x[p], x[ancestor] + sweep[e])

With upward weights for the climb and downward ones for the sweep, lanes are sources; with the two
exchanged, targets. Totals keep the values of live ancestors alone, in slots that fit the L1 or L2
cache.

Source: Dibbelt, Strasser, Wagner, Customizable Contraction Hierarchies, 2016, section 8; Delling,
Goldberg, Nowatzyk, Werneck, PHAST: Hardware-Accelerated Shortest Path Trees, 2011.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tri_apsp.kernels.cpu.compilation import inner, kernel
from tri_apsp.kernels.cpu.elimination_tree import enlarged
from tri_apsp.kernels.cpu.transpose import transpose
from tri_apsp.kernels.cpu.vectors import VECTOR_BYTES, VectorCode, addresses

FEW, MANY = (0,), (0, 0, 0, 0)
"""Widths of a sweep: a tuple of as many items as there are vectors of lanes, since Numba knows the
length of a tuple when it compiles. The row of a position stays in so many registers while edges
lower it.
"""

_TILE_ROWS = 16


def lanes_of(dtype: np.dtype[Any], width: tuple[int, ...]) -> int:
    """Return the lanes of a sweep."""
    return len(width) * VECTOR_BYTES // dtype.itemsize


@intrinsic
def _lower(typing_context, x, place, initial, first, places, weights, begin, end, width):
    """x[place] <- min(initial[first], min over e in [begin, end) of x[places[e]] + weights[e]).

    Args:
        x, initial: [rows, lanes], contiguous.
        width: see MANY.
    """
    vectors = width.count

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code, index = VectorCode(context, builder, x.dtype), ir.IntType(64)
        arrays = [(signature.args[i], args[i]) for i in (0, 2, 4, 5)]
        x_base, initial_base, places_base, weights_base = addresses(
            context, builder, *zip(*arrays, strict=True)
        )
        row_bytes = ir.Constant(index, vectors * VECTOR_BYTES)

        def row(base: Any, number: Any, kind: Any) -> Any:
            number = context.cast(builder, number, kind, types.int64)
            return builder.add(base, builder.mul(number, row_bytes))

        own = row(initial_base, args[3], first)
        acc = [cgutils.alloca_once_value(builder, code.load(own, i)) for i in range(vectors)]
        bounds = (context.cast(builder, args[i], signature.args[i], types.int64) for i in (6, 7))
        with cgutils.for_range_slice(builder, *bounds, ir.Constant(index, 1)) as (e, _):

            def item(base: Any, kind: Any) -> Any:
                size = ir.Constant(index, kind.bitwidth // 8)
                pointer = context.get_data_type(kind).as_pointer()
                address = builder.add(base, builder.mul(e, size))
                return builder.load(builder.inttoptr(address, pointer))

            other = row(x_base, item(places_base, places.dtype), places.dtype)
            weight = code.broadcast(item(weights_base, weights.dtype))
            for i in range(vectors):
                total = code.add(code.load(other, i), weight)
                _, least = code.less_and_lesser(total, builder.load(acc[i]))
                builder.store(least, acc[i])
        out = row(x_base, args[1], place)
        for i in range(vectors):
            code.store(builder.load(acc[i]), out, i)
        return context.get_dummy_value()

    return types.void(x, place, initial, first, places, weights, begin, end, width), emit


@intrinsic
def _add(typing_context, x, place, limit, total, reached, farthest, width):
    """Add the values x[place] that are at most `limit` to the totals of their lanes.

    Args:
        x: [rows, lanes], contiguous.
        total: [lanes] of float64, of integers int64.
        reached: [lanes] of int32, how many values.
        farthest: [lanes], the largest.
        width: see MANY.
    """
    vectors = width.count

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code, index = VectorCode(context, builder, x.dtype), ir.IntType(64)
        arrays = [(signature.args[i], args[i]) for i in (0, 3, 4, 5)]
        x_base, total_base, reached_base, farthest_base = addresses(
            context, builder, *zip(*arrays, strict=True)
        )
        number = context.cast(builder, args[1], place, types.int64)
        row = builder.add(x_base, builder.mul(number, ir.Constant(index, vectors * VECTOR_BYTES)))
        most, count = code.broadcast(args[2]), code.type.count
        wide = ir.VectorType(context.get_data_type(total.dtype), count)
        numbers = ir.VectorType(ir.IntType(32), count)

        def lower(vector: Any, base: Any, item: int, size: int, combine: Any) -> None:
            offset = ir.Constant(index, item * count * size)
            pointer = builder.inttoptr(builder.add(base, offset), vector.type.as_pointer())
            before = builder.load(pointer, align=size)
            builder.store(combine(before, vector), pointer, align=size)

        for i in range(vectors):
            value = code.load(row, i)
            kept = builder.not_(code.less(most, value))
            value = builder.select(kept, value, code.zero)
            widen = builder.fpext if code.is_float else builder.sext
            summand = value if wide == code.type else widen(value, wide)
            add = builder.fadd if code.is_float else builder.add
            lower(summand, total_base, i, 8, add)
            lower(builder.zext(kept, numbers), reached_base, i, 4, builder.add)
            lower(
                value,
                farthest_base,
                i,
                code.bytes,
                lambda a, b: builder.select(code.less(a, b), b, a),
            )
        return context.get_dummy_value()

    return types.void(x, place, limit, total, reached, farthest, width), emit


@kernel
def touched_positions(parents, starts, seen):
    """Return the positions of `starts` and their ancestors in the tree.

    Args:
        seen: [n] of bool, False before and after.
    """
    found, count = np.empty(1024, np.int32), 0
    for p in starts:
        while p >= 0 and not seen[p]:
            if count == len(found):
                found = enlarged(found, 2 * count)
            seen[p] = True
            found[count] = p
            count += 1
            p = parents[p]
    for k in range(count):
        seen[found[k]] = False
    return found[:count]


@inner
def climb(tree, weights, starts, missing, lanes):
    """Return for each position the row [n] of its value after a climb from `starts`, and the rows
    [., lanes]. All untouched positions have the first row, which is `missing`, as are lanes without
    a start.

    Args:
        tree: offsets, ancestors and parents of the elimination tree.
        weights: [edges] of the filled graph.
        starts: [starts], at most `lanes` positions.
    """
    offsets, ancestors, parents = tree
    n, rows = len(parents), 1
    first, touched = np.empty(n, np.int32), np.empty(n + 1, np.int32)
    for p in range(n):
        first[p] = 0
    # The path from each start to an ancestor of those before gets rows that fall, so that each
    # position has a higher row than its ancestors.
    for s in range(len(starts)):
        p = starts[s]
        while p >= 0 and first[p] == 0:
            rows += 1
            p = parents[p]
        end, p, k = p, starts[s], rows
        while p != end:
            k -= 1
            first[p], touched[k] = k, p
            p = parents[p]
    x = np.empty((rows, lanes), weights.dtype)
    for k in range(rows):
        for s in range(lanes):
            x[k, s] = missing
    for s in range(len(starts)):
        x[first[starts[s]], s] = 0
    for k in range(rows - 1, 0, -1):
        row = x[k]
        for e in range(offsets[touched[k]], offsets[touched[k] + 1]):
            other, w = x[first[ancestors[e]]], weights[e]
            for s in range(lanes):  # LLVM vectorizes this loop
                other[s] = min(other[s], row[s] + w)
    return first, x


@kernel
def sweep_rows(tree, climb_weights, weights, starts, missing, x, width):
    """x [n, lanes] <- the values of all positions for the lanes of `starts`; `width`: see MANY."""
    offsets, ancestors = tree[0], tree[1]
    first, initial = climb(tree, climb_weights, starts, missing, x.shape[1])
    for p in range(len(x)):
        _lower(x, p, initial, first[p], ancestors, weights, offsets[p], offsets[p + 1], width)


@kernel
def sweep_totals(tree, slots, edge_slots, climb_weights, weights, starts, missing, limit, x, found):
    """Add the values of all positions to the totals of the lanes of `starts`.

    Args:
        slots: [n], where the value of each position is kept, -1 where none reads it.
        edge_slots: [edges], the slots of the ancestors.
        x: [slots + 1, lanes], memory.
        found: the totals, as _add takes them.
    """
    offsets, scratch = tree[0], len(x) - 1
    total, reached, farthest = found
    first, initial = climb(tree, climb_weights, starts, missing, x.shape[1])
    for p in range(len(slots)):
        place = slots[p] if slots[p] >= 0 else scratch
        _lower(x, place, initial, first[p], edge_slots, weights, offsets[p], offsets[p + 1], MANY)
        _add(x, place, limit, total, reached, farthest, MANY)


@kernel
def sweep_within(
    tree, slots, edge_slots, climb_weights, weights, starts, missing, limits, amounts, x, found
):
    """found [limits, lanes] <- the sum of the amounts [n] of all positions whose value is at most
    each of the limits.

    Args:
        slots, edge_slots, x: as for sweep_totals.
        limits: [limits].
        amounts: [n] of float64, by position.
    """
    offsets, scratch, lanes = tree[0], len(x) - 1, x.shape[1]
    first, initial = climb(tree, climb_weights, starts, missing, lanes)
    for p in range(len(slots)):
        place = slots[p] if slots[p] >= 0 else scratch
        _lower(x, place, initial, first[p], edge_slots, weights, offsets[p], offsets[p + 1], MANY)
        row, amount = x[place], amounts[p]
        for i in range(len(limits)):
            into, limit = found[i], limits[i]
            for s in range(lanes):  # LLVM vectorizes this loop
                into[s] += amount if row[s] <= limit else 0.0


@kernel
def sweep_row(offsets, ancestors, parents, climb_weights, weights, start, missing, x):
    """x [n] <- the values of all positions for one start."""
    for p in range(len(x)):
        x[p] = missing
    x[start] = 0
    p = start
    while p >= 0:
        for e in range(offsets[p], offsets[p + 1]):
            x[ancestors[e]] = min(x[ancestors[e]], x[p] + climb_weights[e])
        p = parents[p]
    end = offsets[0]
    for p in range(len(x)):
        best, begin, end = x[p], end, offsets[p + 1]
        for e in range(begin, end):
            best = min(best, x[ancestors[e]] + weights[e])
        x[p] = best


@kernel
def write_rows(x, positions, limit, missing, d, rows):
    """Write x[positions[v], s] to d[rows[s], v], or `missing` where it exceeds the limit."""
    n, lanes = len(positions), x.shape[1]
    # _TILE_ROWS rows of x fit the L1 cache, and _TILE_ROWS values of d a line of it.
    tile = np.empty((_TILE_ROWS, lanes), x.dtype)
    turned = np.empty((lanes, _TILE_ROWS), x.dtype)
    for begin in range(0, n, _TILE_ROWS):
        end = min(n, begin + _TILE_ROWS)
        for v in range(begin, end):
            row, own = x[positions[v]], tile[v - begin]
            for s in range(lanes):  # LLVM vectorizes this loop
                own[s] = row[s] if row[s] <= limit else missing
        transpose(turned, tile)
        for s in range(len(rows)):
            into, values = d[rows[s], begin:end], turned[s]
            for i in range(len(into)):
                into[i] = values[i]


@kernel
def write_row(x, positions, limit, missing, d):
    """Write x[positions[v]] to d[v], or `missing` where it exceeds the limit."""
    for v in range(len(positions)):
        value = x[positions[v]]
        d[v] = value if value <= limit else missing
