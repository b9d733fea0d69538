"""How the rows of a matrix are divided among ranks, and into pivot blocks."""

from dataclasses import dataclass
from typing import NamedTuple

WHOLE = 128
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
        return sum(self.counts[:rank])

    def pivots(self) -> list[Pivot]:
        """Return the pivot blocks that are left, ascending, each of one rank."""
        found = list[Pivot]()
        for rank, count in enumerate(self.counts):
            first = self.first(rank)
            for begin in range(max(first, self.done), first + count, self.block):
                found.append(Pivot(rank, begin, min(begin + self.block, first + count)))
        return found


def even_counts(n: int, ranks: int, kind: str = "cpu") -> tuple[int, ...]:
    """Return the rows of each rank, which differ by at most one; on GPUs, of kind "cuda", by a
    tile, and only the last of them may be cut.
    """
    multiple = WHOLE if kind == "cuda" else 1
    units = -(-n // multiple)
    ends = [min(n, units * (rank + 1) // ranks * multiple) for rank in range(ranks)]
    return tuple(end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True))
