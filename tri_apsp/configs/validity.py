"""Which configurations can run on a device: one set of rules for the lookup, the tuner and the
launchers.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from tri_apsp.configs.types import (
    METHOD_NAMES,
    TILE_FIELDS,
    USED_FIELDS,
    Config,
    CpuTiles,
    GpuTiles,
)
from tri_apsp.device import Device

# Bytes of a value. The dtype is not known here, so shared memory is checked for the narrowest value
# that kernels compute with.
_WORD = 4
# Registers of a multiprocessor of an NVIDIA GPU.
_REGISTER_FILE = 1 << 16

_POWERS = ("block_m", "block_n", "block_k", "num_warps", "thread_n")


def invalid_because(config: Config, device: Device) -> str | None:
    """Return why `config`, which names its engine, cannot run on `device` as one sentence, or None
    if it can.
    """
    return next(_broken_rules(config, device), None)


def _broken_rules(config: Config, device: Device) -> Iterator[str]:
    """Yield each rule that a configuration breaks; a rule relies on those before it."""
    assert config.engine is not None
    kind = CpuTiles if config.engine == "cpu" else GpuTiles
    counts: dict[str, Any] = {}
    for name, value in config.given().items():
        if name not in USED_FIELDS[config.engine]:
            yield (
                f"{name} must be left out for the {config.engine} engine, which does not use it, "
                f"but is {value!r}; leave it out."
            )
        if name in TILE_FIELDS:
            if not isinstance(value, kind):
                yield (
                    f"{name} must be {kind.__name__} for the {config.engine} engine, but is "
                    f"{value!r}; give such tiles or leave it out."
                )
            counts |= {f"{name}.{field}": edge for field, edge in vars(value).items()}
        elif name not in ("engine", "method"):
            counts[name] = value
    for name, value in counts.items():
        if not isinstance(value, int) or value < 1:
            yield f"{name} must be a positive integer, but is {value!r}; give one or leave it out."
    if config.method is not None and config.method not in METHOD_NAMES:
        yield (
            f"method must be one of {', '.join(METHOD_NAMES)}, but is {config.method!r}; "
            "choose one of these."
        )
    if config.engine != "cpu":
        yield from _broken_rules_of_gpus(config, counts)
    if config.engine == "portable" and config.block_size is not None and config.block_size > 256:
        yield (
            "block_size must be at most 256, which one program closes, but is "
            f"{config.block_size}; lower it."
        )
    if config.engine == "nvidia":
        yield from _broken_rules_of_nvidia(config, device)


def _broken_rules_of_gpus(config: Config, counts: Mapping[str, int]) -> Iterator[str]:
    powers = {"closure_tile", "closure_warps", "panel", "panel_warps"}
    powers |= {f"{name}.{edge}" for name in ("product", "small_product") for edge in _POWERS}
    for name, value in counts.items():
        if name in powers and value & (value - 1):
            yield f"{name} must be a power of two, but is {value}; choose one."
        if name in powers and "warps" in name and value > 32:
            yield f"{name} must be at most 32, but is {value}; a program has no more threads."


def _broken_rules_of_nvidia(config: Config, device: Device) -> Iterator[str]:
    for name in ("product", "small_product"):
        tiles = getattr(config, name)
        if tiles is not None:
            yield from _broken_rules_of_products(name, tiles, device)
    if config.exponents is not None:
        yield from _broken_rules_of_exponents(config.exponents, device)
    for name, allowed in _SWEEPS.items():
        value = getattr(config, name)
        if value is not None and value not in allowed:
            yield f"{name} must be {_either(allowed)}, but is {value}; choose one of these."
    tile, warps = config.closure_tile, config.closure_warps
    if tile is not None:
        if not 32 <= tile <= 128:
            yield f"closure_tile must lie in 32..128, but is {tile}; choose 32, 64 or 128."
        yield from _too_large(f"closure_tile {tile}", closure_bytes(tile, _WORD), device)
    if warps is not None:
        if warps > 16:
            yield f"closure_warps must be at most 16, but is {warps}; lower it."
        for name in ("closure_programs", "batch_programs"):
            product = warps * (getattr(config, name) or 0)
            if product > 32:
                yield (
                    f"closure_warps * {name} must be at most 32, but is {product}; "
                    "lower one of them."
                )


def _broken_rules_of_products(name: str, tiles: GpuTiles, device: Device) -> Iterator[str]:
    # A warp covers 4 rows and 32 columns of C, in words; a tile of fewer would only be computed
    # several times. Two values of int16 share a word, but the dtype is not known here. In a tile
    # narrower than 8 * thread_n a thread owns fewer columns, as with a smaller thread_n. So a
    # thread_n above the default is refused there.
    least = {
        "thread_n": 4,
        "block_m": 4 * tiles.num_warps // tiles.warps_n(tiles.block_n),
        "block_n": 32 if tiles.thread_n <= 8 else 8 * tiles.thread_n,
        "block_k": 4,
        "num_stages": 2,
    }
    for field, value in least.items():
        given = getattr(tiles, field)
        if given < value:
            yield (
                f"{name}.{field} must be at least {value} for {tiles.num_warps} warps, but is "
                f"{given}; raise it."
            )
    values = tiles.block_m * tiles.block_n // (32 * tiles.num_warps)
    if values > 256:
        yield (
            f"a thread of the nvidia engine must hold at most 256 values of C, but has {values}; "
            "take more warps."
        )
    needed = tiles.num_stages * (tiles.block_m + tiles.block_n) * tiles.block_k * _WORD
    yield from _too_large(name, needed, device)


# The records of an iteration must divide the 128 of a chunk, which at most four warps copy.
_SWEEPS = {"sweep_lanes": (1, 2), "sweep_warps": (1, 2, 4), "sweep_unroll": (4, 8, 16)}


def _either(allowed: Sequence[int]) -> str:
    *others, last = map(str, allowed)
    return f"{', '.join(others)} or {last}"


_EXPONENTS: dict[str, Sequence[int]] = {
    "block_m": (128,),
    "block_n": (128, 256),
    "block_k": (128, 512),
    "num_warps": (8,),
    "num_stages": range(3, 17),
}


def _broken_rules_of_exponents(tiles: GpuTiles, device: Device) -> Iterator[str]:
    for field, allowed in _EXPONENTS.items():
        value = getattr(tiles, field)
        if value not in allowed:
            rule = f"be {' or '.join(map(str, allowed))}"
            if isinstance(allowed, range):
                rule = f"lie in {allowed[0]}..{allowed[-1]}"
            yield f"exponents.{field} must {rule}, but is {value}; choose such a number."
    if device.has_wgmma:  # other GPUs have no such products
        yield from _too_large("exponents", exponents_bytes(tiles), device, itemsize=2)


def _too_large(what: str, needed: int, device: Device, itemsize: int = _WORD) -> Iterator[str]:
    if needed > device.shared_memory:
        yield (
            f"{what} must fit the {device.shared_memory} bytes of shared memory of a program on "
            f"{device.name}, but needs {needed} for {itemsize}-byte values; lower it."
        )


EXPONENTS_PART = 32
"""Values of k that a product by exponents copies to shared memory at a time."""

EXPONENT_DTYPES = (torch.int16, torch.int32, torch.float32)
"""The dtypes that products by exponents take, on GPUs of compute capability 9.x."""


class Exponents(NamedTuple):
    """The numbers of products by exponents with slices of one length, as kernels.shared.exponents
    states them.

    Attributes:
        UNITS: u: a distance that is 1 greater has an exponent that is 2 u less, and a score that is
            u less.
        WINDOW: how far above the least of its slice a value may be.
        REACH: how far above r + c the least sum of a slice may be, so that T shows it.
        ZERO: Z: the value whose score is 0. The scores of two values 0, u Z each, and the greatest
            w, 127, are less than 2^15 in sum: so for u = 5 any Z up to 3264 would do.
    """

    UNITS: int
    WINDOW: int
    REACH: int
    ZERO: int = 2700


def exponents_of(slice_length: int) -> Exponents:
    """Return the numbers for slices of at most 512 values of k; kernels.shared.exponents derives
    WINDOW and REACH.
    """
    units = 4 if slice_length <= 128 else 5
    return Exponents(units, (190 - units) // (2 * units), (255 - 2 * units) // (2 * units))


def exponents_bytes(tiles: GpuTiles) -> int:
    """Return the bytes of shared memory of a program of a product by exponents: its buffers."""
    return 2 * (tiles.block_m + tiles.block_n) * tiles.num_stages * EXPONENTS_PART


SMALL_GRAPHS = {2: 64, 4: 64, 8: 32}
"""The maximum number of vertices of a graph that the nvidia engine solves in registers, by bytes
per value; the configuration has no effect there.
"""


def closure_bytes(tile: int, itemsize: int) -> int:
    """Return the bytes of shared memory of a program of the nvidia engine's closure: two tiles, 4
    rows of a strip, 4 unused.
    """
    return (2 * tile + 8) * tile * max(itemsize, _WORD)


def product_registers(capability: tuple[int, int] | None, warps: int) -> int | None:
    """Return the maximum number of registers of a thread of the product with which a multiprocessor
    holds 12 warps, three per scheduler, and a program of `warps` warps fits; None: no limit.

    From compute capability 10.0 on, FADD2 takes registers in pairs, so that a limit would spill.
    """
    if capability is None or capability >= (10, 0):
        return None
    return min(168, max_registers(warps))


def max_registers(warps: int) -> int:
    """Return the maximum number of registers of a thread with which `warps` warps fit on a
    multiprocessor of an NVIDIA GPU.
    """
    allocated = 8  # registers are allocated in multiples of this
    return min(255, _REGISTER_FILE // (32 * warps) // allocated * allocated)
