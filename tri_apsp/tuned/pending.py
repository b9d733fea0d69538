"""Warnings about tuned files: lookups collect them, and a call issues them at its caller's line once it has succeeded."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from tri_apsp.errors import TuningWarning

__all__ = ["ISSUED", "PENDING", "collect", "issue"]

PENDING: dict[str, str] = {}
"""The messages to issue, by topic."""

ISSUED: set[str] = set()
"""The topics on which this process has issued a warning."""

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"  # not resolved, as co_filename


def collect(topic: str, message: str) -> None:
    """Keep a message for `issue`, unless one on this topic was issued in this process before."""
    if topic not in ISSUED:
        PENDING.setdefault(topic, message)


def issue() -> None:
    """Issue what was collected, each message as a TuningWarning at the line outside this package that made the call."""
    for topic in list(PENDING):
        message = PENDING.pop(topic, None)  # None: another thread was faster
        if message is not None:
            ISSUED.add(topic)
            warnings.warn(message, TuningWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Return the `stacklevel` with which `issue` warns at the first frame outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
