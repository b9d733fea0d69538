"""The directories of tuned files, and the names of the files."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from tri_apsp.errors import InputError

__all__ = [
    "FROZEN",
    "checkout_directory",
    "directories",
    "file_name",
    "files",
    "is_frozen",
    "matching",
    "named_directory",
    "save_directory",
    "user_directory",
]

FROZEN = "FROZEN"
"""The name of the file that marks a frozen directory."""

_PACKAGE = Path(__file__).resolve().parents[1]
# A checkout, and an editable install of it, has the files beside the package; a wheel carries them
# as tri_apsp/_tuned.
_CHECKOUT, _WHEEL = _PACKAGE.parent / "tuning", _PACKAGE / "_tuned"


def file_name(engine: str, kernel: str, dtype: str) -> str:
    """Return the name of the file of a kernel in the folder of its GPU; dtype as in "float32"."""
    return f"{engine}-{kernel}-{dtype}.json"


def user_directory() -> Path:
    """Return the directory of this user's own tuned files, which need not exist."""
    return platformdirs.user_config_path("tri_apsp", appauthor=False)


def named_directory() -> Path | None:
    """Return the directory that TRI_APSP_CONFIG_DIR names, which need not exist; None if it is not
    set.
    """
    named = os.environ.get("TRI_APSP_CONFIG_DIR")
    return Path(named) if named else None


def directories() -> list[Path]:
    """Return the directories searched for tuned files, the most important first; they need not
    exist.

    TRI_APSP_CONFIG_DIR is first, then the user's directory, and the one with the files that are
    shipped is last, wherever the package is installed. Of entries with the same sign, n, batch and
    objective, lookups use the one of the first directory. If TRI_APSP_CONFIG_DIR names a frozen
    directory, that is the only one.
    """
    named = named_directory()
    if named is not None and is_frozen(named):
        return [named]
    shipped = [path for path in (_WHEEL, _CHECKOUT) if path.is_dir()][:1]
    return list(dict.fromkeys([save_directory(), user_directory(), *shipped]))


def is_frozen(directory: Path) -> bool:
    """Return whether `tri_apsp.tuned.freeze` wrote a directory, which then holds every file that
    lookups use.
    """
    return os.path.isfile(directory / FROZEN)


def save_directory() -> Path:
    """Return the directory that tuned files are written to: TRI_APSP_CONFIG_DIR, else the user's
    directory.
    """
    return named_directory() or user_directory()


def checkout_directory() -> Path:
    """Return the `tuning/` of the checkout that the package runs from, whose files the next release
    ships.

    Raises:
        InputError: the package does not run from a checkout, or its `tuning/` cannot be written to.
    """
    if _WHEEL.is_dir() or not _CHECKOUT.is_dir():
        raise InputError(
            f"tuned files must be shipped from a checkout, but tri_apsp runs from {_PACKAGE}, which is in none; run it in a "
            "clone of the repository."
        )
    if not os.access(_CHECKOUT, os.W_OK):
        raise InputError(
            f"shipped files must be written to {_CHECKOUT}, but it is read-only; change its rights."
        )
    return _CHECKOUT


def files() -> list[Path]:
    """Return every tuned file found, of any GPU, in the order of `directories`."""
    return [path for directory in directories() for path in matching(directory, "*/*.json")]


def matching(directory: Path, pattern: str) -> list[Path]:
    """Return the paths in a directory that match a pattern, sorted; none if it is no directory, or
    cannot be searched.
    """
    is_directory = os.path.isdir(directory)
    return sorted(directory.glob(pattern)) if is_directory else []
