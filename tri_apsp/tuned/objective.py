"""What a configuration is tuned for: the shortest time, or the least energy."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias, get_args

from tri_apsp.errors import InputError

__all__ = ["DEFAULT_OBJECTIVE", "OBJECTIVES", "Objective", "wanted_objective"]

Objective: TypeAlias = Literal["time", "energy"]

OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
"""The objectives of the tuner, and the values of TRI_APSP_OBJECTIVE."""

DEFAULT_OBJECTIVE: Objective = "time"


def wanted_objective() -> Objective:
    """Return the objective whose entries solves prefer: what TRI_APSP_OBJECTIVE asks for.

    Raises:
        InputError: another value.
    """
    value = os.environ.get("TRI_APSP_OBJECTIVE") or DEFAULT_OBJECTIVE
    if value not in OBJECTIVES:
        raise InputError(
            f"TRI_APSP_OBJECTIVE must be one of {', '.join(OBJECTIVES)}, but is {value!r}; correct or unset it."
        )
    return value
