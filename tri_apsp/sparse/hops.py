"""Unweighted distances: the edges of shortest paths, by breadth-first search from many vertices at
once.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any, NoReturn

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.arguments import Vertices, sources_of
from tri_apsp.elimination.base import Sweeps, Totals
from tri_apsp.engines.cpu_tasks import run_tasks, thread_count
from tri_apsp.errors import DistanceRangeError, error_for
from tri_apsp.graphs.sparse import GraphLike, SparseGraph, sparse_graph
from tri_apsp.memory import empty, memory_for
from tri_apsp.semirings import dtype_name, no_edge
from tri_apsp.sparse.choice import hop_sweeps
from tri_apsp.sparse.plan import rows_per_block
from tri_apsp.sparse.share import WHOLE, Share

# Words of 64 sources that are searched at a time: a vector of 512 bits holds those of a vertex.
_WORDS = 8

UNREACHABLE = {
    torch.uint8: 255,
    torch.int16: int(no_edge(torch.int16)),
    torch.int32: int(no_edge(torch.int32)),
}
"""The dtypes of hops, and what each has where there is no path."""


def hops(
    graph: GraphLike,
    sources: Vertices | None = None,
    *,
    dtype: torch.dtype = torch.int16,
) -> torch.Tensor:
    """Return the smallest number of edges of a path from each source to each vertex; weights are
    ignored.

    Args:
        graph: as for `shortest_paths`, without a batch. Every stored entry is an edge, except inf,
            and `no_edge(dtype)` in integers.
        sources: vertices; None: all.
        dtype: of the result: int16, int32 or uint8.

    Returns:
        (sources, n) on the device of the graph, numbers of edges. Where there is no path:
        `no_edge(dtype)`, in uint8 255.

    Raises:
        InputError: a graph, source or dtype that breaks one of these rules.
        DistanceRangeError: a path has more edges than the dtype holds, 254 in uint8 and 16382 in
            int16.
        TooLargeError: the result does not fit the memory; `eccentricities`, `closeness` and others
            need no such result.
        EngineError: the device is a GPU, but Triton is not installed.

    Cost:
        With E edges and r levels at most E r operations for each 64 sources, mostly far fewer.

    Source:
        Then et al., The More the Merrier: Efficient Multi-Source Graph Traversal, 2014.

    Examples:
        >>> import scipy.sparse
        >>> import tri_apsp
        >>> edges = scipy.sparse.coo_array(([3, 1, 2], ([0, 1, 1], [1, 2, 0])), shape=(3, 3))
        >>> tri_apsp.hops(edges, 0)
        tensor([[0, 1, 2]], dtype=torch.int16)
    """
    return shared_hops(graph, sources, dtype, WHOLE)[1]


def shared_hops(
    graph: GraphLike,
    sources: Vertices | None,
    dtype: torch.dtype,
    share: Share,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sources of a share, of int64 on the CPU, and their hops; see hops."""
    if not isinstance(dtype, torch.dtype) or dtype not in UNREACHABLE:
        names = ", ".join(map(dtype_name, UNREACHABLE))
        given = dtype_name(dtype) if isinstance(dtype, torch.dtype) else repr(dtype)
        raise error_for(dtype, torch.dtype)(
            f"`dtype` must be one of {names}, but is {given}; choose one of these."
        )
    whole = sparse_graph(graph)
    starts = torch.arange(whole.n) if sources is None else sources_of(sources, whole.n)
    own = share.of(len(starts))
    starts = starts[own.start : own.stop]
    if whole.device.type != "cpu":
        engines.choose(whole.device)  # which raises if no kernel can run
    return starts, _hops(whole, starts, dtype)


