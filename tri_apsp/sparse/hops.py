"""Unweighted distances: the edges of shortest paths, by breadth-first search from many vertices at once."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch

from tri_apsp.device import require_memory
from tri_apsp.engines.cpu_tasks import run_tasks
from tri_apsp.errors import DistanceRangeError, InputError
from tri_apsp.kernels.cpu.hops import hops_of_slab, totals_of_slab
from tri_apsp.semirings import dtype_name, no_edge
from tri_apsp.solver.result import as_indices
from tri_apsp.sparse.graph import EdgeLists, SparseGraph, sparse_graph

__all__ = ["Totals", "hops", "totals"]

# Words of 64 sources that are searched at a time, for rows of hops and for their totals.
_WORDS, _WORDS_OF_TOTALS = 8, 16

UNREACHABLE = {torch.uint8: 255, torch.int16: int(no_edge(torch.int16)), torch.int32: int(no_edge(torch.int32))}
"""The dtypes of hops, and what each has where there is no path."""


def hops(graph: Any, sources: Sequence[int] | torch.Tensor | None = None, *, dtype: torch.dtype = torch.int16) -> torch.Tensor:
    """Return how many edges a path from each source to each vertex has at least; weights count for nothing.

    Args:
        graph: as single_source takes it. Every stored entry is an edge, except inf, and no_edge(dtype) in integers.
        sources: vertices; None: all.
        dtype: of the result: int16, int32 or uint8.

    Returns:
        (sources, n) on the device of the graph. Where there is no path: no_edge(dtype), in uint8 255.

    Raises:
        InputError: a graph, source or dtype that breaks one of these rules.
        DistanceRangeError: a path has more edges than the dtype holds, 254 in uint8 and 16382 in int16.
        TooLargeError: the result does not fit the memory; eccentricities, closeness and others need no such result.

    Cost: with E edges and r levels at most E r operations for each 64 sources, mostly far fewer.
    """
    if dtype not in UNREACHABLE:
        names = ", ".join(map(dtype_name, UNREACHABLE))
        given = dtype_name(dtype) if isinstance(dtype, torch.dtype) else repr(dtype)
        raise InputError(f"`dtype` must be one of {names}, but is {given}; choose one of these.")
    on_device = sparse_graph(graph)
    given_graph = on_device.to(torch.device("cpu"))
    n = given_graph.n
    vertices = torch.arange(n) if sources is None else as_indices(sources, "sources", n, torch.empty(0)).cpu()
    size = len(vertices) * n * dtype.itemsize
    require_memory(f"({len(vertices)}, {n}) hops", size, torch.device("cpu"), "give fewer sources")
    result = torch.empty((len(vertices), n), dtype=dtype)
    lists, rows, starts = given_graph.by_destination, result.numpy(), vertices.numpy()
    offsets, before = lists.offsets.numpy(), lists.vertices.numpy()
    most, too_long = UNREACHABLE[dtype] - 1, list[bool]()

    def search(first: int) -> None:
        part = starts[first : first + 64 * _WORDS]
        words = -(-len(part) // 64)
        x = np.full((n, 64 * words), UNREACHABLE[dtype], rows.dtype)
        too_long.append(hops_of_slab(offsets, before, part, words, most, x))
        rows[first : first + len(part)] = x[:, : len(part)].T

    _run(search, len(starts), _WORDS, lists)
    if any(too_long):
        raise DistanceRangeError(
            f"hops must be at most {most} to fit {dtype_name(dtype)}, but a path has more edges; use a wider dtype, such as "
            f"{'int16' if dtype == torch.uint8 else 'int32'}."
        )
    return result.to(on_device.device)


class Totals(NamedTuple):
    """Sums over the distances d(s, v) from all sources s to each vertex v, as float64 (n,) on the CPU.

    Attributes:
        total: the sum of those that are finite.
        reached: how many are finite, the vertex itself included.
        farthest: the largest finite one.
    """

    total: torch.Tensor
    reached: torch.Tensor
    farthest: torch.Tensor


def totals(graph: SparseGraph, *, backward: bool = False) -> Totals:
    """Return the totals of unweighted distances to each vertex; `backward`: from each vertex, to all others.

    Cost: as hops of all sources, in memory of n for each thread.
    """
    cpu = graph.to(torch.device("cpu"))
    lists = cpu.by_source if backward else cpu.by_destination
    offsets, before, starts = lists.offsets.numpy(), lists.vertices.numpy(), np.arange(graph.n)
    total, reached, farthest = (np.zeros(graph.n, np.int64) for _ in range(3))
    lock = Lock()

    def search(first: int) -> None:
        part = starts[first : first + 64 * _WORDS_OF_TOTALS]
        found = tuple(np.zeros(graph.n, np.int64) for _ in range(3))
        totals_of_slab(offsets, before, part, -(-len(part) // 64), *found)
        with lock:
            np.add(total, found[0], out=total)
            np.add(reached, found[1], out=reached)
            np.maximum(farthest, found[2], out=farthest)

    _run(search, graph.n, _WORDS_OF_TOTALS, lists)
    return Totals(*(torch.from_numpy(x.astype(np.float64)) for x in (total, reached, farthest)))


def _run(search: Any, sources: int, words: int, lists: EdgeLists) -> None:
    tasks = [(first,) for first in range(0, sources, 64 * words)]
    run_tasks(search, tasks, 8 * len(tasks) * words * (len(lists.vertices) + len(lists.offsets)), torch.get_num_threads())
