"""The systems without tiles: one launch per vertex k, since a path over k may be shorter than the
best one known.

Sources: Harish and Narayanan, Accelerating Large Graph Algorithms on the GPU Using CUDA, as Lund
and Smith describe it in sections 2 and 3.1 and measure it in Table 1; Catinello, Parallel
Floyd-Warshall, sections 2.1 to 2.3 and 3.3.
"""

from abc import abstractmethod
from typing import Any

import triton
import triton.language as tl

from tri_apsp.engines.base import Block, Engine
from tri_apsp.engines.triton_base import in_parts
from tri_apsp.gpu.launcher import cached_launcher as launcher
from tri_apsp.methods.base import Observer
from tri_apsp.papers.base import PaperMethod, floor_of

_EDGE = 16  # rows and columns of a square block of threads
_THREADS = _EDGE * _EDGE  # of a program


@triton.jit
def _relax(d_ij, d_ik, d_kj, FLOOR: tl.constexpr):
    """Return max(min(d_ij, d_ik + d_kj), FLOOR); FLOOR is None where no weight is negative."""
    if FLOOR is None:
        return tl.minimum(d_ij, d_ik + d_kj)
    else:  # FLOOR makes int32 of int16
        return tl.maximum(tl.minimum(d_ij, d_ik + d_kj), FLOOR).to(d_ij.dtype)


@triton.jit
def _relax_block(d_ptr, offs_m, offs_n, k, n, stride_dm, FLOOR: tl.constexpr):
    """Return pointers to rows offs_m [M] and columns offs_n [N] of D, the mask of those inside,
    their values and new values.
    """
    mask_m, mask_n = offs_m < n, offs_n < n
    mask = mask_m[:, None] & mask_n[None, :]
    rows = d_ptr + offs_m.to(tl.int64) * stride_dm
    ptrs = rows[:, None] + offs_n[None, :]
    d_ij = tl.load(ptrs, mask=mask)
    d_ik = tl.load(rows + k, mask=mask_m)
    d_kj = tl.load(d_ptr + k.to(tl.int64) * stride_dm + offs_n, mask=mask_n)
    return ptrs, mask, d_ij, _relax(d_ij, d_ik[:, None], d_kj[None, :], FLOOR)


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
    tl.store(row_i + offs_n, _relax(d_ij, d_ik, d_kj, FLOOR), mask=mask)


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
    ptrs, mask, _, shorter = _relax_block(d_ptr, offs_m, offs_n, k, n, stride_dm, FLOOR)
    tl.store(ptrs, shorter, mask=mask)


