"""Breadth-first search from many vertices at once on a GPU: one slab of sources after another."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

from tri_apsp.device import current
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.graphs.sparse import EdgeLists
from tri_apsp.kernels.shared import hops as kernels
from tri_apsp.sparse.rounds import FIRST, chunks_of, rounds

# Words of 32 sources in a slab at most, and bytes of one matrix of bits. All hops of 100000
# vertices with 2 million edges take 94 ms on an H200 with 24 MB, and 62 ms with 96 MB, though these
# do not stay in the L2 cache: there are fewer, larger launches.
_MOST_WORDS, _SLAB_BYTES = 256, 96 << 20
# Lists of more edges are gathered in chunks of _CHUNK.
_CHUNK = 512
# Vertices of a program that finds a level, and edges whose rows it reads at a time.
_VERTICES, _EDGES = 4, 2
# Vertices of a program that unpacks: four neighbours for each of its 128 threads.
_UNPACKED = 512
# Sources that one program of _start_kernel enters.
_STARTS = 256
# The host reads after at most this many levels whether there are more.
_LEVELS = 4


class _HopSearch:
    """The searches from one slab of sources after another, in the same memory."""

    def __init__(self, lists: EdgeLists, words: int, digits: int) -> None:
        n, device = len(lists.offsets) - 1, lists.offsets.device
        self.n, self.words, self.lists = n, words, lists
        self._now, self._later = torch.empty(2, n, words, dtype=torch.int32, device=device)
        # What each slab begins with as 0, in one piece: bits that are seen, their digits, and rows
        # that are complete.
        self._zeroed = torch.empty((1 + digits) * n * words + n, dtype=torch.int32, device=device)
        bits = self._zeroed[: (1 + digits) * n * words].view(1 + digits, n, words)
        self.seen, self.digits, self._complete = bits[0], bits[1:], self._zeroed[-n:]
        # The last level that found a bit of each row, of even levels and of odd ones.
        self.found = torch.empty(2, n, dtype=torch.int32, device=device)
        self._any = self.found.new_zeros(1)
        long = lists.degrees > _CHUNK
        self._list = torch.where(long, long.cumsum(0) - 1, -1).to(torch.int32)
        vertices, firsts, ends = chunks_of(lists, _CHUNK)
        kept = long[vertices]
        vertices = vertices[kept]
        self._chunks = self._list[vertices], vertices, firsts[kept], ends[kept]
        self._gathered = self.found.new_zeros(int(long.sum()), words)
        self._first = FIRST

    def levels(
        self, starts: torch.Tensor, totals: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    ) -> Iterator[int]:
        """Search from `starts`, on the device; yield the number of each level before the host reads
        whether there are more.
        """
        self._start(starts)
        width = max(16, 1 << (self.words - 1).bit_length())
        gather, find = _launcher("gather", width, 0), _launcher("level", width, len(self.digits))
        _, chunk_vertices, *_ = self._chunks
        for level in rounds(self._any, _LEVELS, self._first):
            found, later_found = self.found[(level - 1) % 2], self.found[level % 2]
            if len(chunk_vertices):
                gather(
                    (len(chunk_vertices), 1, 1),
                    self._gathered,
                    self._now,
                    found,
                    self._complete,
                    *self._chunks,
                    self.lists.vertices,
                    level,
                    self.words,
                )
            find(
                (-(-self.n // _VERTICES), 1, 1),
                self._later,
                self._now,
                found,
                self._complete,
                later_found,
                self.seen,
                self.digits,
                *totals,
                self._any,
                self.lists.offsets,
                self.lists.vertices,
                self._list,
                self._gathered,
                level,
                self.n,
                self.words,
            )
            self._now, self._later = self._later, self._now
            yield level

    def last_level(self) -> int:
        """Return the last level that found anything; slabs mostly have about as many."""
        last = int(self.found.max())
        self._first = last + 1
        return last

    def _start(self, starts: torch.Tensor) -> None:
        self._zeroed.zero_()
        self.found.fill_(-2)
        self._now[starts] = 0
        unused = torch.arange(len(starts), 32 * self.words, device=starts.device)
        if len(unused):  # bits without a source count as seen
            bits = (torch.ones_like(unused) << (unused % 32)).to(
                torch.int32
            )  # 1 << 31 becomes the smallest int32
            self.seen += torch.zeros_like(self.seen[0]).index_add_(0, unused // 32, bits)
        _launcher("start", 0, 0)(
            (-(-len(starts) // _STARTS), 1, 1),
            self._now,
            self.seen,
            self.found[0],
            starts,
            len(starts),
            self.words,
        )


def hops_on_gpu(
    lists: EdgeLists, starts: torch.Tensor, result: torch.Tensor, unreachable: int
) -> bool:
    """Write the hops (sources, n) from `starts` into `result`; return whether a path has more edges
    than its dtype holds.

    Args:
        lists: the edges by destination.
        starts: (sources,) of int64 on the CPU.
    """
    n, most = len(lists.offsets) - 1, unreachable - 1
    words, starts = _words(n, len(starts)), starts.to(result.device)
    totals = lists.offsets, lists.offsets, lists.vertices  # of their dtypes, but not used
    with current(result.device):
        search = _HopSearch(lists, words, _digits(n, unreachable))
        for first in range(0, len(starts), 32 * words):
            part = starts[first : first + 32 * words]
            for level in search.levels(part, totals):
                if level > most + _LEVELS:
                    break
            last = search.last_level()
            if last > most:
                return True
            digits = max(1, last.bit_length())
            seen, bits = (x.mT.contiguous() for x in (search.seen, search.digits[:digits]))
            grid = -(-n // _UNPACKED), -(-len(part) // 32), 1
            rows = result[first : first + len(part)]
            _launcher("unpack", unreachable, digits)(grid, rows, seen, bits, len(part), n, words)
    return False


def totals_on_gpu(
    lists: EdgeLists, sources: range
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return for each vertex the sum of its hops from some vertices, how many of them reach it, and
    the largest; see hops.Totals.
    """
    n = len(lists.offsets) - 1
    words = _words(n, len(sources))
    total, reached = (lists.offsets.new_zeros(n) for _ in range(2))
    reached[sources.start : sources.stop] = 1
    farthest = total.to(torch.int32)
    with current(total.device):
        search = _HopSearch(lists, words, 0)
        for first in sources[:: 32 * words]:
            end = min(first + 32 * words, sources.stop)
            starts = torch.arange(first, end, device=total.device)
            for _ in search.levels(starts, (total, reached, farthest)):
                pass
            search.last_level()
    return total, reached, farthest


