"""Fixtures of the tests of the command line: running it, and graphs of five and three vertices."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.five import FIVE
from command_line import Outcome, in_this_process

from tri_apsp.__main__ import main


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run a command line in this process."""
    return in_this_process(main, capsys)


@pytest.fixture
def process() -> Callable[..., Outcome]:
    """Run a command line in a new process."""

    def call(*words: object) -> Outcome:
        command = [sys.executable, "-m", "tri_apsp", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a text file, compressed if its name ends in .gz."""

    def write(name: str, content: str) -> Path:
        data = content.encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


@pytest.fixture
def five(save: Callable[[str, str], Path]) -> Path:
    return save("five.gr", FIVE)
