"""Where tuned files lie, and what they are called."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

__all__ = ["directories", "file_name", "files", "save_directory", "user_directory"]

_PACKAGE = Path(__file__).resolve().parents[1]
# A checkout, and an editable install of it, has the files beside the package; a wheel carries them as tri_apsp/_tuned.
_CHECKOUT, _WHEEL = _PACKAGE.parent / "tuning", _PACKAGE / "_tuned"


def file_name(engine: str, kernel: str, dtype: str) -> str:
    """Return what the file of a kernel is called in the folder of its GPU; dtype as in "float32"."""
    return f"{engine}-{kernel}-{dtype}.json"


def user_directory() -> Path:
    """Return the directory of this user's own tuned files, which need not exist."""
    return platformdirs.user_config_path("tri_apsp", appauthor=False)


def directories() -> list[Path]:
    """Return the directories searched for tuned files, first wins: TRI_APSP_CONFIG_DIR, the user's, the shipped one."""
    named = os.environ.get("TRI_APSP_CONFIG_DIR")
    shipped = next((path for path in (_WHEEL, _CHECKOUT) if path.is_dir()), None)
    return [path for path in (Path(named) if named else None, user_directory(), shipped) if path is not None]


def save_directory() -> Path:
    """Return the directory that tuned files are written to: TRI_APSP_CONFIG_DIR, else that of a checkout, else the user's."""
    named = os.environ.get("TRI_APSP_CONFIG_DIR")
    if named:
        return Path(named)
    in_checkout = not _WHEEL.is_dir() and _CHECKOUT.is_dir() and os.access(_CHECKOUT, os.W_OK)
    return _CHECKOUT if in_checkout else user_directory()


def files() -> list[Path]:
    """Return every tuned file found, of any GPU, in the order of `directories`."""
    return [file for directory in directories() if directory.is_dir() for file in sorted(directory.glob("*/*.json"))]
