"""The tuned files that count for a kernel on a device, in their order; the others are named once, with the reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tri_apsp.device import Device
from tri_apsp.errors import InputError
from tri_apsp.tuned.cache import FILES, MEMORY, reload, warn_once
from tri_apsp.tuned.places import directories, file_name, named_directory
from tri_apsp.tuned.reading import REMEDY, load
from tri_apsp.tuned.refusals import difference, identity, refusal

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["remember", "searched", "sources", "usable"]


def remember(file: TunedFile) -> None:
    """Use what was tuned for the rest of this process, without writing it; it comes before all but TRI_APSP_CONFIG_DIR."""
    MEMORY.insert(0, file)
    reload()


def searched(device: Device) -> list[Path]:
    """Return the folders searched for files of `device`: of the GPU that TRI_APSP_TUNED_FOR names, else of its own."""
    slug = os.environ.get("TRI_APSP_TUNED_FOR") or device.slug
    return [directory / slug for directory in directories()]


def sources(engine: str, kernel: str, dtype: str, device: Device) -> Iterator[tuple[str, TunedFile]]:
    """Yield the files of a kernel that may be used on `device`, first wins, each with where it came from."""
    name = file_name(engine, kernel, dtype)
    paths = [folder / name for folder in searched(device)]
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
            FILES[key], reason = usable(path, device)
            if reason is not None:
                warn_once(str(path), f"a tuned file is not used: {reason}")
        file = FILES[key]
        if file is not None:
            yield str(path), file


def usable(path: Path, device: Device) -> tuple[TunedFile | None, str | None]:
    """Return the file at `path` if it may be used on `device`, else why not, as one sentence; neither if none is there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError:
        pass  # load() says it better
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
    """Warn once if TRI_APSP_CONFIG_DIR names no folder: no file is read from it."""
    fault = "is no folder"
    try:
        if stat.S_ISDIR(directory.stat().st_mode):
            return
    except (FileNotFoundError, NotADirectoryError):
        fault = "does not exist"
    except OSError:
        return  # load() says it better
    warn_once(
        f"TRI_APSP_CONFIG_DIR {directory}",
        f"TRI_APSP_CONFIG_DIR must name a folder of tuned files, but {directory} {fault}; correct the variable, or unset it.",
    )
