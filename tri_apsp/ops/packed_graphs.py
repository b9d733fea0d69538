"""Operations of autograd for packed batches: a solve with its gradient, pack and unpack."""

import dataclasses
from typing import Any

import torch

from tri_apsp.configs import Config
from tri_apsp.dense import packed_graphs
from tri_apsp.ops.refusals import Gradient, refuse_hidden_derivatives
from tri_apsp.plan import Options
from tri_apsp.request import Request
from tri_apsp.result import Result

Tensor = torch.Tensor


def solve_packed(request: Request, *, wanted: bool) -> Result:
    """As tri_apsp.shortest_paths of packed graphs; `wanted` tells whether to find predecessors,
    even if the caller does not want them.
    """
    options = request.options._replace(predecessors=wanted)
    operation: Any = _PackedSolve.apply
    distances, result = operation(
        request.weights, request.offsets, request.method, request.config, options
    )
    predecessors = result.predecessors if request.options.predecessors else None
    found: Result = dataclasses.replace(result, distances=distances, predecessors=predecessors)
    return found


class _PackedSolve(torch.autograd.Function):
    """A solve of packed graphs: the distances, which have a gradient, and the whole result."""

    @staticmethod
    def forward(
        ctx: Any,
        weights: Tensor,
        offsets: Tensor,
        method: str,
        config: Config | None,
        options: Options,
    ) -> tuple[Tensor, Result]:
        weights = weights.detach()
        plan = packed_graphs.plan_packed(weights, offsets, method, config, options)
        result = packed_graphs.run_packed(weights, plan)
        ctx.save_for_backward(weights, result.distances, offsets, result.predecessors)
        ctx.check = options.check
        return result.distances, result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: object) -> tuple[Tensor | None, ...]:
        weights, distances, offsets, predecessors = ctx.saved_tensors
        found = _PackedSolveBackward.apply(
            gradient, weights, distances, offsets, predecessors, ctx.check
        )
        return found, None, None, None, None


class _PackedSolveBackward(Gradient):
    forward = staticmethod(packed_graphs.packed_gradient)


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
        values, offsets = packed_graphs.pack(matrices.detach(), sizes)
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
        matrices, sizes = packed_graphs.unpack(values.detach(), offsets, fill=fill)
        ctx.save_for_backward(sizes)
        ctx.mark_non_differentiable(sizes)
        return matrices, sizes

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        (sizes,) = ctx.saved_tensors
        return pack(gradient, sizes)[0], None, None
