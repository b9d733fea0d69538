"""README.md: its commands can be extracted, its example runs, and it names every method, engine, format and error."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tri_apsp import errors
from tri_apsp.engines import ENGINES
from tri_apsp.graphs import DISTANCE_FORMATS, READ_FORMATS
from tri_apsp.methods import METHODS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_two_commands_of_one_line():
    marked = re.findall(r"^<!-- command: (.+) -->\n```bash\n(.+)\n```$", README, re.MULTILINE)
    assert [name for name, _ in marked] == ["main job", "tests"]
    assert [f"{command}\n" for _, command in marked] == blocks("bash")


def test_the_example_prints_the_output_shown(capsys):
    (example,) = blocks("python")
    exec(example, {})
    assert capsys.readouterr().out == blocks("text")[0]


NAMES = """
import sys, tri_apsp
for statement in sys.argv[1:]:
    exec(statement)
"""


def test_every_python_name_exists_after_the_import_shown():
    imports = re.findall(r"`(from tri_apsp[\w.]* import \w+)`", README)
    names = re.findall(r"`(tri_apsp\.[\w.]+)[`(]", README)
    assert (imports, names) == (["from tri_apsp.tune import tune"], ["tri_apsp.tuned"])
    # In a new process, and the names first: they must not need an import that is shown only for something else.
    subprocess.run([sys.executable, "-c", NAMES, *names, *imports], timeout=120, check=True)


def test_only_one_command_has_a_short_name():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    scripts = re.findall(r'^([\w-]+) = "(\w+)\.__main__:main"$', project, re.MULTILINE)
    assert [f"`{name}` is short for `python -m {module}`;" in README for name, module in scripts] == [True]


@pytest.mark.parametrize("name", [*METHODS, *ENGINES, *errors.__all__])
def test_every_name_is_explained(name):
    assert f"`{name}`" in README


@pytest.mark.parametrize("extension", sorted({name.removesuffix(".gz") for name in (*READ_FORMATS, *DISTANCE_FORMATS)}))
def test_every_format_is_named(extension):
    assert f"`{extension}`" in README
