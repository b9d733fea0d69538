"""Gradients on a GPU: the launches of the kernels in tri_apsp.kernels.shared, in their order; the
host does not block.
"""

from collections.abc import Callable
from typing import Any

import torch
import triton

from tri_apsp.device import describe
from tri_apsp.engines.base import MatrixSpec, PathOperations
from tri_apsp.gpu.launcher import Launcher, cached_launcher
from tri_apsp.kernels.shared import gradients
from tri_apsp.kernels.shared.argmin import _argmin_kernel

# Values per program of an elementwise kernel, or per step of a program that owns rows.
_BLOCK = 1024
# Row programs per multiprocessor, at most, so that their workspace stays in the L2 cache.
_PROGRAMS = 4

ARGMIN = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 8, "num_warps": 4}
"""The constants and options of the kernel that finds the terms of a product."""


class TritonGradients(PathOperations):
    """The gradients of the engines that launch Triton kernels."""

    spec: MatrixSpec
    no_edge: float | int
    product_of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

    def edge_gradient(self, gradient: torch.Tensor, predecessors: torch.Tensor) -> torch.Tensor:
        batch, n, _ = gradient.shape
        programs = min(batch * n, _PROGRAMS * describe(gradient.device).units)
        sums = gradient.new_empty((programs, 2, n), dtype=torch.int64)
        ancestors = gradient.new_empty((programs, 2, n), dtype=torch.int32)

        def add(largest: torch.Tensor, count_bits: int, edge_sums: torch.Tensor) -> None:
            cached_launcher(gradients._edge_sums_kernel, BLOCK=_block(n), num_warps=4)(
                (programs, 1, 1),
                edge_sums,
                sums,
                ancestors,
                gradient,
                predecessors,
                largest,
                batch * n,
                n,
                count_bits,
            )

        return _summed(gradient, predecessors, [(batch, n, n)], add)[0]

    def argmin(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        c = self.product_of(a, b) if c is None else c
        batch, m, n = c.shape
        found = torch.empty(c.shape, dtype=torch.int32, device=c.device)
        if found.numel():
            tiles = triton.cdiv(m, ARGMIN["BLOCK_M"]) * triton.cdiv(n, ARGMIN["BLOCK_N"])
            operation = self.spec.operation
            cached_launcher(_argmin_kernel, **ARGMIN, NO_EDGE=self.no_edge, OPERATION=operation)(
                (batch * tiles, 1, 1), found, a.mT.contiguous(), b.contiguous(), c, m, n, a.shape[2]
            )
        return c, found

    def factor_gradients(
        self, gradient: torch.Tensor, chosen: torch.Tensor, depth: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch, m, n = gradient.shape

        def add(
            largest: torch.Tensor, count_bits: int, a_sums: torch.Tensor, b_sums: torch.Tensor
        ) -> None:
            launch, blocks = _elementwise(gradients._factor_sums_kernel, m * n)
            launch(
                (batch * blocks, 1, 1),
                a_sums,
                b_sums,
                gradient,
                chosen,
                largest,
                m,
                n,
                depth,
                blocks,
                count_bits,
            )

        of_a, of_b = _summed(gradient, chosen, [(batch, m, depth), (batch, depth, n)], add)
        return of_a, of_b


def _summed(
    gradient: torch.Tensor,
    chosen: torch.Tensor,
    shapes: list[tuple[int, int, int]],
    add: Callable[..., None],
) -> list[torch.Tensor]:
    """Return sums of gradients, of `shapes`; `add` launches the kernel that adds them up as
    integers.
    """
    batch, values = gradient.shape[0], gradient[0].numel()
    count_bits = values.bit_length()
    largest = gradient.new_zeros(batch, dtype=torch.int64)
    launch, blocks = _elementwise(gradients._largest_kernel, values)
    launch((batch * blocks, 1, 1), largest, gradient, chosen, values, blocks)
    sums = [gradient.new_zeros(shape, dtype=torch.int64) for shape in shapes]
    add(largest, count_bits, *sums)
    results = [torch.empty_like(whole, dtype=gradient.dtype) for whole in sums]
    for result, whole in zip(results, sums, strict=True):
        values = whole[0].numel()
        launch, blocks = _elementwise(gradients._scale_kernel, values)
        launch((batch * blocks, 1, 1), result, whole, largest, values, blocks, count_bits)
    return results


def _elementwise(kernel: Any, values: int) -> tuple[Launcher, int]:
    """Return the launcher of a kernel that reads or writes each value of a graph once, and its
    programs per graph.
    """
    block = _block(values)
    return cached_launcher(kernel, BLOCK=block, num_warps=4), triton.cdiv(values, block)


def _block(values: int) -> int:
    return min(_BLOCK, max(32, 1 << (values - 1).bit_length()))
