"""The bytes that a call moves by formula, for GPUs whose counters cannot be read.

Bytes between multiprocessors and the L2 cache are those that the programs ask for: a tile is read
once by each program that needs it, and each value read down a column moves a whole sector of 32
bytes. Bytes from memory are the least possible: each launch reads and writes each block of the
matrix once, and the L2 cache serves the rest. Padding of rows does not count.

    s: bytes per value; b: edge of a tile; t = n/b; M x N: tile of a product

    system                     L2, per vertex and value               memory, per vertex and value
    harish_narayanan           3 s + 32/256: a block is 256 columns   2 s
    simple                     s + s/16 + 32/16: blocks of 16 x 16    s: writes are rare
    vectorised, w columns      2 s + s/16 + 32/(16 w)                 2 s
    pseudo_blocked, squares w  s + (s + 32) / (16 w)                  s: writes are rare

    system                     L2                                     memory
    blocked, per stage         (4 (t - 1)^2 + 6 (t - 1) + 2) b^2 s    2 n^2 s
    recursive, and auto        n^3 s (1/M + 1/N) + 10 n^2 s           16 n^2 s

    The 16 n^2 s of all levels of a recursion: 6 for the factors and 6 for the results of products,
    4 for copies.
"""

from __future__ import annotations

from typing import NamedTuple

from tri_apsp.configs import CompleteConfig, GpuTiles
from tri_apsp.methods import SYSTEMS
from tri_apsp.semirings import DTYPES_BY_NAME

__all__ = ["Traffic", "computed_traffic"]

# A matrix of this size does not fit the L2 cache of any GPU (126 MB on a B200), so that every
# launch reads it from memory.
_STREAMED_BYTES = 128 << 20
_SECTOR = 32
_TILE, _PLAIN_TILE = 32, 16
_BLOCKED = (
    "katz_kider",
    "optimised_blocked",
    "staged_load",
    "blocked_int16",
    "blocked_vectorised_int16",
)


class Traffic(NamedTuple):
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
        name: the name of the system.
        n: the number of vertices.
        dtype: the dtype of the weights.
        config: the configuration of the engine, of which the tile of the product counts.

    Bytes from memory are unknown for a matrix that the L2 cache may hold from launch to launch.
    """
    size = DTYPES_BY_NAME[dtype].itemsize
    parameter = SYSTEMS[name].parameter if name in SYSTEMS else None
    w = parameter.default if parameter else 1
    per_vertex = {
        "harish_narayanan": (3 * size + _SECTOR / 256, 2 * size),
        "simple": (size + size / 16 + _SECTOR / 16, size),
        "vectorised": (2 * size + size / 16 + _SECTOR / (16 * w), 2 * size),
        "pseudo_blocked": (size + (size + _SECTOR) / (16 * w), size),
    }
    if name in per_vertex:
        l2, memory = (n**3 * count for count in per_vertex[name])
    elif name in _BLOCKED:
        edge = w if name.endswith("int16") else _TILE
        stages = -(-n // edge)
        tiles = 4 * (stages - 1) ** 2 + 6 * (stages - 1) + 2
        l2, memory = stages * tiles * edge**2 * size, stages * 2 * n * n * size
    else:
        rows = columns = _PLAIN_TILE
        if name != "recursive_plain" and isinstance(config.product, GpuTiles):
            rows, columns = config.product.block_m, config.product.block_n
        l2 = n**3 * size * (1 / rows + 1 / columns) + 10 * n * n * size
        memory = 16 * n * n * size
    return Traffic(float(l2), float(memory) if n * n * size >= _STREAMED_BYTES else None)
