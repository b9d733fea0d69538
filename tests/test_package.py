"""import tri_apsp: its names are imported when they are used, and are those that type checkers see."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tri_apsp

IN_A_NEW_PROCESS = """
import sys
import tri_apsp
assert "torch" not in sys.modules and "tri_apsp.api" not in sys.modules
assert {"shortest_paths", "tuned", "tune", "__version__"} <= set(dir(tri_apsp))
assert not hasattr(tri_apsp, "no_such_name")
assert callable(tri_apsp.tuned.find) and callable(tri_apsp.tune.tune)
from tri_apsp import *
assert shortest_paths is tri_apsp.shortest_paths is tri_apsp.api.shortest_paths
assert issubclass(InputError, ValueError)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


def test_names_are_imported_when_they_are_used():
    done = run(IN_A_NEW_PROCESS)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_names_are_those_that_type_checkers_see():
    tree = ast.parse(Path(tri_apsp.__file__).read_text())
    block, hidden = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        node.module: tuple(alias.name for alias in node.names)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    }
    assert seen == {f"tri_apsp.{module}": names for module, names in tri_apsp._NAMES.items()}
    assert ast.unparse(hidden).startswith(
        "if not TYPE_CHECKING:\n\n    def __getattr__"
    )  # it would make every name valid
    assert {name for names in seen.values() for name in names} == set(tri_apsp.__all__) - {
        "__version__"
    }


@pytest.mark.parametrize("name", tri_apsp.__all__)
def test_every_name_exists(name):
    assert getattr(tri_apsp, name) is not None


def test_the_help_imports_no_torch():
    code = "import sys; from tri_apsp.__main__ import main\ntry: main(['--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    loaded = set(run(code).stderr.split())
    assert "tri_apsp.cli.parser" in loaded
    assert not {"torch", "numpy", "optuna", "matplotlib", "tri_apsp.tune"} & loaded


def test_the_api_imports_neither_numba_nor_the_compiler_of_torch():
    code = "import sys, tri_apsp; tri_apsp.shortest_paths; print(*sys.modules, file=sys.stderr)"
    loaded = set(run(code).stderr.split())
    assert "torch" in loaded
    assert not {"numba", "torch._dynamo", "triton", "pydantic"} & loaded


def test_a_solve_imports_neither_optuna_nor_matplotlib(tmp_path):
    path = tmp_path / "g.gr"
    path.write_text("p sp 2 1\na 1 2 3\n")
    code = f"import sys; from tri_apsp.__main__ import main; main(['solve', {str(path)!r}]); print(*sys.modules, file=sys.stderr)"
    loaded = set(run(code).stderr.split())
    assert "torch" in loaded
    assert not {"optuna", "matplotlib", "sqlalchemy", "tri_apsp.tune", "tri_apsp.report"} & loaded
