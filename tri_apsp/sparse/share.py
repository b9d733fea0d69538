"""Which of the sources a process or a device solves, where several divide them."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, NamedTuple, TypeVar

from tri_apsp.device import Devices, resolve_all
from tri_apsp.graphs.sparse import GraphLike, SparseGraph, sparse_graph
from tri_apsp.ranks.communicator import Communicator
from tri_apsp.ranks.threads import run_ranks

T = TypeVar("T")


class Share(NamedTuple):
    """Number `rank` of `size` equal shares.

    Attributes:
        check: raises if another share has failed.
    """

    rank: int = 0
    size: int = 1
    check: Callable[[], object] = lambda: None

    @classmethod
    def of_rank(cls, ranks: Communicator) -> "Share":
        """Return the share of a rank."""
        return cls(ranks.rank, ranks.size, ranks.check)

    def of(self, count: int) -> range:
        """Return which of `count` sources are in this share."""
        return range(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def parts(self, count: int, rows: int) -> Iterator[slice]:
        """Yield the sources of this share, at most `rows` at a time, until another one fails."""
        own = self.of(count)
        for begin in own[::rows]:
            self.check()
            yield slice(begin, min(own.stop, begin + rows))


WHOLE = Share()
"""All sources."""


def on_devices(
    graph: GraphLike,
    device: Devices | None,
    solve: Callable[[SparseGraph, Share], T],
    add: Callable[[T, T], T],
    *,
    take: Callable[[Any], Any] = sparse_graph,
) -> T:
    """Return what solve(graph on a device, its share) returns for all devices, added in their
    order.

    Args:
        device: as for shortest_paths; None: that of the graph.
        take: returns the graph as solve() takes it.
    """
    given = take(graph)
    devices = (given.device,) if device is None else resolve_all(device)
    found = run_ranks(
        devices, lambda ranks: solve(given.to(devices[ranks.rank]), Share.of_rank(ranks))
    )
    return reduce(add, found)
