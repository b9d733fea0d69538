"""Whether a solve computes large products by exponents: the rule, and the cheap statistics that it reads."""

from __future__ import annotations

import dataclasses

import torch

from tri_apsp.device import fits_memory
from tri_apsp.engines import Engine, type_of
from tri_apsp.semirings import no_edge
from tri_apsp.solver.result import DenseSelection
from tri_apsp.value_range import value_range

__all__ = ["exponents_from", "with_exponents"]

# Smaller products gain nothing: on an H200 in int16 one of 1024 takes 37 us, of which encoding would take 15.
_LEAST = 2048
# Below, solves gain nothing: one of 4096 vertices takes 3.2 instead of 3.3 ms at best, and one of 8192 6.7 instead of 19.6 ms.
_FEWEST_VERTICES = 8192
# Products of n / _LARGE vertices may be tried without much hope: they leave their remaining tiles where few are certain.
_LARGE = 4
# Edges of weight 1 per vertex, below which no product is tried: on an H200 a solve of 16384 vertices with 1 takes 113 ms, with
# 0.5 158 ms, and by ordinary products 146 ms.
_FEWEST_EDGES = 0.8
# Rows that are read.
_ROWS = 64
# Bytes for each pair of vertices, at most: two encoded operands.
_BYTES = 4


def exponents_from(
    selection: DenseSelection, engine: type[Engine], matrix: torch.Tensor, highest: float | int | None
) -> int | None:
    """Return the least dimension of a product that a solve should compute by exponents, or None for ordinary products alone.

    Such a product is exact where distances in it lie at most 23 apart, and tells where they do not: see
    kernels.shared.exponents. In a graph with d edges per vertex, whose weights go evenly up to h, about d / h edges weigh 1;
    among s of its n vertices these are d s / (h n) per vertex. The largest distance is about 3 ln(s) times the inverse of that
    number (for complete graphs: Janson, One, two and three times log n / n for paths in a complete graph with random weights),
    so products of at least h n / d vertices are tried. Those of n / 4 are tried in any case, unless even d / h is small.

    Args:
        selection: what the solve runs.
        engine: the class of its engine.
        matrix: (batch, m, m), what the solve starts from; no value is negative.
        highest: its greatest weight; None without an edge.

    Cost: some operations on 64 rows of each graph, for which the host blocks; nothing below 8192 vertices.
    """
    batch, n, _ = matrix.shape
    if n < _FEWEST_VERTICES or not highest or not engine.multiplies_by_exponents(selection.method, matrix):
        return None
    if not fits_memory(_BYTES * batch * n * n, matrix.device):
        return None
    rows = matrix[:, :: -(-n // _ROWS)]
    edges = rows < no_edge(matrix.dtype)
    count = edges.sum()
    if matrix.is_floating_point():
        count = torch.where((edges <= (rows == rows.floor())).all(), count, 0)
    light = (int(count) / (batch * rows.shape[1]) - 1) / highest  # but for the diagonal
    if light < _FEWEST_EDGES:
        return None
    least = max(_LEAST, int(min(n / light, n / _LARGE)))
    return 1 << (least - 1).bit_length()  # few values, for each of which the kernels of a solve are looked up once


def with_exponents(selection: DenseSelection, weights: torch.Tensor) -> DenseSelection:
    """Return a selection that states whether products are computed by exponents, for weights of which none is negative.

    Args:
        selection: what solves them.
        weights: (n, n) or (batch, n, n), whose values are read.
    """
    matrix = weights if weights.dim() == 3 else weights[None]
    highest = value_range(matrix, no_edge(matrix.dtype)).highest_below
    return dataclasses.replace(
        selection, exponents=exponents_from(selection, type_of(selection.engine), matrix, highest) is not None
    )
