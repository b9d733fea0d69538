"""Flows of demand along shortest paths by an elimination tree, in Numba.

Counts of shortest paths follow the distances: a filled edge carries the number of its paths, and
each path of the graph is one path up and down the filled graph. Flows go back through the same
sweep transposed, a path's share by the counts. Lanes are sources, or starts:

    for the positions p that are ancestors of a start, descending:             # climb
        for edges e from p:   x[ancestor], c[ancestor] <- the shorter way; counts of equal ones add
    for p in ascending positions, while the subtree of p is visited:           # sweep
        for edges e from p:   x[p], c[p] <- likewise from the ancestor
        ... the descendants of p ...
        ratio = (f[p] + demand[p]) / c[p]                                      # transposed
        for edges e from p that are tight:   f[ancestor] += ratio c[ancestor] count[e]
    then the climb, transposed.

Positions are a preorder, so only those on the path to the root are live: at their depths lie the
values of x, c and f. Flows over filled edges add up over all starts, before one pass over the
triangles hands them on to the edges of the graph.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tri_apsp.kernels.cpu.compilation import kernel
from tri_apsp.kernels.cpu.sweeps import MANY
from tri_apsp.kernels.cpu.vectors import VECTOR_BYTES, VectorCode, addresses

_INDEX = ir.IntType(64)
# The count of a path without edges. Only ratios matter; the largest float times this is infinite.
_FIRST_COUNT = 4.0


class _Rows:
    """Emits the addresses of rows [lanes] of several arrays, and of items of others."""

    def __init__(self, context: Any, builder: Any, width: Any) -> None:
        self._context, self._builder = context, builder
        self._bytes = ir.Constant(_INDEX, width.count * VECTOR_BYTES)

    def offset(self, number: Any, kind: Any) -> Any:
        number = self._context.cast(self._builder, number, kind, types.int64)
        return self._builder.mul(number, self._bytes)

    def item(self, base: Any, kind: Any, place: Any) -> Any:
        """Emit the address of an item of an array of `kind`."""
        size = ir.Constant(_INDEX, kind.bitwidth // 8)
        address = self._builder.add(base, self._builder.mul(place, size))
        return self._builder.inttoptr(address, self._context.get_data_type(kind).as_pointer())


@intrinsic
def _reach(typing_context, x, c, f, place, climbed_x, climbed_c, first, edges, begin, end, width):
    """x[place], c[place] <- the least of climbed_x[first] and of x[ancestor] + weight over the
    edges in [begin, end), and how many paths have it; f[place] <- 0.

    Args:
        x, c, f, climbed_x, climbed_c: [rows, lanes], contiguous.
        edges: the row of the ancestor, the weight and the count of each edge.
        width: see sweeps.MANY.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code, rows = VectorCode(context, builder, x.dtype), _Rows(context, builder, width)
        lists = cgutils.unpack_tuple(builder, args[7])
        kinds = [*(signature.args[i] for i in (0, 1, 2, 4, 5)), *edges]
        arrays = [*(args[i] for i in (0, 1, 2, 4, 5)), *lists]
        x_base, c_base, f_base, climbed, counted, *bases = addresses(
            context, builder, kinds, arrays
        )
        own, vectors = rows.offset(args[6], first), range(width.count)
        best, paths = (
            [
                cgutils.alloca_once_value(builder, code.load(builder.add(base, own), i))
                for i in vectors
            ]
            for base in (climbed, counted)
        )
        bounds = (context.cast(builder, args[i], signature.args[i], types.int64) for i in (8, 9))
        with cgutils.for_range_slice(builder, *bounds, ir.Constant(_INDEX, 1)) as (e, _):
            row, weight, count = (
                builder.load(rows.item(base, kind.dtype, e))
                for base, kind in zip(bases, edges, strict=True)
            )
            other = rows.offset(row, edges[0].dtype)
            weight, count = code.broadcast(weight), code.broadcast(count)
            for i in vectors:
                total = code.add(code.load(builder.add(x_base, other), i), weight)
                new = code.multiply(code.load(builder.add(c_base, other), i), count)
                before, known = builder.load(best[i]), builder.load(paths[i])
                equal = builder.fcmp_ordered("==", total, before)
                known = builder.select(equal, code.add(known, new), known)
                less, least = code.less_and_lesser(total, before)
                builder.store(builder.select(less, new, known), paths[i])
                builder.store(least, best[i])
        out = rows.offset(args[3], place)
        for i in vectors:
            code.store(builder.load(best[i]), builder.add(x_base, out), i)
            code.store(builder.load(paths[i]), builder.add(c_base, out), i)
            code.store(code.zero, builder.add(f_base, out), i)
        return context.get_dummy_value()

    return types.void(x, c, f, place, climbed_x, climbed_c, first, edges, begin, end, width), emit


