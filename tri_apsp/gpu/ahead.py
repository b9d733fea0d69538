"""Compiling kernels for a GPU that is not here: calls run on tensors of the device "meta", which
launch nothing.
"""

import itertools
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tri_apsp.device import Device, assume
from tri_apsp.errors import InputError
from tri_apsp.gpu.launcher import compiling_side_by_side
from tri_apsp.gpu.value_range import ASSUMED_LOWEST

META = torch.device("meta")
"""The device of tensors without memory."""


def _gpu(
    slug: str, capability: tuple[int, int], units: int, gigabytes: int, kilobytes: int
) -> Device:
    name = slug.upper().replace("-", " ")
    return Device("cuda", name, slug, units, gigabytes << 30, kilobytes << 10, capability)


GPUS = {
    "sm_{}{}".format(*gpu.capability or ()): gpu
    for gpu in (
        _gpu("nvidia-a100", (8, 0), 108, 80, 163),
        _gpu("nvidia-a10", (8, 6), 72, 24, 99),
        _gpu("nvidia-l40s", (8, 9), 142, 48, 99),
        _gpu("nvidia-h200", (9, 0), 132, 141, 227),
        _gpu("nvidia-b200", (10, 0), 148, 180, 227),
        _gpu("nvidia-rtx-5090", (12, 0), 170, 32, 99),
    )
}
"""By compute capability, the GPU whose facts decide which kernels are compiled ahead."""


@cache
def only_compile(facts: Device) -> None:
    """Make this process compile for a GPU with these `facts`, which are then those of every device;
    the architecture of an AMD GPU is known only to its driver.
    """
    assume(facts)
    if facts.capability is None:
        return
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    knobs.compilation.store_binary_only = True  # all that a launch needs
    major, minor = facts.capability
    target = GPUTarget("cuda", 10 * major + minor, 32)
    # The part of Triton's driver for NVIDIA GPUs that compilation uses.
    driver.set_active(
        SimpleNamespace(
            get_current_target=lambda: target,
            get_current_device=lambda: 0,
            get_current_stream=lambda device: 0,
        )
    )


def compile_without_values(call: Callable[[], object]) -> None:
    """Compile what a call launches side by side, whether or not a weight is negative, and whatever
    of 0 and 1 is read from tensors of the device "meta".

    Raises:
        InputError: the call raises one whatever is read.
    """
    assumed, errors = [*itertools.product((0, 1), (0, -1))], list[InputError]()
    with compiling_side_by_side():
        for value, lowest in assumed:
            token = ASSUMED_LOWEST.set(lowest)
            try:
                with _Reads(value):
                    call()
            except InputError as error:  # of a size, say, that counts as wrong by one of the values
                errors.append(error)
            finally:
                ASSUMED_LOWEST.reset(token)
    if len(errors) == len(assumed):
        raise errors[0]


class _Reads(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within it, the host reads `value` wherever it reads a tensor of the device "meta"."""

    def __init__(self, value: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._value = value

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is torch.ops.aten._local_scalar_dense.default and args[0].is_meta:
            return torch.full((), self._value, dtype=args[0].dtype).item()
        return function(*args, **(kwargs or {}))
