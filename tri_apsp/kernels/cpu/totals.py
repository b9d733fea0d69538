"""Sums over the distances to, or from, each vertex, in one pass over rows of distances."""

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def add_totals(distances, no_edge, from_source, total, reached, farthest):
    """Add the distances that are less than `no_edge` of each column to total[column], and of each
    row, `from_source`, to total[row]; likewise their number, and the largest one.

    Args:
        distances: [rows, columns].
        total, reached, farthest: [columns], or [rows], of float64.
    """
    for i in range(distances.shape[0]):
        for j in range(distances.shape[1]):
            value = distances[i, j]
            if value < no_edge:
                place = i if from_source else j
                total[place] += value
                reached[place] += 1
                farthest[place] = max(farthest[place], float(value))
