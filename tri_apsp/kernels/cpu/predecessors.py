"""Predecessors of all pairs from weights and distances, for one CPU core, in Numba.

    list the tight edges (k, j) to each vertex j: those with w[k, j] = d[k, j]   # tight_edges.py
    for each strip of LANES sources i:                                           # search_strip
        transpose their distances, [n, LANES]: the sources of a row fill vector registers
        for each vertex j:
            where w[i, j] = d[i, j], the edge is a shortest path: pred[i, j] = i
            elsewhere pred[i, j] = argmin of d[i, k] + w[k, j] over the list of j,
                which is read until every sum is as small as the distance
    for each strip, and each vertex j that this leaves in doubt:                 # check_strip
        where no sum of the list is the distance, search all edges to j
        flag the sources whose predecessors may form a loop
    for each source whose predecessors may form a loop:                          # fewest_edges
        breadth-first search along the edges with d[i, k] + w[k, j] = d[i, j]

A loop has an edge (k, j) with d[i, k] >= d[i, j]. If every sum along it is its distance within the
tolerance, then its weight is so small that w[k, j] + d[j, k] is within that of a cycle.

Only the check needs edges and distances of other sources than those of the strip.

The rows of the graph and the tolerance are as in tight_edges.py. Small graphs need no lists and no
strips, but are searched by every edge, many in one call.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tri_apsp.kernels.cpu.compilation import kernel
from tri_apsp.kernels.cpu.fewest_edges import fewest_edges, reach_rest
from tri_apsp.kernels.cpu.tight_edges import COLUMNS, tolerance
from tri_apsp.kernels.cpu.transpose import transpose
from tri_apsp.kernels.cpu.vectors import VECTOR_BYTES, VECTORS, VectorCode, addresses

NOT_CLOSER, INEXACT, ZERO_CYCLE = 1, 2, 4
"""Flags of a source: a predecessor is no closer to it; a distance that is no sum within the
tolerance; an edge from a predecessor that is no closer may lie on a cycle of weight 0. ZERO_CYCLE,
or both others, may mean a loop of predecessors.
"""

# Edges between two tests of whether every sum of a strip is small enough.
_CHUNK = 8
# Edges to each of COLUMNS vertices that are read in turn: the rows of a strip that they name mostly
# stay in the L1 cache.
_SEGMENT = 256


def lanes(dtype: np.dtype[Any]) -> int:
    """Return the sources of a strip."""
    return VECTORS * VECTOR_BYTES // dtype.itemsize


@intrinsic
def _take_edges(
    typing_context, pred, best, distances, direct, i0, no_edge, lowest, relative, absolute
):
    """Start a search for the predecessors of LANES sources, i0 and those after it, and one vertex
    j.

    pred = the source and best = `lowest` where the edge is a shortest path; -1 and `lowest` where
    there is no path; else -1 and no_edge.

    Args:
        pred, best, distances, direct: [LANES]; the distances from the sources to j, and the weights
            of their edges to it.
        lowest: a value that no sum is smaller than.

    Returns:
        Whether something remains to be searched.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = VectorCode(context, builder, no_edge)
        pred, best, known, edges = addresses(context, builder, signature.args[:4], args[:4])
        infinity, least, *margins = map(code.broadcast, args[5:])
        first = code.broadcast(builder.trunc(args[4], ir.IntType(32)))
        remaining = []
        for item in range(VECTORS):
            y = code.load(known, item)
            reached = code.less(y, infinity)
            longer = code.less(code.add(y, tolerance(code, y, *margins)), code.load(edges, item))
            remaining.append(builder.and_(reached, longer))
            code.store(builder.select(remaining[-1], infinity, least), best, item)
            source = builder.add(first, code.indices(item))
            edge = builder.and_(reached, builder.not_(longer))
            code.store_indices(builder.select(edge, source, code.no_index), pred, item)
        return code.any_of(remaining)

    return types.boolean(
        pred, best, distances, direct, i0, no_edge, lowest, relative, absolute
    ), emit


