"""What a configuration is tuned for: the shortest time, or the least energy."""

from __future__ import annotations

import os

from tri_apsp.errors import InputError

__all__ = ["OBJECTIVES", "wanted_objective"]

OBJECTIVES = ("time", "energy")
"""The objectives of the tuner, and the values of TRI_APSP_OBJECTIVE; the first is the default."""


def wanted_objective() -> str:
    """Return the objective whose entries solves prefer: what TRI_APSP_OBJECTIVE asks for.

    Raises:
        InputError: another value.
    """
    value = os.environ.get("TRI_APSP_OBJECTIVE") or OBJECTIVES[0]
    if value not in OBJECTIVES:
        raise InputError(f"TRI_APSP_OBJECTIVE must be one of {', '.join(OBJECTIVES)}, but is {value!r}; correct or unset it.")
    return value
