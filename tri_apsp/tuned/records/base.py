"""The record of a tunable kernel: its search space, the rules that the lookup and the tuner apply,
and those that the records of several engines share.
"""

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch

from tri_apsp.configs import TILE_FIELDS, CompleteConfig, GpuTiles
from tri_apsp.device import Device
from tri_apsp.semirings import DTYPES_BY_NAME

C = TypeVar("C", bound=CompleteConfig)

Choice = int | str
Values = dict[str, Choice]
"""A value for each parameter of a space, by the parameter's name."""

CALLS = ("product", "solve", "batch", "sweep")
"""The kinds of calls that look for tuned entries: a product, a solve of one graph, a solve of
several, and sweeps over an elimination tree.
"""


@dataclass(frozen=True)
class Parameter:
    """A field of Config, or of one of its tiles ("product.block_m"), and its choices in ascending
    order.

    Whole tiles may be a choice too, by the name that tiles_name gives them.
    """

    name: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Space:
    """All combinations of the choices of some parameters."""

    parameters: tuple[Parameter, ...]

    def config(self, values: Values, base: C) -> C:
        """Return `base` with `values` in it; fields of a tile that `values` does not set come from
        `base` too.
        """
        fields: dict[str, Any] = {}
        tiles: dict[str, dict[str, Choice]] = {}
        for name, value in values.items():
            field, dot, inner = name.partition(".")
            if dot:
                tiles.setdefault(field, {})[inner] = value
            elif field in TILE_FIELDS:
                fields[field] = _tiles_named(str(value))
            else:
                fields[field] = value
        for field, changed in tiles.items():
            fields[field] = dataclasses.replace(getattr(base, field), **changed)
        return dataclasses.replace(base, **fields)

    def values(self, config: CompleteConfig) -> Values:
        """Return the values that `config` has for the parameters: the inverse of `config`."""
        found: Values = {}
        for parameter in self.parameters:
            value: Any = config
            for part in parameter.name.split("."):
                value = getattr(value, part)
            found[parameter.name] = tiles_name(value) if isinstance(value, GpuTiles) else value
        return found


def make_space(**choices: tuple[Choice, ...]) -> Space:
    """Return the space of these parameters; `product__block_m` stands for "product.block_m"."""
    return Space(
        tuple(Parameter(name.replace("__", "."), values) for name, values in choices.items())
    )


def tiles_name(tiles: GpuTiles) -> str:
    """Return all fields of `tiles` in a few words, so that whole tiles can be one choice."""
    return (
        f"{tiles.block_m}x{tiles.block_n}x{tiles.block_k} group {tiles.group_m} "
        f"warps {tiles.num_warps} stages {tiles.num_stages} thread {tiles.thread_n}"
    )


def _tiles_named(name: str) -> GpuTiles:
    return GpuTiles(*map(int, re.findall(r"\d+", name)))


SOLVE_FIELDS = ("method", "block_size", "cutoff")

OTHER_REGISTERS = 24
"""Registers of a thread besides accumulators and operands: addresses, masks, counters; from
programs that did not spill.
"""

MIN_VALUES = 16
"""With fewer values of C per thread, loads take longer than sums: 4 x 4 values take 8 loads for 16
sums.
"""


def registers_per_value(dtype: torch.dtype) -> int:
    """Return the registers that hold a value: one for int16 too, although the nvidia engine's
    product packs two into one.
    """
    return 2 if dtype.itemsize == 8 else 1


def exceeds(value: Choice, choices: tuple[Choice, ...], n: int) -> bool:
    """Return whether a choice smaller than `value` covers all of `n` already."""
    return any(int(choice) >= n for choice in choices if int(choice) < int(value))


def solve_repeats(config: CompleteConfig, base: CompleteConfig, n: int, space: Space) -> bool:
    """Return whether a configuration of `space` solves n vertices as another of its configurations
    does.
    """
    if config.method == "kleene":
        # With cutoff >= n kleene is floyd_warshall; a block_size above the cutoff acts like
        # block_size = cutoff.
        return config.cutoff >= n or config.block_size > config.cutoff
    sizes = next(each.choices for each in space.parameters if each.name == "block_size")
    return config.cutoff != base.cutoff or exceeds(config.block_size, sizes, n)


@dataclass(frozen=True)
class TunableKernel(Generic[C]):
    """One kernel of an engine that is tuned separately, with all facts that the lookup, the hash
    and the tuner use.

    Attributes:
        engine: "cpu", "nvidia" or "portable".
        name: the name of the kernel, unique within the engine.
        fields: the fields of Config that it sets. If two kernels set the same field, the entry of
            the solve decides.
        sources: the files below tri_apsp/kernels whose code is measured; the kernel hash is that of
            their code.
        workload: the kind of workload that is measured, a key of
            tri_apsp.tune.workloads.WORKLOADS.
        calls: the kinds of calls that look for its entries, of CALLS.
        space: its parameters and their choices.
        quick_sizes: the sizes n of --effort quick.
        full_sizes: those of --effort full. The lookup takes entries within a factor of two, so
            steps of four suffice.
        dtypes: the names of the dtypes that it serves.
        from_n: the least n of a call that runs it.
        signed_dtypes: the dtypes for which weights without negative values run other instructions,
            or another algorithm, than weights of any sign; only for these is each sign tuned
            separately.
        fits: returns whether registers and shared memory of a device suffice for a configuration
            and a dtype. Rules that need no dtype are in tri_apsp.configs.validity.
        repeats: returns whether a configuration computes the same as another candidate, for a base,
            a dtype and n vertices.
        lookup_size: returns the n of the entry that a call for n vertices looks up.
        batch: returns the number of graphs of a task with n vertices.
        isolated: returns a configuration with which the engine runs this kernel at every size.
    """

    engine: str
    name: str
    fields: tuple[str, ...]
    sources: tuple[str, ...]
    workload: str
    calls: tuple[str, ...]
    space: Space
    quick_sizes: tuple[int, ...]
    full_sizes: tuple[int, ...]
    dtypes: tuple[str, ...] = tuple(DTYPES_BY_NAME)
    from_n: int = 1
    signed_dtypes: tuple[str, ...] = ()
    fits: Callable[[C, torch.dtype, Device], bool] = lambda config, dtype, device: True
    repeats: Callable[[C, C, torch.dtype, int], bool] = lambda config, base, dtype, n: False
    lookup_size: Callable[[int, C], int] = lambda n, config: n
    batch: Callable[[int], int] = lambda n: 1
    isolated: Callable[[C], C] = lambda config: config

    @property
    def is_solve(self) -> bool:
        """Whether it is a whole solve: its entry is looked up first, and may set the fields of its
        engine's other kernels.
        """
        return self.workload == "solve"
