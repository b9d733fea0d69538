"""Sums of gradients along shortest paths and over the terms of a product, for one CPU core, in
Numba.

All sums are of float64, and in an order that depends on nothing but the operands.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import inner, kernel

# Terms of a product that are compared together, and rows of B that stay in the cache.
_TERMS, _BLOCK = 4, 64


@kernel
def sum_subtrees(sums, values, predecessors, first):
    """sums[i, j] = the sum of values[i, v] over all v whose path from the source goes through j; 0
    where there is no path.

    Args:
        sums: [rows, n] of float64.
        values: [rows, n].
        predecessors: [rows, n] of int32, each row a tree; the source of row i is vertex (first + i)
            % n.
    """
    rows, n = predecessors.shape
    children, queue = np.empty(n, np.int32), np.empty(n, np.int32)
    for i in range(rows):
        children[:] = 0
        for j in range(n):
            before = predecessors[i, j]
            if before >= 0:
                children[before] += 1
                sums[i, j] = values[i, j]
            else:
                sums[i, j] = 0
        # Vertices whose children are all done, leaves first.
        end = 0
        for j in range(n):
            if children[j] == 0 and predecessors[i, j] >= 0:
                queue[end] = j
                end += 1
        done = 0
        while done < end:  # a vertex after all of its children
            j = queue[done]
            done += 1
            before = predecessors[i, j]
            sums[i, before] += sums[i, j]
            children[before] -= 1
            if children[before] == 0 and predecessors[i, before] >= 0:
                queue[end] = before
                end += 1
        sums[i, (first + i) % n] = 0


@kernel
def scatter_to_columns(out, values, rows):
    """out[rows[i, j], j] += values[i, j], where rows[i, j] >= 0, for each graph.

    Args:
        out: [graphs, size, columns] of float64.
        values, rows: [graphs, m, columns].
    """
    for graph in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            for j in range(rows.shape[2]):
                row = rows[graph, i, j]
                if row >= 0:
                    out[graph, row, j] += values[graph, i, j]


@kernel
def scatter_to_rows(out, values, columns):
    """out[i, columns[i, j]] += values[i, j], where columns[i, j] >= 0.

    Args:
        out: [m, size] of float64.
        values, columns: [m, n].
    """
    for i in range(columns.shape[0]):
        for j in range(columns.shape[1]):
            if columns[i, j] >= 0:
                out[i, columns[i, j]] += values[i, j]


@inner
def times(x, y, operation):
    """Return x * y by one of min_plus.OPERATIONS."""
    if len(operation) == 0:
        return x + y
    return max(x, y) if len(operation) == 1 else x * y


@kernel
def first_minimum(argmin, a, b, c, no_edge, operation):
    """argmin[i, j] = the first k with a[i, k] * b[k, j] = c[i, j], which is less than no_edge; -1
    if there is none.

    Args:
        argmin: [m, n] of int32.
        a, b, c: [m, depth], [depth, n], [m, n] of one dtype, with unit column strides.
        operation: the times, *; see min_plus.OPERATIONS.
    """
    (m, n), depth = c.shape, b.shape[0]
    argmin[:] = -1
    for last in range(depth, 0, -_BLOCK):
        first = max(0, last - _BLOCK)
        rest = first + (last - first) % _TERMS
        for i in range(m):
            found, least = argmin[i], c[i]
            # _TERMS terms for each value of c that is loaded, the first of them last.
            for k in range(last - _TERMS, rest - 1, -_TERMS):
                x0, x1, x2, x3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
                y0, y1, y2, y3 = b[k], b[k + 1], b[k + 2], b[k + 3]
                for j in range(n):
                    best, value = found[j], least[j]
                    best = k + 3 if times(x3, y3[j], operation) == value else best
                    best = k + 2 if times(x2, y2[j], operation) == value else best
                    best = k + 1 if times(x1, y1[j], operation) == value else best
                    found[j] = k if times(x0, y0[j], operation) == value else best
            for k in range(rest - 1, first - 1, -1):
                x, y = a[i, k], b[k]
                for j in range(n):
                    found[j] = k if times(x, y[j], operation) == least[j] else found[j]
    for i in range(m):
        for j in range(n):
            if c[i, j] >= no_edge:
                argmin[i, j] = -1
