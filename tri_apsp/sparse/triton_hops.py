"""Breadth-first search from many vertices at once on a GPU: slabs of sources whose bits stay in the L2 cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

from tri_apsp.device import current
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.shared import hops as kernels
from tri_apsp.sparse.chunks import chunks_of
from tri_apsp.sparse.graph import EdgeLists
from tri_apsp.sparse.rounds import rounds

__all__ = ["hop_constants", "hops_on_gpu", "totals_on_gpu"]

# Words of 32 sources in a slab at most, and bytes of one matrix of bits, three of which stay in the L2 cache.
_MOST_WORDS, _SLAB_BYTES = 64, 16 << 20
# Edges of a chunk, and chunks of a program that gathers.
_CHUNK, _CHUNKS = 256, 4
# Edges whose rows such a program reads at a time.
_EDGES = 8
# Rows of a program that settles; vertices and words of one that unpacks.
_ROWS, _UNPACKED = 16, (64, 8)
# The most levels between two reads of the host whether there are more.
_LEVELS = 4


class _Slab:
    """The search from some sources."""

    def __init__(self, lists: EdgeLists, starts: torch.Tensor, words: int, most_digits: int) -> None:
        n, device = len(lists.offsets) - 1, lists.offsets.device
        self.n, self.words, self.lists = n, words, lists
        self.now, self.later, self.seen = torch.zeros(3, n, words, dtype=torch.int32, device=device)
        self.digits = torch.zeros(most_digits, n, words, dtype=torch.int32, device=device)
        self.found = torch.full((n,), -2, dtype=torch.int32, device=device)
        self.complete, self.any = self.found.new_zeros(n), self.found.new_zeros(1)
        number = torch.arange(32 * words, device=device)
        bits = (torch.ones_like(number) << (number % 32)).to(torch.int32)  # 1 << 31 becomes the smallest int32
        place = starts.to(device) * words + number[: len(starts)] // 32
        self.now.view(-1).index_put_((place,), bits[: len(starts)], accumulate=True)
        self.seen.copy_(self.now)
        self.seen += torch.zeros(words, dtype=torch.int32, device=device).index_add_(
            0, number[len(starts) :] // 32, bits[len(starts) :]
        )  # bits without a source count as seen
        self.found[starts.to(device)] = 0

    def levels(self, totals: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> Iterator[int]:
        """Run each level, and yield its number before the host reads whether there are more."""
        chunks = chunks_of(self.lists, _CHUNK)
        width = max(16, 1 << (self.words - 1).bit_length())
        gather, settle = _launcher("gather", width, 0), _launcher("settle", width, len(self.digits))
        for level in rounds(self.any, _LEVELS):
            gather(
                (-(-len(chunks[0]) // _CHUNKS), 1, 1), self.later, self.now, self.found, self.complete, *chunks,
                self.lists.vertices, level, len(chunks[0]), self.words,
            )  # fmt: skip
            settle(
                (-(-self.n // _ROWS), 1, 1), self.later, self.now, self.found, self.complete, self.seen, self.digits, *totals,
                self.any, level, self.n, self.words,
            )  # fmt: skip
            self.now, self.later = self.later, self.now
            yield level


def hops_on_gpu(lists: EdgeLists, starts: torch.Tensor, result: torch.Tensor, unreachable: int) -> bool:
    """Write the hops (sources, n) from `starts` into `result`; return whether a path has more edges than its dtype holds.

    Args:
        lists: the edges by destination.
        starts: (sources,) of int64 on the CPU.
    """
    n, most = len(lists.offsets) - 1, unreachable - 1
    words = _words(n)
    totals = tuple(result.new_zeros(1, dtype=dtype) for dtype in (torch.int64, torch.int64, torch.int32))
    with current(result.device):
        for first in range(0, len(starts), 32 * words):
            part = starts[first : first + 32 * words]
            slab = _Slab(lists, part, words, min(unreachable, n).bit_length())
            last = 0
            for level in slab.levels(totals):  # type: ignore[arg-type]
                if level > most + _LEVELS:
                    break
                last = level
            if bool((slab.found > most).any()):
                return True
            digits = min(len(slab.digits), max(1, last.bit_length()))
            grid = -(-n // _UNPACKED[0]), -(-words // _UNPACKED[1]), 1
            rows = result[first : first + len(part)]
            _launcher("unpack", unreachable, digits)(grid, rows, slab.seen, slab.digits, len(part), n, words)
    return False


def totals_on_gpu(lists: EdgeLists) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return for each vertex the sum of its hops from all vertices, how many reach it, and the largest; see hops.Totals."""
    n = len(lists.offsets) - 1
    words = _words(n)
    total, reached = torch.zeros(n, dtype=torch.int64, device=lists.offsets.device), lists.offsets.new_ones(n)
    farthest = total.to(torch.int32)
    with current(total.device):
        for first in range(0, n, 32 * words):
            slab = _Slab(lists, torch.arange(first, min(first + 32 * words, n)), words, 0)
            for _ in slab.levels((total, reached, farthest)):
                pass
    return total, reached, farthest


def _words(n: int) -> int:
    return max(1, min(_MOST_WORDS, _SLAB_BYTES // (4 * max(1, n)), -(-n // 32)))


@cache
def _launcher(name: str, number: int, digits: int) -> Launcher:
    kernel = getattr(kernels, f"_{name}_kernel")
    return Launcher(kernel, hop_constants(name, number, digits) | {"num_warps": 1 if name == "gather" else 4})


def hop_constants(name: str, number: int, digits: int) -> dict[str, Any]:
    """Return the constants of a kernel; `number` is its WORDS, or UNREACHABLE of "unpack"."""
    if name == "gather":
        return {"CHUNKS": _CHUNKS, "EDGES": _EDGES, "WORDS": number}
    if name == "settle":
        return {"DIGITS": digits, "ROWS": _ROWS, "WORDS": number}
    return {"UNREACHABLE": number, "DIGITS": digits, "VERTICES": _UNPACKED[0], "WORDS": _UNPACKED[1]}
