"""Which tuned files fit a device and the present kernels; each reason is the end of a sentence
about the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tri_apsp.device import Device, triton_version
from tri_apsp.messages import counted
from tri_apsp.tuned.hashes import kernel_hash

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Run, TunedFile

_KERNEL = ("engine", "kernel", "dtype")
_MACHINE = ("slug", "gpu", "capability", "units")
IDENTITY = (*_KERNEL, *_MACHINE, "kernel_hash")
"""The fields of a file that say what it is for."""


def identity(engine: str, kernel: str, dtype: str, device: Device) -> dict[str, Any]:
    """Return the IDENTITY that a file must have to be used on `device` with the present kernels.

    Raises:
        InputError: the engine has no such kernel.
    """
    machine = device.slug, device.name, device.capability, device.units
    source_hash = kernel_hash(engine, kernel)
    return dict(zip(IDENTITY, (engine, kernel, dtype, *machine, source_hash), strict=True))


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
        wanted |= {"slug": slug, "gpu": file.gpu, "units": file.units}
    return difference(file, wanted)


def difference(file: TunedFile, wanted: Mapping[str, Any]) -> str | None:
    """Return the first property in which `file` is not as wanted, in the words of refusal(); None
    if there is none.
    """
    found = {name: getattr(file, name) for name in IDENTITY}
    different = {name for name in IDENTITY if found[name] != wanted[name]}
    if different.intersection(_KERNEL):
        kernels = (" ".join(each[name] for name in _KERNEL) for each in (wanted, found))
        return "must be for {}, but is for {}".format(*kernels)
    if different.intersection(_MACHINE):
        return f"must be of {_machine(wanted)}, but is of {_machine(found)}"
    if different:
        return (
            "must be tuned for the present sources of its kernel, "
            f"{wanted['kernel_hash'][:8]}, but was for others, {file.kernel_hash[:8]}"
        )
    return None


def version_mismatch(engine: str, run: Run) -> str | None:
    """Return why the results of `run` may not be the fastest with the installed Triton: "was tuned
    with ...", or None.
    """
    installed = triton_version()
    if engine == "cpu" or installed is None or run.triton is None:
        return None
    if run.triton.split(".")[:2] == installed.split(".")[:2]:
        return None
    return (
        f"was tuned with Triton {run.triton}, but {installed} is installed, "
        "for which others may be faster"
    )


def _machine(facts: Mapping[str, Any]) -> str:
    capability = facts["capability"]
    architecture = "" if capability is None else ", compute capability {}.{}".format(*capability)
    return f"{facts['gpu']} ({facts['slug']}, {counted(facts['units'], 'unit')}{architecture})"
