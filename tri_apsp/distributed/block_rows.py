"""Blocked Floyd-Warshall over the rows of several ranks.

    for pivot blocks K, with rows R = D[K, :] of the rank that owns them:
        the owner:     R <- R[:, K]* R, with R[:, K] <- R[:, K]*, and sends R to all
        every rank:    C <- D[:, K] R[:, K]
                       D <- min(D, C R), for rows outside K;  D[K, :] <- R

With look-ahead: the owner of the next pivot block updates, closes and sends these rows first, while
the others multiply.

Source: Kumar and Singh, Scalability of Parallel Algorithms for the All-Pairs Shortest-Path Problem,
1991; Sao et al., Scalable All-Pairs Shortest Paths for Huge Graphs on Multi-GPU Clusters, 2021.
"""

import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig
from tri_apsp.distributed.layout import Layout, Pivot
from tri_apsp.distributed.transport import Transport, Wait
from tri_apsp.engines import Block, MatrixSpec, Update, block
from tri_apsp.methods import METHODS, Observer


class BlockRowSolver:
    """Solves the rows of this rank in place.

    Args:
        rows: (1, rows of this rank, n), of unit column stride; the diagonal of the matrix must be 0
            or negative.
        layout: the same on all ranks.
        transport: to the other ranks.
        config: of the engine, the same on all ranks.
        nonnegative: whether no weight of any rank is negative.
    """

    def __init__(
        self,
        rows: Block,
        layout: Layout,
        transport: Transport,
        config: CompleteConfig,
        *,
        nonnegative: bool,
    ) -> None:
        self._rows, self._layout, self._transport = rows, layout, transport
        self._config, self._nonnegative = config, nonnegative
        self._first = layout.first(transport.rank)
        self._engine = self._engine_of(layout.n)

    def solve(self) -> bool:
        """Return whether no diagonal value became negative; if one did, the rows are undefined.

        Cost: n^2 operations for each row of this rank, and n values received for each other row.
        """
        pivots = self._layout.pivots()
        following = self._send(pivots[0]) if pivots else None
        negative: torch.Tensor | None = None  # whether the block before has a negative diagonal
        for i, pivot in enumerate(pivots):
            assert following is not None
            panel, wait = following
            wait()
            closed = block(panel, (0, panel.shape[1]), (pivot.begin, pivot.end))
            before, negative = negative, (closed.diagonal(dim1=1, dim2=2) < 0).any()
            column = self._column(pivot, closed)
            own, done = self._own(pivot), (0, 0)
            if own is not None:
                self._rows[:, slice(*own)].copy_(panel)
            if i + 1 < len(pivots):
                after = pivots[i + 1]
                ahead = self._own(after)
                if ahead is not None:
                    done = ahead
                    self._update(ahead, pivot, column, panel)
                following = self._send(after)
            for part in _outside((0, self._rows.shape[1]), own or (0, 0), done):
                self._update(part, pivot, column, panel)
            # Read one block later, so that a GPU has work while the host waits for it. Every rank
            # has the same value.
            if before is not None and bool(before):
                following[1]()
                return False
        return negative is None or not bool(negative)

    def _own(self, pivot: Pivot) -> tuple[int, int] | None:
        """Return which of the rows of this rank are those of a pivot block."""
        if pivot.owner != self._transport.rank:
            return None
        return pivot.begin - self._first, pivot.end - self._first

    def _send(self, pivot: Pivot) -> tuple[Block, Wait]:
        """Close the rows of a pivot block and send them, or receive them."""
        n = self._layout.n
        panel = self._rows.new_empty((1, pivot.end - pivot.begin, n))
        own = self._own(pivot)
        if own is not None:
            inside = pivot.begin, pivot.end
            closed = block(self._rows, own, inside).contiguous()
            engine = self._engine_of(closed.shape[1])
            METHODS["kleene"].solve(closed, engine, Observer())
            parts = _outside((0, n), inside)
            engine.product(
                *(
                    Update(
                        block(panel, (0, panel.shape[1]), part),
                        closed,
                        block(self._rows, own, part),
                        fresh=True,
                    )
                    for part in parts
                )
            )
            block(panel, (0, panel.shape[1]), inside).copy_(closed)
        return panel, self._transport.broadcast(panel, pivot.owner)

    def _column(self, pivot: Pivot, closed: Block) -> Block:
        """Return the columns of a pivot block, closed, for the rows of this rank."""
        count = self._rows.shape[1]
        column = self._rows.new_empty((1, count, pivot.end - pivot.begin))
        if count:
            given = block(self._rows, (0, count), (pivot.begin, pivot.end))
            self._engine.product(Update(column, given, closed, fresh=True))
            given.copy_(column)
        return column

    def _update(self, rows: tuple[int, int], pivot: Pivot, column: Block, panel: Block) -> None:
        """Lower some rows of this rank outside a pivot block by paths through it."""
        width = panel.shape[1]
        self._engine.product(
            *(
                Update(
                    block(self._rows, rows, part),
                    block(column, rows, (0, width)),
                    block(panel, (0, width), part),
                )
                for part in _outside((0, self._layout.n), (pivot.begin, pivot.end))
            )
        )

    def _engine_of(self, n: int) -> engines.Engine:
        spec = MatrixSpec(n, self._rows.dtype, self._rows.device, self._nonnegative)
        return engines.make(spec, self._config)


def _outside(whole: tuple[int, int], *parts: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the ranges of `whole` that are in none of the parts, which may be empty."""
    begin, found = whole[0], list[tuple[int, int]]()
    for start, end in sorted(part for part in parts if part[0] < part[1]):
        found.append((begin, start))
        begin = end
    return [part for part in (*found, (begin, whole[1])) if part[0] < part[1]]


def initial_rows(rows: torch.Tensor, first: int) -> Block:
    """Return a copy (1, rows, n) of the rows from `first` on, without a positive diagonal."""
    copy = rows.clone(memory_format=torch.contiguous_format)[None]
    copy[0, :, first : first + len(rows)].diagonal().clamp_(max=0)
    return copy
