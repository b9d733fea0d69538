"""Blocked Floyd-Warshall over the rows of several ranks.

    for pivot blocks K, with rows R = D[K, :] of the rank that owns them:
        the owner:     R <- R[:, K]* R, with R[:, K] <- R[:, K]*, and sends R to all
        every rank:    C <- D[:, K] R[:, K]
                       D <- min(D, C R), for rows outside K;  D[K, :] <- R

With look-ahead: the owner of the next pivot block updates, closes and sends these rows first, while
the others multiply. Rows may be streamed from the host, a few at a time: see device_rows.

Source: Kumar and Singh, Scalability of Parallel Algorithms for the All-Pairs Shortest-Path Problem,
1991; Sao et al., Scalable All-Pairs Shortest Paths for Huge Graphs on Multi-GPU Clusters, 2021.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig
from tri_apsp.dense.exponents import by_exponents
from tri_apsp.device import Mark, mark
from tri_apsp.distributed.checkpoint import Checkpoints
from tri_apsp.distributed.device_rows import DeviceRows, Visit, cut
from tri_apsp.distributed.layout import Layout, Pivot
from tri_apsp.distributed.plan import closed_columns
from tri_apsp.engines import Block, MatrixSpec, Update, block
from tri_apsp.gpu.launcher import compiling_side_by_side
from tri_apsp.memory import empty
from tri_apsp.methods import METHODS, Observer
from tri_apsp.plan import Progress
from tri_apsp.ranks.communicator import Communicator, Wait

# What solves of this process have compiled.
_compiled = set[tuple[object, ...]]()


class _Queued(NamedTuple):
    """A pivot block that a GPU may still be computing."""

    end: Mark
    negative: torch.Tensor | None  # whether its diagonal is


class BlockRowSolver:
    """Solves the rows of this rank in place.

    Args:
        rows: of this rank; the diagonal of the matrix must be 0 or negative.
        layout: the same on all ranks.
        ranks: this one and the others.
        config: of the engine, the same on all ranks.
        nonnegative: whether no weight of any rank is negative.
        threshold: of products by exponents; None: no product.
        on_solved: called with rows that are solved, the first of them and a block.
        checkpoints: None: none is written.
        progress: called with the share of the pivot blocks that are done.
    """

    def __init__(
        self,
        rows: DeviceRows,
        layout: Layout,
        ranks: Communicator,
        config: CompleteConfig,
        *,
        nonnegative: bool,
        threshold: int | None = None,
        on_solved: Callable[[int, Block], None],
        checkpoints: Checkpoints | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._rows, self._ranks = rows, ranks
        self._config, self._nonnegative, self._threshold = config, nonnegative, threshold
        self._first = layout.first(ranks.rank)
        self._columns = rows.like.shape[2]
        self._pivots = layout.pivots()
        self._engine = by_exponents(self._engine_of(self._columns), threshold)
        self._on_solved, self._checkpoints, self._progress = on_solved, checkpoints, progress

    def solve(self) -> bool:
        """Return whether no diagonal value became negative; if one did, the rows are undefined.

        Raises:
            RankError: another rank has failed.

        Cost: n^2 operations for each row of this rank, and n values received for each other row.
        """
        self._compile()
        steps = range(-1, len(self._pivots))
        self._rows.announce(
            [visit for step in steps for visit in (*self._ahead(step), *self._others(step))]
        )
        following = self._prepare(-1, None) if self._pivots else None
        queued = deque[_Queued]()
        for step, pivot in enumerate(self._pivots):
            assert following is not None
            panel, wait = following
            wait()
            negative = None
            if not self._nonnegative:
                diagonal = block(panel, (0, panel.shape[1]), (pivot.begin, pivot.end))
                negative = (diagonal.diagonal(dim1=1, dim2=2) < 0).any()
            is_last = step + 1 == len(self._pivots)
            checkpoints = None if is_last else self._checkpoints
            if checkpoints is not None and checkpoints.poll():
                self._rows.begin_copy(checkpoints.begin(pivot.end))
            else:
                checkpoints = None
            if not is_last:
                following = self._prepare(step, panel)
            for visit in self._others(step):
                for begin, rows in self._parts(visit):
                    if visit.reads:
                        self._lower(rows, pivot, panel)
                    else:
                        first = self._first + begin - pivot.begin
                        self._engine.copy((rows, panel[:, first : first + rows.shape[1]]))
                    if is_last:
                        self._on_solved(begin, rows)
            if checkpoints is not None:
                checkpoints.end(self._rows.end_copy())
            queued.append(_Queued(mark(panel.device), negative))
            # Read one block later, so that a GPU has work while the host waits for it.
            if len(queued) > 1 and not self._is_fine(queued.popleft(), step):
                if not is_last:  # a message must not be left on its way
                    following[1]()
                return False
        self._rows.finish()
        return not queued or self._is_fine(queued.popleft(), len(self._pivots))

    def _is_fine(self, queued: _Queued, done: int) -> bool:
        """Wait until a pivot block is done, and return whether its diagonal is not negative; every
        rank returns the same.
        """
        if queued.end is not None:
            queued.end.synchronize()
        self._ranks.check()
        if self._progress is not None:
            self._progress(done / len(self._pivots))
        return queued.negative is None or not bool(queued.negative)

    def _compile(self) -> None:
        """Compile or load what the solve launches, side by side, unless an earlier solve has."""
        rows, pivots = self._rows, self._pivots
        like = rows.like
        if like.device.type != "cuda" or not pivots:
            return
        some = pivots[0], pivots[len(pivots) // 2], pivots[-1]
        count = min(rows.count, rows.rows_per_strip)
        spec = like.device, like.dtype, self._columns, self._nonnegative, self._threshold
        key = (self._config, *spec, count, some)
        if key in _compiled:
            return
        with compiling_side_by_side():
            for pivot in set(some):
                # Of the device "meta", which has no memory: nothing is launched.
                panel, held = (
                    torch.empty((1, size, self._columns), dtype=like.dtype, device="meta")
                    for size in (pivot.end - pivot.begin, count)
                )
                self._close(panel, pivot)
                self._lower(held, pivot, panel)
        _compiled.add(key)

    def _ahead(self, step: int) -> list[Visit]:
        """Return the rows of this rank that are those of the pivot block after `step`, if any."""
        if step + 1 == len(self._pivots):
            return []
        return [Visit(*own, keeps=False, is_first=step <= 0) for own in self._own(step + 1)]

    def _others(self, step: int) -> list[Visit]:
        """Return the other rows of this rank that a pivot block changes. Its own rows, which are
        not read, are spread among those that are: so the device multiplies while they are written.
        """
        if step < 0:
            return []
        own, last = self._own(step), step + 1 == len(self._pivots)
        ahead = [(visit.begin, visit.end) for visit in self._ahead(step)]
        rest = _outside((0, self._rows.count), *own, *ahead)
        visits = [
            [Visit(*part, is_first=step == 0, is_last=last) for part in self._cut(rest)],
            [Visit(*part, reads=False, is_last=last) for part in self._cut(own)],
        ]
        placed = [(index / len(each), visit) for each in visits for index, visit in enumerate(each)]
        return [visit for _, visit in sorted(placed, key=lambda each: each[0])]

    def _cut(self, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return ranges of rows as those of parts."""
        size = self._rows.rows_per_strip
        return [part for each in ranges for part in cut(*each, size)]

    def _parts(self, visit: Visit) -> Iterator[tuple[int, Block]]:
        """Yield the rows of a visit in parts: after each, this rank ends if another has failed."""
        for part in self._rows.visit(visit):
            yield part
            self._ranks.check()

    def _own(self, step: int) -> list[tuple[int, int]]:
        """Return which rows of this rank are those of a pivot block: a range, or none."""
        pivot = self._pivots[step]
        if pivot.owner != self._ranks.rank:
            return []
        return [(pivot.begin - self._first, pivot.end - self._first)]

    def _prepare(self, step: int, panel: Block | None) -> tuple[Block, Wait]:
        """Update the rows of the pivot block after `step` by the panel of this one, close them and
        send them; or receive them.
        """
        pivot = self._pivots[step + 1]
        like = self._rows.like
        following = empty((1, pivot.end - pivot.begin, self._columns), like.dtype, like.device)
        for visit in self._ahead(step):
            for begin, rows in self._parts(visit):
                if panel is not None:
                    self._lower(rows, self._pivots[step], panel)
                first = begin - visit.begin
                self._engine.copy((following[:, first : first + rows.shape[1]], rows))
            self._close(following, pivot)
        return following, self._ranks.broadcast(following, pivot.owner)

    def _close(self, panel: Block, pivot: Pivot) -> None:
        """Close the rows of a pivot block, a part of the columns at a time."""
        count, inside, engine = panel.shape[1], (pivot.begin, pivot.end), self._engine
        closed = empty((1, count, count), panel.dtype, panel.device)
        engine.copy((closed, block(panel, (0, count), inside)))
        METHODS["kleene"].solve(closed, self._engine_of(count), Observer())
        width = closed_columns(count, self._rows.rows_per_strip, self._columns)
        given = empty((1, count, width), panel.dtype, panel.device)
        for begin in range(0, self._columns, width):
            part = begin, min(begin + width, self._columns)
            copied = block(given, (0, count), (0, part[1] - begin))
            engine.copy((copied, block(panel, (0, count), part)))
            engine.product(
                *(
                    Update(
                        block(panel, (0, count), outer),
                        closed,
                        block(copied, (0, count), (outer[0] - begin, outer[1] - begin)),
                        fresh=True,
                    )
                    for outer in _outside(part, inside)
                )
            )
        engine.copy((block(panel, (0, count), inside), closed))

    def _lower(self, rows: Block, pivot: Pivot, panel: Block) -> None:
        """Lower rows of this rank outside a pivot block by paths through it."""
        count, width, inside = rows.shape[1], panel.shape[1], (pivot.begin, pivot.end)
        column = empty((1, count, width), rows.dtype, rows.device)
        given, closed = block(rows, (0, count), inside), block(panel, (0, width), inside)
        self._engine.product(Update(column, given, closed, fresh=True))
        self._engine.copy((given, column))
        self._engine.product(
            *(
                Update(block(rows, (0, count), part), column, block(panel, (0, width), part))
                for part in _outside((0, self._columns), inside)
            )
        )

    def _engine_of(self, n: int) -> engines.Engine:
        like = self._rows.like
        return engines.make(MatrixSpec(n, like.dtype, like.device, self._nonnegative), self._config)


def _outside(whole: tuple[int, int], *parts: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the ranges of `whole` that are in none of the parts, which may be empty."""
    (begin, end), found = whole, list[tuple[int, int]]()
    for first, stop in sorted(part for part in parts if part[0] < part[1]):
        found.append((begin, min(first, end)))
        begin = max(begin, stop)
    return [part for part in (*found, (begin, end)) if part[0] < part[1]]
