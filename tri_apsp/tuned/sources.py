"""The tuned files that a lookup reads, in their order; a file that cannot be used is warned about once, with the reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tri_apsp.device import Device
from tri_apsp.errors import InputError
from tri_apsp.tuned.cache import FILES, MEMORY, reload, warn_once
from tri_apsp.tuned.compatibility import difference, identity, refusal
from tri_apsp.tuned.paths import directories, file_name, named_directory
from tri_apsp.tuned.reading import REMEDY, load

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["remember", "search_folders", "sources"]


def remember(file: TunedFile) -> None:
    """Use `file` for the rest of this process, without writing it; only files of TRI_APSP_CONFIG_DIR come before it."""
    MEMORY.insert(0, file)
    reload()


def search_folders(device: Device) -> list[Path]:
    """Return the folders searched for files of `device`: of the GPU that TRI_APSP_TUNED_FOR names, else of its own."""
    slug = os.environ.get("TRI_APSP_TUNED_FOR") or device.slug
    return [directory / slug for directory in directories()]


def sources(engine: str, kernel: str, dtype: str, device: Device) -> Iterator[tuple[str, TunedFile]]:
    """Yield the files of a kernel that may be used on `device`, first wins, each with where it came from."""
    name = file_name(engine, kernel, dtype)
    paths = [folder / name for folder in search_folders(device)]
    named = named_directory()
    if named is not None:
        _check_named(named)
        yield from _read([paths.pop(0)], device)
    wanted = identity(engine, kernel, dtype, device) if MEMORY else None
    for file in MEMORY:
        if wanted is not None and difference(file, wanted) is None:
            yield "this process", file
    yield from _read(paths, device)


def _read(paths: list[Path], device: Device) -> Iterator[tuple[str, TunedFile]]:
    for path in paths:
        key = (path, device)
        if key not in FILES:
            FILES[key], reason = _read_usable(path, device)
            if reason is not None:
                warn_once(str(path), f"a tuned file is not used: {reason}")
        file = FILES[key]
        if file is not None:
            yield str(path), file


def _read_usable(path: Path, device: Device) -> tuple[TunedFile | None, str | None]:
    """Return the file at `path` if it may be used on `device`, else why not, as one sentence; neither if none is there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError:
        pass  # load() reports it
    try:
        file = load(path)
    except InputError as error:
        return None, str(error)
    if path.name != file_name(file.engine, file.kernel, file.dtype):
        reason: str | None = f"must be called {file_name(file.engine, file.kernel, file.dtype)}, which it is for"
    else:
        reason = refusal(file, device, path.parent.name)
    return (file, None) if reason is None else (None, f"tuned file {path} {reason}; {REMEDY}.")


def _check_named(directory: Path) -> None:
    """Warn once if `directory`, which TRI_APSP_CONFIG_DIR names, is no folder: then no file is read from it."""
    fault = "is no folder"
    try:
        if stat.S_ISDIR(directory.stat().st_mode):
            return
    except (FileNotFoundError, NotADirectoryError):
        fault = "does not exist"
    except OSError:
        return  # load() reports it
    warn_once(
        f"TRI_APSP_CONFIG_DIR {directory}",
        f"TRI_APSP_CONFIG_DIR must name a folder of tuned files, but {directory} {fault}; correct the variable, or unset it.",
    )
