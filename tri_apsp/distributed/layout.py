"""How the rows of a matrix are divided among ranks, and into pivot blocks."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

ROW_MULTIPLE = 128
"""A multiple of this many vertices fills the tiles of a GPU."""


class Pivot(NamedTuple):
    """The vertices begin to end, whose rows the rank `owner` holds."""

    owner: int
    begin: int
    end: int


@dataclass(frozen=True)
class Layout:
    """Contiguous rows of each rank.

    Attributes:
        counts: the number of rows of each rank, from rank 0 on; some may have none.
        block: the most vertices of a pivot block.
        done: how many vertices have been pivots before.
    """

    counts: tuple[int, ...]
    block: int
    done: int = 0

    def first(self, rank: int) -> int:
        """Return the first row of a rank."""
        return bounds(self.counts)[rank][0]

    def pivots(self) -> list[Pivot]:
        """Return the pivot blocks that are left, ascending, each of one rank."""
        found = list[Pivot]()
        for rank, (first, end) in enumerate(bounds(self.counts)):
            for begin in range(max(first, self.done), end, self.block):
                found.append(Pivot(rank, begin, min(begin + self.block, end)))
        return found


def bounds(counts: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first row of each rank, and the end of its rows."""
    ends = list(itertools.accumulate(counts))
    return list(zip([0, *ends[:-1]], ends, strict=True))


def even_counts(n: int, ranks: int, kind: str = "cpu") -> tuple[int, ...]:
    """Return the rows of each rank: as equal as possible; on GPUs, of kind "cuda", in multiples of
    ROW_MULTIPLE, but for the last rank.
    """
    multiple = ROW_MULTIPLE if kind == "cuda" else 1
    units = -(-n // multiple)
    ends = [min(n, units * (rank + 1) // ranks * multiple) for rank in range(ranks)]
    return tuple(end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True))
