"""All distances of a sparse graph in blocks of rows, which need not fit the memory together."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import torch
from tqdm import tqdm

from tri_apsp.arguments import as_integer, check_flags, check_method, check_options
from tri_apsp.cycles.search import NegativeCycle
from tri_apsp.device import copy_to_cpu
from tri_apsp.errors import ApspWarning
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.messages import warn_caller
from tri_apsp.plan import NegativeCycles, Options
from tri_apsp.sparse.plan import ROW_METHODS, plan_sparse
from tri_apsp.sparse.row_file import RowFile
from tri_apsp.sparse.run import SparseSolver

# Distances of a block, unless the caller says how many rows it has.
_PER_BLOCK = 1 << 25


class RowBlock(NamedTuple):
    """The distances from consecutive vertices, which `distance_blocks` yields.

    Attributes:
        first: the source of the first row; the next row has the distances from first + 1.
        distances: (rows, n) on the CPU, of the dtype of the weights.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> for block in tri_apsp.distance_blocks(weights, rows_per_block=2):
        ...     print(block.first, block.distances.tolist())
        0 [[0, 3, 4], [3, 0, 1]]
        2 [[2, 5, 0]]
    """

    first: int
    distances: torch.Tensor


@dataclass(frozen=True)
class RowBlocks(Iterator[RowBlock]):
    """The blocks of a solve.

    Attributes:
        method: the row method that solves; None: no row is left to solve.
        negative_cycle: one that is marked.
    """

    _blocks: Generator[RowBlock] | None = None
    method: str | None = None
    negative_cycle: NegativeCycle | None = None

    def __next__(self) -> RowBlock:
        if self._blocks is None:
            raise StopIteration
        return next(self._blocks)

    def close(self) -> None:
        """End the solve."""
        if self._blocks is not None:
            self._blocks.close()


def distance_blocks(
    graph: SparseGraph,
    *,
    rows_per_block: int | None,
    out: str | os.PathLike[str] | None,
    method: str,
    negative_cycles: NegativeCycles,
    progress: bool,
) -> RowBlocks:
    """Return the blocks as tri_apsp.distance_blocks does, and with `out` write them too."""
    check_method(method, ("auto", *ROW_METHODS))
    check_flags(progress=progress)
    options = Options(negative_cycles=negative_cycles)
    check_options(options)
    rows = max(1, _PER_BLOCK // max(1, graph.n))
    if rows_per_block is not None:
        rows = as_integer(rows_per_block, "rows_per_block", least=1)
    if out is not None and RowFile.is_complete(out, graph):
        _warn_of_complete(out, graph.n)
        return RowBlocks()
    plan = plan_sparse(graph, reason="all rows in blocks", choice=method, options=options)
    solver = SparseSolver(graph, plan)
    with solver.memory_for(min(rows, graph.n)):  # which may raise, before a file is made
        target = None if out is None else RowFile(out, graph, rows)
    if out is not None and target is not None and target.rows == graph.n > 0:
        _warn_of_complete(out, graph.n)
    blocks = _blocks(solver, rows, target, graph.n if progress else None)
    return RowBlocks(blocks, solver.method, solver.negative_cycle)


def _warn_of_complete(out: str | os.PathLike[str], rows: int) -> None:
    warn_caller(f"{out} has all {rows} rows of this graph already", ApspWarning)


def _blocks(
    solver: SparseSolver, rows: int, out: RowFile | None, total: int | None
) -> Generator[RowBlock]:
    """Yield the blocks; with a `total` number of sources, show a bar."""
    first = out.rows if out is not None else 0
    writer = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-rows")
    bar: tqdm[NoReturn] = tqdm(
        desc="solving", total=total, initial=first, unit=" sources", disable=total is None
    )

    def finish(part: slice, copied: Callable[[], torch.Tensor]) -> RowBlock:
        distances = copied()
        if out is not None and part.start == out.rows:  # unless rows before them failed
            out.write(distances)
        bar.update(len(distances))
        return RowBlock(part.start, distances)

    pending = deque[Future[RowBlock]]()
    try:
        for part, solved in solver.blocks(rows, first):
            pending.append(writer.submit(finish, part, copy_to_cpu(solved.distances)))
            if len(pending) == 2:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        writer.shutdown(cancel_futures=True)
        bar.close()
        if out is not None:
            out.close()
