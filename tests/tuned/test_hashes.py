"""The hash of a kernel: what the compiler sees changes it, and nothing else does."""

from __future__ import annotations

import ast

import pytest

from tri_apsp import InputError
from tri_apsp.tuned import KERNELS, hashes, kernel_hash
from tri_apsp.tuned.records import RECORDS

SOURCE = '''"""Doc."""
import x


def f(a):
    """Doc

    of f."""
    b = {"a": a + 1}  # why
    return b["a"], "text"
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Doc."""\n', ""),
        ('"""Doc."""\n', "# more\n\n\n"),
        ('    """Doc\n\n    of f."""\n', ""),
        ("  # why", ""),
        ("    return", "\n    # so\n    return"),
        ("f(a)", "f( a )"),
        ("import x", "from x import (\n    y,\n    z,\n)"),
        ("    return", "    import z\n\n    return"),
        ('return b["a"], "text"', 'return b[\n        "a"\n    ], "text"'),
    ],
)
def test_changes_that_keep_the_tokens(old, new):
    assert old in SOURCE
    assert hashes.tokens(SOURCE.replace(old, new)) == hashes.tokens(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("a + 1", "a + 2"), ('"text"', '"test"'), ("    return", "    if a:\n        a\n    return")],
)
def test_changes_that_change_the_tokens(old, new):
    assert old in SOURCE
    assert hashes.tokens(SOURCE.replace(old, new)) != hashes.tokens(SOURCE)


@pytest.mark.parametrize(
    "path", sorted({path for record in RECORDS.values() for path in record.sources})
)
def test_no_source_of_a_kernel_has_an_f_string(path):
    """Python 3.12 and later split an f-string into several tokens, so that the hash would depend on
    the version.
    """
    tree = ast.parse((hashes._FOLDER / path).read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]


def test_a_string_that_is_used_is_no_docstring():
    assert hashes.tokens('x = """a"""\n') == ["x", "=", '"""a"""', "NEWLINE"]


@pytest.mark.parametrize("engine", KERNELS)
def test_every_kernel_has_sources(engine):
    for kernel in KERNELS[engine]:
        digest = kernel_hash(engine, kernel)
        assert len(digest) == 64
        assert int(digest, 16)
    assert kernel_hash(engine, "product") != kernel_hash(
        "cpu" if engine == "portable" else "portable", "product"
    )


@pytest.mark.parametrize(
    ("changed", "kernels"),
    [
        (
            "portable/tiles.py",
            {"portable": {"product", "closure", "panels", "solve"}},
        ),
        ("nvidia/solve.py", {"nvidia": {"closure", "batch", "solve"}}),
        ("nvidia/closure.py", {"nvidia": {"closure", "batch", "solve"}}),
        ("nvidia/product.py", {"nvidia": {"product", "small_product", "exponents", "solve"}}),
    ],
)
def test_a_change_of_a_source_changes_the_hashes_of_its_kernels(
    tmp_path, monkeypatch, changed, kernels
):
    for path in hashes._FOLDER.glob("*/*.py"):
        name = path.relative_to(hashes._FOLDER).as_posix()
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(path.read_text() + ("x = 1\n" if name == changed else "# x\n"))
    before = {
        (engine, kernel): kernel_hash(engine, kernel)
        for engine in KERNELS
        for kernel in KERNELS[engine]
    }
    monkeypatch.setattr(hashes, "_FOLDER", tmp_path)
    after = {key: kernel_hash.__wrapped__(*key) for key in before}
    assert {key for key in before if before[key] != after[key]} == {
        (engine, kernel) for engine, names in kernels.items() for kernel in names
    }


def test_an_unknown_kernel_is_refused():
    with pytest.raises(
        InputError, match="kernel must be one of product, solve for the cpu engine, but is 'panels'"
    ):
        kernel_hash("cpu", "panels")
    with pytest.raises(
        InputError, match="engine must be one of cpu, nvidia, portable, but is 'tpu'"
    ):
        kernel_hash("tpu", "product")
