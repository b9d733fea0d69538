"""The structure: which package may import which, and how long files and functions may be, read from
the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "tri_apsp"

# The packages, or modules, of tri_apsp that each of them may import, besides itself.
MAY_IMPORT = {
    "errors": "",
    "messages": "",
    "python_process": "",
    "semirings": "errors",
    "device": "errors messages",
    "energy": "errors messages device",
    "reference": "",
    "value_range": "semirings",
    "paths": "",
    "configs": "errors device",
    "tuned": "errors messages python_process device semirings configs",
    "kernels": "",
    "gpu": "device semirings value_range kernels",
    "graphs": "errors messages device semirings",
    "engines": "errors messages device semirings value_range configs kernels gpu",
    "methods": "errors configs engines",
    "solver": "errors messages device semirings value_range paths configs tuned engines methods",
    "sparse": "errors messages device semirings configs tuned graphs kernels gpu engines solver",
    "dispatch": "",
    "ops": "errors configs solver dispatch",
    "api": "configs solver dispatch ops sparse",
    "interop": "errors messages device semirings graphs api",
    "__init__": "api configs errors graphs paths semirings",
    "csgraph": "errors api",
    "console": "errors messages device engines __init__",
    "bench": "messages python_process device semirings configs tuned gpu engines solver sparse api console papers",
    "cli": (
        "errors messages device semirings configs tuned engines graphs methods solver sparse api console bench papers tune report "
        "__init__"
    ),
    "papers": "errors messages device semirings configs kernels gpu engines methods solver",
    "__main__": "cli",
    "tune": "errors messages device energy semirings configs tuned engines methods solver console",
    "report": (
        "errors messages python_process device energy semirings reference configs tuned engines methods solver sparse api "
        "graphs console bench papers tune"
    ),
}
# Libraries that only these packages may import.
ONLY_IN = {
    "triton": {"kernels", "engines", "gpu", "papers"},
    "numba": {"kernels"},
    "llvmlite": {"kernels"},
    "filelock": {"tuned", "tune"},
    "pydantic": {"tuned"},
    "optuna": {"tune"},
    "sqlalchemy": {"tune"},
    "matplotlib": {"report"},
    "networkx": {"graphs", "interop"},
    "psutil": {"device"},
    "pynvml": {"energy"},
}
LONGEST_FILE, LONGEST_FUNCTION = 400, 60
# Functions that may be longer, with the reason. The body of a kernel stays one function where
# another one would compile to other machine code.
LONG = {
    "kernels/cpu/min_plus.py:_emit_update_tile": "emits the LLVM code of one unrolled loop, whose values its parts share",
    "kernels/nvidia/product.py:_product_kernel": "device code: accumulators and pipeline stages stay in registers",
    "api.py:shortest_paths": "a public signature whose docstring explains every option",
    "sparse/single_source.py:single_source": "a public signature whose docstring explains every option",
    "tune/__init__.py:tune": "a public signature whose docstring explains every option",
}
FILES = sorted(ROOT.rglob("*.py"))


def package(path: Path) -> str:
    return _known(path.relative_to(ROOT).with_suffix("").parts)


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


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield every function of a file, as "folder/file.py:name", with its number of lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield (
                f"{path.relative_to(ROOT).as_posix()}:{node.name}",
                (node.end_lineno or 0) - node.lineno + 1,
            )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports(path: Path) -> None:
    here = package(path)
    assert here in MAY_IMPORT, f"{here} is new: add what it may import to MAY_IMPORT"
    allowed = {here, *MAY_IMPORT[here].split()}
    for name in imports(path):
        target = _target(name)
        if name.split(".")[0] == "tri_apsp":
            assert target in allowed, f"{here} must not import {name}"
        elif target in ONLY_IN:
            assert here in ONLY_IN[target], (
                f"only {ONLY_IN[target]} may import {target}, not {here}"
            )
        assert not name.startswith("triton.experimental") or path.name == "gluon_names.py", (
            f"{name}: take it from gluon_names"
        )


def test_no_arrow_is_unused() -> None:
    used: dict[str, set[str]] = {}
    for path in FILES:
        used.setdefault(package(path), set()).update(map(_target, imports(path)))
    for here, targets in MAY_IMPORT.items():
        assert set(targets.split()) <= used[here], f"{here} imports less than MAY_IMPORT allows"
    for library, packages in ONLY_IN.items():
        assert all(library in used[here] for here in packages), (
            f"{library} has fewer importers than ONLY_IN allows"
        )


def _target(name: str) -> str:
    """Return the package or module of tri_apsp that an import takes, "__init__" for the top level;
    else the library.
    """
    first, *rest = name.split(".")
    if first != "tri_apsp":
        return first
    return _known(rest) if rest and _is_package(rest[0]) else "__init__"


def _is_package(name: str) -> bool:
    return (ROOT / name).is_dir() or (ROOT / f"{name}.py").is_file()


def _known(parts: Sequence[str]) -> str:
    """Return the package of a module: its first name, or its first two where these have rules of
    their own.
    """
    return name if (name := ".".join(parts[:2])) in MAY_IMPORT else parts[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_device_uses_torch_cuda(path: Path) -> None:
    """Only device.py queries and synchronizes CUDA devices."""
    asked = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "cuda"
    }
    assert package(path) == "device" or not asked, asked


def test_methods_import_only_the_interface_of_engines() -> None:
    for path in (ROOT / "methods").glob("*.py"):
        assert {name for name in imports(path) if name.startswith("tri_apsp.engines")} <= {
            f"tri_apsp.engines.base.{name}"
            for name in ("WORKSPACE", "Block", "BlockOperations", "Engine", "Update", "block")
        }, path


def test_kernels_hold_no_host_logic() -> None:
    for path in (
        *(ROOT / "kernels" / "portable").glob("*.py"),
        *(ROOT / "kernels" / "shared").glob("*.py"),
    ):
        assert {name.split(".")[0] for name in imports(path)} <= {
            "__future__",
            "triton",
            "tri_apsp",
        }, path


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_FILE, "split it by purpose"


def test_no_function_is_long() -> None:
    found = {name for path in FILES for name, lines in functions(path) if lines > LONGEST_FUNCTION}
    assert found <= LONG.keys(), "split these into functions with one job each"
    assert found >= LONG.keys(), "remove these from LONG, since they are no longer long"
