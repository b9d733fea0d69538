"""The schedules of sweeps on a GPU, without weights: tasks of an elimination tree, and the records
of their edges; and the walk of flows.
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


@dataclass(frozen=True)
class Walk:
    """The records of a walk that enters and leaves each position, as tensors on a device;
    tri_apsp.kernels.shared.flows has their format.

    Attributes:
        words: (records + CHUNK, 4) of int32, with 0 for rows of demand.
        edges: (records + CHUNK, 2) of int64, the edges of each record; tree.edges means none.
        places: (edges,) of int64, where each edge is among `edges` as its position is left.
        records: their number, without the zeros at the end.
    """

    words: torch.Tensor
    edges: torch.Tensor
    places: torch.Tensor
    records: int


def walk_of(tree: EliminationTree, device: torch.device) -> Walk:
    """Return the walk of flows, for a tree with fewer than 2^16 levels."""
    from tri_apsp.kernels.shared import flows as kernels

    lists = tree.depths, tree.ends, tree.offsets, tree.depths[tree.ancestors]
    depths, ends, offsets, slots = (torch.from_numpy(x).to(device).long() for x in lists)
    positions = torch.arange(tree.n, device=device)
    needed = (offsets.diff() + 1).div(2, rounding_mode="floor").clamp(min=1)
    is_single = (needed == 1) & (ends == positions + 1)  # entered and left by one record
    # Events: a position is entered after all before it, of which those on its path are not left.
    enters, leaves = 2 * positions - depths, 2 * ends - depths - 1
    owners, counts = (torch.empty(2 * tree.n, dtype=torch.int64, device=device) for _ in range(2))
    owners[enters], owners[leaves] = positions, positions
    counts[enters], counts[leaves] = needed, torch.where(is_single, 0, needed)
    firsts = counts.cumsum(0) - counts
    events = torch.arange(2 * tree.n, device=device).repeat_interleave(counts)
    owner, place = owners[events], torch.arange(len(events), device=device) - firsts[events]
    # The flags, and the edges.
    is_entered, single = events == enters[owner], is_single[owner]
    is_left, is_last = ~is_entered | single, is_entered & (place == needed[owner] - 1)
    flags = is_entered * kernels.ENTERS.value + is_last * kernels.LAST.value
    flags += is_left * (kernels.LEAVES.value + (place == 0) * kernels.FIRST.value)
    edges = (offsets[owner] + 2 * place)[:, None] + torch.arange(2, device=device)
    edges = torch.where(edges < offsets[owner + 1][:, None], edges, tree.edges)
    places = torch.empty(tree.edges + 1, dtype=torch.int64, device=device)
    index = torch.arange(edges.numel(), device=device).reshape(edges.shape)
    places[edges[is_left]] = index[is_left]
    # The slots of ancestors; of none, the one after all.
    of_edges = torch.cat((slots, slots.new_full((1,), tree.height)))[edges]
    words = torch.zeros(len(events) + CHUNK, 4, dtype=torch.int32, device=device)
    both = of_edges[:, 0] + (of_edges[:, 1] << 16)
    columns = both, flags + (depths[owner] << 4), owner
    words[: len(events), :3] = torch.stack(columns, 1).to(torch.int32)
    edges = torch.cat((edges, edges.new_full((CHUNK, 2), tree.edges)))
    return Walk(words, edges, places[:-1], len(events))
