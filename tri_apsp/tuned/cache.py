"""What is remembered between lookups: the files that were read, what they said, and what the user was already told."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tri_apsp.errors import TuningWarning

if TYPE_CHECKING:
    from tri_apsp.configs import CompleteConfig
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["FILES", "FOUND", "MEMORY", "reload", "warn_once"]

FOUND: dict[Any, CompleteConfig] = {}
"""The answers of `find` by what was asked."""

FILES: dict[Any, TunedFile | None] = {}
"""The files by their path and by who reads them; None: missing, or refused."""

MEMORY: list[TunedFile] = []
"""What `remember` was given, newest first."""

_told: set[str] = set()


def reload() -> None:
    """Read the tuned files again at the next lookup: another process may have written some."""
    FOUND.clear()
    FILES.clear()


def warn_once(topic: str, message: str) -> None:
    """Issue a TuningWarning, unless one on this topic was issued in this process before."""
    if topic not in _told:
        _told.add(topic)
        warnings.warn(message, TuningWarning, stacklevel=2)
