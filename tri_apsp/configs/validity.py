"""Which configurations can run on a device: one set of rules for the lookup, the tuner and the
launchers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

from tri_apsp.configs.types import (
    METHOD_NAMES,
    TILE_FIELDS,
    USED_FIELDS,
    Config,
    CpuTiles,
    GpuTiles,
)
from tri_apsp.device import Device
from tri_apsp.errors import InputError

__all__ = [
    "EXPONENTS_PART",
    "closure_bytes",
    "exponents_bytes",
    "invalid_because",
    "is_valid",
    "max_registers",
    "product_registers",
    "require_valid",
]

C = TypeVar("C", bound=Config)

# Bytes of a value. The dtype is not known here, so shared memory is checked for the narrowest value
# that kernels compute with.
_WORD = 4
# Registers of a multiprocessor of an NVIDIA GPU.
_REGISTER_FILE = 1 << 16

_FIELDS = [field.name for field in dataclasses.fields(Config)]
_COUNTS = [name for name in _FIELDS if name not in ("engine", "method", *TILE_FIELDS)]


def invalid_because(config: Config, device: Device) -> str | None:
    """Return why `config` cannot run on `device` as one sentence, or None if it can."""
    for name in _COUNTS:
        value = getattr(config, name)
        if value is not None and (not isinstance(value, int) or value < 1):
            return f"{name} must be a whole number from 1, but is {value!r}; give such a number or leave it out."
    for name in TILE_FIELDS:
        tiles = getattr(config, name)
        kinds = (GpuTiles,) if name == "exponents" else (CpuTiles, GpuTiles)
        if tiles is not None and not isinstance(tiles, kinds):
            allowed = " or ".join(kind.__name__ for kind in kinds)
            return f"{name} must be {allowed}, but is {tiles!r}; give such tiles or leave it out."
        for field in dataclasses.fields(tiles) if tiles is not None else ():
            value = getattr(tiles, field.name)
            if not isinstance(value, int) or value < 1:
                return f"{name}.{field.name} must be a whole number from 1, but is {value!r}; give such a number."
    if config.method is not None and config.method not in METHOD_NAMES:
        return (
            f"method must be one of {', '.join(METHOD_NAMES)}, but is {config.method!r}; "
            "choose one of these."
        )
    if config.engine is None:
        return None
    for name in _FIELDS:
        value = getattr(config, name)
        if value is not None and name not in USED_FIELDS[config.engine]:
            return (
                f"{name} must be left out for the {config.engine} engine, which does not use it, "
                f"but is {value!r}; leave it out."
            )
    if config.engine == "cpu":
        return _invalid_cpu(config)
    return _invalid_gpu(config) or (
        _invalid_nvidia(config, device) if config.engine == "nvidia" else _invalid_portable(config)
    )


def _invalid_cpu(config: Config) -> str | None:
    tiles = config.product
    if tiles is not None and not isinstance(tiles, CpuTiles):
        return (
            f"the cpu engine takes CpuTiles, but product is {type(tiles).__name__}; give CpuTiles."
        )
    return None


_POWERS = ("block_m", "block_n", "block_k", "num_warps", "thread_n")


def _invalid_gpu(config: Config) -> str | None:
    powers = {
        name: getattr(config, name)
        for name in ("closure_tile", "closure_warps", "panel", "panel_warps")
    }
    for name in TILE_FIELDS:
        tiles = getattr(config, name)
        if tiles is not None and not isinstance(tiles, GpuTiles):
            return f"the {config.engine} engine takes GpuTiles, but {name} is {type(tiles).__name__}; give GpuTiles."
        if tiles is not None and name != "exponents":
            powers |= {f"{name}.{edge}": getattr(tiles, edge) for edge in _POWERS}
    for name, value in powers.items():
        if value is not None and value & (value - 1):
            return f"{name} must be a power of two, but is {value}; choose one."
        if value is not None and "warps" in name and value > 32:
            return f"{name} must be at most 32, but is {value}; a program has no more threads."
    return None


def _invalid_portable(config: Config) -> str | None:
    if config.block_size is not None and config.block_size > 256:
        return f"block_size must be at most 256, which one program closes, but is {config.block_size}; lower it."
    return None


def _invalid_nvidia(config: Config, device: Device) -> str | None:
    for name in ("product", "small_product"):
        tiles = getattr(config, name)
        reason = _invalid_nvidia_tiles(name, tiles, device) if tiles is not None else None
        if reason is not None:
            return reason
    if (
        config.exponents is not None
        and (reason := _invalid_exponents(config.exponents, device)) is not None
    ):
        return reason
    tile, warps = config.closure_tile, config.closure_warps
    if tile is not None and not 32 <= tile <= 128:
        return f"closure_tile must lie in 32..128, but is {tile}; choose 32, 64 or 128."
    if tile is not None and closure_bytes(tile, _WORD) > device.shared_memory:
        return _too_much_shared_memory(f"closure_tile {tile}", closure_bytes(tile, _WORD), device)
    if warps is not None and warps > 16:
        return f"closure_warps must be at most 16, but is {warps}; lower it."
    for name in ("closure_programs", "batch_programs"):
        count = getattr(config, name)
        if warps is not None and count is not None and warps * count > 32:
            return f"closure_warps * {name} must be at most 32, but is {warps * count}; lower one of them."
    return None


def _invalid_nvidia_tiles(name: str, tiles: GpuTiles, device: Device) -> str | None:
    # A warp covers 4 rows and 32 columns of C, in words; a tile of fewer would only be computed
    # several times. Two values of int16 share a word, but the dtype is not known here.
    warps_n = tiles.warps_n(tiles.block_n)
    # In a tile narrower than 8 * thread_n a thread owns fewer columns, as with a smaller thread_n.
    # So a thread_n above the default is refused there.
    narrowest = 32 if tiles.thread_n <= 8 else 8 * tiles.thread_n
    least = {
        "thread_n": 4,
        "block_m": 4 * tiles.num_warps // warps_n,
        "block_n": narrowest,
        "block_k": 4,
        "num_stages": 2,
    }
    for field, value in least.items():
        if getattr(tiles, field) < value:
            given = getattr(tiles, field)
            return f"{name}.{field} must be at least {value} for {tiles.num_warps} warps, but is {given}; raise it."
    values = tiles.block_m * tiles.block_n // (32 * tiles.num_warps)
    if values > 256:
        return f"a thread of the nvidia engine must hold at most 256 values of C, but has {values}; take more warps."
    needed = tiles.num_stages * (tiles.block_m + tiles.block_n) * tiles.block_k * _WORD
    return _too_much_shared_memory(name, needed, device) if needed > device.shared_memory else None


_EXPONENTS: dict[str, Sequence[int]] = {
    "block_m": (128,),
    "block_n": (128, 256),
    "block_k": (128, 512),
    "num_warps": (8,),
    "num_stages": range(3, 17),
}
# Without wgmma, more columns spill registers, and longer slices do not fit shared memory.
_PLAIN_EXPONENTS = _EXPONENTS | {"block_n": (128,), "block_k": (128,)}


def _invalid_exponents(tiles: GpuTiles, device: Device) -> str | None:
    rules = _EXPONENTS if device.has_wgmma else _PLAIN_EXPONENTS
    for field, allowed in rules.items():
        value = getattr(tiles, field)
        if value not in allowed:
            if isinstance(allowed, range):
                rule = f"lie in {allowed[0]}..{allowed[-1]}"
            else:
                rule = f"be {' or '.join(map(str, allowed))}"
            return f"exponents.{field} must {rule}, but is {value}; choose such a number."
    needed = exponents_bytes(tiles, device)
    return (
        _too_much_shared_memory("exponents", needed, device, itemsize=2)
        if needed > device.shared_memory
        else None
    )


EXPONENTS_PART = 32
"""Values of k that a product by exponents on compute capability 9.x copies to shared memory at a
time.
"""


def exponents_bytes(tiles: GpuTiles, device: Device) -> int:
    """Return the bytes of shared memory of a program of a product by exponents: buffers of parts,
    or one slice.
    """
    depth = tiles.num_stages * EXPONENTS_PART if device.has_wgmma else tiles.block_k
    return 2 * (tiles.block_m + tiles.block_n) * depth


def _too_much_shared_memory(what: str, needed: int, device: Device, itemsize: int = _WORD) -> str:
    return (
        f"{what} must fit the {device.shared_memory} bytes of shared memory of a program on {device.name}, but needs {needed} "
        f"for {itemsize}-byte values; lower it."
    )


SMALL_GRAPHS = {2: 64, 4: 64, 8: 32}
"""The most vertices of graphs that the nvidia engine solves in registers, by bytes per value; no
configuration matters.
"""


def closure_bytes(tile: int, itemsize: int) -> int:
    """Return the bytes of shared memory of a program of the nvidia engine's closure: two tiles, 4
    rows of a strip, 4 unused.
    """
    return (2 * tile + 8) * tile * max(itemsize, _WORD)


def product_registers(capability: tuple[int, int] | None, warps: int) -> int | None:
    """Return the most registers of a thread of the product, so that a multiprocessor holds 12
    warps; None: no limit.

    Three warps are then there for each scheduler to choose from. From 10.0 on, FADD2 takes
    registers in pairs, and would spill. A program of 16 warps needs registers for these.
    """
    if capability is None or capability >= (10, 0):
        return None
    return min(168, max_registers(warps))


def max_registers(warps: int) -> int:
    """Return the most registers of a thread with which `warps` warps fit on a multiprocessor of an
    NVIDIA GPU.
    """
    allocated = 8  # at a time, to each thread
    return min(255, _REGISTER_FILE // (32 * warps) // allocated * allocated)


def is_valid(config: Config, device: Device) -> bool:
    """Return whether `config` can run on `device`."""
    return invalid_because(config, device) is None


def require_valid(config: C, device: Device) -> C:
    """Return `config`, or raise InputError with the reason why it cannot run."""
    reason = invalid_because(config, device)
    if reason is not None:
        raise InputError(reason)
    return config
