"""The engines, and which of them can run here. An engine is imported when it is first used."""

import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module

import torch

from tri_apsp import tuned
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import describe
from tri_apsp.engines.base import Block, Engine, MatrixSpec, Tolerance, Update, block
from tri_apsp.errors import EngineError, InputError
from tri_apsp.gpu.launcher import has_triton, start_triton
from tri_apsp.messages import remedy_of_extra

__all__ = [
    "ENGINES",
    "Block",
    "Engine",
    "MakeEngine",
    "MatrixSpec",
    "Tolerance",
    "Update",
    "block",
    "choose",
    "choose_unconfigured",
    "make",
    "type_of",
    "unusable_because",
]

# Best first: the first that can run on a device is its automatic choice.
ENGINES: dict[str, tuple[str, str]] = {
    "cpu": ("tri_apsp.engines.cpu", "CpuEngine"),
    "nvidia": ("tri_apsp.engines.nvidia", "NvidiaEngine"),
    "portable": ("tri_apsp.engines.portable", "PortableEngine"),
}


def unusable_because(
    name: str, device: torch.device, dtype: torch.dtype | None = None
) -> str | None:
    """Return why engine `name` cannot run on tensors of `device` (and `dtype`) as one sentence, or
    None if it can.
    """
    if name not in ENGINES:
        names = ", ".join(ENGINES)
        raise InputError(f"engine must be one of {names}, but is {name!r}; choose one of these.")
    if name == "cpu":
        if device.type == "cpu":
            return None
        return (
            f"the cpu engine needs the CPU, but the device is {device}; choose the CPU, or leave "
            "the engine out."
        )
    if device.type == "cpu" and (name == "nvidia" or os.environ.get("TRITON_INTERPRET") != "1"):
        remedy = "choose a GPU, or leave the engine out."
        if name == "portable":
            remedy = (
                "choose a GPU, leave the engine out, or set TRITON_INTERPRET=1 before Python "
                "starts to run its kernels in Triton's (slow) interpreter."
            )
        return f"the {name} engine needs a GPU, but the device is cpu; {remedy}"
    if not has_triton():
        return _without_triton(f"the {name} engine")
    return _nvidia_unusable_because(device, dtype) if name == "nvidia" else None


def _without_triton(subject: str) -> str:
    if sys.platform != "linux":
        return f"{subject} needs Triton, which exists for Linux alone; use the CPU."
    remedy = remedy_of_extra("gpu")
    return f"{subject} needs Triton, but it is not installed; {remedy}, or use the CPU."


def _nvidia_unusable_because(device: torch.device, dtype: torch.dtype | None) -> str | None:
    """Return why the nvidia engine cannot run on a GPU."""
    facts = describe(device)
    capability = facts.capability or (0, 0)
    if capability < (8, 0):
        needed = "8.0"
    elif dtype == torch.int16 and capability < (9, 0):
        # Without VIADDMNMX.S16x2, an add and a min of int16 take 3.1 instructions and registers
        # spill; the portable kernel takes 2.5.
        needed = "9.0 for int16"
    else:
        return None
    found = "none" if facts.capability is None else "{}.{}".format(*facts.capability)
    return (
        f"the nvidia engine needs compute capability {needed}, but {facts.name} has {found}; use "
        "the portable engine."
    )


def choose(
    device: torch.device, config: Config | None = None, dtype: torch.dtype | None = None
) -> str:
    """Return the engine for tensors on `device`: the one that `config` names, else the best that
    can run.

    Without `dtype`, an engine that takes only some dtypes counts as able to run.

    Raises:
        EngineError: if that engine, or every one, cannot run; with the reason.
        InputError: if `config` names an unknown engine.
    """
    if config is not None and config.engine is not None:
        reason = unusable_because(config.engine, device, dtype)
        if reason is not None:
            raise EngineError(reason)
        return config.engine
    if device.type != "cpu" and not has_triton():
        # One sentence instead of one for each engine.
        raise EngineError(_without_triton(f"a computation on {device}"))
    if device.type == "cuda":
        start_triton()
    reasons = []
    for name in ENGINES:
        reason = unusable_because(name, device, dtype)
        if reason is None:
            return name
        reasons.append(reason)
    raise EngineError(
        f"weights on {device} need an engine that runs there, but {'; '.join(reasons)}"
    )


def choose_unconfigured(device: torch.device, dtype: torch.dtype | None = None) -> str:
    """Return the engine of a call without an argument `config`: the one that `tuned.using` forces,
    else as choose().
    """
    return choose(device, tuned.with_forced(None), dtype)


def make(spec: MatrixSpec, config: CompleteConfig) -> Engine:
    """Return the engine of a configuration, ready for one solve; this launches and allocates
    nothing.
    """
    return type_of(config.engine)(spec, config)


MakeEngine = Callable[[MatrixSpec, CompleteConfig], Engine]
"""Makes an engine, as make() does."""


@cache
def type_of(name: str) -> type[Engine]:
    """Return the class of engine `name`, which is imported when it is first asked for."""
    module, class_name = ENGINES[name]
    engine: type[Engine] = getattr(import_module(module), class_name)
    return engine
