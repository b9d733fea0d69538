"""What happens if nothing was tuned for a call: the variable TRI_APSP_TUNE, and the calls to which
it applies.
"""

from __future__ import annotations

import os

from tri_apsp.errors import InputError
from tri_apsp.tuned.call import Call
from tri_apsp.tuned.other_gpus import covers_architecture

__all__ = ["POLICIES", "is_large", "is_worth_tuning", "policy"]

POLICIES = ("warn", "auto", "off", "require")
"""The values of TRI_APSP_TUNE; the first is the default."""

_REQUIRED_FROM = 128
_WARNED_FROM = 512


def policy() -> str:
    """Return one of POLICIES: what TRI_APSP_TUNE asks for, or "require" if only
    TRI_APSP_REQUIRE_TUNED is set, and not to 0.

    Raises:
        InputError: another value.
    """
    value = os.environ.get("TRI_APSP_TUNE", "")
    if not value:
        return (
            "require"
            if os.environ.get("TRI_APSP_REQUIRE_TUNED", "") not in ("", "0")
            else POLICIES[0]
        )
    if value not in POLICIES:
        raise InputError(
            f"TRI_APSP_TUNE must be one of {', '.join(POLICIES)}, but is {value!r}; correct or unset it."
        )
    return value


def is_large(call: Call) -> bool:
    """Return whether "auto" and "require" apply to a call: from the operations of the least size
    that a full sweep tunes.
    """
    return call.batch * call.n**3 >= _REQUIRED_FROM**3 and not _is_interpreted(call)


def is_worth_tuning(call: Call) -> bool:
    """Return whether a call that ran with the defaults is likely to become noticeably faster by
    tuning.

    Measured gains over the defaults: 1.02 in the geometric mean and at most 1.4 on an H200
    (tuning/nvidia-h200); mostly 1.00 and at most 1.14 on two cores of an AMD EPYC. The defaults
    come from these machines, so on a GPU of another architecture other configurations may be
    faster. A call of fewer operations than a graph of 512 vertices takes less than milliseconds
    with any configuration.
    """
    if call.engine == "cpu" or _is_interpreted(call) or call.batch * call.n**3 < _WARNED_FROM**3:
        return False
    return not covers_architecture(call.engine, call.device.capability)


def _is_interpreted(call: Call) -> bool:
    """Return whether Triton's interpreter runs the kernels, which is slow with any tiles."""
    return call.engine != "cpu" and call.torch_device.type == "cpu"
