"""Fixtures of the tests of the command line: running it, and graphs of five and three vertices."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.five import FIVE
from command_line import Ended, in_this_process

from tri_apsp.__main__ import main


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run a command line in this process."""
    return in_this_process(main, capsys)


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
