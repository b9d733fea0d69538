"""Operations of autograd for packed batches: a solve with its gradient, pack and unpack."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tri_apsp.ops.refusals import refuse_hidden_derivatives, refuse_second_derivatives, save_nothing
from tri_apsp.solver import packed as solver
from tri_apsp.solver.result import Result
from tri_apsp.solver.run import solve as solve_dense

__all__ = ["pack", "solve_packed", "unpack"]

Tensor = torch.Tensor


def solve_packed(
    weights: Tensor, offsets: object, *, predecessors: bool, wanted: bool, **options: Any
) -> Result:
    """As solver.packed.solve_packed; `wanted` tells whether to find predecessors, `predecessors`
    whether to return them.
    """
    solve = partial(solver.solve_packed, solve=solve_dense, predecessors=wanted, **options)
    operation: Any = _PackedSolve.apply
    distances, result = operation(weights, offsets, solve, options["check"])
    found: Result = dataclasses.replace(
        result, distances=distances, predecessors=result.predecessors if predecessors else None
    )
    return found


class _PackedSolve(torch.autograd.Function):
    """A solve of packed graphs: returns the distances, which have a gradient, and the whole result."""

    @staticmethod
    def forward(
        ctx: Any,
        weights: Tensor,
        offsets: Tensor,
        solve: Callable[[Tensor, Tensor], Result],
        check: bool,
    ) -> tuple[Tensor, Result]:
        result = solve(weights.detach(), offsets)
        ctx.save_for_backward(weights, result.distances, offsets, result.predecessors)
        ctx.check = check
        return result.distances, result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: object) -> tuple[Tensor | None, ...]:
        weights, distances, offsets, predecessors = ctx.saved_tensors
        refuse_hidden_derivatives(gradient)
        operation: Any = _PackedSolveBackward.apply
        return (
            operation(gradient, weights, distances, offsets, predecessors, ctx.check),
            None,
            None,
            None,
        )


class _PackedSolveBackward(torch.autograd.Function):
    """The gradient of _PackedSolve."""

    forward = staticmethod(solver.packed_gradient)
    setup_context = staticmethod(save_nothing)
    backward = staticmethod(refuse_second_derivatives)


def pack(matrices: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """As tri_apsp.pack."""
    refuse_hidden_derivatives(matrices)
    operation: Any = _Packed.apply
    values, offsets = operation(matrices, sizes)
    return values, offsets


def unpack(values: Tensor, offsets: Tensor, fill: float | int | None) -> tuple[Tensor, Tensor]:
    """As tri_apsp.unpack."""
    refuse_hidden_derivatives(values)
    operation: Any = _Unpacked.apply
    matrices, sizes = operation(values, offsets, fill)
    return matrices, sizes


class _Packed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrices: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        values, offsets = solver.pack(matrices.detach(), sizes)
        ctx.save_for_backward(offsets)
        ctx.mark_non_differentiable(offsets)
        ctx.n = matrices.shape[-1]
        return values, offsets

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, None]:
        (offsets,) = ctx.saved_tensors
        matrices, _ = unpack(gradient, offsets, 0)
        missing = ctx.n - matrices.shape[-1]  # beyond the largest graph
        return torch.nn.functional.pad(matrices, (0, missing, 0, missing)), None


class _Unpacked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, offsets: Tensor, fill: float | int | None
    ) -> tuple[Tensor, Tensor]:
        matrices, sizes = solver.unpack(values.detach(), offsets, fill=fill)
        ctx.save_for_backward(sizes)
        ctx.mark_non_differentiable(sizes)
        return matrices, sizes

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        (sizes,) = ctx.saved_tensors
        return pack(gradient, sizes)[0], None, None
