"""The wording of counts, and the line that a warning names."""

from __future__ import annotations

import ast
import re

import pytest
import torch
from test_layers import FILES

import tri_apsp
from tri_apsp.console import machine
from tri_apsp.device import Device, check_memory, resolve
from tri_apsp.messages import counted, remedy_of_extra, warn_caller


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 vertices"), (1, "1 vertex"), (2, "2 vertices"), (10**20, f"{10**20} vertices")],
)
def test_counted(count, text):
    assert counted(count, "vertex", "vertices") == text


def test_a_regular_plural():
    assert (counted(1, "core"), counted(3, "core")) == ("1 core", "3 cores")


def test_no_page_and_no_message_installs_the_package_from_an_index():
    """No index has it: it is installed from a clone, with the versions that the tests ran with."""
    root = FILES[0].parents[1]
    for path in (*FILES, *root.glob("*.md"), *root.glob("tuning/*.md"), *root.glob("reports/*.md")):
        assert not re.search(r"pip install [^\n]*tri_apsp\[", path.read_text(encoding="utf-8")), (
            path
        )
    command = remedy_of_extra("report").removeprefix("run ").removesuffix(" in a clone of tri_apsp")
    assert f"`{command}`" in (root / "README.md").read_text(encoding="utf-8")


def test_a_warning_names_the_line_of_the_caller():
    with pytest.warns(UserWarning, match="words") as caught:
        warn_caller("words", UserWarning)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("capability", "text"), [(None, ", 1 core, "), ((9, 0), ", 1 multiprocessor, ")]
)
def test_a_device_with_one_unit(monkeypatch, capability, text):
    one = Device("cpu", "One", "one", 1, 1 << 30, capability=capability)
    monkeypatch.setattr(machine, "describe", lambda device: one)
    assert text in machine.device_line(torch.device("cpu"))


def test_one_of_each(monkeypatch):
    monkeypatch.setattr("tri_apsp.device.cuda_count", lambda: 1)
    with pytest.raises(tri_apsp.InputError, match="has 1 usable CUDA device; use"):
        resolve("cuda:7")
    monkeypatch.setattr("tri_apsp.device.free_memory", lambda device: 4)
    with pytest.raises(tri_apsp.TooLargeError, match="fits 1 vertex; "):
        check_memory(2, 1, torch.float32, torch.device("cpu"))
    with pytest.raises(
        tri_apsp.TooLargeError, match="a problem of 1 vertex in float64 must fit the memory"
    ):
        check_memory(1, 1, torch.float64, torch.device("cpu"))


NOUNS = "cores|multiprocessors|vertices|edges|entries|fields|devices|pairs|sizes"


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.parent.name in ("graphs", "cli", "console", "bench", "solver")],
)
def test_no_count_is_followed_by_a_fixed_plural(path):
    """A count in an f-string comes from counted()."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            for value, text in zip(node.values, node.values[1:], strict=False):
                if (
                    isinstance(value, ast.FormattedValue)
                    and not value.format_spec
                    and isinstance(text, ast.Constant)
                ):
                    assert not re.match(rf" ({NOUNS})\b", text.value), ast.unparse(node)
