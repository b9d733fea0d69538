"""Tile sizes and cut-offs as frozen dataclasses.

A Config, as a caller gives it, may be partial: tri_apsp.tuned fills in every field that is None,
from a tuned file or else from the defaults. The result is a CompleteConfig of one engine, in which
every field that the engine reads has a value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from tri_apsp.errors import InputError
from tri_apsp.messages import warn_caller

MethodName: TypeAlias = Literal["floyd_warshall", "kleene", "squaring", "rank_one_updates"]

METHOD_NAMES: tuple[MethodName, ...] = get_args(MethodName)
"""The values of Config.method: the keys of tri_apsp.methods.METHODS, listed here since configs may
not import methods.
"""

# Names of version 0.2, which work until 0.4.
_OLD_METHODS = {"iterative": "rank_one_updates"}

TILE_FIELDS = ("product", "small_product", "exponents")
"""The fields of Config that are tiles."""

SWEEP_FIELDS = ("sweep_lanes", "sweep_warps", "sweep_unroll")
"""The fields of Config that sweeps over an elimination tree read, and no dense method."""


@dataclass(frozen=True)
class CpuTiles:
    """Product blocks of the cpu engine: a task computes [block_m, block_n] of C, packing block_k of
    k at a time.

    Attributes:
        block_m: rows of C, at least 1.
        block_n: columns of C, at least 1.
        block_k: of k, at least 1.

    Examples:
        >>> import torch
        >>> from tri_apsp import Config, CpuTiles, shortest_paths
        >>> config = Config(engine="cpu", product=CpuTiles(96, 128, 64))
        >>> weights = torch.tensor([[0.0, 3.0], [1.0, 0.0]])
        >>> shortest_paths(weights, method="kleene", config=config).config.product
        CpuTiles(block_m=96, block_n=128, block_k=64)
    """

    block_m: int
    block_n: int
    block_k: int


@dataclass(frozen=True)
class GpuTiles:
    """Product tile of a Triton program: [block_m, block_n] of C, k unrolled by block_k.

    Attributes:
        block_m: rows of C.
        block_n: columns of C.
        block_k: of k, unrolled.
        group_m: programs are numbered so that this many rows of tiles share their columns of B in
            the L2 cache.
        num_warps: warps of a program.
        num_stages: buffers of the tiles of A and B.
        thread_n: columns of C that a thread owns, in words of at least 4 bytes (nvidia only).

    All are positive integers. Of `Config.product` and `small_product`, block_m, block_n, block_k,
    num_warps and thread_n are powers of two, and num_warps is at most 32. The nvidia engine also
    needs block_n >= 32, and >= 8 * thread_n if thread_n exceeds 8; block_k >= 4, num_stages >= 2
    and thread_n >= 4; a row of C for each thread; at most 256 values of C per thread; and tiles
    that fit the shared memory.

    Examples:
        >>> from tri_apsp import Config, GpuTiles
        >>> tiles = GpuTiles(64, 128, 16, num_stages=3)
        >>> config = Config(engine="nvidia", product=tiles)
        >>> config.product.num_stages, config.product.num_warps
        (3, 4)
    """

    block_m: int
    block_n: int
    block_k: int = 1
    group_m: int = 8
    num_warps: int = 4
    num_stages: int = 1
    thread_n: int = 8

    def warps_n(self, words: int) -> int:
        """Return how many warps lie next to each other in a row of `words` words of the tile
        (nvidia only).
        """
        return min(self.num_warps, max(1, words // (8 * self.thread_n)))


@dataclass(frozen=True)
class Config:
    """How to solve: the engine, its tiles, and the sizes at which methods stop dividing. Every
    field may be None.

    Attributes:
        engine: "cpu", "nvidia" or "portable"; None chooses by device and dtype.
        method: one of METHOD_NAMES, which the method "auto" takes; None leaves it to the rules of
            auto.
        block_size: edge of a diagonal block of "floyd_warshall", which is the largest block one
            closure launch solves.
        cutoff: β, the size at which "kleene" stops its recursion and calls "floyd_warshall".
        product: tiles of the product kernel.
        small_product: tiles of a product too small for `product` to keep every multiprocessor busy
            (nvidia).
        exponents: tiles of products by exponents (nvidia, compute capability 9.x): block_m = 128,
            block_n = 128 or 256, slices of block_k = 128 or 512, num_warps = 8, and num_stages = 3
            to 16 buffers; thread_n has no effect.
        closure_tile: edge of a tile of the closure, which is itself blocked (nvidia).
        closure_warps: warps of a program of the closure (GPU).
        closure_programs: most programs of the closure on one multiprocessor where several share a
            graph (nvidia).
        batch_programs: programs of the closure on one multiprocessor where each has a graph of its
            own (nvidia).
        sweep_lanes: lanes of a thread of a sweep over an elimination tree, 1 or 2, where a lane is
            a source or a target; of 64-bit values always 1 (nvidia).
        sweep_warps: most warps of a program of a sweep, 1, 2 or 4; fewer where there are fewer
            lanes, or where their values do not fit the shared memory (nvidia).
        sweep_unroll: records of an iteration of a sweep, 4, 8 or 16 (nvidia).
        panel: columns (rows) of a strip of the row (column) panel that one program owns (portable).
        panel_warps: warps of such a program (portable).

    A field that the engine or the method does not use is refused, by the call that gets it. The
    fields of sweeps come from tuned files, or from tri_apsp.tuned.using.

    Examples:
        >>> import torch
        >>> from tri_apsp import Config, shortest_paths
        >>> weights = torch.tensor([[0.0, 3.0], [1.0, 0.0]])
        >>> config = Config(engine="cpu", method="kleene", cutoff=64)
        >>> result = shortest_paths(weights, config=config)
        >>> result.method, result.config.cutoff, result.config.source.split(",")[0]
        ('kleene', 64, 'given')
    """

    engine: str | None = None
    method: MethodName | None = None
    block_size: int | None = None
    cutoff: int | None = None
    product: CpuTiles | GpuTiles | None = None
    small_product: GpuTiles | None = None
    exponents: GpuTiles | None = None
    closure_tile: int | None = None
    closure_warps: int | None = None
    closure_programs: int | None = None
    batch_programs: int | None = None
    sweep_lanes: int | None = None
    sweep_warps: int | None = None
    sweep_unroll: int | None = None
    panel: int | None = None
    panel_warps: int | None = None

    def __post_init__(self) -> None:
        if (method := current_method(self.method)) != self.method:
            object.__setattr__(self, "method", method)

    def over(self, base: C) -> C:
        """Return `base` with every field that is set here.

        The source of a complete configuration then begins with "given", unless only the engine is
        set here.
        """
        given = self.given()
        changed = dataclasses.replace(base, **given)
        if not isinstance(changed, CompleteConfig) or not given.keys() - {"engine"}:
            return changed
        if changed.source.startswith("given"):
            return changed
        source = "given" if changed.source == "default" else f"given, {changed.source}"
        return dataclasses.replace(changed, source=source)

    def given(self) -> dict[str, Any]:
        """Return the fields of Config that are set."""
        return {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}


def current_method(name: Any) -> Any:
    """Return the name that a method has now, with a warning for an old one."""
    new = _OLD_METHODS.get(name) if isinstance(name, str) else None
    if new is None:
        return name
    warn_caller(
        f"method {name!r} is deprecated, and goes with version 0.4; its name is {new!r}.",
        DeprecationWarning,
    )
    return new


C = TypeVar("C", bound=Config)

_FIELDS = tuple(field.name for field in dataclasses.fields(Config))


@dataclass(frozen=True, kw_only=True)
class CompleteConfig(Config):
    """A configuration that an engine can run: every field that the engine reads has a value,
    `method` excepted.

    Attributes:
        source: where the values came from: "default" or the tuned files, after "given" if a caller
            set some of them.
    """

    engine: str
    block_size: int
    cutoff: int
    source: str = "default"


@dataclass(frozen=True, kw_only=True)
class CpuConfig(CompleteConfig):
    """What the cpu engine reads."""

    engine: str = "cpu"
    product: CpuTiles


@dataclass(frozen=True, kw_only=True)
class GpuConfig(CompleteConfig):
    """What both GPU engines read."""

    product: GpuTiles
    closure_warps: int


@dataclass(frozen=True, kw_only=True)
class PortableConfig(GpuConfig):
    """What the portable engine reads."""

    engine: str = "portable"
    panel: int
    panel_warps: int


@dataclass(frozen=True, kw_only=True)
class NvidiaConfig(GpuConfig):
    """What the nvidia engine reads, and sweeps over an elimination tree."""

    engine: str = "nvidia"
    small_product: GpuTiles
    exponents: GpuTiles
    closure_tile: int
    closure_programs: int
    batch_programs: int
    sweep_lanes: int
    sweep_warps: int
    sweep_unroll: int


USED_FIELDS: dict[str, frozenset[str]] = {
    engine: frozenset(
        name
        for kind in complete.__mro__
        if issubclass(kind, CompleteConfig)
        for name in kind.__annotations__
    )
    - {"source"}
    | {"method"}
    for engine, complete in (
        ("cpu", CpuConfig),
        ("nvidia", NvidiaConfig),
        ("portable", PortableConfig),
    )
}
"""The fields of Config that each engine uses."""


def to_fields(config: Config) -> dict[str, Any]:
    """Return the fields that a tuned file holds, as far as they are set; tiles as dictionaries."""
    return {
        name: dataclasses.asdict(value) if isinstance(value, (CpuTiles, GpuTiles)) else value
        for name, value in config.given().items()
        if name != "engine"
    }


def from_fields(engine: str, fields: Mapping[str, Any]) -> Config:
    """Return the configuration of `engine` that to_fields made `fields` of.

    Raises:
        InputError: a field that a configuration, or the tiles of the engine, do not have, or tiles
            that lack one. Values are left to invalid_because.
    """
    tiles = CpuTiles if engine == "cpu" else GpuTiles
    try:
        values: dict[str, Any] = {
            name: tiles(**value) if name in TILE_FIELDS else value for name, value in fields.items()
        }
        return Config(engine=engine, **values)
    except TypeError as error:
        raise InputError(
            "a configuration must have the fields of Config, and its tiles those of "
            f"{tiles.__name__}, but one does not fit ({error}); correct it."
        ) from None
