"""The directories of tuned files, and the names of the files."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

__all__ = ["directories", "file_name", "files", "named_directory", "save_directory", "user_directory"]

_PACKAGE = Path(__file__).resolve().parents[1]
# A checkout, and an editable install of it, has the files beside the package; a wheel carries them as tri_apsp/_tuned.
_CHECKOUT, _WHEEL = _PACKAGE.parent / "tuning", _PACKAGE / "_tuned"


def file_name(engine: str, kernel: str, dtype: str) -> str:
    """Return the name of the file of a kernel in the folder of its GPU; dtype as in "float32"."""
    return f"{engine}-{kernel}-{dtype}.json"


def user_directory() -> Path:
    """Return the directory of this user's own tuned files, which need not exist."""
    return platformdirs.user_config_path("tri_apsp", appauthor=False)


def named_directory() -> Path | None:
    """Return the directory that TRI_APSP_CONFIG_DIR names, which need not exist; None if it is not set."""
    named = os.environ.get("TRI_APSP_CONFIG_DIR")
    return Path(named) if named else None


def directories() -> list[Path]:
    """Return the directories searched for tuned files, the most important first.

    TRI_APSP_CONFIG_DIR is first. In a checkout its tuning/ comes before the user's directory, elsewhere the user's directory
    before the shipped one: the directory that the tuner writes to precedes the others, so that no older file hides a new one. A
    checkout that cannot be written to counts as shipped.
    """
    shipped = [path for path in (_WHEEL, _CHECKOUT) if path.is_dir()][:1]
    return list(dict.fromkeys([save_directory(), _own_directory(), user_directory(), *shipped]))


def save_directory() -> Path:
    """Return the directory that tuned files are written to: TRI_APSP_CONFIG_DIR, else that of a checkout, else the user's."""
    return named_directory() or _own_directory()


def _own_directory() -> Path:
    """Return the directory that tuned files are written to if TRI_APSP_CONFIG_DIR is not set."""
    in_checkout = not _WHEEL.is_dir() and _CHECKOUT.is_dir() and os.access(_CHECKOUT, os.W_OK)
    return _CHECKOUT if in_checkout else user_directory()


def files() -> list[Path]:
    """Return every tuned file found, of any GPU, in the order of `directories`."""
    return [file for directory in directories() if directory.is_dir() for file in sorted(directory.glob("*/*.json"))]
