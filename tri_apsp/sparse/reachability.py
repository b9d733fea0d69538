"""To which vertices the sources of a sparse graph lead."""

from typing import Any

import torch

from tri_apsp import engines
from tri_apsp.arguments import check_adjacency, sources_of
from tri_apsp.dense_reachability import check_values
from tri_apsp.engines.cpu_tasks import run_tasks, thread_count
from tri_apsp.errors import InputError
from tri_apsp.graphs.sparse import GraphLike, SparseGraph, is_sparse, sparse_graph
from tri_apsp.memory import memory_for
from tri_apsp.sparse.hops import UNREACHABLE, hops
from tri_apsp.sparse.plan import rows_per_block

# Bits of a word, one for each source.
_WORD = 64


def rows_of_reachability(adjacency: GraphLike, sources: Any) -> torch.Tensor:
    """Return which vertices the sources of one graph lead to; None: all of a sparse graph."""
    if is_sparse(adjacency):
        graph = sparse_graph(adjacency)
    else:
        batch = check_adjacency(adjacency)
        if batch.batched:
            raise InputError(
                "`sources` need one graph, (n, n), but `adjacency` is a batch; leave them out."
            )
        check_values(batch.weights)
        graph = sparse_graph(batch.weights[0] != 0)
    starts = torch.arange(graph.n) if sources is None else sources_of(sources, graph.n)
    return reachable(graph, starts)


def reachable(graph: SparseGraph, sources: torch.Tensor) -> torch.Tensor:
    """Return whether a path leads from sources[i] to j, (len(sources), n) of bool on the device of
    the graph; `sources` is of int64 on the CPU.

    Cost: a breadth-first search for each 64 sources.
    """
    engines.choose(graph.device)  # which raises if no kernel can run
    shape = len(sources), graph.n
    with memory_for(f"{shape} values", len(sources) * graph.n, graph.device, "give fewer sources"):
        result = torch.empty(shape, dtype=torch.bool, device=graph.device)
    if graph.device.type == "cpu":
        from tri_apsp.kernels.cpu.sparse import reach  # with Numba: half a second

        edges, rows, starts = graph.by_source.arrays()[:2], result.numpy(), sources.numpy()
        parts = [slice(first, first + _WORD) for first in range(0, len(starts), _WORD)]
        tasks = [(*edges, starts[part], rows[part]) for part in parts]
        run_tasks(reach, tasks, 4 * len(tasks) * (graph.edges + _WORD * graph.n), thread_count())
        return result
    step = rows_per_block(graph.n)
    for first in range(0, len(sources), step):
        found = hops(graph, sources[first : first + step], dtype=torch.int32)
        result[first : first + step] = found < UNREACHABLE[torch.int32]
    return result
