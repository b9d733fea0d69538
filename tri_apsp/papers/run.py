"""Running a system of a paper by a dense plan."""

import torch

from tri_apsp.arguments import check_options, check_weights
from tri_apsp.configs import Config
from tri_apsp.dense.plan import plan_dense, plan_with
from tri_apsp.dense.run import run
from tri_apsp.device import describe
from tri_apsp.errors import EngineError, InputError
from tri_apsp.messages import shown
from tri_apsp.methods import require_used
from tri_apsp.papers.systems import SYSTEMS, System
from tri_apsp.plan import Options
from tri_apsp.result import Result
from tri_apsp.semirings import dtype_name


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
        weights: dense, as for tri_apsp.shortest_paths.
        system: a key of SYSTEMS.
        parameter: one of SYSTEMS[system].parameter.choices; None: its default.
        config: may name the engine, whose kernels verify the result; "recursive_tuned" also takes
            tiles.
        check: as for tri_apsp.shortest_paths.

    Returns:
        Result, as that of tri_apsp.shortest_paths; its method is the system.

    Raises:
        EngineError: the system does not run on the device.
        InputError: no such system or parameter, or weights of a dtype that it does not take.
        As tri_apsp.shortest_paths.
    """
    options = Options(check=check)
    check_options(options)
    batch = check_weights(weights, check=check)
    known = require_runnable(system, batch.weights.device, batch.weights.dtype, parameter)
    complete = plan_dense(batch, config=config, options=options).config
    method = known.method(parameter)
    require_used(system, method, config)
    return run(batch, plan_with(batch, system, complete, algorithm=method, options=options))


def require_runnable(
    name: str, device: torch.device, dtype: torch.dtype, parameter: int | None = None
) -> System:
    """Return a system that can solve weights of `dtype` on `device` with this parameter.

    Raises:
        EngineError: the system does not run on the device.
        InputError: there is no such system, it does not take weights of this dtype, or it has no
            such parameter.
    """
    if name not in SYSTEMS:
        raise InputError(
            f"`system` must be one of {', '.join(SYSTEMS)}, but is {shown(name)}; "
            "choose one of these."
        )
    system, described = SYSTEMS[name], describe(device)
    if not system.runs_on(described):
        needed = "an NVIDIA GPU of compute capability 8.0" if system.blocked else "a GPU"
        raise EngineError(
            f"system {name} needs {needed}, but the device is {described.name}; "
            "choose another device, or another system."
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
