"""What the Boolean engines of a GPU share: words of 32 bits, packing, and products in pairs."""

import itertools
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch

from tri_apsp.device import describe
from tri_apsp.engines.base import Block, Update
from tri_apsp.engines.boolean import PADDING, BooleanEngine, packed_size
from tri_apsp.engines.triton_base import Shape, in_parts
from tri_apsp.gpu.launcher import Launcher, cached_launcher
from tri_apsp.kernels.shared.boolean import _pack_kernel, _unpack_kernel

# Rows of words, and words in a row, of the tile that a program packs, and of one that it unpacks.
_PACK_TILE, _UNPACK_TILE = {"ROWS": 8, "WORDS": 16}, {"ROWS": 64, "WORDS": 8}
# A launch has up to this many programs per multiprocessor, if k can be divided between enough
# programs of a tile.
_PROGRAMS_PER_UNIT = 4


class BooleanTiles(NamedTuple):
    """The tiles of a product, and the programs that compute them.

    Attributes:
        block_m: rows of a tile of C; a divisor of PADDING.
        block_n: words of each row.
        num_warps: warps of a program.
        least_words: words of k that a program takes at least, where several programs share a tile.
    """

    block_m: int
    block_n: int
    num_warps: int
    least_words: int


class TritonBooleanEngine(BooleanEngine):
    """Launches on the current stream of the current device; never blocks the host.

    The closure of a block of 2048 vertices takes at most 11 launches, each a product of many
    programs. On an H200, with all products on bits, that makes graphs of 4096 and 8192 vertices
    take 1.0 and 2.9 ms, and with blocks of 1024 1.9 and 4.3 ms; for 32768 there is no difference.

    Attributes:
        TILES: best first: a launch takes the first with enough programs to occupy every
            multiprocessor, else the last.
        product_kernel: its run-time arguments are those of kernels.portable.boolean, in order.
    """

    WORD = 32
    BLOCK_SIZE = 2048
    CUTOFF = 2048

    TILES: ClassVar[tuple[BooleanTiles, ...]]

    product_kernel: ClassVar[Any]

    @staticmethod
    def product_constants(tiles: BooleanTiles) -> dict[str, Any]:
        """Return the constants and options of a product by `tiles`."""
        return {"BLOCK_M": tiles.block_m, "BLOCK_N": tiles.block_n, "num_warps": tiles.num_warps}

    def pack(self, adjacency: torch.Tensor, no_edge: float | int | None) -> Block:
        batch, n, _ = adjacency.shape
        size = packed_size(n)
        matrix = torch.empty(
            (batch, size, size // self.WORD), dtype=torch.int32, device=adjacency.device
        )
        values = adjacency.view(torch.uint8) if adjacency.dtype == torch.bool else adjacency
        launch = cached_launcher(_pack_kernel, NO_EDGE=no_edge, **_PACK_TILE, num_warps=4)
        programs = _tiles_of_words(size, size, _PACK_TILE)
        for words, part in in_parts(matrix, values):
            launch((programs, len(words), 1), words, part, size, n, *part.stride())
        return matrix

    def unpack(self, matrix: Block) -> torch.Tensor:
        return to_bytes(matrix, self.n, self.n).view(torch.bool)

    def closure(self, d: Block) -> None:
        """Square D in place: after i products, D has the paths of at most 2^i edges."""
        longest = min(d.shape[1], self.n) - 1  # edges of a path
        for _ in range(max(longest - 1, 0).bit_length()):
            self.product(Update(d, d, d))

    def product(self, *updates: Update) -> None:
        for first, second in itertools.zip_longest(updates[::2], updates[1::2]):
            shapes = [shape_in_units(first), shape_in_units(second) if second else (0, 0, 0)]
            tiles, parts = self._tiles_and_parts(shapes, first.c.shape[0])
            programs, launch = _tiles(shapes, tiles) * parts, _product_launcher(type(self), tiles)
            for operands in in_parts(*first[:3], *(second or first)[:3]):
                launch(
                    (programs, operands[0].shape[0], 1),
                    *operands[:3],
                    *shapes[0],
                    *operands[3:],
                    *shapes[1],
                    *(x // 4 for x in operands[0].stride()[:2]),
                    parts,
                )

    def _tiles_and_parts(self, shapes: list[Shape], batch: int) -> tuple[BooleanTiles, int]:
        """Return by which tiles to compute products of `shapes`, and the programs of each, which
        share its k.
        """
        units, words = describe(self.device).units, 4 * max(k for _, _, k in shapes)
        for tiles in self.TILES:
            count = batch * _tiles(shapes, tiles)
            most = max(1, words // tiles.least_words)
            if count * most >= units:
                break
        return tiles, min(most, -(-_PROGRAMS_PER_UNIT * units // count))


@cache  # as cached_launcher, by fewer arguments
def _product_launcher(engine: type[TritonBooleanEngine], tiles: BooleanTiles) -> Launcher:
    return Launcher(engine.product_kernel, engine.product_constants(tiles))


def to_bytes(words: Block, rows: int, columns: int, *, transposed: bool = False) -> torch.Tensor:
    """Return the bits of a packed matrix as bytes: uint8 (batch, rows, columns), or the transpose
    (batch, columns, rows).

    Args:
        words: (batch, `rows` or more, `columns` / 32 or more), unit column stride.

    Cost: batch rows columns bytes are allocated and written.
    """
    shape = (columns, rows) if transposed else (rows, columns)
    result = torch.empty((len(words), *shape), dtype=torch.uint8, device=words.device)
    programs = _tiles_of_words(rows, columns, _UNPACK_TILE)
    launch = cached_launcher(_unpack_kernel, TRANSPOSED=transposed, **_UNPACK_TILE, num_warps=4)
    for part, of_part in in_parts(result, words):
        launch((programs, len(part), 1), part, of_part, rows, columns, *of_part.stride()[:2])
    return result


def shape_in_units(update: Update) -> Shape:
    """Return m, n and k of a product in units of PADDING vertices: rows, or 4 words of a row."""
    return update.c.shape[1] // PADDING, update.c.shape[2] // 4, update.a.shape[2] // 4


def _tiles(shapes: list[Shape], tiles: BooleanTiles) -> int:
    """Return how many tiles the products have."""
    return sum(m * (PADDING // tiles.block_m) * -(-n * 4 // tiles.block_n) for m, n, _ in shapes)


def _tiles_of_words(rows: int, columns: int, tile: dict[str, int]) -> int:
    return -(-rows // tile["ROWS"]) * -(-columns // (32 * tile["WORDS"]))
