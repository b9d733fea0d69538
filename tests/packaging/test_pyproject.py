"""pyproject.toml: what a plain install leaves out, what README says of it, and that constraints.txt
pins what it names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no tomllib")

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[^\w-]", requirement)[0] for requirement in requirements]


def test_triton_is_in_extras_alone():
    assert not {"triton", "matplotlib", "networkx"} & {*names(PROJECT["dependencies"])}
    (triton,) = EXTRAS["gpu"]
    assert triton.startswith("triton>=")
    assert triton in EXTRAS["test"]


def test_the_tests_have_what_every_extra_installs():
    assert {one for requirements in EXTRAS.values() for one in requirements} == {*EXTRAS["test"]}


def test_readme_explains_every_extra():
    rows = re.findall(
        r"^\| `(\w+)` \| (.+?) \| (.+?) \|$",
        README.partition("| extra |")[2].partition("\n\n")[0],
        re.MULTILINE,
    )
    assert [name for name, _, _ in rows] == [*EXTRAS]
    for name, packages, _ in rows:
        assert name == "test" or re.findall(r"[\w-]+", packages.lower()) == names(EXTRAS[name])


def test_every_package_is_pinned():
    pinned = re.findall(
        r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    required = {name.lower() for name in names([*PROJECT["dependencies"], *EXTRAS["test"]])}
    assert required <= {*pinned}


def test_the_versions_of_python_agree():
    listed = re.findall(r":: (3\.\d+)'", str(PROJECT["classifiers"]))
    first, end = re.findall(r"3\.(\d+)", PROJECT["requires-python"])
    assert listed == [f"3.{minor}" for minor in range(int(first), int(end))]
    assert f"Python {listed[0]} to {listed[-1]}" in README


def test_every_address_is_of_one_repository():
    assert {"Homepage", "Documentation", "Issues"} <= {*PROJECT["urls"]}
    home = PROJECT["urls"]["Homepage"]
    assert home.startswith("https://")
    for address in PROJECT["urls"].values():
        assert address.startswith(home)
        path, _, page = address.partition("/blob/main/")
        assert not page or (ROOT / page).is_file(), path
