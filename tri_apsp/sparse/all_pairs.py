"""All distances of a sparse graph in blocks of rows, which need not fit the memory together."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import torch
from tqdm import tqdm

from tri_apsp.device import copy_to_cpu
from tri_apsp.errors import InputError
from tri_apsp.messages import shown
from tri_apsp.solver.arguments import check_flags, check_method, check_negative_cycles
from tri_apsp.solver.run import NegativeCycles
from tri_apsp.sparse.graph import sparse_graph
from tri_apsp.sparse.single_source import SOURCE_METHODS, SourceMethod
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
    """Yield all distances of a sparse graph in blocks of rows, and write them to a file if one is
    named.

        for first, distances in tri_apsp.all_pairs(graph, sink="distances.npy"):
            print(first + len(distances), "rows")

    Blocks are solved when the iterator is asked for them (without a loop, nothing is solved or
    written), while those before them are copied from the GPU and written.

    Args:
        graph, method, negative_cycles, dtype: as single_source.
        sources_per_block: rows of a block; None: as many as hold about 33 million distances.
        sink: a `.npy` file, or a `.zarr` folder, whose row s has the distances from vertex s. Until
            all rows are written, the file NAME.partial beside it holds how many are, and the same
            call after an interruption goes on: rows that are in the file are not yielded again, not
            even the last ones, which the interrupted call may have written but not yielded. In a
            `.zarr` folder with a missing file, the rows from there on are solved again. Rows that
            are not yet written are zeros; in a `.zarr` folder NaN, or the smallest number of an
            integer dtype.
        progress: show a bar on stderr.

    Raises:
        InputError: as single_source; a sink that is another file or cannot be written, also with a
            later block.
        NegativeCycleError: there is a negative cycle.
        DistanceRangeError: as single_source, with the block of the first distance that does not
            fit.

    Cost: that of single_source from all vertices; memory for three blocks, and those that the
    caller keeps. Elimination on a GPU solves several blocks together, in up to 3/8 of the free
    memory.
    """
    given = sparse_graph(graph, dtype=dtype)
    check_method(method, SOURCE_METHODS)
    check_flags(progress=progress)
    check_negative_cycles(negative_cycles, check=True, overwrite=False)
    rows = (
        max(1, _PER_BLOCK // max(1, given.n))
        if sources_per_block is None
        else _positive(sources_per_block)
    )
    solver = SparseSolver(given, method, negative_cycles)
    solver.method_of_blocks(rows)  # raises before a file is made
    target = None if sink is None else Sink(sink, given, rows)
    return _blocks(solver, rows, target, given.n if progress else None)


def _positive(rows: Any) -> int:
    found = (
        rows.__index__() if isinstance(rows, SupportsIndex) and not isinstance(rows, bool) else 0
    )
    if found < 1:
        raise InputError(
            f"`sources_per_block` must be a positive integer, but is {shown(rows)}; give one, or None."
        )
    return found


def _blocks(
    solver: SparseSolver, rows: int, sink: Sink | None, total: int | None
) -> Iterator[Block]:
    """Yield the blocks; with a `total` number of sources, show a bar."""
    first = sink.rows if sink is not None else 0
    failed = Event()  # then no later rows may take the place of those that were not written

    def finish(part: slice, copied: Callable[[], torch.Tensor]) -> Block:
        distances = copied()
        if sink is not None and not failed.is_set():
            try:
                sink.write(distances)
            except BaseException:
                failed.set()
                raise
        return Block(part.start, distances)

    bar: tqdm[NoReturn] = tqdm(
        desc="solving", total=total, initial=first, unit=" sources", disable=total is None
    )
    with ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-sink") as writer, bar:
        pending = deque[Future[Block]]()
        try:
            for part, solved in solver.blocks(rows, first):
                pending.append(writer.submit(finish, part, copy_to_cpu(solved.distances)))
                if len(pending) == 2:
                    yield _shown(pending.popleft().result(), bar)
            while pending:
                yield _shown(pending.popleft().result(), bar)
        finally:
            for block in pending:
                block.cancel()
            writer.shutdown()
            if sink is not None:
                sink.close()


def _shown(block: Block, bar: tqdm[NoReturn]) -> Block:
    bar.update(len(block.distances))
    return block
