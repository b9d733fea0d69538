"""Moving graphs between a packed tensor and padded matrices, for one CPU core, in Numba."""

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def unpack(matrices, values, starts, sizes, fill):
    """matrices[g, :s, :s] = values[starts[g] : starts[g] + s * s], s being sizes[g]; `fill`
    elsewhere.

    Args:
        matrices: [graphs, n, n].
        values: [total].
        starts, sizes: [graphs] of int64.
    """
    n = matrices.shape[1]
    for graph in range(len(sizes)):
        size, place = sizes[graph], starts[graph]
        for i in range(size):
            for j in range(size):
                matrices[graph, i, j] = values[place + j]
            for j in range(size, n):
                matrices[graph, i, j] = fill
            place += size
        for i in range(size, n):
            for j in range(n):
                matrices[graph, i, j] = fill


@kernel
def pack(matrices, values, starts, sizes, fill):
    """values[starts[g] : starts[g] + s * s] = matrices[g, :s, :s]; arguments as those of unpack,
    `fill` is ignored.
    """
    for graph in range(len(sizes)):
        size, place = sizes[graph], starts[graph]
        for i in range(size):
            for j in range(size):
                values[place + j] = matrices[graph, i, j]
            place += size
