"""What the tests of the command line share: running it, in this process or in its own, and writing graph files."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli.five import FIVE

from tri_apsp.__main__ import main


@dataclass(frozen=True)
class Outcome:
    """What a command line left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        assert (self.status, self.err) == (0, "")
        parsed = json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert isinstance(parsed, dict)
        return parsed


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run a command line in this process."""

    def call(*words: object) -> Outcome:
        try:
            status = main([str(word) for word in words])
        except SystemExit as leave:  # argparse
            status = leave.code
        return Outcome(status, *capsys.readouterr())

    return call


@pytest.fixture
def process() -> Callable[..., Outcome]:
    """Run a command line in a process of its own."""

    def call(*words: object) -> Outcome:
        command = [sys.executable, "-m", "tri_apsp", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a text file, packed where its name ends in .gz."""

    def write(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
        return path

    return write


@pytest.fixture
def five(save: Callable[[str, str], Path]) -> Path:
    return save("five.gr", FIVE)
