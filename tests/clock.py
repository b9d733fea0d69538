"""A clock that a test sets."""


class Clock:
    """The time of a test: it stands still between calls of `advance`."""

    def __init__(self) -> None:
        self.now = 0.0

    def advance(self, seconds: float) -> None:
        self.now += seconds
