"""The nominal bound of min-plus or Boolean operations per second on a GPU: these at full rate, and
no other instruction.
"""

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

# The rate of the busiest unit: 128 instructions are issued per clock, once per thread, of which the
# ALU takes 64, and the float64 unit 64.
_PER_CLOCK = {
    torch.float32: 64.0,  # FADD FMNMX: the ALU takes the minimum
    torch.float64: 32.0,  # DADD DSETP FSEL FSEL
    torch.int16: 128.0,  # VIADDMNMX.S16x2, two values per word, on the ALU
    torch.int32: 64.0,  # VIADDMNMX, on the ALU
    # Two each of add, compare (ISETP) and select (SEL), for the halves of a value; adds may run off
    # the ALU, as IMAD.
    torch.int64: 16.0,
    torch.bool: 2048.0,  # LOP3, for an "or" and an "and" of words of 32: reachability
}
# Nonnegative float32 values are ordered as their bits are as integers, so one integer minimum of
# three takes two sums: FADD FADD VIMNMX3 are issued for two operations.
_NONNEGATIVE_FLOAT32 = 2 * 128 / 3


def operations_per_clock(dtype: torch.dtype, nonnegative: bool) -> float:
    """Return the bound in operations per clock and multiprocessor of compute capability 9.

    Args:
        dtype: of the weights; bool: of Boolean operations, as in reachability.
        nonnegative: no weight is negative.
    """
    return _NONNEGATIVE_FLOAT32 if nonnegative and dtype == torch.float32 else _PER_CLOCK[dtype]


RATES = ", ".join(f"{dtype_name(dtype)} {rate:g}" for dtype, rate in _PER_CLOCK.items()) + (
    f", float32 nonnegative {_NONNEGATIVE_FLOAT32:.3g}"
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
