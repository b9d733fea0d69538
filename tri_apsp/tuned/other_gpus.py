"""Tuned files of other GPUs of the same architecture: used for a kernel and size for which this GPU
has no entry.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tri_apsp.device import Device
from tri_apsp.errors import InputError
from tri_apsp.tuned.compatibility import refusal
from tri_apsp.tuned.paths import directories, file_name, matching
from tri_apsp.tuned.reading import load, search_slug, until_reload, unusable_because

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["Use", "covers_architecture", "files_of_other_gpus", "use_of"]


def files_of_other_gpus(
    engine: str, kernel: str, dtype: str, device: Device
) -> Iterator[tuple[str, TunedFile]]:
    """Yield the files of a kernel for other GPUs of the compute capability of `device`, each with
    its source.

    The GPU with the nearest number of units comes first, of several the first by name; the files of
    a GPU are in the order of `directories`. A file that cannot be used is passed over without a
    warning, since it is not of this GPU. If TRI_APSP_TUNED_FOR names a GPU, or `device` is not a
    GPU, nothing is yielded.
    """
    if not _may_substitute(device):
        return
    name, found = file_name(engine, kernel, dtype), []
    for order, directory in enumerate(directories()):
        for path in matching(directory, f"*/{name}"):
            file = _parsed(path)
            if file is not None and use_of(path, file, device).is_substitute:
                found.append(((abs(file.units - device.units), file.slug, order), path, file))
    for _, path, file in sorted(found, key=lambda each: each[0]):
        yield f"{path}, tuned for {file.gpu}", file


class Use(NamedTuple):
    """How lookups on a device use a tuned file.

    Attributes:
        reason: why they do not use it: the end of a sentence about the file; None: they use it.
        is_substitute: whether they use it only for what this GPU has no entry, since it is of
            another GPU.
    """

    reason: str | None = None
    is_substitute: bool = False


def use_of(path: Path, file: TunedFile, device: Device) -> Use:
    """Return how lookups on `device` use the file that was read from `path`, if they search the
    directory that it is in.
    """
    slug, folder = search_slug(device), path.parent.name
    if folder == slug:
        return Use(unusable_because(path, device, file))
    if _may_substitute(device) and unusable_because(path, device, file) is None:
        return Use(is_substitute=True)
    return Use(refusal(file, device, slug) or f"must be in the folder {slug}, but is in {folder}")


def _may_substitute(device: Device) -> bool:
    """Return whether lookups on `device` use files of other GPUs: it is one, and TRI_APSP_TUNED_FOR
    names none.
    """
    return device.capability is not None and not os.environ.get("TRI_APSP_TUNED_FOR")


@until_reload
def covers_architecture(engine: str, capability: tuple[int, int] | None) -> bool:
    """Return whether there is a tuned file of an engine for any GPU of this compute capability;
    read once, until reload().
    """
    paths = (
        path for directory in directories() for path in matching(directory, f"*/{engine}-*.json")
    )
    return any(
        file.capability == capability for path in paths if (file := _parsed(path)) is not None
    )


@until_reload
def _parsed(path: Path) -> TunedFile | None:
    """Return the file at `path`; None if it cannot be read."""
    try:
        return load(path)
    except InputError:
        return None
