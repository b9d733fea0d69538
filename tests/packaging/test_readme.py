"""README.md: its examples print what it shows, and it names all that a user may choose."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tri_apsp import errors
from tri_apsp.engines import ENGINES
from tri_apsp.graphs import FORMATS, grid_of, write_graph
from tri_apsp.interop.networkx_info import FUNCTIONS
from tri_apsp.papers import SYSTEMS
from tri_apsp.request import METHOD_CHOICES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAPERS = (ROOT / "reports" / "papers.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.M | re.S)


def test_the_examples_print_what_is_shown(capsys, monkeypatch, tmp_path):
    """They run in their order, as in one script; the text after an example is its output."""
    monkeypatch.chdir(tmp_path)
    write_graph(grid_of(1024), "grid.gr")
    names: dict[str, Any] = {}
    examples = [found for found in EXAMPLE.findall(README) if "networkx" not in found[0]]
    assert len(examples) >= 3
    for example, output in examples:
        exec(example, names)
        assert capsys.readouterr().out == output


def test_the_example_of_networkx_runs(capsys):
    nx = pytest.importorskip("networkx")
    if "tri_apsp" not in nx.utils.backends.backends:
        pytest.skip("the entry points of this clone are not installed")
    (example,) = (code for code, _ in EXAMPLE.findall(README) if "networkx" in code)
    with nx.config(backend_priority=[]):
        exec(example, {})
    assert capsys.readouterr().out == "4\n"


def test_every_python_name_exists_after_the_import_shown():
    """The names come first: they must not need an import that is shown for something else."""
    imports = re.findall(r"`(from tri_apsp[\w.]* import \w+)`", README)
    names = re.findall(r"`(tri_apsp\.[\w.]+)[`(]", README)
    assert imports
    assert names
    code = "\n".join(["import tri_apsp", *names, *imports])
    subprocess.run([sys.executable, "-c", code], timeout=120, check=True)


@pytest.mark.parametrize(
    "name",
    [
        *(*METHOD_CHOICES[1:], *ENGINES, *errors.__all__),
        *(f".{name}" for name in FORMATS),
        *sorted({name.removesuffix("_length").removesuffix("_path") for name in FUNCTIONS}),
    ],
)
def test_every_name_is_explained(name):
    assert f"`{name}`" in README or f"`{name}_path_length`" in README


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_of_a_paper_is_explained(name):
    assert f"| `{name}` |" in PAPERS
