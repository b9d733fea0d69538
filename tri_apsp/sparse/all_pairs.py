"""All distances of a sparse graph in blocks of rows, which need not fit the memory together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import torch

from tri_apsp.errors import InputError
from tri_apsp.solver.run import NegativeCycles
from tri_apsp.sparse.graph import sparse_graph
from tri_apsp.sparse.single_source import SourceMethod, check_method
from tri_apsp.sparse.sink import Sink
from tri_apsp.sparse.solve import SparseSolver

__all__ = ["Block", "all_pairs"]

# Distances of a block, unless the caller says how many rows it has.
_PER_BLOCK = 1 << 25


class Block(NamedTuple):
    """Rows of all distances: those from the sources first, first + 1, ..., as (rows, n) on the CPU."""

    first: int
    distances: torch.Tensor


def all_pairs(
    graph: Any,
    *,
    sources_per_block: int | None = None,
    sink: str | os.PathLike[str] | None = None,
    method: SourceMethod = "auto",
    negative_cycles: NegativeCycles = "raise",
    dtype: torch.dtype | None = None,
) -> Iterator[Block]:
    """Yield all distances of a sparse graph in blocks of rows, and write them to a file if one is named.

        for first, distances in tri_apsp.all_pairs(graph, sink="distances.npy"):
            print(first + len(distances), "rows")

    A block is solved while the one before it is copied from the GPU and written; at most two are held.

    Args:
        graph, method, negative_cycles, dtype: as single_source.
        sources_per_block: rows of a block; None: as many as hold about 33 million distances.
        sink: a `.npy` file, in which row s has the distances from vertex s. What an interrupted call with the same graph left
            is continued: rows that are written are neither solved nor yielded again.

    Raises:
        InputError: as single_source; a sink that cannot be written, or that is another file.
        NegativeCycleError, DistanceRangeError: as single_source, with the first block.

    Cost: that of single_source from all vertices; memory for two blocks.
    """
    given = sparse_graph(graph, dtype=dtype)
    check_method(method)
    if sources_per_block is not None and (not isinstance(sources_per_block, int) or sources_per_block < 1):
        raise InputError(f"`sources_per_block` must be a positive integer, but is {sources_per_block!r}; give one, or None.")
    rows = sources_per_block or max(1, _PER_BLOCK // max(1, given.n))
    target = None if sink is None or not given.n else Sink(sink, given)
    return _blocks(SparseSolver(given, method, negative_cycles), rows, target)


def _blocks(solver: SparseSolver, rows: int, sink: Sink | None) -> Iterator[Block]:
    with ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-sink") as writer:
        pending: tuple[int, Future[torch.Tensor]] | None = None
        for part, solved in solver.blocks(rows, sink.rows if sink else 0):
            if pending is not None:
                yield Block(pending[0], pending[1].result())
            pending = part.start, writer.submit(sink.write if sink else torch.Tensor.cpu, solved.distances)
        if pending is not None:
            yield Block(pending[0], pending[1].result())
