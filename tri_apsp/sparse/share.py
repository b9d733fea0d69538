"""Which of the sources a process solves, where several divide them."""

from collections.abc import Iterator
from typing import NamedTuple


class Share(NamedTuple):
    """Number `rank` of `size` equal shares."""

    rank: int = 0
    size: int = 1

    def of(self, count: int) -> range:
        """Return which of `count` sources are in this share."""
        return range(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def parts(self, count: int, rows: int) -> Iterator[slice]:
        """Yield the sources of this share, at most `rows` at a time."""
        own = self.of(count)
        for begin in own[::rows]:
            yield slice(begin, min(own.stop, begin + rows))


WHOLE = Share()
"""All sources."""
