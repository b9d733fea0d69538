"""Which tuned files fit a device and the present kernels; each reason is the end of a sentence
about the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tri_apsp.device import Device, triton_version
from tri_apsp.messages import counted
from tri_apsp.tuned.hashes import kernel_hash

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Run, TunedFile

__all__ = ["Identity", "difference", "identity", "identity_of", "refusal", "version_mismatch"]


class Identity(NamedTuple):
    """The kernel, dtype and device of a tuned file; the names are those of the fields of
    tri_apsp.tuned.schema.TunedFile.
    """

    engine: str
    kernel: str
    dtype: str
    slug: str
    gpu: str
    capability: tuple[int, int] | None
    units: int
    kernel_hash: str


def identity(engine: str, kernel: str, dtype: str, device: Device) -> Identity:
    """Return the identity that a file must have to be used on `device` with the present kernels.

    Raises:
        InputError: the engine has no such kernel.
    """
    source_hash = kernel_hash(engine, kernel)
    return Identity(
        engine,
        kernel,
        dtype,
        device.slug,
        device.name,
        device.capability,
        device.units,
        source_hash,
    )


def identity_of(file: TunedFile) -> Identity:
    """Return the identity of a file."""
    return Identity(*(getattr(file, name) for name in Identity._fields))


def refusal(file: TunedFile, device: Device, slug: str | None = None) -> str | None:
    """Return why `file` must not be used on `device`: "must be of ..., but is of ...", or None if
    it may.

    Args:
        file: the file to check.
        device: the device to use it on.
        slug: another GPU whose files were asked for, which must be of the same architecture; None:
            none.
    """
    wanted = identity(file.engine, file.kernel, file.dtype, device)
    if slug not in (None, device.slug):
        wanted = wanted._replace(slug=str(slug), gpu=file.gpu, units=file.units)
    return difference(file, wanted)


def difference(file: TunedFile, wanted: Identity) -> str | None:
    """Return the first property in which `file` is not as wanted, in the words of refusal(); None
    if there is none.
    """
    if (file.engine, file.kernel, file.dtype) != wanted[:3]:
        return f"must be for {' '.join(wanted[:3])}, but is for {file.engine} {file.kernel} {file.dtype}"
    if (file.slug, file.gpu, file.capability, file.units) != wanted[3:7]:
        found = _machine(file.slug, file.gpu, file.capability, file.units)
        return f"must be of {_machine(*wanted[3:7])}, but is of {found}"
    if file.kernel_hash != wanted.kernel_hash:
        return (
            f"must be tuned for the present sources of its kernel, {wanted.kernel_hash[:8]}, but was for others, "
            f"{file.kernel_hash[:8]}"
        )
    return None


def version_mismatch(engine: str, run: Run) -> str | None:
    """Return why the results of `run` may not be the fastest with the installed Triton: "was tuned
    with ...", or None.
    """
    installed = triton_version()
    if (
        engine == "cpu"
        or installed is None
        or run.triton is None
        or _minor(run.triton) == _minor(installed)
    ):
        return None
    return f"was tuned with Triton {run.triton}, but {installed} is installed, for which others may be faster"


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def _machine(slug: str, gpu: str, capability: tuple[int, int] | None, units: int) -> str:
    architecture = "" if capability is None else ", compute capability {}.{}".format(*capability)
    return f"{gpu} ({slug}, {counted(units, 'unit')}{architecture})"
