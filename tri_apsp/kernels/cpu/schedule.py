"""The schedule of a sweep on a GPU, in Numba: which task takes each position of an elimination
tree, and the records of its edges. tri_apsp.kernels.nvidia.sweeps shows the records of an example.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def tasks_of(parents, ends, most):
    """Divide the tree into tasks: the positions above subtrees of most[0] positions, then in each
    of those the ones above subtrees of most[1], and so on.

    Args:
        parents, ends: of the tree.
        most: [levels], descending; none: one task.

    Returns:
        The positions by task [n], ascending in each; where each task begins [tasks + 1]; the root
        of each [tasks]; the first task of each level [levels + 2].
    """
    n, levels = len(parents), len(most) + 1
    level, root = np.zeros(n, np.int32), np.zeros(n, np.int32)
    counts = np.zeros(n, np.int32)
    for p in range(n):
        for m in most:
            level[p] += ends[p] - p <= m
        above = parents[p]
        if levels > 1:
            is_root = above < 0 or level[above] != level[p]
            root[p] = p if is_root else root[above]
        counts[root[p]] += 1
    task, firsts = np.zeros(n, np.int32), np.zeros(levels + 1, np.int64)
    roots, begins = np.empty(n, np.int32), np.zeros(n + 1, np.int64)
    count = 0
    for number in range(levels):
        for p in range(n):
            if counts[p] and level[p] == number:
                roots[count], task[p] = p, count
                begins[count + 1] = begins[count] + counts[p]
                count += 1
        firsts[number + 1] = count
    order, cursor = np.empty(n, np.int32), begins[:count].copy()
    for p in range(n):
        order[cursor[task[root[p]]]] = p
        cursor[task[root[p]]] += 1
    return order, begins[: count + 1].copy(), roots[:count].copy(), firsts


@kernel
def records_of(order, begins, offsets, edge_slots, slots, vertices, unused, unroll, chunk, wide):
    """Return the records of tasks, their edges, and where the records of each task begin.

    Args:
        order, begins: of tasks_of.
        offsets, edge_slots, slots, vertices: of the tree.
        unused: the slot of values that no position reads.
        unroll: the records of a task are padded to a multiple of this.
        chunk: the number of zero records after the last task, since chunks are copied whole.

    Returns:
        (records + chunk, 4 or 8) of int32, with weights of 0; (2, records) of int64, where
        len(edge_slots) is no edge; [tasks + 1].
    """
    tasks, none = len(begins) - 1, len(edge_slots)
    firsts = np.zeros(tasks + 1, np.int64)
    for task in range(tasks):
        count = 0
        for i in range(begins[task], begins[task + 1]):
            count += max(1, (offsets[order[i] + 1] - offsets[order[i]] + 1) // 2)
        firsts[task + 1] = firsts[task] + (count + unroll - 1) // unroll * unroll
    words = np.zeros((firsts[tasks] + chunk, 8 if wide else 4), np.int32)
    edges = np.full((2, firsts[tasks]), none, np.int64)
    for task in range(tasks):
        r = firsts[task]
        for i in range(begins[task], begins[task + 1]):
            p = order[i]
            kept = slots[p] if slots[p] >= 0 else unused
            e, end = offsets[p], offsets[p + 1]
            while True:
                a = b = unused
                if e < end:
                    edges[0, r], a = e, edge_slots[e]
                    b = a
                    if e + 1 < end:
                        edges[1, r], b = e + 1, edge_slots[e + 1]
                    else:
                        edges[1, r] = e
                e += 2
                _write(words[r], a, b, 1 + kept if e >= end else 0, vertices[p], wide)
                r += 1
                if e >= end:
                    break
        while r < firsts[task + 1]:
            _write(words[r], unused, unused, 0, 0, wide)
            r += 1
    return words, edges, firsts


@kernel
def _write(record, a, b, code, vertex, wide):
    if wide:
        record[0], record[1], record[2], record[3] = a, b, code, vertex
    else:
        record[0], record[3] = a | b << 16, vertex << 12 | code
