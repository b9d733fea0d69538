"""The interface between methods and hardware.

An engine supplies four groups of operations: a few on blocks of min-plus matrices, which is all
that a method needs (BlockOperations); staging, which has defaults (Staging); solves of small graphs
in one launch (OneLaunch); and those on paths (PathOperations). Making an engine launches and
allocates nothing, so a solve may make one for each sign of its weights.

A method knows nothing of dtypes, devices or tiles. It takes blocks of the distance matrix by
slicing and passes them to the operations; it never computes on a block itself.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch

from tri_apsp.configs import CompleteConfig
from tri_apsp.engines.path_operations import PathOperations
from tri_apsp.engines.staging import Staging
from tri_apsp.semirings import floor, no_edge
from tri_apsp.value_range import PendingRanges

WORKSPACE = 0.05
"""Share of the matrix that the in-place operations of an engine may take as workspace."""

EXTRA_WORKSPACE = 0.01
"""Share of a device's memory that an engine may take in addition, where that makes a solve faster.
"""

Block = torch.Tensor
"""A block of the distance matrix: a view of shape (batch, rows, columns) with unit stride in the
last dimension.
"""


class Update(NamedTuple):
    """C <- min(C, A * B): c (batch, m, n), a (batch, m, k), b (batch, k, n).

    Rows and columns skip[0] to skip[1] of C stay as they are, so A and B may lie there. If C is
    `fresh`, its values count as no_edge: C <- A * B.
    """

    c: Block
    a: Block
    b: Block
    skip: tuple[int, int] = (0, 0)
    fresh: bool = False


@dataclass(frozen=True)
class MatrixSpec:
    """What an engine is made for: n, dtype and device of the matrix, and whether no value of it is
    negative.

    `sizes` is contiguous, (batch,) of int32 or int64 on the same device, each in [0, n]: the number
    of leading vertices of each graph. The other vertices are padding, all no_edge with the
    diagonal, which an engine may skip. None: no padding.
    """

    n: int
    dtype: torch.dtype
    device: torch.device
    nonnegative: bool
    sizes: torch.Tensor | None = None


class BlockOperations(ABC):
    """What the blocked methods need of a matrix over any closed semiring: of distances (Engine), or
    of bits (engines.boolean).

    Operations are queued in order; each reads what those before it wrote, and gives the same bits
    from run to run.
    """

    name: ClassVar[str]

    def __init__(self, config: CompleteConfig) -> None:
        self.config = config

    def block(self, matrix: Block, rows: tuple[int, int], columns: tuple[int, int]) -> Block:
        """Return the block of `matrix` between vertices rows[0] and rows[1], columns[0] and
        columns[1], as a view.
        """
        return block(matrix, rows, columns)

    @abstractmethod
    def product(self, *updates: Update) -> None:
        """Compute each update. Updates are independent of each other and may run at the same time.

        The written part of a `c` must not overlap the `a` or `b` of any update. Exception: a rank-1
        update of a matrix with zero diagonal rewrites its own row and column with unchanged values.
        """

    @abstractmethod
    def closure(self, d: Block) -> None:
        """D <- D* in place, for a block of at most config.block_size rows with zero (or negative)
        diagonal.
        """

    @abstractmethod
    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        """R <- D * R and C <- C * D in place, outside columns (rows) skip[0] to skip[1], for a
        closed D of any size.

        `d` (batch, size, size), `row` (batch, size, n) and `column` (batch, m, size) are views of
        one matrix; `d` may lie in the skipped rows and columns. Takes at most WORKSPACE of the
        matrix, or EXTRA_WORKSPACE of a device.
        """

    def panel_buffers(self, like: Block, rows: int, columns: int) -> tuple[Block, Block] | None:
        """Return uninitialised blocks (rows, columns) and (columns, rows) to multiply panels into,
        for at most EXTRA_WORKSPACE.

        None: that memory is not available, panels() is as fast without it, or an element of a block
        is not one value.
        """
        return None


class OneLaunch(ABC):
    """Solves of whole graphs of one diagonal block: the initial matrix, its closure and the value
    ranges are queued together, so that the host blocks once.
    """

    @classmethod
    @abstractmethod
    def takes(cls, weights: torch.Tensor, sizes: torch.Tensor | None, *, check: bool) -> bool:
        """Return whether queue_solve takes weights (batch, n, n) that one closure solves."""

    @classmethod
    def by_sign(cls, weights: torch.Tensor) -> bool:
        """Return whether queue_solve of an engine that is made for weights of which none is
        negative is of no use for others.
        """
        return False

    @abstractmethod
    def queue_solve(
        self, weights: torch.Tensor, *, check: bool = True
    ) -> tuple[Block, PendingRanges | None]:
        """Queue a whole solve of weights (batch, n, n) that one closure solves.

        Args:
            weights: as the engine was made for, of any strides. The diagonal counts as 0 unless it
                is negative; what `sizes` leaves out is ignored. No value and no size was checked.
            check: whether value ranges are needed. Without it the launches may be captured into a
                CUDA graph.

        Returns:
            The distances, a new contiguous tensor, meaningless for a negative weight if the engine
            solves by_sign() and was made for weights of which none is; and with `check` two value
            ranges below no_edge: of the weights, in which NaN may count as -inf, and a size outside
            [0, n] counts as the lowest value of the dtype; and of the distances with their
            diagonal.
        """


class Engine(BlockOperations, Staging, OneLaunch, PathOperations):
    """All operations of one kind of device on min-plus matrices, for one solve.

    Every operation keeps stored values in [floor, no_edge] (tri_apsp.semirings).
    """

    check_interval: ClassVar[int] = 1 << 33
    """The least number of operations between two checks for a negative cycle: at least half a
    millisecond on an H200, during which the host evaluates the previous check and queues more work.
    """

    def __init__(self, spec: MatrixSpec, config: CompleteConfig) -> None:
        super().__init__(config)
        self.spec = spec
        self.no_edge = no_edge(spec.dtype)
        self.floor = floor(spec.dtype)

    def scratch(self, like: Block, rows: int, columns: int) -> Block:
        """Return an uninitialised block of the same batch, dtype and device."""
        return like.new_empty((like.shape[0], rows, columns))

    def copy(self, *copies: tuple[Block, Block]) -> None:
        """Queue target <- source for pairs of blocks of one shape and dtype; no target shares an
        element with another block.
        """
        for target, source in copies:
            target.copy_(source)


def block(matrix: Block, rows: tuple[int, int], columns: tuple[int, int]) -> Block:
    """Return matrix[:, rows, columns] as a view, in a third of the time of slicing, which matters
    for small solves.
    """
    (top, bottom), (left, right) = rows, columns
    _, row_stride, column_stride = matrix.stride()
    return matrix.as_strided(
        (matrix.shape[0], bottom - top, right - left),
        matrix.stride(),
        matrix.storage_offset() + top * row_stride + left * column_stride,
    )
