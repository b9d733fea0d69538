"""The devices and the software versions that a measurement depends on."""

import platform
from collections.abc import Mapping
from typing import Any

import torch

import tri_apsp
from tri_apsp.device import cuda_count, describe, installed_version, triton_version
from tri_apsp.memory import byte_size
from tri_apsp.messages import counted


def devices() -> list[torch.device]:
    """Return the devices of this machine: the CPU, then each CUDA device."""
    return [torch.device("cpu"), *(torch.device("cuda", index) for index in range(cuda_count()))]


def device_facts(device: torch.device) -> dict[str, Any]:
    """Return the facts of a device for JSON; `units` are cores or multiprocessors, `memory` is in
    bytes.
    """
    facts = describe(device)
    return {
        "name": facts.name,
        "slug": facts.slug,
        "units": facts.units,
        "memory": facts.memory,
        "capability": None if facts.capability is None else ".".join(map(str, facts.capability)),
    }


def device_line(device: torch.device) -> str:
    """Return the facts of a device in one line of text."""
    facts = device_facts(device)
    units = counted(facts["units"], "core" if facts["capability"] is None else "multiprocessor")
    capability = (
        "" if facts["capability"] is None else f", compute capability {facts['capability']}"
    )
    return f"{facts['name']}, {units}, {byte_size(facts['memory'])}{capability}"


def versions() -> dict[str, str | None]:
    """Return the version of each package that the speed depends on; None for one that is not
    installed.
    """
    return {
        "tri_apsp": tri_apsp.__version__,
        "python": platform.python_version(),
        "torch": installed_version("torch"),
        "cuda": torch.version.cuda,
        "triton": triton_version(),
        **{name: installed_version(name) for name in ("numba", "numpy", "scipy")},
    }


def versions_line(found: Mapping[str, str | None] | None = None) -> str:
    """Return the versions `found`, by default those installed here, in one line of text."""
    shown = versions() if found is None else found
    return ", ".join(f"{name} {version}" for name, version in shown.items() if version is not None)
