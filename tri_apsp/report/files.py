"""Reading and writing the files of a report, with one clear error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tri_apsp.errors import InputError

__all__ = ["read_page", "writing"]


def read_page(path: Path) -> str:
    """Return the text of a page.

    Raises:
        FileNotFoundError: there is none.
        InputError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"a page must be a text file that can be read, but {path} is not ({error}); move it away."
        ) from None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Write `path`, a file of a report, within this context; its folder is made.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InputError(
            f"a report must go to files that can be written, but {path} cannot ({error.strerror}); give another folder with "
            "--out."
        ) from None
