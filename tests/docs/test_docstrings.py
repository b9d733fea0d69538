"""Every public name has a reference entry: a docstring with an example that runs, each parameter
documented, and a place on a page of the reference.
"""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import tri_apsp
import tri_apsp.csgraph

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Docstrings without an example: warnings and errors, of which the page of errors has examples.
EXEMPT = tuple(name for name in tri_apsp.__all__ if name.endswith(("Error", "Warning")))
PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (tri_apsp, tri_apsp.csgraph)
    for name in module.__all__
    if not inspect.ismodule(getattr(module, name))
}
# SciPy documents its own functions, which csgraph passes on.
OURS = {name: value for name, value in PUBLIC.items() if value.__module__.startswith("tri_apsp")}
WITH_EXAMPLE = [name for name in OURS if name.removeprefix("tri_apsp.") not in EXEMPT]
FUNCTIONS = [name for name, value in OURS.items() if inspect.isfunction(value)]


@pytest.mark.parametrize("name", OURS)
def test_a_public_name_has_a_docstring_and_an_example(name):
    doc = inspect.getdoc(OURS[name])
    assert doc
    assert name not in WITH_EXAMPLE or re.search(r"^Examples:\n +>>> ", doc, re.MULTILINE)


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_the_examples_of_a_docstring(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    finder = doctest.DocTestFinder(exclude_empty=True)
    module = inspect.getmodule(OURS[name])
    for test in finder.find(OURS[name], name, module, globs={}):
        printed: list[str] = []
        failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=printed.append)
        assert not failed, "".join(printed)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_documents_each_parameter(name):
    doc = inspect.getdoc(OURS[name]) or ""
    for parameter in inspect.signature(OURS[name]).parameters:
        entry = rf"^    {parameter}: |`{parameter}`"  # in `Args:`, or in a sentence
        assert re.search(entry, doc, re.MULTILINE), f"`{parameter}` is not documented"


def test_each_public_name_is_on_a_page_of_the_reference():
    pages = "\n".join(path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md"))
    shown = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    assert sorted(shown) == sorted(set(shown)), "a name is on two pages"
    assert not set(OURS) - set(shown), "these names are on no page"
