"""The schedule of a sweep on a GPU, without weights: tasks of an elimination tree, and the records
of their edges.
"""

from dataclasses import dataclass

import numpy as np
import torch

from tri_apsp.elimination.tree import EliminationTree

CHUNK = 128
"""Records that a program copies to shared memory at a time: of narrow ones, one per thread of four
warps.
"""

AHEAD = 2
"""Records that a program reads ahead."""


@dataclass(frozen=True)
class Schedule:
    """A schedule as tensors on a device; tri_apsp.kernels.nvidia.sweeps shows an example.

    Attributes:
        words: (records + CHUNK, words per record) of int32, with weights of 0.
        edges: (2, records) of int64, the edges of each record; tree.edges means none.
        tasks: (tasks, 8) of int32.
        preloads: (preloads, 2) of int32.
        launches: the first task and the number of tasks of each launch.
        slots: their number, including the last one, for values that no position reads.
    """

    words: torch.Tensor
    edges: torch.Tensor
    tasks: torch.Tensor
    preloads: torch.Tensor
    launches: list[tuple[int, int]]
    slots: int


def schedule_of(
    tree: EliminationTree,
    levels: tuple[int, ...],
    *,
    wide: bool,
    unroll: int,
    device: torch.device,
) -> Schedule:
    """Return the schedule of a sweep in tasks: the vertices above subtrees of levels[0] vertices,
    then in each of those the vertices above subtrees of levels[1], and so on. The records of a task
    are a multiple of `unroll`.
    """
    from tri_apsp.kernels.cpu import schedule as kernels

    unused = tree.slot_count
    order, begins, roots, numbers = kernels.tasks_of(
        tree.parents, tree.ends, np.array(levels, np.int64)
    )
    lists = tree.offsets, tree.edge_slots, tree.slots, tree.vertices
    words, edges, firsts = kernels.records_of(order, begins, *lists, unused, unroll, CHUNK, wide)
    # Values of earlier tasks that a task reads: of the ancestors of its root, padded to a multiple
    # of four.
    read = [tree.ancestors[tree.offsets[r] : tree.offsets[r + 1]] for r in roots if levels]
    read = [np.append(x, np.repeat(x[:1], -len(x) % 4)) for x in read]
    ancestors = np.concatenate([np.empty(0, np.int32), *read])
    tasks = np.zeros((len(roots), 8), np.int32)
    tasks[:, 0], tasks[:, 1], tasks[:, 4] = firsts[:-1], np.diff(firsts), tree.depths[roots]
    if levels:
        tasks[:, 3] = np.cumsum([len(x) for x in read])
        tasks[1:, 2] = tasks[:-1, 3]
    preloads = np.stack((tree.slots[ancestors], tree.vertices[ancestors]), axis=1)
    arrays = words, edges, tasks, preloads
    w, e, t, r = (torch.from_numpy(x).to(device) for x in arrays)
    launches = zip(numbers[:-1].tolist(), np.diff(numbers).tolist(), strict=True)
    return Schedule(w, e, t, r, [*launches], unused + 1)
