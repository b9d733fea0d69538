"""All distances of a sparse graph in blocks of rows, which need not fit the memory together."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, NoReturn

import torch
from tqdm import tqdm

from tri_apsp.device import copy_to_cpu
from tri_apsp.errors import InputError
from tri_apsp.solver.arguments import check_flags
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
    progress: bool = False,
) -> Iterator[Block]:
    """Yield all distances of a sparse graph in blocks of rows, and write them to a file if one is named.

        for first, distances in tri_apsp.all_pairs(graph, sink="distances.npy"):
            print(first + len(distances), "rows")

    A block is solved while the one before it is copied from the GPU and written.

    Args:
        graph, method, negative_cycles, dtype: as single_source.
        sources_per_block: rows of a block; None: as many as hold about 33 million distances.
        sink: a `.npy` file, or a `.zarr` folder, whose row s has the distances from vertex s. What an interrupted call with the
            same graph left is continued: rows that are written are neither solved nor yielded again.
        progress: show a bar on stderr.

    Raises:
        InputError: as single_source; a sink that cannot be written, or that is another file.
        NegativeCycleError, DistanceRangeError: as single_source, with the first block.

    Cost: that of single_source from all vertices; memory for three blocks, and those that the caller keeps.
    """
    given = sparse_graph(graph, dtype=dtype)
    check_method(method)
    check_flags(progress=progress)
    if sources_per_block is not None and (not isinstance(sources_per_block, int) or sources_per_block < 1):
        raise InputError(f"`sources_per_block` must be a positive integer, but is {sources_per_block!r}; give one, or None.")
    rows = sources_per_block or max(1, _PER_BLOCK // max(1, given.n))
    solver = SparseSolver(given, method, negative_cycles)
    target = None if sink is None or not given.n else Sink(sink, given, rows)
    bar: tqdm[NoReturn] = tqdm(
        desc="solving", total=given.n, initial=target.rows if target else 0, unit=" sources", disable=not progress
    )
    return _blocks(solver, rows, target, bar)


def _blocks(solver: SparseSolver, rows: int, sink: Sink | None, bar: tqdm[NoReturn]) -> Iterator[Block]:
    def finish(part: slice, copied: Callable[[], torch.Tensor]) -> Block:
        distances = copied()
        if sink is not None:
            sink.write(distances)
        return Block(part.start, distances)

    with ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-sink") as writer, bar:
        pending = deque[Future[Block]]()
        for part, solved in solver.blocks(rows, bar.n):
            pending.append(writer.submit(finish, part, copy_to_cpu(solved.distances)))
            if len(pending) == 2:
                yield _shown(pending.popleft().result(), bar)
        while pending:
            yield _shown(pending.popleft().result(), bar)


def _shown(block: Block, bar: tqdm[NoReturn]) -> Block:
    bar.update(len(block.distances))
    return block
