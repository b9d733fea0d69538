"""The bytes that a call moves by formula, for GPUs whose counters cannot be read.

Bytes between multiprocessors and the L2 cache are those that the programs ask for: a tile is read
once by each program that needs it, and each value read down a column moves a whole sector of 32
bytes. Bytes from memory are the least possible: each launch reads and writes each block of the
matrix once, and the L2 cache serves the rest. Padding of rows does not count.

    s: bytes per value; b: edge of a tile; M x N: tile of a product

    system                     L2, per vertex and value                  memory, per vertex and value
    harish_narayanan           3 s + 32/256: a block is 256 columns      2 s
    simple                     s + s/16 + 32/16: blocks of 16 x 16       s: writes are rare
    vectorised, w columns      2 s + s/16 + 32/(16 w)                    2 s
    pseudo_blocked, squares w  s + (s + 32) / (16 w)                     s: writes are rare

    blocked, per stage of b vertices, for t = n/b: 4 (t - 1)^2 + 6 (t - 1) + 2 tiles of b^2 s from L2; 2 n^2 s from memory
    recursive, and auto:       n^3 s (1/M + 1/N) + 10 n^2 s from L2, 16 n^2 s from memory: 6 n^2 s each for the factors and the
                               results of products, 4 n^2 s for copies, of all levels together
"""

from __future__ import annotations

from dataclasses import dataclass

from tri_apsp.configs import CompleteConfig, GpuTiles
from tri_apsp.papers import SYSTEMS
from tri_apsp.semirings import DTYPES_BY_NAME

__all__ = ["Traffic", "computed_traffic"]

# A matrix of this size does not fit the L2 cache of any GPU (126 MB on a B200), so that every
# launch reads it from memory.
_STREAMED_BYTES = 128 << 20
_SECTOR = 32
_TILE, _PLAIN_TILE = 32, 16


@dataclass(frozen=True)
class Traffic:
    """The bytes that a call moves.

    Attributes:
        l2: between multiprocessors and the L2 cache.
        memory: between the L2 cache and memory, read and written; None: unknown.
    """

    l2: float
    memory: float | None


def computed_traffic(name: str, n: int, dtype: str, config: CompleteConfig) -> Traffic:
    """Return the bytes of a solve by a system of the papers, or by "auto", with the default
    parameter; see above.

    Args:
        name: the name of the method.
        n: the number of vertices.
        dtype: the dtype of the weights.
        config: the configuration of the engine, of which the tile of the product counts.

    Bytes from memory are unknown for a matrix that the L2 cache may hold from launch to launch.
    """
    size = DTYPES_BY_NAME[dtype].itemsize
    traffic = (
        _rank_one(name, n, size) or _blocked(name, n, size) or _recursive(name, n, size, config)
    )
    return traffic if n * n * size >= _STREAMED_BYTES else Traffic(traffic.l2, None)


def _rank_one(name: str, n: int, size: int) -> Traffic | None:
    parameter = SYSTEMS[name].parameter if name in SYSTEMS else None
    w = parameter.default if parameter else 1
    found = {
        "harish_narayanan": (3 * size + _SECTOR / 256, 2 * size),
        "simple": (size + size / 16 + _SECTOR / 16, size),
        "vectorised": (2 * size + size / 16 + _SECTOR / (16 * w), 2 * size),
        "pseudo_blocked": (size + (size + _SECTOR) / (16 * w), size),
    }.get(name)
    return None if found is None else Traffic(float(found[0] * n**3), float(found[1] * n**3))


def _blocked(name: str, n: int, size: int) -> Traffic | None:
    if name not in (
        "katz_kider",
        "optimised_blocked",
        "staged_load",
        "blocked_int16",
        "blocked_vectorised_int16",
    ):
        return None
    parameter = SYSTEMS[name].parameter
    edge = parameter.default if parameter is not None and name.startswith("blocked") else _TILE
    stages = -(-n // edge)
    tiles = 4 * (stages - 1) ** 2 + 6 * (stages - 1) + 2
    return Traffic(float(stages * tiles * edge**2 * size), float(stages * 2 * n * n * size))


def _recursive(name: str, n: int, size: int, config: CompleteConfig) -> Traffic:
    rows = columns = _PLAIN_TILE
    if name != "recursive_plain":
        assert isinstance(config.product, GpuTiles), "the study runs on the nvidia engine"
        rows, columns = config.product.block_m, config.product.block_n
    return Traffic(n**3 * size * (1 / rows + 1 / columns) + 10 * n * n * size, 16.0 * n * n * size)
