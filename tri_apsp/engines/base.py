"""The seam between methods and hardware: an engine is three block operations on min-plus matrices.

A method knows nothing of dtypes, devices or tiles. It takes blocks of the distance matrix by slicing and hands them to
the operations below, which is also where a predecessor matrix, another semiring, or a block that lives elsewhere would
come in: methods never compute on a block themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch

from tri_apsp.configs import Config
from tri_apsp.semirings import no_edge, reach

__all__ = ["SPARE", "WORKSPACE", "Block", "Engine", "Update", "Weights", "block"]

WORKSPACE = 0.05
"""Share of the matrix that the in-place operations of an engine may take as workspace."""

SPARE = 0.01
"""Share of a device's memory that an engine may take on top, where that makes a solve faster."""

Block = torch.Tensor
"""A block of the distance matrix: a view of shape (batch, rows, columns) with unit stride in the last dimension."""


class Update(NamedTuple):
    """C <- min(C, A * B): c (batch, m, n), a (batch, m, k), b (batch, k, n).

    Rows and columns skip[0] to skip[1] of C stay as they are, and so may be where A and B lie. If C is `fresh`, whatever it
    holds counts as no_edge: C <- A * B.
    """

    c: Block
    a: Block
    b: Block
    skip: tuple[int, int] = (0, 0)
    fresh: bool = False


@dataclass(frozen=True)
class Weights:
    """What an engine is built for: n, dtype and device of the matrix, and whether no value of it is negative.

    `sizes`, contiguous (batch,) of int32 or int64 on the same device, each in [0, n]: the leading vertices of each graph
    that matter; the rest is padding, all no_edge (the diagonal too), which an engine may skip. None: all matter.
    """

    n: int
    dtype: torch.dtype
    device: torch.device
    nonnegative: bool
    sizes: torch.Tensor | None = None


class Engine(ABC):
    """One kind of device, for one solve. Operations are queued in order; each reads what those before it wrote.

    Every operation keeps stored values in [-reach, no_edge] (tri_apsp.semirings), and gives the same bits from run to
    run.
    """

    name: ClassVar[str]

    def __init__(self, weights: Weights, config: Config) -> None:
        self.weights = weights
        self.config = config
        self.no_edge = no_edge(weights.dtype)
        self.floor = -reach(weights.dtype)

    @abstractmethod
    def product(self, *updates: Update) -> None:
        """Compute each update; they are independent of each other and may run side by side.

        What is written of a `c` shares no element with the `a` or `b` of any update, except where a rank-1 update of a
        matrix with zero diagonal rewrites its own row and column with the values they have.
        """

    @abstractmethod
    def closure(self, d: Block) -> None:
        """D <- D* in place, for a block of at most config.block_size rows with zero (or negative) diagonal."""

    @abstractmethod
    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        """R <- D * R and C <- C * D in place, outside columns (rows) skip[0] to skip[1], for a closed D of any size.

        `d` (batch, size, size), `row` (batch, size, n) and `column` (batch, m, size) are views of one matrix; `d` may lie
        where they are skipped. Takes at most WORKSPACE of the matrix, or SPARE of a device.
        """

    def spare(self, like: Block, rows: int, columns: int) -> tuple[Block, Block] | None:
        """Return uninitialised blocks (rows, columns) and (columns, rows) to multiply panels into, for at most SPARE.

        None: there is not so much memory, or panels() replaces them as fast.
        """
        return None

    def scratch(self, like: Block, rows: int, columns: int) -> Block:
        """Return an uninitialised block of the same batch, dtype and device."""
        return like.new_empty((like.shape[0], rows, columns))

    def copy(self, *copies: tuple[Block, Block]) -> None:
        """Queue target <- source for pairs of blocks of one shape and dtype; no target shares an element with another block."""
        for target, source in copies:
            target.copy_(source)


def block(matrix: Block, rows: tuple[int, int], columns: tuple[int, int]) -> Block:
    """Return matrix[:, rows, columns] as a view; a third of the time of slicing, which small solves are made of."""
    (top, bottom), (left, right) = rows, columns
    _, row_stride, column_stride = matrix.stride()
    return matrix.as_strided(
        (matrix.shape[0], bottom - top, right - left),
        matrix.stride(),
        matrix.storage_offset() + top * row_stride + left * column_stride,
    )
