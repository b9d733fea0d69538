"""All distances of a sparse graph in blocks of rows, which need not fit the memory together."""

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import torch
from tqdm import tqdm

from tri_apsp.arguments import as_integer, check_flags, check_method, check_options
from tri_apsp.cycles.search import NegativeCycle
from tri_apsp.errors import ApspWarning
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.messages import warn_caller
from tri_apsp.plan import NegativeCycles, Options
from tri_apsp.sparse.plan import ROW_METHODS, plan_sparse
from tri_apsp.sparse.row_file import Header, RowFile, is_complete
from tri_apsp.sparse.run import SparseSolver, copied
from tri_apsp.sparse.settle import settle

# Distances of a block, and the least blocks per process where there are several, unless the caller
# says how many rows a block has.
_PER_BLOCK, _BLOCKS_PER_PROCESS = 1 << 25, 8


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


@dataclass(frozen=True)
class BlockSolve:
    """The checked arguments of distance_blocks.

    Attributes:
        graph: that is solved.
        rows: of a block; in a file with rows, those of its blocks count instead.
        method: a row method, or "auto".
        options: what the caller wants of the distances.
        progress: show a bar.
    """

    graph: SparseGraph
    rows: int
    method: str
    options: Options
    progress: bool

    @classmethod
    def of(
        cls,
        graph: SparseGraph,
        *,
        rows_per_block: int | None,
        method: str,
        negative_cycles: NegativeCycles,
        progress: bool,
        processes: int = 1,
    ) -> "BlockSolve":
        """Check the arguments, which are those of tri_apsp.distance_blocks, for several processes
        that share the blocks.
        """
        check_method(method, ("auto", *ROW_METHODS))
        check_flags(progress=progress)
        options = Options(negative_cycles=negative_cycles)
        check_options(options)
        rows = max(1, _PER_BLOCK // max(1, graph.n))
        if processes > 1:
            rows = max(1, min(rows, graph.n // (_BLOCKS_PER_PROCESS * processes)))
        if rows_per_block is not None:
            rows = as_integer(rows_per_block, "rows_per_block", least=1)
        return cls(graph, rows, method, options, progress)

    def header(self) -> Header:
        """Return the header of a new file."""
        return Header.of(self.graph, self.rows)

    def is_complete(self, out: str | os.PathLike[str], header: Header) -> bool:
        """Return whether a file has all rows already, and warn if it has."""
        found = is_complete(out, header)
        if found:
            warn_caller(f"{out} has all {self.graph.n} rows of this graph already", ApspWarning)
        return found

    def solver(self) -> SparseSolver:
        """Return what solves the rows, once it is known that a block fits the memory."""
        plan = plan_sparse(
            self.graph, reason="all rows in blocks", choice=self.method, options=self.options
        )
        solver = SparseSolver(settle(self.graph, plan))
        with solver.memory_for(min(self.rows, self.graph.n)):
            return solver

    def bar(self, done: int, *, shown: bool = True) -> "tqdm[NoReturn]":
        """Return a bar of the sources, some of which are done."""
        return tqdm(
            desc="solving",
            total=self.graph.n,
            initial=done,
            unit=" sources",
            disable=not (self.progress and shown),
        )


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
    solve = BlockSolve.of(
        graph,
        rows_per_block=rows_per_block,
        method=method,
        negative_cycles=negative_cycles,
        progress=progress,
    )
    if out is None:
        solver, file, done = solve.solver(), None, 0
        blocks = solved_blocks(solver, solve.rows, range(-(-graph.n // solve.rows)))
    else:
        header = solve.header()
        if solve.is_complete(out, header):
            return RowBlocks()
        solver = solve.solver()  # which may raise, before a file is made
        file = RowFile(out, header)
        file.create()
        file.open()
        done = file.rows_on_disk()
        blocks = solved_blocks(solver, file.rows, file.unfinished, file)
    return RowBlocks(_shown(blocks, solve, done), solver.method, solver.negative_cycle)


def _shown(blocks: Generator[RowBlock], solve: BlockSolve, done: int) -> Generator[RowBlock]:
    """Yield the blocks, and show them on a bar."""
    with closing(blocks), solve.bar(done) as bar:
        for block in blocks:
            bar.update(len(block.distances))
            yield block


def solved_blocks(
    solver: SparseSolver,
    rows: int,
    chosen: Iterable[int],
    file: RowFile | None = None,
    most: int | None = None,
) -> Generator[RowBlock]:
    """Solve blocks of `rows` rows, and yield them once they are written.

    Args:
        chosen: the blocks, each taken when there is time to solve it.
        file: where they go, which is closed at the end; None: nowhere.
        most: the most blocks that are solved together; None: as many as take about the time of one.
    """
    n = len(solver.sources)
    parts = (slice(block * rows, min(n, (block + 1) * rows)) for block in chosen)

    def write(first: int, distances: torch.Tensor) -> None:
        if file is not None:
            file.write(first // rows, distances)

    try:
        for part, distances in copied(solver.blocks(rows, parts, most), write):
            yield RowBlock(part.start, distances)
    finally:
        if file is not None:
            file.close()