@intrinsic
def _search(typing_context, pred, best, distances, strip, sources, weights, start, stop):
    """best = min(best, strip[k] + w) and pred = its k, the first if there are several, over the
    edges from `start` to `stop`.

    k is sources[e] and w is weights[e]; strip is [n, LANES], the other arrays of a search as above.
    Once no `best` is larger than the distance, no more edges are read.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = VectorCode(context, builder, distances.dtype)
        pred, best, known, rows = addresses(context, builder, signature.args[:4], args[:4])
        kinds, values = signature.args[4:6], args[4:6]
        sources, weights = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(kinds, values, strict=True)
        )
        start, stop = args[6:]
        integer = stop.type
        # The minimum and its k of each source, [LANES] as VECTORS vectors.
        minima = [
            cgutils.alloca_once_value(builder, code.load(best, item)) for item in range(VECTORS)
        ]
        found = [
            cgutils.alloca_once_value(builder, code.load_indices(pred, item))
            for item in range(VECTORS)
        ]
        # Chunks of edges; a chunk is empty once no minimum is larger than its distance.
        with cgutils.for_range_slice(
            builder, start, stop, ir.Constant(integer, _CHUNK), inc=True
        ) as (begin, _):
            larger = [
                code.less(code.load(known, item), builder.load(minima[item]))
                for item in range(VECTORS)
            ]
            end = builder.add(begin, ir.Constant(integer, _CHUNK))
            end = builder.select(builder.icmp_signed("<", end, stop), end, stop)
            end = builder.select(code.any_of(larger), end, begin)
            with cgutils.for_range_slice(
                builder, begin, end, ir.Constant(integer, 1), inc=True
            ) as (at, _):
                source = builder.load(builder.gep(sources, [at]))
                weight = code.broadcast(builder.load(builder.gep(weights, [at])))
                offset = builder.mul(
                    builder.sext(source, integer), ir.Constant(integer, VECTORS * VECTOR_BYTES)
                )
                row, index = builder.add(rows, offset), code.broadcast(source)
                for item in range(VECTORS):
                    total, before = (
                        code.add(code.load(row, item), weight),
                        builder.load(minima[item]),
                    )
                    less = code.less(total, before)
                    builder.store(builder.select(less, total, before), minima[item])
                    builder.store(
                        builder.select(less, index, builder.load(found[item])), found[item]
                    )
        for item in range(VECTORS):
            code.store(builder.load(minima[item]), best, item)
            code.store_indices(builder.load(found[item]), pred, item)
        return context.get_dummy_value()

    return types.void(pred, best, distances, strip, sources, weights, start, stop), emit


@intrinsic
def _needs_check(typing_context, best, distances, lightest, lowest, relative, absolute):
    """Return whether a pair that was searched must be checked.

    Either no sum equals its distance within the tolerance; or `lightest`, the smallest weight of
    the edges, is so small that a sum may be no larger than what it was added to.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = VectorCode(context, builder, lowest)
        best, known = addresses(context, builder, signature.args[:2], args[:2])
        smallest, least, *margins = map(code.broadcast, args[2:])
        uncertain = []
        for item in range(VECTORS):
            x, y = code.load(best, item), code.load(known, item)
            slack = tolerance(code, y, *margins)
            light = builder.and_(
                code.less(least, x), builder.not_(code.less(code.add(slack, slack), smallest))
            )
            uncertain += [light, code.less(code.add(y, slack), x)]
        return code.any_of(uncertain)

    return types.boolean(best, distances, lightest, lowest, relative, absolute), emit


