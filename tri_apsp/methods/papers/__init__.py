"""The systems of the papers behind this project, one file each: pseudo-code, kernels, and the host
code that launches them.

They are here to be run and measured beside today's methods; method="auto" takes none of them. In
the order of their history:

    harish_narayanan   2007   one launch per vertex, one thread per pair, all from global memory
    katz_kider         2008   tiles of 32 x 32 in shared memory, three kernels per stage
    recursive          2010   Buluç, Gilbert, Budak: recursion, with a plain and with a tuned product
    optimised_blocked  2010   Lund & Smith: Katz & Kider's kernels, unrolled
    staged_load        2010   Lund & Smith: the tile in registers, the tiles that it depends on in slices
    simple, vectorised, pseudo_blocked, blocked_int16   2023   Catinello: the same ideas again, on weights of type short

What they share: relaxation.py (the step that all repeat), base.py, and blocked.py (the stages of
every blocked one).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import torch

from tri_apsp.configs import METHOD_NAMES, PAPER_METHOD_NAMES, PaperMethodName
from tri_apsp.device import Device, describe
from tri_apsp.engines import unusable_because
from tri_apsp.errors import EngineError, InputError
from tri_apsp.methods.base import Method
from tri_apsp.semirings import DTYPES, dtype_name

__all__ = [
    "SYSTEMS",
    "Parameter",
    "System",
    "method_of_paper",
    "require_runnable",
    "resolve_parameter",
    "runnable_systems",
    "supports_dtype",
]

_INT16 = (torch.int16,)


@dataclass(frozen=True)
class Parameter:
    """What a system varies: Config.method_parameter is one of `choices`.

    Attributes:
        name: the paper's name for it.
        choices: the values that were studied.
        default: the value that the paper found best, or used.
    """

    name: str
    choices: tuple[int, ...]
    default: int


@dataclass(frozen=True)
class System:
    """What is known of a system before its module, which needs Triton, is imported.

    Attributes:
        module: the file that holds it.
        class_name: its class in that file.
        shares: other files of this folder whose kernels it launches.
        parameter: what it varies, if anything.
        in_gluon: whether it is written in Gluon, for NVIDIA GPUs from compute capability 8.0;
            otherwise it is plain Triton.
        dtypes: of the weights that it takes.
    """

    module: str
    class_name: str
    shares: tuple[str, ...] = ("relaxation",)
    parameter: Parameter | None = None
    in_gluon: bool = False
    dtypes: tuple[torch.dtype, ...] = DTYPES

    @property
    def sources(self) -> tuple[str, ...]:
        """The files below tri_apsp with its kernels."""
        return tuple(f"methods/papers/{name}.py" for name in (self.module, *self.shares))

    def runs_on(self, device: Device) -> bool:
        """Return whether a GPU can run it."""
        return not self.in_gluon or (device.capability is not None and device.capability >= (8, 0))


_POWERS = (1, 2, 4, 8, 16, 32)
_BLOCKS = Parameter("edge of a block", (8, 16, 32), 16)
_CUTOFFS = Parameter("β", (16, 32, 64), 16)

_TILES = ("blocked", "relaxation")
_THREE_TILES = ("katz_kider", *_TILES)

SYSTEMS: dict[str, System] = {
    "harish_narayanan": System("harish_narayanan", "HarishNarayanan"),
    "katz_kider": System("katz_kider", "KatzKider", _TILES, in_gluon=True),
    "recursive_plain": System("recursive", "RecursivePlain", _TILES, _CUTOFFS, in_gluon=True),
    "recursive_tuned": System("recursive", "RecursiveTuned", _TILES, _CUTOFFS, in_gluon=True),
    "optimised_blocked": System(
        "optimised_blocked", "OptimisedBlocked", _THREE_TILES, in_gluon=True
    ),
    "staged_load": System(
        "staged_load", "StagedLoad", _TILES, Parameter("m", _POWERS, 4), in_gluon=True
    ),
    "simple": System("simple", "Simple"),
    "vectorised": System(
        "vectorised", "Vectorised", parameter=Parameter("columns per thread", _POWERS, 4)
    ),
    "pseudo_blocked": System(
        "pseudo_blocked", "PseudoBlocked", parameter=Parameter("edge of the square", _POWERS, 4)
    ),
    "blocked_int16": System(
        "blocked_int16", "BlockedInt16", _THREE_TILES, _BLOCKS, in_gluon=True, dtypes=_INT16
    ),
    "blocked_vectorised_int16": System(
        "blocked_int16",
        "BlockedVectorisedInt16",
        _THREE_TILES,
        _BLOCKS,
        in_gluon=True,
        dtypes=_INT16,
    ),
}
"""The systems by name, oldest first."""


def method_of_paper(name: str) -> Method:
    """Return a system as a method; its module is imported when it is first asked for."""
    system = SYSTEMS[name]
    method: Method = getattr(
        import_module(f"tri_apsp.methods.papers.{system.module}"), system.class_name
    )()
    return method


def supports_dtype(name: str, dtype: torch.dtype) -> bool:
    """Return whether a method takes weights of `dtype`; those that are no system of a paper take
    every one.
    """
    return name not in SYSTEMS or dtype in SYSTEMS[name].dtypes


def resolve_parameter(name: str, given: int | None) -> int | None:
    """Return the parameter of a system: the one given, else its default; None if it has none."""
    parameter = SYSTEMS[name].parameter
    return given if given is not None or parameter is None else parameter.default


def require_runnable(
    name: str, device: torch.device, dtype: torch.dtype, parameter: int | None
) -> None:
    """Check that a method can solve weights of `dtype` on `device` with this parameter; None: the
    default.

    Raises:
        EngineError: the method is a system that does not run on the device.
        InputError: it does not take weights of this dtype, or has no such parameter.
    """
    if name not in SYSTEMS:
        if parameter is not None:
            raise InputError(
                f"method_parameter must come with a method of the papers, but the method is {name}; leave it out."
            )
        return
    system = SYSTEMS[name]
    _require_gpu(name, system, device)
    if not supports_dtype(name, dtype):
        found = ", ".join(map(dtype_name, system.dtypes))
        raise InputError(
            f"method {name} takes weights of {found}, but these are {dtype_name(dtype)}; convert them."
        )
    choices = () if system.parameter is None else system.parameter.choices
    if parameter is not None and parameter not in choices:
        rule = f"be one of {', '.join(map(str, choices))}" if choices else "be left out"
        raise InputError(
            f"method_parameter must {rule} for {name}, but is {parameter!r}; change it."
        )


def runnable_systems(device: torch.device) -> list[PaperMethodName]:
    """Return the systems that run on a device.

    Raises:
        EngineError: none does.
    """
    if not _runs_triton(device):
        raise EngineError(_needs_gpu("the systems of the papers need"))
    return [name for name in PAPER_METHOD_NAMES if SYSTEMS[name].runs_on(describe(device))]


def _require_gpu(name: str, system: System, device: torch.device) -> None:
    if not _runs_triton(device) or (device.type == "cpu" and system.in_gluon):
        raise EngineError(_needs_gpu(f"method {name} needs"))
    described = describe(device)
    if not system.runs_on(described):
        found = "none" if described.capability is None else "{}.{}".format(*described.capability)
        raise EngineError(
            f"method {name} needs compute capability 8.0, but {described.name} has {found}; choose one of "
            f"{', '.join(METHOD_NAMES)}."
        )


def _runs_triton(device: torch.device) -> bool:
    """Return whether a device runs plain Triton: a GPU, or a CPU in Triton's interpreter."""
    return device.type != "cpu" or unusable_because("portable", device) is None


def _needs_gpu(subject: str) -> str:
    return f"{subject} a GPU, but the device is cpu; choose a GPU, or a method that runs on the CPU: {', '.join(METHOD_NAMES)}."
