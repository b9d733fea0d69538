"""Triton's machine code in the folder that TRI_APSP_CACHE_DIR names."""

import json
import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from triton import knobs
from triton.runtime.cache import FileCacheManager

from tri_apsp.cache_folder import Entry, cache_folder, contents, warn_unless_made_for
from tri_apsp.device import describe, triton_version
from tri_apsp.gpu.launcher import OWN


def folder_entry(device: torch.device) -> Entry | None:
    """Return what machine code is made for here; None for an AMD GPU."""
    capability = describe(device).capability
    if capability is None:
        return None
    return {
        "device": "sm_{}{}".format(*capability),
        "triton": str(triton_version()),
        "kernels": contents("nvidia", "portable", "shared"),
    }


def cache_paths() -> list[Path]:
    """Return the folders in which machine code of this package is kept: it is read from each, and
    written to the first that can be written.
    """
    folder, others = cache_folder(), [Path(knobs.cache.dir)]
    if folder is None:
        return others
    own = [folder / "triton"]
    return others + own if "TRITON_CACHE_DIR" in os.environ else own + others


@cache
def use_folder() -> None:
    """Make Triton keep kernels of this package in the folder, if the variable names one and nothing
    else manages its cache; other kernels stay where they are.
    """
    if cache_folder() is None or knobs.cache.manager_class is not None:
        return
    knobs.cache.manager_class = lambda key, **which: (
        _Files(key) if OWN.get() and not which else FileCacheManager(key, **which)
    )
    entry = folder_entry(torch.device("meta"))  # which stands for the current GPU
    if entry is not None:
        warn_unless_made_for(entry)


_MAKING = Lock()  # several threads write kernels


@cache
def _make_temporary() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="tri_apsp-")


def _temporary() -> str:
    """Return a folder that lives as long as this process."""
    with _MAKING:
        return _make_temporary().name


class _Files(FileCacheManager):  # type: ignore[misc]
    """The files of one kernel: read from the first of some folders that has them, and written to
    the first that can be written. Files of a group lie side by side, so that the folder may move.
    """

    def __init__(self, key: str) -> None:
        self.key, self.lock_path = key, ""
        self._folders = [str(path / key) for path in cache_paths()]

    def get_file(self, filename: str) -> str | None:
        paths = (Path(folder, filename) for folder in self._folders)
        return next((str(path) for path in paths if path.exists()), None)

    def get_group(self, filename: str) -> dict[str, str] | None:
        group = self.get_file(f"__grp__{filename}")
        if group is None:
            return None
        try:
            names = json.loads(Path(group).read_text(encoding="utf-8"))["child_paths"]
            paths = {name: str(Path(group).with_name(name)) for name in names}
        except (OSError, ValueError, KeyError, TypeError):  # damaged
            return None
        return paths if all(map(os.path.exists, paths.values())) else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        for folder in self._folders:
            self.cache_dir = folder
            with suppress(OSError):  # such as that of a read-only layer of an image
                return str(super().put(data, filename, binary))
        self.cache_dir = str(Path(_temporary(), self.key))
        self._folders.append(self.cache_dir)
        return str(super().put(data, filename, binary))
