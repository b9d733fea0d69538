"""One launch per vertex, one thread per pair of vertices (2007).

    for k from 1 to n:                                       # on the host, one launch each
        for all pairs (i, j) in parallel:                    # on the GPU, one thread each
            w[i, j] <- min(w[i, j], w[i, k] + w[k, j])

A thread reads three values from global memory and writes one: 16 bytes for one addition and one
minimum, so that the memory limits the speed ("saturates the global memory bus", Lund and Smith). On
a Tesla C1060 it took 208.6 s for n = 8192.

Source: Harish and Narayanan, Accelerating Large Graph Algorithms on the GPU Using CUDA, as Lund and
Smith describe it in sections 2 and 3.1 and measure it in Table 1.
"""

from typing import Any

import triton
import triton.language as tl

from tri_apsp.papers.rank_one import THREADS, RankOneMethod, relax


@triton.jit(do_not_specialize=["k"])
def _harish_narayanan_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    n,
    k,
    stride_db,
    stride_dm,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Update BLOCK values of a row, one by each thread. Axis 0 of the grid is these blocks, row by
    row; axis 1 is the graph.
    """
    blocks = tl.cdiv(n, BLOCK)
    i = tl.program_id(0) // blocks
    offs_n = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    mask = offs_n < n
    d_ptr += tl.program_id(1).to(tl.int64) * stride_db
    row_i, row_k = d_ptr + i.to(tl.int64) * stride_dm, d_ptr + k.to(tl.int64) * stride_dm
    d_ij = tl.load(row_i + offs_n, mask=mask)
    d_ik = tl.load(row_i + k)
    d_kj = tl.load(row_k + offs_n, mask=mask)
    tl.store(row_i + offs_n, relax(d_ij, d_ik, d_kj, FLOOR), mask=mask)


class HarishNarayanan(RankOneMethod):
    """n launches, each a pass over the whole matrix; no workspace."""

    def _kernel(self, n: int) -> tuple[Any, dict[str, int], int]:
        return _harish_narayanan_kernel, {"BLOCK": THREADS}, n * -(-n // THREADS)
