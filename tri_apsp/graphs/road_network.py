"""The shape of random road networks: planar, with towns, dead ends and long chains of vertices."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

# Shares of the vertices of a network. They give the fill-in of elimination that OpenStreetMap's
# roads of Luxembourg have, 2.0 edges per vertex of 114 599, and their degrees: 85 % of the vertices
# have 2 neighbours, 3 % end a road, the others join several.
_JUNCTIONS, _CYCLES = 0.25, 0.055
_IN_TOWNS = 0.5  # of the junctions
_TOWN = 0.02  # standard deviation from the centre of a town, in a square of side 1


def road_network(
    n: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Draw the roads of a connected network of `n` vertices in a square of side 1.

    Junctions are random points. Of their Delaunay triangulation, which is planar, a spanning tree
    of the shortest roads is kept, and some of the others, each of which closes a cycle. The other
    vertices lie on these roads.

    Returns:
        The two vertices of each road between neighbours, (roads, 2), no pair twice; and its length,
        (roads,).
    """
    points = _junctions(min(n, max(3, round(_JUNCTIONS * n))), rng)
    pairs = _neighbours(points)
    lengths = np.hypot(*(points[pairs[:, 0]] - points[pairs[:, 1]]).T)
    kept = _spanning_tree(pairs, lengths, len(points))
    others = np.flatnonzero(~kept)
    kept[rng.choice(others, min(len(others), round(_CYCLES * n)), replace=False)] = True
    return _subdivided(pairs[kept], lengths[kept], len(points), n - len(points), rng)


def _junctions(count: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Draw points, (count, 2), row by row of the square, so that near ones have near numbers."""
    points = rng.random((count, 2))
    centres = rng.random((math.isqrt(count) + 1, 2))
    in_town = rng.random(count) < _IN_TOWNS
    inside = int(in_town.sum())
    nearby = rng.normal(scale=_TOWN, size=(inside, 2))
    points[in_town] = centres[rng.integers(len(centres), size=inside)] + nearby
    rows = np.floor(points[:, 1] * math.isqrt(count))
    return points[np.lexsort((points[:, 0], rows))]


def _neighbours(points: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the pairs of a Delaunay triangulation, (pairs, 2), sorted."""
    if len(points) < 3:
        return np.array([[0, 1]][: max(0, len(points) - 1)], np.int64).reshape(-1, 2)
    from scipy.spatial import Delaunay  # slow to import

    found = Delaunay(points)
    sides = found.simplices[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    # A point that lies too close to another is in no triangle.
    pairs = np.sort(np.concatenate([sides, found.coplanar[:, ::2]]).astype(np.int64), axis=1)
    numbers = np.unique(pairs[:, 0] * len(points) + pairs[:, 1])
    return np.stack(np.divmod(numbers, len(points)), axis=1)


def _spanning_tree(
    pairs: npt.NDArray[np.int64], lengths: npt.NDArray[np.float64], count: int
) -> npt.NDArray[np.bool_]:
    """Return which of the pairs are in a spanning tree of the shortest ones."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    # Ranks in place of lengths, since 0 would be no edge; they also tell the pairs of the tree.
    order = np.argsort(lengths, kind="stable")
    ranks = np.empty(len(pairs))
    ranks[order] = np.arange(1, len(pairs) + 1)
    tree: Any = minimum_spanning_tree(csr_array((ranks, (*pairs.T,)), shape=(count, count)))
    kept = np.zeros(len(pairs), np.bool_)
    kept[order[tree.data.astype(np.int64) - 1]] = True
    return kept


def _subdivided(
    pairs: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.float64],
    count: int,
    more: int,
    rng: np.random.Generator,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Put `more` vertices, numbered from `count` on, at random places of the roads."""
    if not len(pairs):
        return pairs, lengths
    on_road = rng.multinomial(more, lengths / lengths.sum())
    pieces = on_road + 1
    road, starts = np.repeat(np.arange(len(pairs)), pieces), pieces.cumsum() - pieces
    place = np.arange(len(road)) - starts[road]
    # The vertex behind a piece, if it is not the last one of its road.
    behind = count + starts[road] - road + place
    ends = np.where(
        np.stack([place == 0, place == on_road[road]], axis=1),
        pairs[road],
        np.stack([behind - 1, behind], axis=1),
    )
    parts = rng.exponential(size=len(road))
    return ends, lengths[road] * parts / np.add.reduceat(parts, starts)[road]