def search_memory(n: int, sources: int, unreachable: int = 0) -> int:
    """Return the bytes of the matrices of bits of a search: of two levels, of what is seen and its
    digits, and their copies.
    """
    return (2 + 2 * (1 + _digits(n, unreachable))) * 4 * n * _words(n, sources)


def _digits(n: int, unreachable: int) -> int:
    """Return how many binary digits a level has at most."""
    return min(unreachable, n).bit_length()


def _words(n: int, sources: int) -> int:
    return max(1, min(_MOST_WORDS, _SLAB_BYTES // (4 * max(1, n)), -(-sources // 32)))


@cache
def _launcher(name: str, number: int, digits: int) -> Launcher:
    kernel = getattr(kernels, f"_{name}_kernel")
    return Launcher(kernel, hop_constants(name, number, digits))


def hop_constants(name: str, number: int, digits: int) -> dict[str, Any]:
    """Return the constants and the warps of a kernel; `number` is its WORDS, or UNREACHABLE of
    "unpack".
    """
    known: dict[str, dict[str, Any]] = {
        "start": {"BLOCK": _STARTS},
        "gather": {"EDGES": _EDGES, "WORDS": number},
        "level": {"DIGITS": digits, "VERTICES": _VERTICES, "EDGES": _EDGES, "WORDS": number},
        "unpack": {"UNREACHABLE": number, "DIGITS": digits, "VERTICES": _UNPACKED},
    }
    return known[name] | {"num_warps": 1 if name in ("gather", "level") else 4}
