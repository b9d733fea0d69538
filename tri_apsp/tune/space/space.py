"""The values that each kernel of each engine may be launched with: one table a kernel, and which of them cannot run."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tri_apsp.configs import Config, GpuTiles, closure_bytes, is_valid, product_registers
from tri_apsp.device import Device
from tri_apsp.methods import auto
from tri_apsp.tune.space.task import Task

__all__ = [
    "SPACES",
    "Choice",
    "Parameter",
    "Space",
    "Values",
    "candidates",
    "needs_more",
    "resolved",
    "space_hash",
    "space_of",
    "tiles_name",
]

Choice = int | str
Values = dict[str, Choice]
"""A value for each parameter of a space, by its name."""


# Fields with which registers and shared memory grow that a program needs, and those that change nothing of either. Of others
# nothing is known: with more warps a thread has less to hold, and block_size also decides which kernels a solve runs.
_NEED_ROOM = {"block_m", "block_n", "block_k", "num_stages", "closure_tile", "panel"}
_NEED_NONE = {"group_m"}


@dataclass(frozen=True)
class Parameter:
    """A field of Config, or one of its tiles ("product.block_m"), and its choices, ascending.

    Whole tiles may be a choice too, by the name that tiles_name gives them.
    """

    name: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Space:
    """All combinations of the choices of some parameters."""

    parameters: tuple[Parameter, ...]

    @property
    def size(self) -> int:
        """How many combinations there are."""
        return math.prod(len(parameter.choices) for parameter in self.parameters)

    def config(self, values: Values, base: Config) -> Config:
        """Return `base` with `values` in it; the rest of a tile that has some of them comes from `base` too."""
        fields: dict[str, Any] = {}
        tiles: dict[str, dict[str, Choice]] = {}
        for name, value in values.items():
            field, dot, inner = name.partition(".")
            if dot:
                tiles.setdefault(field, {})[inner] = value
            elif field in _TILES:
                fields[field] = _tiles_named(str(value))
            else:
                fields[field] = value
        for field, changed in tiles.items():
            fields[field] = dataclasses.replace(getattr(base, field), **changed)
        return dataclasses.replace(base, **fields)

    def values(self, config: Config) -> Values:
        """Return the values that `config` has for the parameters; the inverse of `config`."""
        found: Values = {}
        for parameter in self.parameters:
            value: Any = config
            for part in parameter.name.split("."):
                value = getattr(value, part)
            found[parameter.name] = tiles_name(value) if isinstance(value, GpuTiles) else value
        return found


_TILES = ("product", "small_product")


def tiles_name(tiles: GpuTiles) -> str:
    """Return all fields of `tiles` in a few words."""
    return (
        f"{tiles.block_m}x{tiles.block_n}x{tiles.block_k} group {tiles.group_m} warps {tiles.num_warps} "
        f"stages {tiles.num_stages} thread {tiles.thread_n}"
    )


def _tiles_named(name: str) -> GpuTiles:
    """Return the tiles of that name."""
    return GpuTiles(*map(int, re.findall(r"\d+", name)))


# Tiles of products that do not fill a GPU, for the solve to choose from: the defaults, and what was best for products of 256,
# 512 and 1024 on an H200. In a solve such a product may be a stripe of a panel, long and narrow, which may want others.
_SMALL_PRODUCTS = tuple(
    tiles_name(tiles)
    for tiles in (
        GpuTiles(16, 32, 32, group_m=8, num_warps=2, num_stages=3, thread_n=4),
        GpuTiles(16, 64, 32, group_m=1, num_warps=2, num_stages=2, thread_n=4),
        GpuTiles(32, 64, 16, group_m=8, num_warps=4, num_stages=2, thread_n=4),
        GpuTiles(32, 64, 32, group_m=8, num_warps=2, num_stages=2, thread_n=4),
        GpuTiles(32, 64, 32, group_m=8, num_warps=4, num_stages=2, thread_n=4),
        GpuTiles(64, 64, 8, group_m=8, num_warps=4, num_stages=2),
        GpuTiles(64, 64, 16, group_m=8, num_warps=4, num_stages=3),
        GpuTiles(64, 64, 32, group_m=8, num_warps=4, num_stages=2, thread_n=4),
        GpuTiles(64, 128, 16, group_m=8, num_warps=4, num_stages=2),
    )
)


def _space(**choices: tuple[Choice, ...]) -> Space:
    return Space(tuple(Parameter(name.replace("__", "."), values) for name, values in choices.items()))


# squaring and iterative are no choices of `method`: the one's time depends on the graph, the other's on memory. Closures and
# panels have no num_stages: what a program works on stays in registers and shared memory, and nothing is pipelined; with 1 to 4
# Triton compiles the same panels.
SPACES: dict[tuple[str, str], Space] = {
    ("cpu", "product"): _space(
        product__block_m=(96, 192, 384, 768, 1024, 1536, 2048),
        product__block_n=(128, 256, 512, 1024, 2048),
        product__block_k=(64, 128, 256, 384, 512, 768, 1024),
    ),
    ("cpu", "solve"): _space(
        method=("floyd_warshall", "kleene"),
        block_size=(16, 32, 48, 64, 96, 128, 192, 256),
        cutoff=(32, 64, 128, 192, 256, 384, 512, 1024, 2048),
    ),
    ("nvidia", "product"): _space(
        product__block_m=(32, 64, 128, 256),
        product__block_n=(32, 64, 128, 256),
        product__block_k=(4, 8, 16, 32),
        product__group_m=(1, 8, 16),
        product__num_warps=(1, 2, 4, 8, 16),
        product__num_stages=(2, 3, 4),
        product__thread_n=(4, 8, 16),
    ),
    ("nvidia", "small_product"): _space(
        small_product__block_m=(16, 32, 64, 128),
        small_product__block_n=(32, 64, 128),
        small_product__block_k=(4, 8, 16, 32),
        small_product__group_m=(1, 8),
        small_product__num_warps=(1, 2, 4, 8),
        small_product__num_stages=(2, 3, 4),
        small_product__thread_n=(4, 8, 16),
    ),
    ("nvidia", "closure"): _space(
        closure_tile=(32, 64, 128),
        closure_warps=(1, 2, 4, 8, 16),
        closure_programs=(1, 2, 3, 4, 6, 8),
    ),
    ("nvidia", "batch"): _space(
        closure_tile=(32, 64, 128),
        closure_warps=(1, 2, 4, 8, 16),
        batch_programs=(1, 2, 3, 4, 6, 8),
    ),
    ("nvidia", "solve"): _space(
        method=("floyd_warshall", "kleene"),
        block_size=(128, 256, 512, 1024, 1920, 4096, 8192),
        cutoff=(128, 256, 512, 1024, 2048, 4096, 8192),
        small_product=_SMALL_PRODUCTS,
    ),
    ("portable", "product"): _space(
        product__block_m=(16, 32, 64, 128),
        product__block_n=(16, 32, 64, 128),
        product__block_k=(1, 2, 4, 8, 16),
        product__group_m=(1, 8, 16),
        product__num_warps=(1, 2, 4, 8),
        product__num_stages=(1, 2, 3),
    ),
    ("portable", "closure"): _space(
        block_size=(32, 64, 128),
        closure_warps=(1, 2, 4, 8, 16, 32),
    ),
    ("portable", "panels"): _space(
        panel=(8, 16, 32, 64, 128),
        panel_warps=(1, 2, 4, 8, 16),
    ),
    ("portable", "solve"): _space(
        method=("floyd_warshall", "kleene"),
        block_size=(32, 64, 128),
        cutoff=(128, 256, 512, 1024, 2048, 4096, 8192),
    ),
}


def space_of(task: Task) -> Space:
    """Return the space of a task."""
    return SPACES[task.engine, task.kernel]


def needs_more(values: Values, failed: Values) -> bool:
    """Return whether `values` cannot fit since `failed` did not: they need at least as much room in every respect."""
    for name, value in values.items():
        field, other = name.rpartition(".")[2], failed[name]
        if field in _NEED_ROOM:
            if int(value) < int(other):
                return False
        elif field not in _NEED_NONE and value != other:
            return False
    return True


def space_hash(space: Space) -> str:
    """Return a name that no other space has: a study with other choices is another study."""
    listed = [[parameter.name, parameter.choices] for parameter in space.parameters]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]


def resolved(config: Config, n: int) -> Config:
    """Return `config` with the method that `auto` would take for `n` vertices, so that it has a value for each parameter."""
    return dataclasses.replace(config, method=auto.choose(n, config).method)


def candidates(space: Space, task: Task, device: Device, base: Config) -> list[Values]:
    """Return the combinations that can run and repeat no other.

    Args:
        space: of the task.
        task: what is tuned.
        device: where.
        base: complete, the other fields; its own values are always among the candidates if they are choices.
    """
    base = resolved(base, task.n)
    own = space.values(base)
    fits, repeats = _FITS.get((task.engine, task.kernel)), _REPEATS.get((task.engine, task.kernel))
    found = []
    for choices in itertools.product(*(parameter.choices for parameter in space.parameters)):
        values = dict(zip((parameter.name for parameter in space.parameters), choices, strict=True))
        config = space.config(values, base)
        refused = (fits is not None and not fits(config, task, device)) or (repeats is not None and repeats(config, task, base))
        if is_valid(config, device) and (values == own or not refused):
            found.append(values)
    return found


# Registers of a multiprocessor.
_REGISTER_FILE = 1 << 16
# A thread's registers besides accumulators and operands: addresses, masks, counters; from the programs that did not spill.
_OTHER_REGISTERS = 24
# With fewer values of C a thread, loads take longer than sums: 4 x 4 values take 8 loads for 16 sums. A product that does not
# fill the GPU may still gain by it, for it has more warps then.
_LEAST_VALUES = {"product": 16, "small_product": 8}
# The largest accumulator of the portable kernels that the compiler still keeps in registers, with the temporaries it makes.
_PORTABLE_VALUES = 128


def _words(task: Task) -> int:
    """Return the registers of a value; int16 is computed in words, in the nvidia engine's product two values to one."""
    return 2 if task.torch_dtype.itemsize == 8 else 1


