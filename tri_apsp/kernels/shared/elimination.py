"""The sweeps that give distances once the vertices of a sparse graph are eliminated, in plain
Triton.

Columns are independent: one program takes BLOCK of them through both sweeps, and programs need no
synchronization. tri_apsp.kernels.cpu.elimination says what the sweeps compute.
"""

import triton
import triton.language as tl


@triton.jit
def _sweep_kernel(
    x_ptr,  # (n, width): row v has the distances from all sources of a slab to v
    vertices_ptr,  # (chunks,) of int32: the vertex to which the edges of each chunk lead
    others_ptr,  # (chunks, EDGES) of int32: the vertices from which they lead, -1 for none
    weights_ptr,  # (chunks, EDGES)
    chunks,
    width,
    NO_EDGE: tl.constexpr,
    EDGES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Lower BLOCK columns by one chunk of edges after another."""
    # Program id to columns [BLOCK], and the first chunk: a vertex v, and EDGES edges to it.
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    x_ptr += columns
    place = tl.arange(0, EDGES)
    v = tl.load(vertices_ptr)
    u, w = tl.load(others_ptr + place), tl.load(weights_ptr + place)
    # Main loop. Chunks are in the order of the sweeps: each reads rows that earlier ones wrote.
    for chunk in range(chunks):
        own = x_ptr + v.to(tl.int64) * width
        others = x_ptr[None, :] + u.to(tl.int64)[:, None] * width
        # [EDGES, BLOCK]
        sums = tl.load(others, mask=(u >= 0)[:, None] & inside[None, :], other=NO_EDGE) + w[:, None]
        before = tl.load(own, mask=inside, other=NO_EDGE)
        # Prefetch the next chunk while the rows above are loaded.
        following = tl.minimum(chunk + 1, chunks - 1)
        v = tl.load(vertices_ptr + following)
        u, w = (
            tl.load(others_ptr + following * EDGES + place),
            tl.load(weights_ptr + following * EDGES + place),
        )
        tl.store(own, tl.minimum(before, tl.min(sums, axis=0)), mask=inside)
        tl.debug_barrier()  # other threads of this program read the row next
