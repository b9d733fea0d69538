"""What is kept between lookups: the files that were read, the answers, and the warnings that were issued."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tri_apsp.errors import TuningWarning

if TYPE_CHECKING:
    from tri_apsp.configs import CompleteConfig
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["ANSWERS", "FILES", "MEMORY", "reload", "warn_once"]

ANSWERS: dict[Any, CompleteConfig] = {}
"""The answers of `find` by its arguments and the environment."""

FILES: dict[Any, TunedFile | None] = {}
"""The files by their path and the device that they are read for; None: missing, or refused."""

MEMORY: list[TunedFile] = []
"""The files given to `remember`, newest first."""

_issued: set[str] = set()


def reload() -> None:
    """Read the tuned files again at the next lookup: another process may have written one."""
    ANSWERS.clear()
    FILES.clear()


def warn_once(topic: str, message: str) -> None:
    """Issue a TuningWarning, unless one on this topic was issued in this process before."""
    if topic not in _issued:
        _issued.add(topic)
        warnings.warn(message, TuningWarning, stacklevel=2)
