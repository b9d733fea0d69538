"""The command that runs a module in another process, in the copy of the package that runs in this
one.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tri_apsp.python_process import module_command


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two copies of a package: one in the current folder, and the one returned, of whose folder
    only `sys.path` knows.
    """
    for name in ("here", "there"):
        (tmp_path / name / "copied").mkdir(parents=True)
        (tmp_path / name / "copied" / "__init__.py").write_text("")
        (tmp_path / name / "copied" / "__main__.py").write_text(
            "import sys; print(__spec__.name, __file__, *sys.argv[1:])"
        )
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path / "there"))
    return tmp_path / "there" / "copied"


def test_the_copy_of_this_process_runs(copy: Path) -> None:
    found = subprocess.run(
        [*module_command("copied"), "--n", "3"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert found.stdout.split() == ["copied.__main__", str(copy / "__main__.py"), "--n", "3"]


def test_entries_of_the_search_path_that_are_no_text_are_left_out(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [copy.parent.parent / "here", *sys.path])
    subprocess.run(module_command("copied"), capture_output=True, check=True, timeout=60)
