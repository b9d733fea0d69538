"""Tuned files of other GPUs of the same architecture: used for a kernel and size for which this GPU has no entry."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tri_apsp.device import Device
from tri_apsp.errors import InputError
from tri_apsp.tuned.compatibility import refusal
from tri_apsp.tuned.paths import directories, file_name, matching
from tri_apsp.tuned.reading import load, until_reload

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["covers_architecture", "files_of_other_gpus", "is_of_another_gpu"]


def files_of_other_gpus(engine: str, kernel: str, dtype: str, device: Device) -> Iterator[tuple[str, TunedFile]]:
    """Yield the files of a kernel for other GPUs of the compute capability of `device`, each with its source.

    The GPU with the nearest number of units comes first, of several the first by name; the files of a GPU are in the order of
    `directories`. A file that cannot be used is passed over without a warning, since it is not of this GPU. If
    TRI_APSP_TUNED_FOR names a GPU, or `device` is none, there are no others.
    """
    if device.capability is None or os.environ.get("TRI_APSP_TUNED_FOR"):
        return
    name, found = file_name(engine, kernel, dtype), []
    for order, directory in enumerate(directories()):
        for path in matching(directory, f"*/{name}"):
            file = _parsed(path)
            if file is not None and file.slug == path.parent.name and is_of_another_gpu(file, device):
                found.append(((abs(file.units - device.units), file.slug, order), path, file))
    for _, path, file in sorted(found, key=lambda each: each[0]):
        yield f"{path}, tuned for {file.gpu}", file


def is_of_another_gpu(file: TunedFile, device: Device) -> bool:
    """Return whether lookups on `device` may use a file of another GPU: one of its architecture and of the present kernels."""
    # refusal() takes a slug in place of this device's: then only the architecture and the kernel must be the same.
    return device.capability is not None and file.slug != device.slug and refusal(file, device, file.slug) is None


@until_reload
def covers_architecture(engine: str, capability: tuple[int, int] | None) -> bool:
    """Return whether there is a tuned file of an engine for any GPU of this compute capability; read once, until reload()."""
    paths = (path for directory in directories() for path in matching(directory, f"*/{engine}-*.json"))
    return any(file.capability == capability for path in paths if (file := _parsed(path)) is not None)


@until_reload
def _parsed(path: Path) -> TunedFile | None:
    """Return the file at `path`; None if it cannot be read."""
    try:
        return load(path)
    except InputError:
        return None
