"""The interface between methods and hardware.

An engine supplies four groups of operations: a few on blocks of min-plus matrices, which is all
that a method needs (BlockOperations); staging, which has defaults (Staging); solves of small graphs
in one launch (OneLaunch); and those on paths (PathOperations). Making an engine launches and
allocates nothing, so a solve may make one for each sign of its weights.

A method knows nothing of dtypes, devices or tiles. It takes blocks of the distance matrix by
slicing and passes them to the operations; it never computes on a block itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import torch

from tri_apsp.configs import CompleteConfig
from tri_apsp.semirings import Operation, floor, missing, no_edge
from tri_apsp.value_range import (
    KnownRanges,
    PendingRanges,
    ValueRange,
    clear_padding,
    padding_of,
    value_range,
)

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


class MatrixSpec(NamedTuple):
    """What an engine is made for: n, dtype and device of the matrix, and whether no value of it is
    negative.

    `sizes` is contiguous, (batch,) of int32 or int64 on the same device, each in [0, n]: the number
    of leading vertices of each graph. The other vertices are padding, all no_edge with the
    diagonal, which an engine may skip. None: no padding.

    `operation` is that of the semiring; of "max" products, closures and panels are offered, of
    others products.
    """

    n: int
    dtype: torch.dtype
    device: torch.device
    nonnegative: bool
    sizes: torch.Tensor | None = None
    operation: Operation = "plus"


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


class Staging:
    """The initial matrix of a solve, and the value ranges by which it is checked.

    None of these methods needs a configuration. Here they are torch operations, which compute a
    value range at once; an engine that overrides them may return while its device still computes.
    """

    @classmethod
    def can_solve_in_place(cls, weights: torch.Tensor) -> bool:
        """Return whether the operations can work on weights (batch, n, n) with their strides."""
        return weights.stride(-1) == 1

    @classmethod
    def can_start_in(cls, out: torch.Tensor) -> bool:
        """Return whether a solve in a tensor (batch, n, n) is as fast as in a matrix of its own."""
        return cls.can_solve_in_place(out)

    @classmethod
    def initial_matrix(
        cls,
        weights: torch.Tensor,
        sizes: torch.Tensor | None,
        *,
        matrices: float,
        check: bool,
        into: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, PendingRanges | None]:
        """Return the matrix that a solve starts from, and the value range of the weights.

        Args:
            weights: (batch, n, n) of any strides.
            sizes: (batch,), the leading vertices of each graph; None: all.
            matrices: how many matrices of the size of the copy the solve needs.
            check: whether the value range is needed.
            into: the copy is made there, (batch, n, n); see can_start_in. None: in a new matrix.

        Returns:
            A copy (batch, m, m) with m >= n, contiguous if it is new, without a positive value on
            its diagonal and with no_edge in all padding; and with `check` the value range below
            no_edge, in which 0 may count as one of the weights and NaN as -inf.
        """
        matrix = cls.copied(weights) if into is None else into.copy_(weights)
        padding = None if sizes is None else padding_of(weights, sizes)
        if padding is not None:
            clear_padding(matrix, padding)
        infinity = no_edge(weights.dtype)
        # Before the diagonal changes, whose values may be invalid.
        found = KnownRanges(cls.value_ranges([matrix], infinity)) if check else None
        diagonal = matrix.diagonal(dim1=-2, dim2=-1).clamp_(max=0)
        if padding is not None:
            diagonal.masked_fill_(padding, infinity)
        return matrix, found

    @classmethod
    def copied(cls, weights: torch.Tensor) -> torch.Tensor:
        """Return a contiguous copy."""
        return weights.clone(memory_format=torch.contiguous_format)

    @classmethod
    def value_ranges(
        cls, tensors: Sequence[torch.Tensor], below: float | int | None, *, diagonal: bool = False
    ) -> list[ValueRange]:
        """Return the value range of each tensor (batch, m, n), all of one dtype; see
        value_range.value_range.
        """
        return [value_range(tensor, below, diagonal=diagonal) for tensor in tensors]

    @classmethod
    def queue_value_range(cls, tensor: torch.Tensor) -> PendingRanges:
        """Queue the value range of a tensor (batch, m, n); read() blocks only for work that was
        queued before this call.
        """
        return KnownRanges(cls.value_ranges([tensor], None))

    @classmethod
    def operands(
        cls,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor | None,
        operation: Operation = "plus",
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return operands of a product (batch, m, k), (batch, k, n), (batch, m, n), copied or
        padded if that makes it faster.

        Padding is `missing` of the operation, in k and in columns of `b` and `c` after the last.
        """
        a, b = (x if x.stride(-1) == 1 else x.contiguous() for x in (a, b))
        return a, b, c


QueueSolve = Callable[
    [torch.Tensor, torch.Tensor | None], tuple[torch.Tensor, PendingRanges | None]
]
"""Queues a solve; see OneLaunch.queue_solve_of.

Args:
    weights: of the shape, strides, dtype and device of those that queue_solve_of was given; a batch
        of 1 may also be (n, n). The diagonal counts as 0 unless it is negative; what `sizes` leaves
        out is ignored. No value and no size was checked.
    sizes: (batch,), if the engine was made for some.

Returns:
    The distances, a new contiguous tensor of the shape of the weights, for a negative weight
    perhaps wrong (see solves_by_sign). With `check` also two value ranges below no_edge: of
    the weights, in which NaN may count as -inf, and a size outside [0, n] counts as the lowest
    value of the dtype; and of the distances with their diagonal.
"""


