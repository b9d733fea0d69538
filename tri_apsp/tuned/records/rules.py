"""Rules that the records of several engines share."""

import torch

from tri_apsp.configs import CompleteConfig
from tri_apsp.tuned.records.base import Choice, Space

SOLVE_FIELDS = ("method", "block_size", "cutoff")

OTHER_REGISTERS = 24
"""Registers of a thread besides accumulators and operands: addresses, masks, counters; from
programs that did not spill.
"""

MIN_VALUES = 16
"""With fewer values of C per thread, loads take longer than sums: 4 x 4 values take 8 loads for 16
sums.
"""


def registers_per_value(dtype: torch.dtype) -> int:
    """Return the registers that hold a value: one for int16 too, although the nvidia engine's
    product packs two into one.
    """
    return 2 if dtype.itemsize == 8 else 1


def exceeds(value: Choice, choices: tuple[Choice, ...], n: int) -> bool:
    """Return whether a choice smaller than `value` covers all of `n` already."""
    return any(int(choice) >= n for choice in choices if int(choice) < int(value))


def solve_repeats(config: CompleteConfig, base: CompleteConfig, n: int, space: Space) -> bool:
    """Return whether a configuration of `space` solves n vertices as another of its configurations
    does.
    """
    if config.method == "kleene":
        # With cutoff >= n kleene is floyd_warshall; a block_size above the cutoff acts like
        # block_size = cutoff.
        return config.cutoff >= n or config.block_size > config.cutoff
    sizes = next(
        parameter.choices for parameter in space.parameters if parameter.name == "block_size"
    )
    return config.cutoff != base.cutoff or exceeds(config.block_size, sizes, n)
