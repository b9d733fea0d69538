"""One launch per vertex, several neighbouring columns per thread (2023).

    for k from 0 to n - 1:                                   # on the host, one launch each
        for all i, and all groups J of four columns:         # one thread each
            ij, kj <- graph[i][J], graph[k][J]               # short4: one load of 8 bytes each
            ik <- graph[i][k], four times
            graph[i][J] <- minimum of ij and ik + kj, value by value

Each thread moves four values with one instruction, where the rows are aligned: the paper allocates
them so, and this project pads them. The paper has four columns per thread; other numbers show what
the width of an access is worth.

Source: Catinello, Parallel Floyd-Warshall, section 2.2.
"""

from typing import Any

import triton
import triton.language as tl

from tri_apsp.papers.rank_one import EDGE, RankOneMethod, relax_block


@triton.jit(do_not_specialize=["k"])
def _vectorised_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    n,
    k,
    stride_db,
    stride_dm,
    FLOOR: tl.constexpr,
    EDGE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Update a block [EDGE, EDGE * WIDTH], WIDTH columns by each thread. Axis 0 of the grid is the
    blocks, axis 1 the graph.
    """
    blocks = tl.cdiv(n, EDGE * WIDTH)
    offs_m = tl.program_id(0) // blocks * EDGE + tl.arange(0, EDGE)
    offs_n = tl.program_id(0) % blocks * (EDGE * WIDTH) + tl.arange(0, EDGE * WIDTH)
    d_ptr += tl.program_id(1).to(tl.int64) * stride_db
    ptrs, mask, _, shorter = relax_block(d_ptr, offs_m, offs_n, k, n, stride_dm, FLOOR)
    tl.store(ptrs, shorter, mask=mask)


class Vectorised(RankOneMethod):
    """n launches, each a pass over the whole matrix; no workspace. The parameter is the columns of
    a thread.
    """

    def _kernel(self, n: int) -> tuple[Any, dict[str, int], int]:
        width = self.parameter
        programs = -(-n // EDGE) * -(-n // (EDGE * width))
        return _vectorised_kernel, {"EDGE": EDGE, "WIDTH": width}, programs
