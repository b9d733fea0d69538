"""Running a command line in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Ended:
    """What a command line left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        assert (self.status, self.err) == (0, "")
        parsed = json.loads(
            self.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON")
        )
        assert isinstance(parsed, dict)
        return parsed


def in_this_process(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Return a function that calls `main` with its arguments as words, and returns what that left
    behind.
    """

    def call(*words: object) -> Ended:
        try:
            status = main([str(word) for word in words])
        except SystemExit as leave:  # argparse
            status = leave.code
        return Ended(status, *capsys.readouterr())

    return call