@kernel
def check_strip(
    pred,
    first_column,
    flags,
    doubts,
    d,
    n,
    first,
    i0,
    targets,
    begin,
    end,
    edges,
    back,
    no_edge,
    relative,
    absolute,
    cycle_relative,
    cycle_absolute,
):
    """Check the predecessors of the rows from i0 to i0 + LANES: where rounding hid the right edge,
    take the best of all edges. Set flags.

    Args:
        pred: [LANES, ...], the predecessors of these rows, from the vertex `first_column` on.
        doubts: as search_strip leaves them.
        flags: [rows] of uint8, in which the flags of sources are set.
        targets: vertices, of which those from `begin` to `end` are checked, where they are in
            doubt.
        edges: [n, targets], the weights of the edges to them.
        back: [targets, n], the distances from them.
    """
    i1 = min(i0 + VECTORS * VECTOR_BYTES // d.itemsize, len(d))
    for column in range(begin, end):
        j = targets[column]
        if not doubts[j]:
            continue
        for i in range(i0, i1):
            k, y = pred[i - i0, j - first_column], d[i, j]
            # Numba has no `in` for a few variables.
            if not y < no_edge or first + i == j or first + i == k:
                continue
            if k < 0 or d[i, k] + edges[k, column] > y + (relative * abs(y) + absolute):
                best = no_edge
                for other in range(n):
                    x, z = edges[other, column], d[i, other]
                    if other != j and x < no_edge and z < no_edge and z + x < best:
                        best, k = z + x, other
                pred[i - i0, j - first_column] = k
                flags[i] |= INEXACT
            if k >= 0 and d[i, k] >= y and back[column, k] < no_edge:
                flags[i] |= NOT_CLOSER
                if edges[k, column] + back[column, k] <= cycle_relative * abs(y) + cycle_absolute:
                    flags[i] |= ZERO_CYCLE


@kernel
def search_strip(
    pred,
    flags,
    doubts,
    w,
    d,
    n,
    first,
    i0,
    starts,
    ends,
    sources,
    weights,
    lightest,
    has_all,
    no_edge,
    lowest,
    relative,
    absolute,
    cycle_relative,
    cycle_absolute,
):
    """Write the predecessors of the rows from i0 to i0 + LANES.

    Args:
        pred: [rows, n] of int32.
        doubts: [n] of bool, False, set for the vertices whose predecessors must be checked.
        flags: as for check_strip.
        starts, ends: [n], where the list of edges to each vertex begins and ends.
        sources, weights, lightest: of the lists, as from list_sources.
        has_all: whether the rows are those of all vertices. Then what is in doubt is checked at
            once, while it is in the cache.
        lowest: a value that no sum is smaller than.
    """
    vertices = np.arange(n if has_all else 0)
    # The strip: row j has the distances from the sources i0 to i1 to j.
    width = VECTORS * VECTOR_BYTES // d.itemsize
    i1 = min(i0 + width, len(d))
    strip = np.empty((n, width), d.dtype)
    strip[:, i1 - i0 :] = no_edge
    transpose(strip[:, : i1 - i0], d[i0:i1, :n])
    for i in range(i0, i1):
        strip[first + i, i - i0] = (
            no_edge  # no predecessor of a source, and no edge that begins there
        )
    # COLUMNS vertices at a time; the last of them begin before `column`, so that they are as many.
    tile = np.empty((COLUMNS, width), np.int32)  # predecessors, transposed
    best = np.empty((COLUMNS, width), d.dtype)
    direct = np.empty((COLUMNS, width), d.dtype)
    for column in range(0, n, COLUMNS):
        j0 = min(column, n - COLUMNS)
        transpose(direct[:, : i1 - i0], w[i0:i1, j0 : j0 + COLUMNS])
        longest = 0
        for c in range(COLUMNS):
            if _take_edges(
                tile[c],
                best[c],
                strip[j0 + c],
                direct[c],
                first + i0,
                no_edge,
                lowest,
                relative,
                absolute,
            ):
                longest = max(longest, ends[j0 + c] - starts[j0 + c])
        # A segment of each list in turn.
        for begin in range(0, longest, _SEGMENT):
            for c in range(COLUMNS):
                start, stop = (
                    starts[j0 + c] + begin,
                    min(starts[j0 + c] + begin + _SEGMENT, ends[j0 + c]),
                )
                _search(tile[c], best[c], strip[j0 + c], strip, sources, weights, start, stop)
        some_in_doubt = False
        for c in range(COLUMNS):
            if _needs_check(best[c], strip[j0 + c], lightest[j0 + c], lowest, relative, absolute):
                doubts[j0 + c] = some_in_doubt = True
        if has_all and some_in_doubt:
            check_strip(
                tile.T,
                j0,
                flags,
                doubts,
                d,
                n,
                first,
                i0,
                vertices,
                j0,
                j0 + COLUMNS,
                w,
                d,
                no_edge,
                relative,
                absolute,
                cycle_relative,
                cycle_absolute,
            )
        transpose(pred[i0:i1, j0 : j0 + COLUMNS], tile[:, : i1 - i0])


@kernel
def small_predecessors(
    pred, w, d, sizes, no_edge, relative, absolute, cycle_relative, cycle_absolute
):
    """Write the predecessors of graphs: pred, w and d are [batch, n, n], and graph g has the
    leading sizes[g] vertices.

    The arguments are as for the kernels above; the predecessors of other vertices are -1.
    """
    batch, n, _ = d.shape
    best = np.empty(n, d.dtype)
    found = np.empty(n, np.int32)
    for g in range(batch):
        size = sizes[g]
        pred[g] = -1
        for i in range(size):
            _search_all(best, found, w[g], d[g], size, i, no_edge)
            flags = 0
            for j in range(size):
                y = d[g, i, j]
                if j == i or not y < no_edge:
                    continue
                k = found[j]
                if (
                    w[g, i, j] <= y + (relative * abs(y) + absolute)
                    or k < 0
                    or w[g, i, j] < best[j]
                ):
                    pred[g, i, j] = i
                    continue
                # Flags, as check_strip sets them.
                pred[g, i, j] = k
                back = d[g, j, k]
                if best[j] > y + (relative * abs(y) + absolute):
                    flags |= INEXACT
                if d[g, i, k] >= y and back < no_edge:
                    flags |= NOT_CLOSER
                    if w[g, k, j] + back <= cycle_relative * abs(y) + cycle_absolute:
                        flags |= ZERO_CYCLE
            # A loop is possible: search again, along all edges, for paths of the fewest.
            if flags & ZERO_CYCLE or flags == NOT_CLOSER | INEXACT:
                offsets = np.arange(size + 1) * size
                targets = (np.arange(size * size) % size).astype(np.int32)
                weights = w[g, :size, :size].copy().ravel()
                row, distances = pred[g, i, :size], d[g, i, :size]
                left = fewest_edges(
                    row, offsets, targets, weights, i, distances, no_edge, relative, absolute
                )
                if left and relative > 0:
                    vertices = np.arange(size)
                    reach_rest(row, i, distances, vertices, w[g], no_edge, relative, absolute)


@kernel
def _search_all(best, found, w, d, n, i, no_edge):
    """best[j] = min of d[i, k] + w[k, j] over all k but i and j, and found[j] = its first k, -1 if
    there is none.
    """
    best[:] = no_edge
    found[:] = -1
    for k in range(n):
        known = d[i, k]
        if k != i and known < no_edge:
            for j in range(n):
                total = known + w[k, j]
                less = (total < best[j]) & (j != k)
                best[j] = total if less else best[j]
                found[j] = k if less else found[j]
