"""The table of the systems, whose modules are imported on first use because they need Triton; and
solving by one of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

import torch

from tri_apsp.arguments import check_options, check_weights
from tri_apsp.configs import Config
from tri_apsp.dense.plan import plan_dense, plan_with
from tri_apsp.dense.run import run
from tri_apsp.device import Device, describe
from tri_apsp.engines import unusable_because
from tri_apsp.errors import EngineError, InputError
from tri_apsp.messages import shown
from tri_apsp.methods import Method, require_used
from tri_apsp.plan import Options
from tri_apsp.result import Result
from tri_apsp.semirings import DTYPES, dtype_name


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

    Examples:
        >>> import torch
        >>> from tri_apsp import papers
        >>> system = papers.SYSTEMS["staged_load"]
        >>> system.parameter
        SystemParameter(name='m', choices=(1, 2, 4, 8, 16, 32), default=4)
        >>> [name for name, each in papers.SYSTEMS.items() if each.dtypes == (torch.int16,)]
        ['blocked_int16', 'blocked_vectorised_int16']
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


def solve(
    weights: torch.Tensor,
    system: str,
    *,
    parameter: int | None = None,
    config: Config | None = None,
    check: bool = True,
) -> Result:
    """Solve weights by a system of a paper, on a GPU.

    Args:
        weights: dense, (n, n) or (batch, n, n) on a GPU, as for `tri_apsp.shortest_paths`.
        system: a key of SYSTEMS.
        parameter: one of SYSTEMS[system].parameter.choices; None: its default.
        config: may name the engine, whose kernels verify the result; "recursive_tuned" also takes
            tiles.
        check: as for `tri_apsp.shortest_paths`.

    Returns:
        As that of `tri_apsp.shortest_paths`; its method is the system.

    Raises:
        EngineError: the system does not run on the device.
        InputError: no such system or parameter, weights of a dtype that it does not take, or
            weights that tri_apsp.shortest_paths refuses.
        NegativeCycleError: there is a cycle of negative weight.
        DistanceRangeError: a distance does not fit the dtype.
        TooLargeError: the result does not fit the memory of the device.

    Cost:
        For each graph n^3 min-plus operations, in as many launches and with as much memory traffic
        as the system of the paper needs.

    Source:
        The paper of each system: see SYSTEMS.

    Examples:
        >>> from tri_apsp import papers
        >>> from tri_apsp.graphs import complete
        >>> weights = complete(1024).weights.cuda()  # doctest: +SKIP
        >>> result = papers.solve(weights, "staged_load", parameter=4)  # doctest: +SKIP
        >>> result.method  # doctest: +SKIP
        'staged_load'
    """
    options = Options(check=check)
    check_options(options)
    batch = check_weights(weights, check=check)
    known = require_runnable(system, batch.weights.device, batch.weights.dtype, parameter)
    complete = plan_dense(batch, config=config, options=options).config
    method = known.method(parameter)
    require_used(system, method, config)
    return run(batch, plan_with(batch, system, complete, implementation=method, options=options))


def require_runnable(
    name: str, device: torch.device, dtype: torch.dtype, parameter: int | None = None
) -> System:
    """Return a system that can solve weights of `dtype` on `device` with this parameter.

    Args:
        name: a key of SYSTEMS.
        device: of the weights.
        dtype: of the weights.
        parameter: one of its choices; None: its default.

    Raises:
        EngineError: the system does not run on the device.
        InputError: there is no such system, it does not take weights of this dtype, or it has no
            such parameter.

    Examples:
        >>> import torch
        >>> from tri_apsp import EngineError, papers
        >>> try:
        ...     papers.require_runnable("staged_load", torch.device("cpu"), torch.float32)
        ... except EngineError as error:
        ...     print(str(error).partition(",")[0])
        system staged_load needs an NVIDIA GPU of compute capability 8.0 or later
    """
    if name not in SYSTEMS:
        raise InputError(
            f"`system` must be one of {', '.join(SYSTEMS)}, but is {shown(name)}; "
            "choose one of these."
        )
    system, described = SYSTEMS[name], describe(device)
    if not system.runs_on(described):
        needed = "an NVIDIA GPU of compute capability 8.0 or later" if system.blocked else "a GPU"
        raise EngineError(
            f"system {name} needs {needed}, but the device is {described.name}; give weights on "
            "such a GPU."
        )
    if dtype not in system.dtypes:
        taken = ", ".join(map(dtype_name, system.dtypes))
        raise InputError(
            f"system {name} takes weights of {taken}, but these are {dtype_name(dtype)}; "
            "convert them."
        )
    choices = () if system.parameter is None else system.parameter.choices
    if parameter is not None and parameter not in choices:
        rule = f"be one of {', '.join(map(str, choices))}" if choices else "be left out"
        raise InputError(
            f"`parameter` must {rule} for {name}, but is {shown(parameter)}; change it."
        )
    return system