def _hops(whole: SparseGraph, starts: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the hops from vertices `starts`, of int64 on the CPU; see hops."""
    searchable, vertices = whole.without_isolated()
    if searchable is whole:
        return _searched(whole, starts, dtype)
    # Of the others, each reaches itself alone.
    size, device = len(starts) * whole.n * dtype.itemsize, whole.device
    with memory_for(_result_of(starts, whole), size, device, "give fewer sources"):
        result = torch.full((len(starts), whole.n), UNREACHABLE[dtype], dtype=dtype, device=device)
    result[torch.arange(len(starts), device=device), starts.to(device)] = 0
    place = torch.full((whole.n,), -1)
    place[vertices.cpu()] = torch.arange(searchable.n)
    searched = place[starts] >= 0
    found = _searched(searchable, place[starts[searched]], dtype)
    result[searched.nonzero().to(device), vertices] = found
    return result


def _searched(given_graph: SparseGraph, starts: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what _hops does, where all vertices are searched."""
    n, device = given_graph.n, given_graph.device
    size, unreachable = len(starts) * n * dtype.itemsize, UNREACHABLE[dtype]
    sweeps = hop_sweeps(given_graph, len(starts))
    if sweeps is not None:
        return _swept(sweeps, given_graph, starts, dtype)
    if device.type != "cpu":
        from tri_apsp.sparse.triton_hops import hops_on_gpu, search_memory

        size += search_memory(n, len(starts), unreachable)
    with memory_for(_result_of(starts, given_graph), size, device, "give fewer sources"):
        result = empty((len(starts), n), dtype, device)
        if device.type == "cpu":
            too_long = _hops_on_cpu(given_graph, starts, result, unreachable)
        else:
            lists = given_graph.by_destination
            too_long = result.numel() > 0 and hops_on_gpu(lists, starts, result, unreachable)
    if too_long:
        _raise_too_long(dtype)
    return result


def _raise_too_long(dtype: torch.dtype) -> NoReturn:
    wider = "int16" if dtype == torch.uint8 else "int32"
    raise DistanceRangeError(
        f"hops must be at most {UNREACHABLE[dtype] - 1} to fit {dtype_name(dtype)}, but a path has "
        f"more edges; use a wider dtype, such as {wider}."
    )


def _swept(
    sweeps: Sweeps, graph: SparseGraph, starts: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Return the hops from `starts` by elimination, in blocks of rows."""
    n, missing = graph.n, no_edge(torch.int32)
    size = len(starts) * n * dtype.itemsize
    with memory_for(_result_of(starts, graph), size, graph.device, "give fewer sources"):
        result = torch.empty((len(starts), n), dtype=dtype, device=graph.device)
    step = rows_per_block(n)
    for first in range(0, len(starts), step):
        rows = sweeps.rows(starts[first : first + step], missing - 1)
        none = rows == missing
        if bool((rows.masked_fill_(none, 0) >= UNREACHABLE[dtype]).any()):
            _raise_too_long(dtype)
        result[first : first + step] = rows.masked_fill_(none, UNREACHABLE[dtype])
    return result


def _result_of(starts: torch.Tensor, graph: SparseGraph) -> str:
    return f"({len(starts)}, {graph.n}) hops"


def _hops_on_cpu(
    graph: SparseGraph, sources: torch.Tensor, result: torch.Tensor, unreachable: int
) -> bool:
    """Write the hops from `sources` into `result`; return whether a path has more edges than its
    dtype holds.
    """
    rows, starts = result.numpy(), sources.numpy()
    lists = graph.by_destination.arrays()[:2], graph.by_source.arrays()[:2]
    too_long = list[bool]()

    def search(first: int) -> None:
        from tri_apsp.kernels.cpu.hops import hops_of_slab

        if any(too_long):
            return
        part = starts[first : first + 64 * _WORDS]
        digits = np.zeros(
            (min(unreachable, graph.n).bit_length(), graph.n, _words(len(part))), np.uint64
        )
        too_long.append(
            hops_of_slab(*lists, part, unreachable, digits, rows[first : first + len(part)])
        )

    _run(search, len(starts), graph)
    return any(too_long)


def hop_totals(
    graph: SparseGraph,
    share: Share = WHOLE,
    *,
    from_source: bool = False,
    report: Callable[[float], None] | None = None,
) -> Totals:
    """Return the totals of unweighted distances to each vertex; `from_source`: from each vertex.

    On a CPU, `report` receives the fraction done from time to time. Of several shares, the totals
    add up, and the farthest is the largest.

    Cost: as hops of all sources, in memory of n for each thread.
    """
    sweeps, own = hop_sweeps(graph, graph.n), share.of(graph.n)
    if sweeps is not None:
        return sweeps.totals(from_source=from_source, part=own)
    to, from_ = (
        (graph.by_source, graph.by_destination)
        if from_source
        else (graph.by_destination, graph.by_source)
    )
    if graph.device.type != "cpu" and graph.n:
        from tri_apsp.sparse.triton_hops import search_memory, totals_on_gpu

        size = search_memory(graph.n, len(own))
        with memory_for(
            "a search from every vertex", size, graph.device, "use a device with more memory"
        ):
            return Totals(*(found.to(torch.float64).cpu() for found in totals_on_gpu(to, own)))
    lists, starts = (to.arrays()[:2], from_.arrays()[:2]), np.arange(own.start, own.stop)
    total, reached, farthest = (np.zeros(graph.n, np.int64) for _ in range(3))
    lock, searched = Lock(), list[int]()

    def search(first: int) -> None:
        from tri_apsp.kernels.cpu.hops import totals_of_slab

        part = starts[first : first + 64 * _WORDS]
        found = tuple(np.zeros(graph.n, np.int64) for _ in range(3))
        totals_of_slab(*lists, part, _words(len(part)), *found)
        with lock:
            np.add(total, found[0], out=total)
            np.add(reached, found[1], out=reached)
            np.maximum(farthest, found[2], out=farthest)
            searched.append(len(part))
            if report is not None:
                report(sum(searched) / len(own))

    _run(search, len(own), graph)
    return Totals(*(torch.from_numpy(x.astype(np.float64)) for x in (total, reached, farthest)))


def _words(sources: int) -> int:
    return 1 if sources <= 64 else _WORDS


def _run(search: Any, sources: int, graph: SparseGraph) -> None:
    tasks = [(first,) for first in range(0, sources, 64 * _WORDS)]
    run_tasks(search, tasks, 8 * len(tasks) * _WORDS * (graph.edges + graph.n), thread_count())
