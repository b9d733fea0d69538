"""What .ci/run names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "run"


@pytest.mark.skipif(not SCRIPT.exists(), reason="a source archive has no .ci")
def test_every_path_exists() -> None:
    paths = re.findall(r"\btests/[\w./*]+", SCRIPT.read_text())
    assert paths
    for path in paths:
        assert list(SCRIPT.parents[1].glob(path)), path
