"""pyproject.toml: what the pages say of it, and that constraints.txt pins what it names."""

import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no tomllib")

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[^\w-]", requirement)[0].lower() for requirement in requirements]


def test_extras():
    assert not {"triton", "matplotlib", "networkx"} & {*names(PROJECT["dependencies"])}
    for name, requirements in EXTRAS.items():
        # `test` has what every extra installs, but for those that only .ci/run installs.
        assert {*requirements} <= {*EXTRAS["test"]} or name in ("docs", "peers", "release")
        assert f"| `{name}` |" in INSTALL


def test_every_package_is_pinned():
    pinned = re.findall(r"^([\w-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert {*names([*PROJECT["dependencies"], *chain(*EXTRAS.values())])} <= {
        name for name, _ in pinned
    }
    command = f"pip install torch=={dict(pinned)['torch']} --index-url "  # the CPU build
    assert INSTALL.count(command) == 2


def test_the_versions_of_python_agree():
    listed = re.findall(r":: (3\.\d+)'", str(PROJECT["classifiers"]))
    first, end = re.findall(r"3\.(\d+)", PROJECT["requires-python"])
    assert listed == [f"3.{minor}" for minor in range(int(first), int(end))]
    assert f"Python {listed[0]} to {listed[-1]}" in README
