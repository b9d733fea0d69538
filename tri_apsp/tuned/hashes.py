"""The hash of the device code that was measured: a tuned file with another hash is out of date."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tri_apsp.tuned.records import record_of

_FOLDER = Path(__file__).resolve().parents[1] / "kernels"

# Fields of syntax trees that the compilers of kernels do not see, or that depend on the version of
# Python.
_IGNORED_FIELDS = {"kind", "type_comment", "type_ignores", "type_params"}


@cache
def kernel_hash(engine: str, kernel: str, more: tuple[str, ...] = ()) -> str:
    """Return the SHA-256, in hexadecimal, of the sources of a kernel, and of `more` files below
    tri_apsp.

    Layout, comments, docstrings and imports do not count: an import names a place, and the code in
    that place is hashed. Names do count. Where a rename changes no machine code,
    tests/kernels/compare_compiled.py moves tuned files to the new hash.

    Args:
        engine: "cpu", "nvidia" or "portable".
        kernel: one of KERNELS[engine].
        more: paths below tri_apsp.

    Raises:
        InputError: the engine has no such kernel.

    Cost:
        Some milliseconds, once per process.

    Examples:
        >>> from tri_apsp import tuned
        >>> len(tuned.kernel_hash("cpu", "product"))
        64
    """
    sources = [_FOLDER / name for name in record_of(engine, kernel).sources] + [
        _FOLDER.parent / name for name in more
    ]
    digest = hashlib.sha256()
    for path in sources:
        for word in syntax(ast.parse(path.read_text(encoding="utf-8"))):
            digest.update(f"{word}\0".encode())
    return digest.hexdigest()


def syntax(node: object) -> Iterator[str]:
    """Yield the syntax tree of Python source in words, without docstrings and imports: the same
    for every layout, and in every Python from 3.10 on.
    """
    if isinstance(node, list):
        yield "["
        for item in node:
            if not _is_skipped(item):
                yield from syntax(item)
        yield "]"
    elif isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(node):
            if name not in _IGNORED_FIELDS and value is not None and value != []:
                yield name
                yield from syntax(value)
        yield ")"
    else:
        yield repr(node)


def _is_skipped(statement: object) -> bool:
    """Return whether a statement is an import, or a string, such as a docstring."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    return isinstance(statement, (ast.Import, ast.ImportFrom))
