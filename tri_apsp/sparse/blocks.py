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

from tri_apsp.arguments import check_flags, check_method, check_options
from tri_apsp.device import copy_to_cpu
from tri_apsp.errors import InputError
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.messages import shown
from tri_apsp.plan import NegativeCycles, Options
from tri_apsp.sparse.plan import ROW_METHODS
from tri_apsp.sparse.row_file import RowFile
from tri_apsp.sparse.solve import SparseSolver

# Distances of a block, unless the caller says how many rows it has.
_PER_BLOCK = 1 << 25


class RowBlock(NamedTuple):
    """The distances (rows, n) from the sources first, first + 1, ..., on the CPU."""

    first: int
    distances: torch.Tensor


def distance_blocks(
    graph: SparseGraph,
    *,
    rows_per_block: int | None,
    out: str | os.PathLike[str] | None,
    method: str,
    negative_cycles: NegativeCycles,
    progress: bool,
) -> Iterator[RowBlock]:
    """See tri_apsp.distance_blocks."""
    check_method(method, ("auto", *ROW_METHODS))
    check_flags(progress=progress)
    check_options(Options(negative_cycles=negative_cycles))
    default = max(1, _PER_BLOCK // max(1, graph.n))
    rows = default if rows_per_block is None else _positive(rows_per_block)
    solver = SparseSolver(graph, method, negative_cycles)
    solver.method_of_blocks(rows)  # raises before a file is made
    target = None if out is None else RowFile(out, graph, rows)
    return _blocks(solver, rows, target, graph.n if progress else None)


def _positive(rows: Any) -> int:
    found = (
        rows.__index__() if isinstance(rows, SupportsIndex) and not isinstance(rows, bool) else 0
    )
    if found < 1:
        raise InputError(
            f"`rows_per_block` must be a positive integer, but is {shown(rows)}; give one, or None."
        )
    return found


def _blocks(
    solver: SparseSolver, rows: int, out: RowFile | None, total: int | None
) -> Iterator[RowBlock]:
    """Yield the blocks; with a `total` number of sources, show a bar."""
    first = out.rows if out is not None else 0
    failed = Event()  # then no later rows may take the place of those that were not written

    def finish(part: slice, copied: Callable[[], torch.Tensor]) -> RowBlock:
        distances = copied()
        if out is not None and not failed.is_set():
            try:
                out.write(distances)
            except BaseException:
                failed.set()
                raise
        return RowBlock(part.start, distances)

    bar: tqdm[NoReturn] = tqdm(
        desc="solving", total=total, initial=first, unit=" sources", disable=total is None
    )
    with ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-rows") as writer, bar:
        pending = deque[Future[RowBlock]]()
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
            if out is not None:
                out.close()


def _shown(block: RowBlock, bar: tqdm[NoReturn]) -> RowBlock:
    bar.update(len(block.distances))
    return block
