"""The wording of counts, values and remedies in messages, and the line of code that a warning
names.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Number
from pathlib import Path
from typing import Any, Literal

from tri_apsp.errors import ApspWarning, InputError

_PACKAGE = __name__.partition(".")[0]


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
    if value is None or isinstance(value, (str, bytes, Number)):
        return repr(value)[:60]
    if not hasattr(value, "layout"):  # no tensor of torch, which takes long to import
        return type(value).__name__
    layout, dtype = (str(name).removeprefix("torch.") for name in (value.layout, value.dtype))
    return f"{'' if layout == 'strided' else f'{layout} '}{tuple(value.shape)} of {dtype}"


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
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise InputError(
            f"`{name}` must be a path that can be {how}, but {str(path)!r} cannot: {reason}; "
            f"{remedy}."
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
    between.
    """
    level, frame = 1, sys._getframe(0)
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
