"""The hash of the device code that was measured: a tuned file with another hash is out of date."""

from __future__ import annotations

import hashlib
import io
import tokenize
from functools import cache
from pathlib import Path

from tri_apsp.tuned.records import record_of

__all__ = ["kernel_hash", "tokens"]

_FOLDER = Path(__file__).resolve().parents[1] / "kernels"

_LAYOUT = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_SKIPPED = {tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER}


@cache
def kernel_hash(engine: str, kernel: str, more: tuple[str, ...] = ()) -> str:
    """Return the SHA-256, in hexadecimal, of the sources of a kernel, and of `more` files below
    tri_apsp.

    Comments, docstrings, blank lines and imports do not count: an import names a place, and the
    code in that place is hashed. Names do count. Where a rename changes no machine code,
    tests/kernels/compare_compiled.py moves tuned files to the new hash.

    Raises:
        InputError: the engine has no such kernel.

    Cost: some milliseconds, once per process.
    """
    sources = [_FOLDER / name for name in record_of(engine, kernel).sources] + [
        _FOLDER.parent / name for name in more
    ]
    digest = hashlib.sha256()
    for path in sources:
        for token in tokens(path.read_text(encoding="utf-8")):
            digest.update(f"{token}\0".encode())
    return digest.hexdigest()


def tokens(source: str) -> list[str]:
    """Return the tokens of Python source without docstrings and imports: the same in every Python
    if it has no f-string.
    """
    found: list[tuple[int, str]] = []
    in_import, starts_line = False, True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind, text = token.type, token.string
        if kind in _SKIPPED:
            continue
        if starts_line and kind not in _LAYOUT:
            in_import = text in ("import", "from")
        starts_line = kind in _LAYOUT
        if in_import:
            in_import = kind != tokenize.NEWLINE
            continue
        before = [kind for kind, _ in found[-2:]]
        if (
            kind == tokenize.NEWLINE
            and before[-1:] == [tokenize.STRING]
            and (len(before) == 1 or before[0] in _LAYOUT)
        ):
            found.pop()  # a string that is a whole statement: a docstring
            continue
        found.append((kind, tokenize.tok_name[kind] if kind in _LAYOUT else text))
    return [text for _, text in found]