def _sum(code: VectorCode, builder: Any, vectors: list[Any]) -> Any:
    """Emit the sum of all values of vectors, in any order, as float64."""
    total = vectors[0]
    for vector in vectors[1:]:
        total = builder.fadd(total, vector)
    kind = total.type
    reduce = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(kind.element, [kind.element, kind]),
        f"llvm.vector.reduce.fadd.v{kind.count}f{8 * code.bytes}",
    )
    found = builder.call(reduce, [ir.Constant(kind.element, 0.0), total], fastmath=("reassoc",))
    return found if code.bytes == 8 else builder.fpext(found, ir.DoubleType())


@intrinsic
def _share(typing_context, x, c, f, place, climbed, first, demand, edges, over, begin, end, width):
    """Hand the flow of a position and its demand on: over tight edges to ancestors in f and `over`,
    and to its row of the climb. Return the sum of f[place]; NaN if a count is infinite, or a
    distance that has a path.

    Args:
        x, c, f: [rows, lanes], contiguous.
        climbed: x, c and f of the climb, [rows, lanes].
        demand: [lanes], that of the position.
        edges: the row of the ancestor, the weight and the count of each edge.
        over: [edges], the flow over each edge, of all lanes.
        width: see sweeps.MANY.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code, rows = VectorCode(context, builder, x.dtype), _Rows(context, builder, width)
        lists = [*cgutils.unpack_tuple(builder, args[4]), *cgutils.unpack_tuple(builder, args[7])]
        kinds = [x, c, f, demand, over, *climbed, *edges]
        arrays = [*(args[i] for i in (0, 1, 2, 6, 8)), *lists]
        bases = addresses(context, builder, kinds, arrays)
        x_base, c_base, f_base, demand_base, over_base = bases[:5]
        climb, lists = bases[5:8], bases[8:]
        own, top = rows.offset(args[3], place), rows.offset(args[5], first)
        vectors = range(width.count)
        ratios, values, flows = list[Any](), list[Any](), list[Any]()
        for i in vectors:
            value, count, flow = (
                code.load(builder.add(base, own), i) for base in (x_base, c_base, f_base)
            )
            asked = code.load(demand_base, i)
            has_path = builder.fcmp_unordered("!=", count, code.zero)  # also for NaN
            ratio = builder.fdiv(code.add(flow, asked), count)
            ratio = builder.select(has_path, ratio, code.zero)
            checked = builder.select(has_path, code.add(value, count), code.zero)
            climbed_x, climbed_c = (code.load(builder.add(base, top), i) for base in climb[:2])
            back = code.multiply(ratio, climbed_c)
            equal = builder.fcmp_ordered("==", climbed_x, value)
            code.store(builder.select(equal, back, code.zero), builder.add(climb[2], top), i)
            ratios.append(ratio)
            values.append(value)
            flows.append(code.add(flow, builder.fsub(checked, checked)))
        bounds = (context.cast(builder, args[i], signature.args[i], types.int64) for i in (9, 10))
        with cgutils.for_range_slice(builder, *bounds, ir.Constant(_INDEX, 1)) as (e, _):
            ancestor, weight, count = (
                builder.load(rows.item(base, kind.dtype, e))
                for base, kind in zip(lists, edges, strict=True)
            )
            other = rows.offset(ancestor, edges[0].dtype)
            weight, count = code.broadcast(weight), code.broadcast(count)
            shares = list[Any]()
            for i in vectors:
                total = code.add(code.load(builder.add(x_base, other), i), weight)
                share = code.multiply(code.load(builder.add(c_base, other), i), count)
                share = code.multiply(share, ratios[i])
                tight = builder.fcmp_ordered("==", total, values[i])
                share = builder.select(tight, share, code.zero)
                into = builder.add(f_base, other)
                code.store(code.add(code.load(into, i), share), into, i)
                shares.append(share)
            place_of = rows.item(over_base, over.dtype, e)
            total = builder.fadd(builder.load(place_of), _sum(code, builder, shares))
            builder.store(total, place_of)
        return _sum(code, builder, flows)

    arguments = x, c, f, place, climbed, first, demand, edges, over, begin, end, width
    return types.float64(*arguments), emit


@intrinsic
def _total(typing_context, x, place, width):
    """Return the sum of x[place], of [rows, lanes]."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code, rows = VectorCode(context, builder, x.dtype), _Rows(context, builder, width)
        (base,) = addresses(context, builder, [x], args[:1])
        row = builder.add(base, rows.offset(args[1], place))
        return _sum(code, builder, [code.load(row, i) for i in range(width.count)])

    return types.float64(x, place, width), emit


