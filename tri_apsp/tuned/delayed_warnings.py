"""Warnings about tuned files: lookups collect them, and a call issues them at its caller's line
once it has succeeded.
"""

from tri_apsp.errors import TuningWarning
from tri_apsp.messages import warn_caller

PENDING: dict[str, str] = {}
"""The messages to issue, by topic."""

ISSUED: set[str] = set()
"""The topics on which this process has issued a warning."""


def collect(topic: str, message: str) -> None:
    """Keep a message for `issue`, unless one on this topic was issued in this process before."""
    if topic not in ISSUED:
        PENDING.setdefault(topic, message)


def issue() -> None:
    """Issue what was collected, each message as a TuningWarning at the line outside this package
    that made the call.
    """
    for topic in list(PENDING):
        message = PENDING.pop(topic, None)  # None: another thread was faster
        if message is not None:
            ISSUED.add(topic)
            warn_caller(message, TuningWarning)
