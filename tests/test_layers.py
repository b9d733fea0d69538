"""The arrows of the house: who may import whom. Read from the source, so that nothing needs to run."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "tri_apsp"

# A room may import the rooms named here (and itself); a room is a top-level module or package of tri_apsp.
MAY_IMPORT = {
    "errors": "",
    "semirings": "errors",
    "device": "errors",
    "reference": "",
    "value_range": "semirings",
    "configs": "errors device semirings",
    "tuned": "errors device semirings configs",
    "kernels": "",
    "gpu": "device semirings value_range kernels",
    "graphs": "errors device semirings",
    "engines": "errors device semirings value_range configs kernels gpu",
    "methods": "errors semirings configs engines",
    "solver": "errors device semirings value_range configs tuned engines methods",
    "api": "configs solver",
    "__init__": "api configs errors graphs semirings",
    "console": "errors device semirings engines __init__",
    "bench": "errors device semirings configs gpu engines methods solver api console",
    "cli": "errors device semirings configs tuned engines graphs methods solver api console bench __init__",
    "__main__": "cli",
    "tune": "errors device semirings value_range reference configs tuned gpu engines methods solver api console cli __init__",
    "report": "errors device semirings reference configs tuned engines methods api console cli tune __init__",
}
# Libraries that only these rooms may import.
ONLY_IN = {
    "triton": {"kernels", "engines", "gpu"},
    "numba": {"kernels", "engines"},
    "llvmlite": {"kernels"},
    "filelock": {"tuned", "tune"},
    "pydantic": {"tuned"},
    "optuna": {"tune"},
    "sqlalchemy": {"tune"},
    "matplotlib": {"report"},
    "networkx": {"graphs"},
    "psutil": {"device"},
}
FILES = sorted(ROOT.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module that a file imports anywhere in it, with its dots."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path.name} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows(path: Path) -> None:
    here = room(path)
    assert here in MAY_IMPORT, f"{here} is a new room: give it its arrows here"
    allowed = {here, *MAY_IMPORT[here].split()}
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "tri_apsp":
            target = parts[1] if len(parts) > 1 and _is_room(parts[1]) else "__init__"
            assert target in allowed, f"{here} must not import {name}"
        elif parts[0] in ONLY_IN:
            assert here in ONLY_IN[parts[0]], f"only {ONLY_IN[parts[0]]} may import {parts[0]}, not {here}"
        assert not name.startswith("triton.experimental") or path.name == "gluon_names.py", f"{name}: take it from gluon_names"


def _is_room(name: str) -> bool:
    return (ROOT / name).is_dir() or (ROOT / f"{name}.py").is_file()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_cuda_is_asked_in_one_place(path: Path) -> None:
    """Only device.py asks CUDA what there is, and waits for it."""
    asked = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "cuda"
    }
    assert room(path) == "device" or not asked, asked


def test_methods_use_engines_only_through_the_seam() -> None:
    for path in (ROOT / "methods").glob("*.py"):
        assert {name for name in imports(path) if name.startswith("tri_apsp.engines")} <= {
            f"tri_apsp.engines.base.{name}" for name in ("WORKSPACE", "Block", "Engine", "Update", "block")
        }, path


def test_kernels_hold_no_host_logic() -> None:
    for path in (*(ROOT / "kernels" / "portable").glob("*.py"), *(ROOT / "kernels" / "shared").glob("*.py")):
        assert {name.split(".")[0] for name in imports(path)} <= {"__future__", "triton", "tri_apsp"}, path


def test_triton_is_not_needed_on_a_cpu() -> None:
    """It exists for Linux only."""
    code = """
import sys
sys.modules["triton"] = None  # as if it were not there
import torch, tri_apsp
assert tri_apsp.shortest_paths(torch.ones(3, 3)).engine == "cpu"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
