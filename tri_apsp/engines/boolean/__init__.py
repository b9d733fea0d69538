"""Engines on Boolean matrices, packed many vertices per word along the columns: one per engine of
distances, imported when it is first used.

The operations are those of distances with "or" for the minimum and "and" for the sum, so that the
same methods run. "Or" is idempotent and exact, which makes three things simpler than for distances:

* A product C <- C or A B may compute rows and columns that it could skip.
* Programs may update C while others read it as A or B, as in the panel B <- A B of a closed A. No
  update clears a bit, so that a program reads at least the bits from before the product; a bit that
  it reads from an update is a path, which the closure has anyway.
* So panels need no workspace, and the closure of a block may square it in place.
"""

from abc import abstractmethod
from importlib import import_module
from typing import ClassVar

import torch

from tri_apsp.configs import CompleteConfig
from tri_apsp.engines.base import Block, BlockOperations, Update, block

__all__ = ["PADDING", "BooleanEngine", "make", "packed_size"]

PADDING = 128
"""A packed matrix has a multiple of this many vertices, so that blocks consist of whole words and
of whole tiles of a GPU.

The methods split at multiples of it, since BLOCK_SIZE is one and CUTOFF is at least 4 times as
much.
"""


class BooleanEngine(BlockOperations):
    """The operations on matrices (batch, m, m / WORD) of words, for one closure of graphs of `n`
    vertices, m = packed_size(n).

    Bit b of word (i, w) is the element (i, WORD w + b). Rows, columns and skips of the methods
    count vertices.

    Attributes:
        WORD: vertices per word.
        BLOCK_SIZE: the largest block that `closure` closes.
        CUTOFF: the largest block that kleene leaves to floyd_warshall.
    """

    WORD: ClassVar[int]
    BLOCK_SIZE: ClassVar[int]
    CUTOFF: ClassVar[int]

    def __init__(self, n: int, device: torch.device) -> None:
        assert self.BLOCK_SIZE % PADDING == 0, "floyd_warshall would split words"
        assert self.CUTOFF >= 4 * PADDING, "kleene would split words"
        super().__init__(
            CompleteConfig(engine=self.name, block_size=self.BLOCK_SIZE, cutoff=self.CUTOFF)
        )
        self.n = n
        self.device = device

    def block(self, matrix: Block, rows: tuple[int, int], columns: tuple[int, int]) -> Block:
        return block(matrix, rows, (columns[0] // self.WORD, columns[1] // self.WORD))

    @property
    def counts_paths(self) -> bool:
        """Whether large products of the closure run on tensor cores, which count paths."""
        return False

    @abstractmethod
    def pack(self, adjacency: torch.Tensor, no_edge: float | int | None) -> Block:
        """Return adjacency (batch, n, n), of any strides, as a packed matrix with True on its
        diagonal.

        An element is an edge if it is less than `no_edge`; None: if it is not 0.
        """

    @abstractmethod
    def unpack(self, matrix: Block) -> torch.Tensor:
        """Return the leading n vertices of a packed matrix as a tensor (batch, n, n) of bool."""

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        self.product(Update(row, d, row), Update(column, column, d))


def packed_size(n: int) -> int:
    """Return the vertices of a packed matrix for graphs of `n`."""
    return -(-n // PADDING) * PADDING


def make(name: str, n: int, device: torch.device) -> BooleanEngine:
    """Return the Boolean engine beside engine `name` of tri_apsp.engines.ENGINES, for graphs of `n`
    vertices on `device`.
    """
    engine: type[BooleanEngine] = getattr(
        import_module(f"{__name__}.{name}"), f"{name.title()}BooleanEngine"
    )
    return engine(n, device)
