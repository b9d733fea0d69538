"""The ten-line Floyd-Warshall that everything is checked against; imports no other module of this
package.
"""

import numpy as np
import numpy.typing as npt

__all__ = ["floyd_warshall"]


def floyd_warshall(weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return all distances (n, n) of weights (n, n) in float64; inf is no edge, a negative diagonal
    a negative cycle.

    Cost: n^3 operations. Source: Floyd 1962, Warshall 1962.
    """
    distances = np.array(weights, dtype=np.float64)
    np.fill_diagonal(distances, np.minimum(np.diagonal(distances), 0))
    for k in range(len(distances)):
        np.minimum(distances, distances[:, k, None] + distances[None, k, :], out=distances)
    return distances
