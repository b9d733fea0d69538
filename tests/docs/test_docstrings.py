"""Every public name has a reference entry: a docstring with an example that runs, each parameter
documented, and a place on a page of the reference.
"""

import doctest
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import tri_apsp
import tri_apsp.csgraph

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAGES = "\n".join(path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md"))
SHOWN = re.findall(r"^::: (\S+)$", PAGES, re.MULTILINE)
OURS = {name: pkgutil.resolve_name(name) for name in SHOWN}
PUBLIC = {
    f"{module.__name__}.{name}"
    for module in (tri_apsp, tri_apsp.csgraph)
    for name in module.__all__
    # Those of SciPy, which csgraph passes on, have no entry of their own.
    if getattr(getattr(module, name), "__module__", "").startswith("tri_apsp")
}
# Errors and warnings, of which the page of errors has examples; records that others return.
EXEMPT = re.compile(r"(Error|Warning)$|^tri_apsp\.\w+\..*\b[A-Z]\w+$")
WITH_EXAMPLE = [name for name, value in OURS.items() if ">>> " in (inspect.getdoc(value) or "")]
FUNCTIONS = [name for name, value in OURS.items() if inspect.isfunction(value)]


@pytest.mark.parametrize("name", OURS)
def test_a_public_name_has_a_docstring_and_an_example(name):
    doc = inspect.getdoc(OURS[name])
    assert doc
    assert EXEMPT.search(name) or re.search(r"^Examples:\n +>>> ", doc, re.MULTILINE)


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


def test_each_public_name_is_on_one_page_of_the_reference():
    assert sorted(SHOWN) == sorted(set(SHOWN))
    assert not PUBLIC - set(SHOWN)