@kernel
def count_paths(
    offsets, ancestors, by_ancestor, descents, descendants, upward, downward, up_count, down_count
):
    """Add to the counts [edges] of filled edges, which hold those of edges of the graph, the paths
    through descendants that weigh as little.
    """
    place = np.empty(len(offsets), np.int64)
    for v in range(len(offsets) - 2, -1, -1):
        for e in range(offsets[v], offsets[v + 1]):
            place[ancestors[e]] = e
        for d in range(by_ancestor[v], by_ancestor[v + 1]):
            f = descents[d]
            for g in range(offsets[descendants[d]], f):
                e = place[ancestors[g]]
                if downward[f] + upward[g] == upward[e]:
                    up_count[e] += down_count[f] * up_count[g]
                if downward[g] + upward[f] == downward[e]:
                    down_count[e] += down_count[g] * up_count[f]


@kernel
def unpack_flows(
    offsets,
    ancestors,
    by_ancestor,
    descents,
    descendants,
    upward,
    downward,
    up_count,
    down_count,
    up_flow,
    down_flow,
    through,
):
    """Hand the flows [edges] over filled edges on to the edges below, from the top down, and add
    what passes through each position to through [n]. A filled edge keeps the whole flow, of which
    the share of its own count stays on the edge of the graph.
    """
    place = np.empty(len(offsets), np.int64)
    for v in range(len(offsets) - 1):
        for e in range(offsets[v], offsets[v + 1]):
            place[ancestors[e]] = e
        for d in range(by_ancestor[v], by_ancestor[v + 1]):
            f, p = descents[d], descendants[d]
            for g in range(offsets[p], f):
                e = place[ancestors[g]]
                if up_flow[e] > 0 and downward[f] + upward[g] == upward[e]:
                    share = up_flow[e] * (down_count[f] * up_count[g] / up_count[e])
                    through[p] += share
                    down_flow[f] += share
                    up_flow[g] += share
                if down_flow[e] > 0 and downward[g] + upward[f] == downward[e]:
                    share = down_flow[e] * (down_count[g] * up_count[f] / down_count[e])
                    through[p] += share
                    down_flow[g] += share
                    up_flow[f] += share