def _micro_tile(config: Config, task: Task) -> tuple[GpuTiles, int, int]:
    """Return the tiles of an nvidia product, and the rows and columns, in words, that a thread owns."""
    tiles = getattr(config, task.kernel)
    assert isinstance(tiles, GpuTiles)
    columns = tiles.block_n // 2 if task.dtype == "int16" else tiles.block_n
    warps_n = min(tiles.num_warps, max(1, columns // (8 * tiles.thread_n)))
    return tiles, tiles.block_m * warps_n // (4 * tiles.num_warps), columns // (8 * warps_n)


def _nvidia_product_fits(config: Config, task: Task, device: Device) -> bool:
    return _tiles_fit(config, task, device) and math.prod(_micro_tile(config, task)[1:]) >= _LEAST_VALUES[task.kernel]


def _nvidia_solve_fits(config: Config, task: Task, device: Device) -> bool:
    return _tiles_fit(config, dataclasses.replace(task, kernel="small_product"), device)


def _tiles_fit(config: Config, task: Task, device: Device) -> bool:
    """Return whether registers and shared memory suffice for the tiles of an nvidia product."""
    tiles, rows, columns = _micro_tile(config, task)
    registers = (rows * columns + 2 * (rows + columns)) * _words(task) + _OTHER_REGISTERS  # two steps of k at a time
    most = product_registers(device.capability, tiles.num_warps) or min(255, _REGISTER_FILE // (32 * tiles.num_warps))
    bytes_a, bytes_b = (4, 2) if task.dtype == "int16" else (task.torch_dtype.itemsize,) * 2
    shared = tiles.num_stages * tiles.block_k * (tiles.block_m * bytes_a + tiles.block_n * bytes_b)
    return registers <= most and shared <= device.shared_memory


def _nvidia_product_repeats(config: Config, task: Task, base: Config) -> bool:
    tiles, _, columns = _micro_tile(config, task)
    # The threads of a tile too narrow for thread_n, or with too few warps, own what another choice of it gives them; and
    # packed int16 passes through registers, one slice ahead, however many buffers there are.
    return columns != tiles.thread_n or (task.dtype == "int16" and tiles.num_stages > 2)


def _nvidia_closure_fits(config: Config, task: Task, device: Device) -> bool:
    tile, warps = config.closure_tile, config.closure_warps
    programs = config.batch_programs if task.kernel == "batch" else config.closure_programs
    assert tile is not None
    assert warps is not None
    assert programs is not None
    most = min(255, _REGISTER_FILE // (32 * warps * programs))
    fits_together = programs * closure_bytes(tile, task.torch_dtype.itemsize) <= device.shared_memory
    return fits_together and tile * tile // (32 * warps) * _words(task) + _OTHER_REGISTERS <= most


def _nvidia_closure_repeats(config: Config, task: Task, base: Config) -> bool:
    tile, warps = config.closure_tile, config.closure_warps
    assert tile is not None
    assert warps is not None
    # Where the rows of all warps are more than the tile's, some compute the same again.
    return 32 // min(16, tile // 4) * warps > tile or _past(tile, (32, 64, 128), task.n)


def _portable_product_fits(config: Config, task: Task, device: Device) -> bool:
    tiles = config.product
    assert isinstance(tiles, GpuTiles)
    threads = 32 * tiles.num_warps
    values = tiles.block_m * tiles.block_n // threads
    operands = tiles.block_m * tiles.block_k // threads
    return values >= _LEAST_VALUES[task.kernel] and (values + operands) * _words(task) <= _PORTABLE_VALUES + _OTHER_REGISTERS


def _portable_closure_fits(config: Config, task: Task, device: Device) -> bool:
    assert config.block_size is not None
    assert config.closure_warps is not None
    return config.block_size**2 // (32 * config.closure_warps) * _words(task) <= _PORTABLE_VALUES


def _portable_panels_fit(config: Config, task: Task, device: Device) -> bool:
    assert config.block_size is not None
    assert config.panel is not None
    assert config.panel_warps is not None
    values = config.block_size * config.panel // (32 * config.panel_warps)
    return values >= 1 and values * _words(task) <= _PORTABLE_VALUES


def _cpu_product_repeats(config: Config, task: Task, base: Config) -> bool:
    parameters, values = SPACES["cpu", "product"].parameters, SPACES["cpu", "product"].values(config)
    return any(_past(values[parameter.name], parameter.choices, task.n) for parameter in parameters)


def _solve_repeats(config: Config, task: Task, base: Config) -> bool:
    assert config.block_size is not None
    assert config.cutoff is not None
    if config.method == "kleene":  # which past its cutoff is floyd_warshall, and under it solves with smaller blocks
        return config.cutoff >= task.n or config.block_size > config.cutoff
    sizes = next(p.choices for p in SPACES[task.engine, task.kernel].parameters if p.name == "block_size")
    return config.cutoff != base.cutoff or _past(config.block_size, sizes, task.n)


def _nvidia_solve_repeats(config: Config, task: Task, base: Config) -> bool:
    assert config.block_size is not None
    one_closure = config.method == "floyd_warshall" and config.block_size >= task.n
    return _solve_repeats(config, task, base) or (one_closure and config.small_product != base.small_product)


def _past(value: Choice, choices: tuple[Choice, ...], n: int) -> bool:
    """Return whether a smaller choice covers all of `n` already."""
    return any(int(choice) >= n for choice in choices if int(choice) < int(value))


_FITS: dict[tuple[str, str], Callable[[Config, Task, Device], bool]] = {
    ("nvidia", "product"): _nvidia_product_fits,
    ("nvidia", "small_product"): _nvidia_product_fits,
    ("nvidia", "closure"): _nvidia_closure_fits,
    ("nvidia", "batch"): _nvidia_closure_fits,
    ("nvidia", "solve"): _nvidia_solve_fits,
    ("portable", "product"): _portable_product_fits,
    ("portable", "closure"): _portable_closure_fits,
    ("portable", "panels"): _portable_panels_fit,
}
_REPEATS: dict[tuple[str, str], Callable[[Config, Task, Config], bool]] = {
    ("cpu", "product"): _cpu_product_repeats,
    ("cpu", "solve"): _solve_repeats,
    ("nvidia", "product"): _nvidia_product_repeats,
    ("nvidia", "small_product"): _nvidia_product_repeats,
    ("nvidia", "closure"): _nvidia_closure_repeats,
    ("nvidia", "batch"): _nvidia_closure_repeats,
    ("nvidia", "solve"): _nvidia_solve_repeats,
    ("portable", "solve"): _solve_repeats,
}
