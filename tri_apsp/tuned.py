"""Which configuration to use: what the caller gave, over what was tuned or ships, over the engine's default."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import platformdirs
import torch

from tri_apsp.configs import Config, default_config, require_valid
from tri_apsp.device import Device, describe

__all__ = ["directories", "files", "find"]


def directories() -> list[Path]:
    """Return the directories searched for tuned files, first wins: TRI_APSP_CONFIG_DIR, the user's, the shipped one."""
    package = Path(__file__).resolve().parent
    # A wheel carries the files as tri_apsp/_tuned; a checkout, and an editable install of it, has them beside us.
    shipped = next((path for path in (package / "_tuned", package.parent / "tuning") if path.is_dir()), None)
    named = os.environ.get("TRI_APSP_CONFIG_DIR")
    candidates = [Path(named) if named else None, platformdirs.user_config_path("tri_apsp", appauthor=False), shipped]
    return [path for path in candidates if path is not None]


def files() -> list[Path]:
    """Return every tuned file found, in the order of `directories`."""
    return [file for directory in directories() if directory.is_dir() for file in sorted(directory.glob("*/*.json"))]


def find(engine: str, device: torch.device, dtype: torch.dtype, given: Config | None = None) -> Config:
    """Return the whole configuration for weights of `dtype` on `device`: the fields of `given`, the rest from the default.

    Raises:
        InputError: if the result cannot run on the device; with the rule that it breaks.
    """
    if given is None:
        return _default(engine, describe(device), dtype)
    return require_valid(given.over(default_config(engine, dtype)), describe(device))


# Only what we made ourselves: what a caller gives need not be hashable, and 64.0, which is refused, equals 64.
@cache
def _default(engine: str, device: Device, dtype: torch.dtype) -> Config:
    return require_valid(default_config(engine, dtype), device)