class OneLaunch(ABC):
    """Solves of whole graphs of one diagonal block: the initial matrix, its closure and the value
    ranges are queued together, so that the host blocks once.
    """

    @classmethod
    @abstractmethod
    def can_solve_in_one_launch(
        cls, weights: torch.Tensor, sizes: torch.Tensor | None, *, check: bool
    ) -> bool:
        """Return whether queue_solve_of takes weights (batch, n, n) that one closure solves."""

    @classmethod
    def solves_by_sign(cls, weights: torch.Tensor) -> bool:
        """Return whether queue_solve_of of an engine made for non-negative weights gives wrong
        results for others.
        """
        return False

    @abstractmethod
    def queue_solve_of(self, weights: torch.Tensor, *, check: bool = True) -> QueueSolve:
        """Return a function that queues whole solves of weights like these, (batch, n, n) that one
        closure solves. It may be kept, and called by several threads.

        Args:
            weights: as the engine was made for, of any strides; their values are not read.
            check: whether value ranges are needed. Without it the launches may be captured into a
                CUDA graph.
        """


class Tolerance(NamedTuple):
    """How far rounding may separate sums of weights that are equal; each is 0 for integers.

    A path equals a distance d if its sum differs by no more than `relative` * |d| + `absolute`. A
    cycle through vertices at a distance d may weigh 0 if its sum is no more than `cycle_relative` *
    |d| + `cycle_absolute`. `has_absolute` is whether `absolute` and `cycle_absolute` may be other
    than 0: for floats of which some may be negative.
    """

    relative: float
    absolute: float | torch.Tensor
    cycle_relative: float
    cycle_absolute: float | torch.Tensor
    has_absolute: bool


class PathOperations(ABC):
    """What follows from weights and distances, whatever method computed the distances.

    `distances` and `gradient` are contiguous; gradients are float32 or float64, and the same bits
    in every run.
    """

    @abstractmethod
    def predecessors(
        self, weights: torch.Tensor, distances: torch.Tensor, tolerance: Tolerance
    ) -> torch.Tensor:
        """Return the predecessors of all pairs: for (i, j), the vertex before j on a shortest path
        from i.

        Following the predecessors from any j leads to i. Of several shortest paths, the edge (i, j)
        itself comes first; where a cycle of weight 0 might close a loop, paths of the fewest edges;
        then the vertex before j of the least sum (of floats: as rounded), and of several such the
        smallest.

        Args:
            weights: (batch, n, n) with any strides; the diagonal, and the values that `sizes`
                leaves out, are ignored.
            distances: (batch, n, n) of `weights`, no_edge where there is no path.
            tolerance: of the sums in `distances`.

        Returns:
            (batch, n, n) of int32, contiguous; -1 where there is no path, and on the diagonal.

        Cost: with a share t of all pairs (k, j) whose edge is a shortest path, at most t (1 - t)
        n^3 additions and comparisons, mostly far fewer; a search of that cost for each further edge
        of paths beside cycles of weight 0, until such a search finds few pairs; then n^2 edges per
        source.
        """

    def predecessors_by_product(
        self, weights: torch.Tensor, distances: torch.Tensor, tolerance: Tolerance
    ) -> torch.Tensor | None:
        """Return predecessors() by a way that is faster and, for floats, needs non-negative
        weights, which it checks.

        None: there is no such way, or a weight is negative. `tolerance` is without `has_absolute`.
        """
        return None

    @classmethod
    @abstractmethod
    def predecessors_workspace(cls, weights: torch.Tensor) -> float:
        """Return the most memory that predecessors() allocates beside its result, in matrices of
        the size of `weights`.
        """

    def weights_gradient(
        self, gradient: torch.Tensor, weights: torch.Tensor, distances: torch.Tensor
    ) -> torch.Tensor | None:
        """Return the gradient of weights (batch, n, n) as edge_gradient() does, without
        predecessors; None: the engine has no such way for this n.

        Of several shortest paths, the edge itself comes first, then those whose greatest vertex
        between the two ends is least.
        """
        return None

    @abstractmethod
    def edge_gradient(self, gradient: torch.Tensor, predecessors: torch.Tensor) -> torch.Tensor:
        """Return the gradient of each edge (batch, n, n): the sum of the gradients of all distances
        whose path uses it.

        `predecessors` (batch, n, n) of int32, contiguous, are those of the distances.

        Cost: a few passes over n^2 values (GPU: for each doubling of the most edges of a path), and
        a matrix of 64-bit values (GPU: and at most 24 bytes for each pair of vertices).
        """

    @abstractmethod
    def argmin(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the product of (batch, m, depth) `a` and (batch, depth, n) `b`, and the first k
        with a[i, k] * b[k, j] = c[i, j], (batch, m, n) of int32; -1 where that is no_edge. The
        times, *, is the operation of the engine.

        All are contiguous, and of one dtype other than int16. `c` is the product if it is known;
        where it is less, the result may be any term, or -1.

        Cost: m * n * depth additions and comparisons.
        """

    @abstractmethod
    def factor_gradients(
        self, gradient: torch.Tensor, chosen: torch.Tensor, depth: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients (batch, m, depth) and (batch, depth, n) of the factors of a product
        by that of the product, (batch, m, n).

        `chosen` (batch, m, n) of int32, contiguous, has for each element the term that its gradient
        belongs to; -1: none.
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
        self.no_edge = missing(spec.dtype, spec.operation)
        self.floor = floor(spec.dtype, spec.operation)

    def product_of(self, a: Block, b: Block) -> Block:
        """Return A * B, contiguous."""
        c = a.new_empty((*a.shape[:2], b.shape[2]))
        self.product(Update(c, a, b, fresh=True))
        return c

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
