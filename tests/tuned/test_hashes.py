"""The hash of a kernel: what the compiler sees changes it, and nothing else does."""

import ast

import pytest

from tri_apsp.tuned import hashes, kernel_hash
from tri_apsp.tuned.records import RECORDS

SOURCE = '''"""Doc."""
import x


def f(a):
    """Doc

    of f."""
    b = {"a": a + 1}  # why
    return b["a"], "text"
'''


def words(source: str) -> list[str]:
    return list(hashes.syntax(ast.parse(source)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Doc."""\n', "# more\n\n\n"),
        ('    """Doc\n\n    of f."""\n', ""),
        ("    return", "\n    # so\n    return"),
        ("import x", "from x import (\n    y,\n    z,\n)"),
        ('return b["a"], "text"', "return (\n        b['a'],\n        ('te' 'xt'),\n    )"),
    ],
)
def test_layout_comments_docstrings_and_imports_do_not_count(old, new):
    assert old in SOURCE
    assert words(SOURCE.replace(old, new)) == words(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a + 1", "a + 2"),
        ("a + 1", "a - 1"),
        ("a + 1", "a + True"),
        ('"text"', '"test"'),
        ("f(a)", "f(c)"),
        ("    return", "    if a:\n        a\n    return"),
    ],
)
def test_code_counts(old, new):
    assert old in SOURCE
    assert words(SOURCE.replace(old, new)) != words(SOURCE)


def test_where_a_value_stands_counts():
    pairs = [("x[a:]", "x[:a]"), ("{None: a}", "{**a}"), ("f(a, b)", "f(a)(b)"), ("'1'", "1")]
    for one, other in pairs:
        assert words(f"y = {one}") != words(f"y = {other}")


@pytest.mark.parametrize(
    "path", sorted({path for record in RECORDS.values() for path in record.sources})
)
def test_no_source_of_a_kernel_has_an_f_string(path):
    """The syntax tree of an f-string depends on the version of Python."""
    tree = ast.parse((hashes._FOLDER / path).read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]


def test_every_kernel_has_a_hash_of_its_own_sources():
    digests = {
        record.sources: kernel_hash(engine, kernel) for (engine, kernel), record in RECORDS.items()
    }
    assert all(len(digest) == 64 for digest in digests.values())
    assert len(set(digests.values())) == len(digests)
