"""The wording of counts, values and remedies in messages, and the line of code that a warning
names.
"""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Number
from pathlib import Path
from typing import Any, Literal

from tri_apsp.errors import ApspError, ApspWarning, InputError, TooLargeError

_PACKAGE = __name__.partition(".")[0]
# Larger integers are shown by their number of bits.
_MOST_BITS = 1 << 8


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: "1 vertex", "2 vertices"; `plural` is the noun with an s by
    default.
    """
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def remedy_of_extra(extra: str) -> str:
    """Return how to install an extra, for the end of a message; no package index has this package,
    so it is in a clone.
    """
    return f"""run pip install -c constraints.txt ".[{extra}]" in a clone of tri_apsp"""


def remedy_of_sparse() -> str:
    """Return how to make dense weights of a sparse tensor, for the end of a message; .to_dense()
    would have 0 for no edge.
    """
    return (
        "give from_scipy(scipy.sparse.csr_array((x.values(), x.col_indices(), x.crow_indices()), "
        "x.shape)), x being its .cpu().to_sparse_csr()"
    )


def shown(value: Any) -> str:
    """Return what a caller gave, in one line: a number, a string or None as Python writes it; of a
    tensor the shape, the dtype and, unless it is dense, the layout; of others the type.
    """
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:  # of which repr may raise
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, (str, bytes, Number)):
        return repr(value)[:60]
    if not hasattr(value, "layout"):  # no tensor of torch, which takes long to import
        return type(value).__name__
    layout, dtype = (str(name).removeprefix("torch.") for name in (value.layout, value.dtype))
    return f"{'' if layout == 'strided' else f'{layout} '}{tuple(value.shape)} of {dtype}"


def one_line(text: str, most: int = 300) -> str:
    """Return text without control characters, and with at most `most` characters: of a longer one
    the middle is left out, since a message begins with its rule and ends with its remedy.
    """
    # NumPy makes strings with characters that there are not, which have no other method.
    valid = text.encode("utf-8", "backslashreplace").decode("utf-8", "replace")
    line = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in valid)
    half = most // 2 - 3
    return line if len(line) <= most else f"{line[:half]} ... {line[-half:]}"


def reason_of(error: BaseException) -> str:
    """Return why another library or the operating system failed, in a few words."""
    said = getattr(error, "strerror", None) or str(error)
    # The first sentence only, since torch adds how to load unsafely.
    first = re.split(r"\.\s|[\r\n]", said.strip())[0].rstrip(" .:")
    return one_line(first, 100) or type(error).__name__


@contextmanager
def parsing(name: str, failed: str, remedy: str) -> Iterator[None]:
    """Raise InputError in place of what a parser raises for a damaged file, which may be of any
    type, and bound the length of messages that quote the file.

    Args:
        name: of the file; with a long one a message may have more than 300 characters.
        failed: the beginning of the sentence.
        remedy: the end of the sentence.

    Raises:
        TooLargeError: in place of a MemoryError.
        ApspWarning: where warnings are errors.
    """
    most = max(300, 200 + len(name))
    try:
        yield
    except ApspError as error:
        error.args = (one_line(str(error), most),)
        raise
    except ApspWarning:
        raise
    except Exception as error:
        kind = TooLargeError if isinstance(error, MemoryError) else InputError
        raise kind(one_line(f"{failed} ({reason_of(error)}); {remedy}.", most)) from error


@contextmanager
def file_errors(
    name: str,
    path: Path,
    how: Literal["read", "written"],
    remedy: str = "give another file name",
) -> Iterator[None]:
    """Raise InputError in place of an error of the operating system, NumPy or zarr.

    Args:
        name: of the argument that gave the path.
        path: of a file or a folder.
        how: what is done with it.
        remedy: the end of the sentence.
    """
    try:
        yield
    except InputError:
        raise
    except (OSError, EOFError, ValueError) as error:
        raise InputError(
            f"`{name}` must be a path that can be {how}, but {str(path)!r} cannot: "
            f"{reason_of(error)}; {remedy}."
        ) from None


def warn_of_attribute(attribute: str | None, edges: int, *, has_values: bool) -> None:
    """Warn of an edge attribute that no edge has, and that is not the default "weight": a misspelt
    name would count edges in place of weights.
    """
    if edges and not has_values and attribute not in (None, "weight"):
        warn_caller(
            f"no edge has the attribute {attribute!r}, so that every edge weighs 1; correct its "
            "name, or give None.",
            ApspWarning,
        )


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line that called this package, however many of its functions lie
    between, and of Numba, which calls it while it loads kernels.
    """
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        _PACKAGE,
        "numba",
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
