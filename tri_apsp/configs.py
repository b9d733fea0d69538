"""Tile sizes and cut-offs as frozen dataclasses: what a kernel can be launched with, and the defaults with their reason.

Every field of a Config that is None is filled in by tri_apsp.tuned: from a tuned file, else from the defaults here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tri_apsp.device import Device
from tri_apsp.errors import InputError

__all__ = [
    "METHOD_NAMES",
    "Config",
    "CpuTiles",
    "GpuTiles",
    "closure_bytes",
    "default_config",
    "from_fields",
    "invalid_because",
    "is_valid",
    "require_valid",
    "to_fields",
]

METHOD_NAMES = ("floyd_warshall", "kleene", "squaring", "iterative")
"""What Config.method may say: the keys of tri_apsp.methods.METHODS, which a configuration is checked without."""


# A configuration is checked before a dtype is known: at least these bytes a value.
_WORD = 4


@dataclass(frozen=True)
class CpuTiles:
    """Product blocks of the cpu engine: a task computes [block_m, block_n] of C, packing block_k of k at a time."""

    block_m: int
    block_n: int
    block_k: int


@dataclass(frozen=True)
class GpuTiles:
    """Product tile of a Triton program: [block_m, block_n] of C, k unrolled by block_k.

    Programs are numbered so that group_m rows of tiles share their columns of B in the L2 cache.
    A thread owns thread_n columns of C, in words of 4 bytes or more (nvidia only): with the tile and the warps this fixes its
    micro-tile, as num_warps or block_n / (8 * thread_n) warps, whichever is less, stand side by side. In a tile narrower than
    8 * thread_n it owns fewer.
    """

    block_m: int
    block_n: int
    block_k: int = 1
    group_m: int = 8
    num_warps: int = 4
    num_stages: int = 1
    thread_n: int = 8


@dataclass(frozen=True)
class Config:
    """How to solve: which engine, its tiles, and where the methods stop dividing.

    Attributes:
        engine: "cpu", "nvidia" or "portable"; None chooses by device and dtype.
        method: one of METHOD_NAMES, which the method "auto" takes; None leaves it to the rules of auto.
        block_size: edge of a diagonal block of "floyd_warshall", which is the largest block one closure launch solves.
        cutoff: β, the size at which "kleene" stops its recursion and calls "floyd_warshall".
        product: tiles of the product kernel.
        small_product: tiles of a product too small for `product` to keep every multiprocessor busy (nvidia).
        closure_tile: edge of a tile of the closure, which is itself blocked (nvidia).
        closure_warps: warps of a program of the closure (GPU).
        closure_programs: most programs of the closure on one multiprocessor where several share a graph (nvidia).
        batch_programs: programs of the closure on one multiprocessor where each has a graph of its own (nvidia).
        panel: columns (rows) of a strip of the row (column) panel that one program owns (GPU).
        panel_warps: warps of such a program (GPU).
        source: where the values came from: "default" or the tuned files, after "given" if a caller set some of them.
    """

    engine: str | None = None
    method: str | None = None
    block_size: int | None = None
    cutoff: int | None = None
    product: CpuTiles | GpuTiles | None = None
    small_product: GpuTiles | None = None
    closure_tile: int | None = None
    closure_warps: int | None = None
    closure_programs: int | None = None
    batch_programs: int | None = None
    panel: int | None = None
    panel_warps: int | None = None
    source: str = "default"

    def over(self, base: Config) -> Config:
        """Return `base` with every field that is set here; the source then says "given" first, but for the engine alone."""
        given = {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}
        source = base.source
        if given.keys() - {"engine"} and not source.startswith("given"):
            source = "given" if source == "default" else f"given, {source}"
        return dataclasses.replace(base, **given, source=source)


_FIELDS = tuple(field.name for field in dataclasses.fields(Config) if field.name != "source")


def to_fields(config: Config) -> dict[str, Any]:
    """Return the fields that are set, without engine and source, tiles as dictionaries: what a tuned file holds."""
    fields = {name: value for name in _FIELDS if name != "engine" and (value := getattr(config, name)) is not None}
    return {
        name: dataclasses.asdict(value) if isinstance(value, (CpuTiles, GpuTiles)) else value for name, value in fields.items()
    }


def from_fields(engine: str, fields: Mapping[str, Any]) -> Config:
    """Return the configuration of `engine` that to_fields made `fields` of; the source is "given".

    Raises:
        InputError: a field that a configuration, or the tiles of the engine, do not have, or tiles that lack one. Values
            are left to invalid_because.
    """
    tiles = CpuTiles if engine == "cpu" else GpuTiles
    values = dict(fields)
    for name in values:
        if name not in _FIELDS or name == "engine":
            known = ", ".join(field for field in _FIELDS if field != "engine")
            raise InputError(f"a configuration must have fields among {known}, but has {name!r}; leave it out.")
    for name in ("product", "small_product"):
        if values.get(name) is not None:
            values[name] = _tiles(tiles, name, values[name])
    return Config(engine=engine, **values, source="given")


def _tiles(tiles: type[CpuTiles] | type[GpuTiles], name: str, fields: object) -> CpuTiles | GpuTiles:
    known = dataclasses.fields(tiles)
    needed = {field.name for field in known if field.default is dataclasses.MISSING}
    if not isinstance(fields, Mapping) or not needed <= fields.keys() <= {field.name for field in known}:
        names = ", ".join(field.name for field in known)
        raise InputError(f"{name} must have the fields of {tiles.__name__}, {names}, but is {fields!r}; give these.")
    return tiles(**fields)


def default_config(engine: str, dtype: torch.dtype) -> Config:
    """Return the configuration of an engine for weights of `dtype` where nothing was tuned."""
    if engine == "cpu":
        return _cpu_default(dtype)
    return _portable_default(dtype) if engine == "portable" else _nvidia_default(dtype)


def _cpu_default(dtype: torch.dtype) -> Config:
    # Of ten task shapes at n = 2048 the best: a task packs 512 columns of B once for 1024 rows of C. A block closes at a third
    # of the product's rate, but calls nothing else: on two cores of an AMD EPYC 64 graphs of 128 take 8.3 ms by one block each
    # and 14.2 by blocks of 64, 16 graphs of 256 13.8 by blocks of 128 and 16.9, one graph as long within 10%; 16 graphs of
    # int16 7.0 by one block and 14.0. β = 256 leaves the recursion where a product no longer fills two cores.
    return Config(engine="cpu", block_size=256 if dtype.itemsize == 2 else 128, cutoff=256, product=CpuTiles(1024, 512, 512))


def _portable_default(dtype: torch.dtype) -> Config:
    # Best of 20 to 40 tiles on an H200 at n = 4096 (T/s): float32 9.8, int32 10.1, int16 10.4, float64 4.2, int64 2.9.
    # Tiles this small leave room for several programs on a multiprocessor, which hide each other's barriers.
    tiles = {2: GpuTiles(64, 64, 8, num_warps=2), 4: GpuTiles(64, 64, 4, num_warps=4), 8: GpuTiles(32, 32, 8, num_warps=2)}
    # A closure of 64 takes 50 us, of 128 already 230, and the chain of n / block_size of them cannot run side by side.
    return Config(
        engine="portable",
        block_size=64,
        cutoff=2048,
        product=tiles[dtype.itemsize],
        closure_warps=8 if dtype.itemsize == 8 else 4,
        panel=32,
        panel_warps=4,
    )


def _nvidia_default(dtype: torch.dtype) -> Config:
    # Best on an H200 of 9 to 2700 tiles for large products. Small ones are best, or within 5% of it, of hundreds at n = 512 in
    # float32, int32 and float64: 32 x 64 takes 16 us where 64 x 64 takes 26 in int32. So it is in int16, in 18 instead of 33 us
    # by 64 x 128, but what solves are made of is larger: they take 0.66 ms at n = 2048 by 64 x 128, else 0.67 and more. Large
    # products of int16, and solves, take 99% of the time by 64 x 256 that they take by 128 x 128.
    small = GpuTiles(32, 64, 32, num_warps=4, num_stages=2, thread_n=4)
    tiles, small = {
        torch.float32: (GpuTiles(64, 128, 16, num_warps=4, num_stages=3), small),
        torch.int32: (GpuTiles(64, 128, 16, num_warps=4, num_stages=3), small),
        torch.int16: (GpuTiles(64, 256, 16, num_warps=4, num_stages=2), GpuTiles(64, 128, 16, num_warps=4, num_stages=2)),
        torch.float64: (
            GpuTiles(32, 64, 16, num_warps=2, num_stages=2),
            GpuTiles(32, 64, 16, num_warps=4, num_stages=2, thread_n=4),
        ),
        torch.int64: (GpuTiles(64, 64, 8, num_warps=4, num_stages=2), GpuTiles(64, 64, 8, num_warps=4, num_stages=2)),
    }[dtype]
    wide = dtype.itemsize == 8
    # Up to block_size one closure is faster than the recursion, or as fast, and does not wait for the host in between: in
    # float32, any sign, int32 and int16 it takes 0.73, 0.67, 0.73 and 0.69 of the time at n = 1280, 1.01, 0.97, 0.97 and 0.94
    # at 1920, 1.07, 1.02, 1.06 and 0.98 at 2048. Products of 64 bits outrun it earlier: 4.2 and 2.9 ms at n = 2048 in float64.
    # β = 1024 is the fastest from n = 2048 on, by 3% at 4096 in float32, by less than 1% from 8192 on.
    return Config(
        engine="nvidia",
        block_size=1024 if wide else 1920,
        cutoff=1024,
        product=tiles,
        small_product=small,
        closure_tile=64,
        closure_warps=8 if wide else 4,
        closure_programs=1 if wide else 3,
        batch_programs=2 if wide else 3,
    )


def invalid_because(config: Config, device: Device) -> str | None:
    """Return why `config` cannot run on `device` as one sentence, or None if it can."""
    for name in (
        "block_size",
        "cutoff",
        "closure_tile",
        "closure_warps",
        "closure_programs",
        "batch_programs",
        "panel",
        "panel_warps",
    ):
        value = getattr(config, name)
        if value is not None and (not isinstance(value, int) or value < 1):
            return f"{name} must be a whole number from 1, but is {value!r}; give such a number or leave it out."
    for name in ("product", "small_product"):
        tiles = getattr(config, name)
        for field in dataclasses.fields(tiles) if tiles is not None else ():
            value = getattr(tiles, field.name)
            if not isinstance(value, int) or value < 1:
                return f"{name}.{field.name} must be a whole number from 1, but is {value!r}; give such a number."
    if config.method is not None and config.method not in METHOD_NAMES:
        return f"method must be one of {', '.join(METHOD_NAMES)}, but is {config.method!r}; choose one of these."
    if config.engine == "cpu":
        return _invalid_cpu(config)
    if config.engine is not None:
        return _invalid_gpu(config) or (
            _invalid_nvidia(config, device) if config.engine == "nvidia" else _invalid_portable(config)
        )
    return None


def _invalid_cpu(config: Config) -> str | None:
    tiles = config.product
    if tiles is not None and not isinstance(tiles, CpuTiles):
        return f"the cpu engine takes CpuTiles, but product is {type(tiles).__name__}; give CpuTiles."
    return None


_POWERS = ("block_m", "block_n", "block_k", "num_warps", "thread_n")


def _invalid_gpu(config: Config) -> str | None:
    powers = {name: getattr(config, name) for name in ("closure_tile", "closure_warps", "panel", "panel_warps")}
    for name in ("product", "small_product"):
        tiles = getattr(config, name)
        if tiles is not None and not isinstance(tiles, GpuTiles):
            return f"the {config.engine} engine takes GpuTiles, but {name} is {type(tiles).__name__}; give GpuTiles."
        if tiles is not None:
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
    # A warp covers 4 rows and 32 columns of C, in words; a tile of fewer would only be computed several times. Two values
    # of int16 share a word, but the dtype is not known here.
    warps_n = min(tiles.num_warps, max(1, tiles.block_n // (8 * tiles.thread_n)))
    # A tile narrower than its thread_n would be that of a smaller one again; only the default may be written for all tiles.
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


def _too_much_shared_memory(what: str, needed: int, device: Device) -> str:
    return (
        f"{what} must fit the {device.shared_memory} bytes of shared memory of a program on {device.name}, but needs {needed} "
        "for 4-byte values; lower it."
    )


def closure_bytes(tile: int, itemsize: int) -> int:
    """Return the bytes of shared memory of a program of the nvidia engine's closure: two tiles, a strip of 4 rows, 4 spare."""
    return (2 * tile + 8) * tile * max(itemsize, _WORD)


def is_valid(config: Config, device: Device) -> bool:
    """Return whether `config` can run on `device`; what the tuner, the lookup and the launchers all ask."""
    return invalid_because(config, device) is None


def require_valid(config: Config, device: Device) -> Config:
    """Return `config`, or raise InputError with the reason why it cannot run."""
    reason = invalid_because(config, device)
    if reason is not None:
        raise InputError(reason)
    return config
