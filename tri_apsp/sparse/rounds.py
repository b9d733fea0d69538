"""Rounds of kernels on a GPU, after some of which the host reads whether that one changed anything;
and chunks of edges, so that a vertex of many edges occupies many programs.
"""

from collections.abc import Iterator

import torch

from tri_apsp.graphs.sparse import EdgeLists

FIRST = 4
"""Rounds before the host reads for the first time."""


def rounds(changed: torch.Tensor, most: int, first: int = FIRST) -> Iterator[int]:
    """Yield 1, 2, ...: the numbers of rounds, which the caller launches, until one sets no value of
    `changed`.

    The host reads `changed` after `first` rounds, then after 4, and after twice as many each time,
    up to `most`.
    """
    number, count = 0, first
    while True:
        yield from range(number + 1, number + count)
        number += count
        changed.zero_()
        yield number
        if not bool(changed.any()):
            return
        count = min(FIRST if number == first else 2 * count, most)


def chunks_of(lists: EdgeLists, most: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the vertex of each chunk, (chunks,) of int32, and its first edge and its end; at most
    `most` edges in each.
    """
    offsets = lists.offsets
    parts = offsets.diff().add(most - 1).div(most, rounding_mode="floor")
    vertices = torch.arange(len(parts), device=offsets.device).repeat_interleave(parts)
    place = torch.arange(len(vertices), device=offsets.device) - (parts.cumsum(0) - parts)[vertices]
    firsts = offsets[vertices] + most * place
    return vertices.to(torch.int32), firsts, torch.minimum(firsts + most, offsets[vertices + 1])
