"""Fixtures of the tests of the command line: running it, expecting an error, and a graph of five
vertices.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from cli.five import FIVE
from command_line import Ended, in_this_process

from tri_apsp.__main__ import main
from tri_apsp.console.exit_status import BAD_INPUT


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run a command line in this process."""
    return in_this_process(main, capsys)


@pytest.fixture
def refused(cli: Callable[..., Ended], tmp_path: Path) -> Callable[..., None]:
    """Expect one sentence that contains the parts, and that no file is written."""

    def call(parts: Sequence[str], *words: object, status: int = BAD_INPUT) -> None:
        before = sorted(tmp_path.iterdir())
        outcome = cli(*words)
        assert (outcome.status, outcome.out) == (status, "")
        assert re.fullmatch(r"error: [^\n]*[^.\n]\.\n", outcome.err)
        for part in parts:
            assert part in outcome.err
        assert sorted(tmp_path.iterdir()) == before

    return call


@pytest.fixture
def process() -> Callable[..., Ended]:
    """Run a command line in a new process."""

    def call(*words: object) -> Ended:
        command = [sys.executable, "-m", "tri_apsp", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def five(save: Callable[[str, str], Path]) -> Path:
    return save("five.gr", FIVE)
