"""Factors of products by exponents as the kernels lay them out, from the model of the package."""

import numpy as np

from tri_apsp.kernels.nvidia.exponents_model import NO_EDGE, encode


def encode_tiles(
    x: np.ndarray,
    k_axis: int,
    slice_length: int,
    *,
    tile: int,
    part: int,
    length: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Encode A (batch, lines, k), or B (batch, k, lines) if `k_axis` is 0, into tiles as
    _encode_kernel lays them out.
    """
    x = x if k_axis else x.transpose(0, 2, 1)
    batch, lines, _ = x.shape
    tiles = -(-lines // tile)
    padded = np.full((batch, tiles * tile, x.shape[2]), NO_EDGE, x.dtype)
    padded[:, :lines] = x
    graphs = [encode(graph, slice_length, first=bool(k_axis), length=length) for graph in padded]
    powers, scores, ranges = (np.stack(values) for values in zip(*graphs, strict=True))
    powers = powers.reshape(batch, tiles, tile, -1, part).swapaxes(2, 3)
    powers = powers if k_axis else powers.swapaxes(3, 4)
    return (
        np.ascontiguousarray(powers),
        scores.transpose(0, 2, 1).astype(np.int16, order="C"),
        ranges.astype(np.int32),
    )
