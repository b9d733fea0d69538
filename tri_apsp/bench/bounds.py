"""The nominal bound of min-plus or Boolean operations per second on a GPU: these at full rate, and
no other instruction.
"""

from dataclasses import dataclass

import torch

from tri_apsp.device import Device
from tri_apsp.semirings import dtype_name

BOUND = (
    "what adds and mins, or ands and ors, alone would reach on compute capability 9: 128 "
    "instructions per clock and multiprocessor, of which the ALU (min, fused add-min, compare, "
    "select, and with or) takes 64 and the float64 unit 64"
)
"""The definition, for help texts. Loads, addresses and loops count nothing, so no kernel of these
instructions reaches it.
"""

# Instructions per clock and multiprocessor, counted once per thread.
_ISSUED, _ALU, _DOUBLE = 128, 64, 64


@dataclass(frozen=True)
class Mix:
    """The instructions of one thread for a number of min-plus or Boolean operations.

    Attributes:
        operations: operations that the instructions do together.
        issued: all instructions.
        alu: those that only the ALU takes.
        double: those that only the float64 unit takes.
    """

    operations: int
    issued: int
    alu: int
    double: int = 0

    @property
    def per_clock(self) -> float:
        """Operations per clock and multiprocessor, which the busiest unit limits."""
        rates = [
            _ISSUED / self.issued,
            _ALU / self.alu,
            *([_DOUBLE / self.double] if self.double else []),
        ]
        return self.operations * min(rates)


# Nonnegative float32 values are ordered as their bits are as integers, so one integer minimum of
# three takes two sums.
_NONNEGATIVE_FLOAT = Mix(operations=2, issued=3, alu=1)  # FADD FADD VIMNMX3
_MIXES = {
    torch.float32: Mix(operations=1, issued=2, alu=1),  # FADD FMNMX
    torch.float64: Mix(operations=1, issued=4, alu=2, double=2),  # DADD DSETP FSEL FSEL
    torch.int16: Mix(operations=2, issued=1, alu=1),  # VIADDMNMX.S16x2, two values per word
    torch.int32: Mix(operations=1, issued=1, alu=1),  # VIADDMNMX
    # Two each of add, compare (ISETP) and select (SEL), for the halves of a value; adds may run off
    # the ALU, as IMAD.
    torch.int64: Mix(operations=1, issued=6, alu=4),
    torch.bool: Mix(
        operations=32, issued=1, alu=1
    ),  # LOP3, for an "or" and an "and" of words: reachability
}


def operations_per_clock(dtype: torch.dtype, nonnegative: bool) -> float:
    """Return the bound in operations per clock and multiprocessor of compute capability 9.

    Args:
        dtype: of the weights; bool: of Boolean operations, as in reachability.
        nonnegative: no weight is negative.
    """
    return (
        _NONNEGATIVE_FLOAT if nonnegative and dtype == torch.float32 else _MIXES[dtype]
    ).per_clock


RATES = ", ".join(f"{dtype_name(dtype)} {mix.per_clock:g}" for dtype, mix in _MIXES.items()) + (
    f", float32 nonnegative {_NONNEGATIVE_FLOAT.per_clock:.3g}"
)
"""Operations per clock and multiprocessor of each dtype, for help texts."""


def has_bound(device: Device) -> bool:
    """Return whether `device` has compute capability 9: the rates of the instructions differ on
    other GPUs.
    """
    return device.capability is not None and device.capability[0] == 9


def bound(
    device: Device, dtype: torch.dtype, nonnegative: bool, clock_hz: float | None
) -> float | None:
    """Return the bound in operations per second; None for another kind of device or an unknown
    clock.

    Args:
        device: a GPU.
        dtype: of the weights.
        nonnegative: no weight is negative.
        clock_hz: of its multiprocessors; None: unknown.
    """
    if clock_hz is None or not has_bound(device):
        return None
    return operations_per_clock(dtype, nonnegative) * device.units * clock_hz
