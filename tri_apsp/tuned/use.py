"""Whether a tuned file fits a device and the present kernels; a reason is the end of a sentence
about the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tri_apsp.device import Device, triton_version
from tri_apsp.messages import counted
from tri_apsp.tuned.hashes import kernel_hash

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Run, TunedFile


class Use(NamedTuple):
    """How lookups on a device use a tuned file.

    Attributes:
        reason: why they do not use it, "must be of ..., but is of ..."; None: they use it.
        is_substitute: whether they use it only for what this GPU has no entry, since it is of
            another GPU.
    """

    reason: str | None = None
    is_substitute: bool = False


def file_name(engine: str, kernel: str, dtype: str) -> str:
    """Return the name of the file of a kernel in the folder of its GPU; dtype as in "float32"."""
    return f"{engine}-{kernel}-{dtype}.json"


def use_of(path: Path, file: TunedFile, device: Device) -> Use:
    """Return how lookups on `device` use the file that was read from `path`, if they search the
    directory that it is in.
    """
    place = f"{path.parent.name}/{path.name}"
    expected = f"{file.slug}/{file_name(file.engine, file.kernel, file.dtype)}"
    present = kernel_hash(file.engine, file.kernel)
    if place != expected:
        return Use(f"must be {expected}, which it is for, but is {place}")
    if file.kernel_hash != present:
        return Use(
            f"must be tuned for the present sources of its kernel, {present[:8]}, but was for "
            f"others, {file.kernel_hash[:8]}"
        )
    here, there = _machine(device), _machine(file.device)
    if here == there:
        return Use()
    same_architecture = file.capability == device.capability is not None
    if same_architecture and file.slug != device.slug:
        return Use(is_substitute=True)
    return Use(f"must be of {here}, but is of {there}")


def _machine(device: Device) -> str:
    """Return the facts of a device in which a file must agree with it."""
    architecture = ""
    if device.capability is not None:
        architecture = ", compute capability {}.{}".format(*device.capability)
    return f"{device.name} ({device.slug}, {counted(device.units, 'unit')}{architecture})"


def version_mismatch(run: Run) -> str | None:
    """Return why the results of `run` may not be the fastest with the installed Triton: "was tuned
    with ...", or None.
    """
    installed = triton_version()
    if run.triton is None or installed is None:
        return None
    if run.triton.split(".")[:2] == installed.split(".")[:2]:
        return None
    return (
        f"was tuned with Triton {run.triton}, but {installed} is installed, "
        "for which others may be faster"
    )