@triton.jit(do_not_specialize=["k"])
def _squares_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    n,
    k,
    stride_db,
    stride_dm,
    FLOOR: tl.constexpr,
    EDGE: tl.constexpr,
    SQUARE: tl.constexpr,
):
    """Update EDGE x EDGE squares of SQUARE x SQUARE values, one by each thread. Axis 0 of the grid
    is blocks of these squares, axis 1 the graph.
    """
    blocks = tl.cdiv(n, EDGE * SQUARE)
    first_m = (tl.program_id(0) // blocks * EDGE + tl.arange(0, EDGE)) * SQUARE
    first_n = (tl.program_id(0) % blocks * EDGE + tl.arange(0, EDGE)) * SQUARE
    d_ptr += tl.program_id(1).to(tl.int64) * stride_db
    for h in range(SQUARE):
        for w in tl.static_range(SQUARE):
            ptrs, mask, d_ij, shorter = _relax_block(
                d_ptr, first_m + h, first_n + w, k, n, stride_dm, FLOOR
            )
            tl.store(ptrs, shorter, mask=mask & (shorter < d_ij))


class RankOneMethod(PaperMethod):
    """For each vertex k one launch: D[i, j] <- min(D[i, j], D[i, k] + D[k, j]) for all i and j.

    Row and column k do not change in step k, since D[k, k] is 0: threads write there what they have
    read, or nothing. With a negative cycle they do change, in any order, but its vertices keep a
    negative diagonal, by which the solver finds it.
    """

    def solve(self, d: Block, engine: Engine, observer: Observer) -> None:
        batch, n, _ = d.shape
        kernel, constants, programs = self._kernel(n)
        launch = launcher(kernel, FLOOR=floor_of(engine), num_warps=_THREADS // 32, **constants)
        for k in range(n):
            for (part,) in in_parts(d):
                launch((programs, part.shape[0], 1), part, n, k, *part.stride()[:2])
            observer.step(batch * n * n, d)

    @abstractmethod
    def _kernel(self, n: int) -> tuple[Any, dict[str, int], int]:
        """Return the kernel, its constants besides FLOOR, and how many of its programs a graph of n
        vertices takes.
        """


class HarishNarayanan(RankOneMethod):
    """One thread per pair of vertices (2007); n passes over the whole matrix, no workspace.

        for k from 1 to n:                                   # on the host, one launch each
            for all pairs (i, j) in parallel:                # on the GPU, one thread each
                w[i, j] <- min(w[i, j], w[i, k] + w[k, j])

    A thread reads three values from global memory and writes one: 16 bytes for one addition and one
    minimum, so that the memory limits the speed ("saturates the global memory bus", Lund and
    Smith). On a Tesla C1060 it took 208.6 s for n = 8192.
    """

    def _kernel(self, n: int) -> tuple[Any, dict[str, int], int]:
        return _harish_narayanan_kernel, {"BLOCK": _THREADS}, n * -(-n // _THREADS)


class Vectorised(RankOneMethod):
    """Several neighbouring columns per thread (2023); n passes over the whole matrix, no workspace.
    The parameter is the columns of a thread.

        for k from 0 to n - 1:                               # on the host, one launch each
            for all i, and all groups J of four columns:     # one thread each
                ij, kj <- graph[i][J], graph[k][J]           # short4: one load of 8 bytes each
                ik <- graph[i][k], four times
                graph[i][J] <- minimum of ij and ik + kj, value by value

    Each thread moves four values with one instruction, where the rows are aligned: the paper
    allocates them so, and this project pads them. The paper has four columns per thread; other
    numbers show what the width of an access is worth.
    """

    def _kernel(self, n: int) -> tuple[Any, dict[str, int], int]:
        width = self.parameter
        programs = -(-n // _EDGE) * -(-n // (_EDGE * width))
        return _vectorised_kernel, {"EDGE": _EDGE, "WIDTH": width}, programs


class PseudoBlocked(RankOneMethod):
    """A square of values per thread, one after another (2023); n launches, each reads the whole
    matrix and writes what has improved; no workspace. The parameter is b.

        for k from 0 to n - 1:                               # on the host, one launch each
            for all squares of b x b values in parallel:     # one thread each
                for h from 0 to b - 1:  for w from 0 to b - 1:
                    i, j <- row h and column w of the square
                    if graph[i][k] + graph[k][j] < graph[i][j]:
                        graph[i][j] <- graph[i][k] + graph[k][j]

    Blocks without shared memory: a thread reads row k once for its b rows, where the caches keep
    it. But neighbouring threads are b columns apart, so that a warp touches b times as many cache
    lines with each access. The paper found b = 4 best of 1 to 32.
    """

    def _kernel(self, n: int) -> tuple[Any, dict[str, int], int]:
        square = self.parameter
        programs = (-(-n // (_EDGE * square))) ** 2
        return _squares_kernel, {"EDGE": _EDGE, "SQUARE": square}, programs


class Simple(PseudoBlocked):
    """The same with b = 1: blocks of 16 x 16 threads that write only where a path gets shorter.

    Few pairs improve in a step, so that most of the writes of harish_narayanan are saved. The 16
    rows of a block share row k, its 16 columns share column k, which the caches serve. The paper's
    weights are of type short, and 256 threads were best.
    """

    def __init__(self, parameter: int = 0) -> None:
        super().__init__(1)