@kernel
def sweep_flows(
    tree,
    depths,
    up_edges,
    down_edges,
    starts,
    touched,
    demand,
    demand_rows,
    live,
    through,
    up_flow,
    down_flow,
    lost,
):
    """Add the flows from some starts to those of others. They are complete unless `through` has
    NaN: see _share.

    Args:
        tree: offsets, ancestors and parents of the elimination tree.
        depths: [n].
        up_edges: upward weights and counts [edges].
        down_edges: the depth of the ancestor, the downward weight and the count [edges].
        starts: [starts], at most as many as lanes.
        touched: the positions of starts and their ancestors, ascending.
        demand: [rows, lanes], what travels from the starts to a position of each row; [rows, 1] if
            it is the same from each. Of float32 or float64, as are weights and counts.
        demand_rows: [n], the row of each position.
        live: [3, height, lanes], memory for distances, counts and flows.
        through: [n].
        up_flow, down_flow: [edges], over filled edges.
        lost: [starts], the demand without a path is added.
    """
    offsets, ancestors, parents = tree
    weights, counts = up_edges
    x, c, f = live[0], live[1], live[2]
    n, lanes = len(parents), x.shape[1]
    # The last row is that of positions that the climb does not touch.
    last = len(touched)
    first, is_start = np.empty(n, np.int32), np.empty(last + 1, np.bool_)
    climbed_x = np.empty((last + 1, lanes), x.dtype)
    climbed_c, climbed_f = np.empty_like(climbed_x), np.empty_like(climbed_x)
    step = int(demand.shape[1] > 1)  # from lane to lane
    own, passing = np.empty(lanes, x.dtype), np.empty((2, lanes), x.dtype)
    for p in range(n):
        first[p] = last
    for k in range(last + 1):
        is_start[k] = False
        for s in range(lanes):
            climbed_x[k, s], climbed_c[k, s], climbed_f[k, s] = np.inf, 0.0, 0.0
    for k in range(last):
        first[touched[k]] = k
    for s in range(len(starts)):
        k = first[starts[s]]
        climbed_x[k, s], climbed_c[k, s], is_start[k] = 0.0, _FIRST_COUNT, True
    for k in range(last - 1, -1, -1):
        for e in range(offsets[touched[k]], offsets[touched[k] + 1]):
            a, weight, count = first[ancestors[e]], weights[e], counts[e]
            x_k, c_k, x_a, c_a = climbed_x[k], climbed_c[k], climbed_x[a], climbed_c[a]
            for s in range(lanes):  # LLVM vectorizes this loop
                total, paths, known = x_k[s] + weight, c_k[s] * count, c_a[s]
                known = known + paths if total == x_a[s] else known
                c_a[s] = paths if total < x_a[s] else known
                x_a[s] = min(total, x_a[s])
    climbed = climbed_x, climbed_c, climbed_f
    path, height = np.empty(len(x), np.int32), 0
    for p in range(n + 1):
        parent = parents[p] if p < n else -1
        while height > 0 and path[height - 1] != parent:
            height -= 1
            q = path[height]
            # Copied, since a variable for either array would count references at each position.
            k, row = first[q], demand_rows[q]
            for s in range(lanes):
                own[s] = demand[row, s * step]
            if is_start[k]:  # where its own flow arrives, and does not pass through
                for s in range(len(starts)):
                    if starts[s] == q:
                        own[s], f[height, s] = f[height, s], 0.0
            is_lost = False
            for s in range(len(starts)):
                is_lost |= x[height, s] == np.inf
            if is_lost:
                for s in range(len(starts)):
                    if x[height, s] == np.inf:
                        lost[s] += own[s]
            through[q] += _share(
                x,
                c,
                f,
                height,
                climbed,
                k,
                own,
                down_edges,
                down_flow,
                offsets[q],
                offsets[q + 1],
                MANY,
            )
        if p < n:
            path[height] = p
            begin, end = offsets[p], offsets[p + 1]
            _reach(x, c, f, height, climbed_x, climbed_c, first[p], down_edges, begin, end, MANY)
            height += 1
    # The climb, transposed: pulled by the lower end. At a start flow arrives.
    for k in range(last):
        p = touched[k]
        for s in range(lanes):
            passing[0, s] = 0.0
        for e in range(offsets[p], offsets[p + 1]):
            a, weight, count = first[ancestors[e]], weights[e], counts[e]
            x_k, c_k, f_k = climbed_x[k], climbed_c[k], climbed_f[k]
            x_a, c_a, f_a = climbed_x[a], climbed_c[a], climbed_f[a]
            for s in range(lanes):  # LLVM vectorizes this loop
                is_tight = (x_k[s] + weight == x_a[s]) & (f_a[s] > 0)
                share = f_a[s] * (c_k[s] * count / c_a[s]) if is_tight else 0.0
                f_k[s] += share
                passing[0, s] += share
                passing[1, s] = share
            up_flow[e] += _total(passing, 1, MANY)
        if is_start[k]:
            for s in range(len(starts)):
                if starts[s] == p:
                    passing[0, s] = 0.0
        through[p] += _total(passing, 0, MANY)
