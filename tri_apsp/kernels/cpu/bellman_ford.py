"""Negative cycles by Bellman-Ford from all vertices at once, with a queue of vertices whose
potential changed, in Numba.

A potential of floats is the unevaluated sum of two float64, `high` + `low`, with twice as many
digits as one: a cycle whose weight is tiny beside the potentials of its vertices is found too
(Dekker, A Floating-Point Technique for Extending the Available Precision, 1971). For integers,
`high` is exact, and `low` is 0.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel
from tri_apsp.kernels.cpu.sparse import topological_order


@kernel
def _plus(high, low, weight, allowance):
    """Return (high, low) + weight + allowance[0] * |weight| + allowance[1]."""
    total = high + weight
    # The rounding error of `total`, exactly, and what is too small for it.
    part = total - high
    rest = (
        (high - (total - part))
        + (weight - part)
        + (low + (allowance[0] * abs(weight) + allowance[1]))
    )
    rest = rest if rest == rest else 0 * weight  # NaN where the sum overflows
    new = total + rest
    rest = rest - (new - total)
    return new, rest if rest == rest else 0 * weight


@kernel
def _falls(total, high, low, relative):
    """Return whether a sum is less than a potential by more than `relative` * |potential|."""
    return (total[0] - high) + (total[1] - low) < -relative * abs(high)


@kernel
def bellman_ford(
    edges, w, labels, no_edge, lowest, allowance, relative, high, low, parents, cycles
):
    """Lower potentials along the edges within components, until none changes but those of
    components with a negative cycle.

    Args:
        edges: None if w is [n, n], contiguous; else offsets and targets of the edges by source:
            those of vertex k are targets[e], w[e] for offsets[k] <= e < offsets[k + 1].
        labels: [n] of int64, a number in [0, n) for each component; -1 for vertices that are left
            out.
        lowest: no potential becomes smaller.
        allowance: a cycle is negative if it weighs less than -allowance[0] times the sum of the
            magnitudes of its weights, less allowance[1] for each; zeros for integers.
        relative: a potential p[j] changes only by more than `relative` * |p[j]|.
        high, low: [n] of float64 for floats, or of int64: the potentials; 0 at first.
        parents: [n] of int64, -1 at first; p[j] became p[parents[j]] + w[parents[j], j], plus the
            allowance.
        cycles: [n] of int64, -1 at first; that of a label becomes a vertex on a negative cycle of
            the component.
    """
    # The queue is a ring of all vertices that are not left out: first those to which no cycle
    # leads, in an order in which each is processed once.
    n = len(labels)
    left, queue, capacity = labels >= 0, np.empty(n, np.int64), 0
    if w.ndim == 1:
        for v in topological_order(edges[0], edges[1], w, no_edge):
            if left[v]:
                queue[capacity] = v
                capacity += 1
                left[v] = False
    for v in range(n):
        if left[v]:
            queue[capacity] = v
            capacity += 1
    queued = labels >= 0
    head, count, taken = 0, capacity, 0
    while count:
        k = queue[head]
        head = (head + 1) % capacity
        count -= 1
        queued[k] = False
        label, known, rest = labels[k], high[k], low[k]
        if cycles[label] < 0:
            if w.ndim == 2:
                # First test whether any potential falls, in a loop without stores.
                begin, lower = 0, 0
                for j in range(n):  # LLVM vectorizes this loop
                    total = _plus(known, rest, high.dtype.type(w[k, j]), allowance)
                    less = _falls(total, high[j], low[j], relative)
                    lower += less & (labels[j] == label) & (w[k, j] < no_edge)
                end = n if lower else 0
            else:
                begin, end = edges[0][k], edges[0][k + 1]
            for e in range(begin, end):
                if w.ndim == 2:
                    j, weight = e, w[k, e]
                else:
                    j, weight = edges[1][e], w[e]
                total = _plus(known, rest, high.dtype.type(weight), allowance)
                less = _falls(total, high[j], low[j], relative)
                if less and labels[j] == label and weight < no_edge and high[j] > lowest:
                    high[j], low[j] = max(total[0], lowest), total[1]
                    parents[j] = k
                    if not queued[j]:
                        queued[j] = True
                        queue[(head + count) % capacity] = j
                        count += 1
        # Look for cycles of parents once per round; a loop at k is a cycle by itself.
        taken += 1
        if parents[k] == k:
            cycles[label] = k
        if taken % capacity == 0:
            find_cycles(parents, labels, cycles)
    # Clamped potentials stop changing on a negative cycle too.
    find_cycles(parents, labels, cycles)


@kernel
def relax_rows(w, vertices, labels, no_edge, allowance, high, low, least):
    """Lower least[0] + least[1] to the sums over edges within components from some vertices, whose
    numbers least[2] receives: of equal sums, the first vertex. See bellman_ford.

    Args:
        w: [count, n], contiguous, the weights of the edges from `vertices` [count].
        least: [3, n], of the dtype of the potentials.
    """
    for i in range(len(vertices)):
        k = vertices[i]
        for j in range(len(labels)):
            if labels[j] == labels[k] and w[i, j] < no_edge:
                total = _plus(high[k], low[k], high.dtype.type(w[i, j]), allowance)
                if total[0] < least[0, j] or (total[0] == least[0, j] and total[1] < least[1, j]):
                    least[0, j], least[1, j], least[2, j] = total[0], total[1], k


@kernel
def find_cycles(parents, labels, cycles):
    """cycles[label] = a vertex on a cycle of the graph v -> parents[v], for each component where
    one is found first.
    """
    # seen[v] is 1 + the start of the walk that came to v; a walk that meets itself has found a
    # cycle.
    seen = np.zeros(len(parents), np.int64)
    for start in range(len(parents)):
        vertex = start
        while vertex >= 0 and seen[vertex] == 0:
            seen[vertex] = start + 1
            vertex = parents[vertex]
        if vertex >= 0 and seen[vertex] == start + 1 and cycles[labels[vertex]] < 0:
            cycles[labels[vertex]] = vertex
