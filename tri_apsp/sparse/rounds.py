"""Rounds of kernels on a GPU; after some, the host reads whether that one changed anything."""

from collections.abc import Iterator

import torch

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
