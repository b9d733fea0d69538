"""The files that lookups read, for a kernel on a device: those of this GPU, then those of other
GPUs of the same architecture.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tri_apsp.device import Device
from tri_apsp.tuned.compatibility import refusal
from tri_apsp.tuned.delayed_warnings import collect
from tri_apsp.tuned.store import (
    directories,
    file_name,
    generation,
    matching,
    named_directory,
    read_once,
    unusable,
)

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile


class Use(NamedTuple):
    """How lookups on a device use a tuned file.

    Attributes:
        reason: why they do not use it: the end of a sentence about the file; None: they use it.
        is_substitute: whether they use it only for what this GPU has no entry, since it is of
            another GPU.
    """

    reason: str | None = None
    is_substitute: bool = False


def search_folders(device: Device) -> list[Path]:
    """Return the folders searched for files of `device`."""
    return [directory / _search_slug(device) for directory in directories()]


def files_of_this_gpu(
    engine: str, kernel: str, dtype: str, device: Device
) -> Iterator[tuple[str, TunedFile]]:
    """Yield the files of a kernel that may be used on `device`, the most important first, each with
    its path. A file that cannot be used is passed over with a warning.
    """
    named = named_directory()
    if named is not None and not os.path.isdir(named):  # noqa: PTH112 (Path.is_dir raises PermissionError)
        collect(
            f"TRI_APSP_CONFIG_DIR {named}",
            f"TRI_APSP_CONFIG_DIR must name a folder of tuned files, but {named} is none; "
            "correct the variable, or unset it.",
        )
    for folder in search_folders(device):
        path = folder / file_name(engine, kernel, dtype)
        file, message = read_once(path)
        if file is not None and (reason := use_of(path, file, device).reason) is not None:
            message = unusable(path, reason)
        if message is not None:
            collect(str(path), f"a tuned file is not used: {message}")
        elif file is not None:
            yield str(path), file


def files_of_other_gpus(
    engine: str, kernel: str, dtype: str, device: Device
) -> Iterator[tuple[str, TunedFile]]:
    """Yield the files of a kernel for other GPUs of the compute capability of `device`, each with
    its source.

    The GPU with the nearest number of units comes first, of several the first by name; the files of
    a GPU are in the order of `directories`. A file that cannot be used is passed over without a
    warning. If TRI_APSP_TUNED_FOR names a GPU, or `device` is not a GPU, nothing is yielded.
    """
    if not _may_substitute(device):
        return
    name, found = file_name(engine, kernel, dtype), []
    for order, directory in enumerate(directories()):
        for path in matching(directory, f"*/{name}"):
            file, _ = read_once(path)
            if file is not None and use_of(path, file, device).is_substitute:
                found.append(((abs(file.units - device.units), file.slug, order), path, file))
    for _, path, file in sorted(found, key=lambda each: each[0]):
        yield f"{path}, tuned for {file.gpu}", file


def use_of(path: Path, file: TunedFile, device: Device) -> Use:
    """Return how lookups on `device` use the file that was read from `path`, if they search the
    directory that it is in.
    """
    slug, folder = _search_slug(device), path.parent.name
    name = file_name(file.engine, file.kernel, file.dtype)
    reason = refusal(file, device, folder)
    if path.name != name:
        reason = f"must be called {name}, which it is for"
    if folder == slug:
        return Use(reason)
    if _may_substitute(device) and reason is None:
        return Use(is_substitute=True)
    return Use(refusal(file, device, slug) or f"must be in the folder {slug}, but is in {folder}")


def covers_architecture(engine: str, capability: tuple[int, int] | None) -> bool:
    """Return whether there is a tuned file of an engine for any GPU of this compute capability."""
    return _covers(engine, capability, generation())


@lru_cache(maxsize=16)
def _covers(engine: str, capability: tuple[int, int] | None, _: int) -> bool:
    paths = (
        path for directory in directories() for path in matching(directory, f"*/{engine}-*.json")
    )
    found = (read_once(path)[0] for path in paths)
    return any(file is not None and file.capability == capability for file in found)


def _search_slug(device: Device) -> str:
    """Return the GPU (or CPU) whose files are searched: the one that TRI_APSP_TUNED_FOR names, else
    `device`.
    """
    return os.environ.get("TRI_APSP_TUNED_FOR") or device.slug


def _may_substitute(device: Device) -> bool:
    """Return whether lookups on `device` use files of other GPUs: it is one, and TRI_APSP_TUNED_FOR
    names none.
    """
    return device.capability is not None and not os.environ.get("TRI_APSP_TUNED_FOR")
