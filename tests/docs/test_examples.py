"""The examples of the site and of README run, and print what is shown.

A block of `python` or `bash` runs, in the order of its page, as in one script in one folder. A
block of `text` after it is its output, where `...` stands for anything; without one, Python must
print nothing. A block of another language is only shown.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest
import torch
from sybil import Example
from sybil.document import Document
from sybil.parsers.markdown import CodeBlockParser

from tri_apsp.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    path.relative_to(ROOT)
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")), *(ROOT / "reports").glob("*.md"))
]
ON_GPU = re.compile(r"""["']cuda\b|--device cuda""")
# Other projects, whose code stands beside ours: it runs where they are installed.
OTHERS = {"cudf", "cugraph", "cupy", "fastapi", "igraph", "osmnx", "rustworkx", "sklearn"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# An option of tri_apsp.deprecated.
pytestmark = pytest.mark.filterwarnings("error:.*goes with version:DeprecationWarning")


def runs(source: str) -> bool:
    return torch.cuda.is_available() or not ON_GPU.search(source)


def check_printed(example: Example, expected: str = "") -> str | None:
    """Compare what the block before has printed; None: the same."""
    got = example.namespace.pop("__printed__", "")
    if got is None or doctest.OutputChecker().check_output(expected, got, FLAGS):
        return None
    return f"{example.path}:{example.line} must show what is printed:\n{got}"


def run_python(example: Example) -> str | None:
    if complaint := check_printed(example):
        return complaint
    if not runs(example.parsed):
        example.namespace["__printed__"] = None
        return None
    source = "\n" * example.line + example.parsed
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(source, example.path, "exec"), example.namespace)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in OTHERS:
            raise
        example.namespace["__printed__"] = None  # whatever a block of text beside it shows
        return None
    example.namespace["__printed__"] = printed.getvalue()
    return None


def run_bash(example: Example) -> str | None:
    if complaint := check_printed(example):
        return complaint
    example.namespace["__printed__"] = None
    if "pip install" in example.parsed or not runs(example.parsed):
        return None  # .ci/run and tests/packaging install
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", example.parsed],
        env=os.environ | {"PATH": path, "COLUMNS": "100"},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        return f"{example.path}:{example.line} fails: {done.stderr}"
    # Of a command, only output that is shown is compared.
    following = example.document.text[example.region.end :].lstrip("`\n")
    if following.startswith("text\n"):
        example.namespace["__printed__"] = done.stdout
    return None


def compare(example: Example) -> str | None:
    return check_printed(example, example.parsed)


def run_page(page: Path) -> None:
    """Run the examples of a page, in their order.

    Raises:
        AssertionError, SybilFailure: one fails, or prints something else than is shown.
    """
    backend = 'backend="tri_apsp"' in (ROOT / page).read_text(encoding="utf-8")
    if backend and "tri_apsp" not in nx.utils.backends.backends:
        pytest.skip("the entry points of this clone are not installed")
    blocks = [("python", run_python), ("bash", run_bash), ("text", compare)]
    parsers = [CodeBlockParser(language, evaluator) for language, evaluator in blocks]
    document = Document.parse(str(ROOT / page), *parsers)
    last = None
    for last in document.examples():
        last.evaluate()
    assert last is None or check_printed(last) is None, "the last block must show what it prints"


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A folder of its own, and no trace in the user's directories."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_examples_of_a_page(page):
    run_page(page)


@pytest.mark.parametrize("page", ["docs/cheat-sheet.md", "docs/index.md", "README.md"])
def test_each_line_of_the_cheat_sheet(page):
    text = (DOCS / "cheat-sheet.md").read_text(encoding="utf-8")
    (setup,) = re.findall(r"(?s)```python\n(.*?)```", text)
    shown = (ROOT / page).read_text(encoding="utf-8")
    lines = re.findall(r"^\| [^`|]+ \| `(.+)` \|$", shown, re.MULTILINE)
    assert len(lines) >= 4
    assert page == "README.md" or len(lines) == shown.count("| `")
    for line in filter(runs, lines):
        command = line.removeprefix("python -m tri_apsp ")
        if command != line:
            assert main(shlex.split(command)) == 0, line
            continue
        exec(setup + line, {})


GPU_PAGES = [page for page in PAGES if ON_GPU.search((ROOT / page).read_text(encoding="utf-8"))]


@pytest.mark.gpu
@pytest.mark.parametrize("page", GPU_PAGES, ids=str)
def test_the_examples_of_a_page_on_a_gpu(page):
    run_page(page)
