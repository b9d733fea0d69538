"""Tight edges: (k, j) is tight if w[k, j] = d[k, j]. The last edge of a shortest path is. For one
CPU core, in Numba.

A graph has `n` vertices. A call has some of its rows, those of the vertices `first` and following:
the leading `n` columns of contiguous matrices (rows, n), weights `w` and distances `d`. Floats are
equal within a tolerance, `relative` * |d| + `absolute`; for integers both are 0.
"""

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tri_apsp.kernels.cpu.compilation import kernel
from tri_apsp.kernels.cpu.vectors import VectorCode, addresses

COLUMNS = 64
"""Vertices whose edges are tested together, the bits of an int64; a graph must have as many
vertices.
"""


def tolerance(code: VectorCode, distance: Any, relative: Any, absolute: Any) -> Any:
    """Emit how far a sum may be from a distance that it equals."""
    if not code.is_float:
        return code.zero
    return code.add(code.multiply(relative, code.magnitude(distance)), absolute)


@intrinsic
def _is_tight(typing_context, w, d, no_edge, relative, absolute):
    """Return which of COLUMNS edges are tight, as bits: w[c] < no_edge, and w[c] is no longer than
    d[c].
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = VectorCode(context, builder, no_edge)
        edges, distances = addresses(context, builder, signature.args[:2], args[:2])
        infinity, *margins = map(code.broadcast, args[2:])
        word = ir.IntType(64)
        # A vector of comparisons is as many bits of the word.
        found = ir.Constant(word, 0)
        for item in range(COLUMNS // code.type.count):
            x, y = code.load(edges, item), code.load(distances, item)
            longer = code.less(code.add(y, tolerance(code, y, *margins)), x)
            part = builder.zext(
                code.bits(builder.and_(code.less(x, infinity), builder.not_(longer))), word
            )
            found = builder.or_(found, builder.shl(part, ir.Constant(word, item * code.type.count)))
        return found

    return types.int64(w, d, no_edge, relative, absolute), emit


@kernel
def mark_tight(masks, counts, w, d, n, first, column, no_edge, relative, absolute):
    """Find the tight edges to the vertices from `column` to column + COLUMNS, and count those to
    each vertex.

    Args:
        masks: [rows] of int64; bit c of masks[k] is set if (first + k, j0 + c) is tight, where j0 =
            min(column, n - COLUMNS).
        counts: [n] of intp; those of these vertices are written.
    """
    j0 = min(column, n - COLUMNS)
    found = np.zeros(COLUMNS, np.int64)
    for k in range(len(masks)):
        tight = _is_tight(
            w[k, j0 : j0 + COLUMNS], d[k, j0 : j0 + COLUMNS], no_edge, relative, absolute
        )
        tight &= -(1 << (column - j0))  # the vertices before `column` belong to another call
        if j0 <= first + k < j0 + COLUMNS:
            tight &= ~(1 << (first + k - j0))
        masks[k] = tight
        if tight:
            for c in range(COLUMNS):
                found[c] += tight >> c & 1
    for c in range(column - j0, COLUMNS):
        counts[j0 + c] = found[c]


# Without these flags LLVM does not vectorize a minimum of floats.
@partial(kernel, fastmath={"nnan", "nsz"})
def bound_edges(bounds, w, d, n, first, i0, i1, no_edge, relative, absolute):
    """bounds[j] = max(bounds[j], d[i, j] - c[i]) over the sources of the rows i0 to i1 from which
    the edge to j is no shortest path.

    c[i] is the distance from i to the nearest other vertex. So no edge longer than bounds[j] ends
    such a shortest path.
    """
    for i in range(i0, i1):
        source = first + i
        nearest = no_edge
        for j in range(source):
            nearest = min(nearest, d[i, j])
        for j in range(source + 1, n):
            nearest = min(nearest, d[i, j])
        if not nearest < no_edge:
            continue  # no path begins here
        # The bound of each pair, with the tolerance of each of its terms.
        margin = relative * abs(nearest) + 2 * absolute
        for j in range(n):
            y = d[i, j]
            slack = relative * abs(y)
            bound = y - nearest + (2 * slack + margin)
            longer = w[i, j] > y + (slack + absolute)
            if (y < no_edge) & longer & (j != source) & (bound > bounds[j]):
                bounds[j] = bound


@kernel
def list_sources(sources, weights, ends, lightest, masks, bounds, w, n, first, column):
    """List the tight edges (k, j) to the vertices from `column` to column + COLUMNS that are no
    longer than bounds[j].

    Args:
        sources, weights: of all such edges, those to one vertex after those to another, by
            ascending k.
        ends: [n], where the list of j begins; set to where it ends.
        lightest: [n], no_edge; set to the smallest weight of the list.
        masks: of these vertices, as from mark_tight.
    """
    j0 = min(column, n - COLUMNS)
    for k in range(len(masks)):
        tight, source = masks[k], first + k
        if tight:
            for j in range(column, j0 + COLUMNS):
                x = w[k, j]
                if tight >> (j - j0) & 1 and x <= bounds[j]:
                    sources[ends[j]] = source
                    weights[ends[j]] = x
                    lightest[j] = min(lightest[j], x)
                    ends[j] += 1


@kernel
def list_targets(targets, weights, starts, masks, w, n):
    """List the tight edges from the vertex of each row k, by ascending j: targets[starts[k] :
    starts[k + 1]].

    Args:
        targets, weights: of all tight edges.
        starts: [rows + 1] of intp, written.
        masks: [n / COLUMNS, rows], of all vertices j, as from mark_tight.
    """
    starts[0] = 0
    for k in range(masks.shape[1]):
        end = starts[k]
        for block in range(masks.shape[0]):
            tight = masks[block, k]
            if tight:
                j0 = min(block * COLUMNS, n - COLUMNS)
                for c in range(COLUMNS):
                    if tight >> c & 1:
                        targets[end], weights[end] = j0 + c, w[k, j0 + c]
                        end += 1
        starts[k + 1] = end
