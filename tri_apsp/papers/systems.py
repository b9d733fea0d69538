"""The table of the systems: what is known of each before its module, which needs Triton, is
imported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

import torch

from tri_apsp.device import Device
from tri_apsp.engines import unusable_because
from tri_apsp.methods import Method
from tri_apsp.semirings import DTYPES


@dataclass(frozen=True)
class SystemParameter:
    """What a system varies.

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
    """One system of a paper.

    Attributes:
        name: of the system.
        module: the file of this folder that holds its class, `class_name`.
        parameter: what it varies, if anything.
        blocked: whether it works on tiles in shared memory. It is then written in Gluon, for NVIDIA
            GPUs from compute capability 8.0; otherwise in plain Triton.
        dtypes: of the weights that it takes.
    """

    name: str
    module: str
    parameter: SystemParameter | None = None
    blocked: bool = True
    dtypes: tuple[torch.dtype, ...] = DTYPES

    @property
    def sources(self) -> tuple[str, ...]:
        """The files below tri_apsp with its kernels."""
        shared = ["blocked"] if self.blocked else []
        return tuple(f"papers/{name}.py" for name in (self.module, *shared))

    def runs_on(self, device: Device) -> bool:
        """Return whether a GPU can run it, or Triton's interpreter on a CPU."""
        if device.kind == "cpu":
            return not self.blocked and unusable_because("portable", torch.device("cpu")) is None
        return not self.blocked or (device.capability is not None and device.capability >= (8, 0))

    @property
    def class_name(self) -> str:
        """The name in CamelCase."""
        return self.name.title().replace("_", "")

    def method(self, parameter: int | None = None) -> Method:
        """Return the system as a method; None is the default of its parameter."""
        if parameter is None:
            parameter = 0 if self.parameter is None else self.parameter.default
        module = import_module(f"tri_apsp.papers.{self.module}")
        method: Method = getattr(module, self.class_name)(parameter)
        return method


_POWERS = (1, 2, 4, 8, 16, 32)
_BLOCKS = SystemParameter("edge of a block", (8, 16, 32), 16)
_CUTOFFS = SystemParameter("β", (16, 32, 64), 16)
_INT16 = (torch.int16,)

_ALL = (
    # Harish & Narayanan (2007), Katz & Kider (2008)
    System("harish_narayanan", "rank_one", blocked=False),
    System("katz_kider", "katz_kider"),
    # Buluç, Gilbert, Budak (2010)
    System("recursive_plain", "recursive", _CUTOFFS),
    System("recursive_tuned", "recursive", _CUTOFFS),
    # Lund & Smith (2010)
    System("optimised_blocked", "katz_kider"),
    System("staged_load", "staged_load", SystemParameter("m", _POWERS, 4)),
    # Catinello (2023)
    System("simple", "rank_one", blocked=False),
    System(
        "vectorised", "rank_one", SystemParameter("columns per thread", _POWERS, 4), blocked=False
    ),
    System(
        "pseudo_blocked",
        "rank_one",
        SystemParameter("edge of the square", _POWERS, 4),
        blocked=False,
    ),
    System("blocked_int16", "katz_kider", _BLOCKS, dtypes=_INT16),
    System("blocked_vectorised_int16", "katz_kider", _BLOCKS, dtypes=_INT16),
)

SYSTEMS: Mapping[str, System] = MappingProxyType({system.name: system for system in _ALL})
"""The systems by name, oldest first."""
