"""Custom operations of PyTorch for dense weights: a solve, a product and a closure, with their
gradients.
"""

import dataclasses
import json
import operator
from typing import Any

import torch
from torch import library

from tri_apsp.arguments import check_operands, check_weights
from tri_apsp.configs import Config, CpuTiles, GpuTiles
from tri_apsp.dense.plan import DensePlan, plan_dense
from tri_apsp.dense.product import product
from tri_apsp.dense.run import solve as solve_dense
from tri_apsp.dense_reachability import reachability_of
from tri_apsp.dispatch import has_functorch_wrapper, needs_operation, operation_error
from tri_apsp.errors import InputError
from tri_apsp.ops.packed_graphs import solve_packed
from tri_apsp.ops.refusals import Gradient, Operation, refuse_hidden_derivatives
from tri_apsp.paths.gradient import product_gradients, weights_gradient
from tri_apsp.plan import Options
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.semirings import SEMIRINGS, solved_dtype

Tensor = torch.Tensor

# The fields of a configuration and of tiles, by name, which torch.compile can trace.
_FIELDS = tuple(field.name for field in dataclasses.fields(Config))
_TILES = {
    kind: tuple(field.name for field in dataclasses.fields(kind)) for kind in (CpuTiles, GpuTiles)
}


def shortest_paths(request: Request) -> Result:
    """As tri_apsp.shortest_paths, for dense weights, by a dense method; its names and the
    configuration are constants.
    """
    weights, options = request.weights, request.options
    assert weights is not None
    refuse_hidden_derivatives(weights)
    refused = {
        "sources": request.sources is not None,
        "out": request.out is not None or options.overwrite,
        f"method={request.method!r}": request.needs_sparse,
    }
    for option in [name for name, is_given in refused.items() if is_given]:
        remedy = "leave it out, or call .detach() on weights that require a gradient."
        raise operation_error(option, remedy)
    # To mark pairs, the solve finds more than a gradient could find again from its distances.
    marks = options.negative_cycles == "mark" and weights.requires_grad
    wanted = options.predecessors or marks
    if request.offsets is not None:
        if torch.compiler.is_compiling() or has_functorch_wrapper(weights):
            raise InputError(
                "`offsets` must not be given under torch.compile or a transform of torch.func; "
                "give padded weights and `sizes`."
            )
        return solve_packed(request, wanted=wanted)
    assert request.batch is not None
    sizes = request.batch.sizes
    shape = tuple(map(operator.index, weights.shape))  # constants of a trace
    plan, text = _plan(
        shape, weights.dtype, weights.device, request.method, _constants(request.config)
    )
    operation: Any = (
        _Solve.apply if has_functorch_wrapper(weights) else torch.ops.tri_apsp.shortest_paths
    )
    distances, found = operation(
        weights,
        sizes,
        request.method,
        text,
        options.check,
        wanted,
        options.negative_cycles,
        float(options.weight_error),
    )
    return Result(distances, plan, found if options.predecessors else None)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _plan(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    method: str,
    config: tuple[Any, ...],
) -> tuple[DensePlan, str]:
    """Return the plan, and the constants of the configuration as text for the operation."""
    text = json.dumps(config)
    like = torch.empty((1,) * len(shape), dtype=solved_dtype(dtype), device=device).expand(shape)
    return plan_dense(check_weights(like), method, _config(text)), text


def _constants(config: Config | None) -> tuple[Any, ...]:
    """Return the fields of a configuration as constants that torch.compile can trace."""
    if config is None:
        return ()
    values = []
    for field in _FIELDS:
        value = getattr(config, field)
        for kind, names in _TILES.items():
            if isinstance(value, kind):
                value = [getattr(value, name) for name in names]
        values.append(value)
    return tuple(values)


def _config(text: str) -> Config | None:
    """Return the configuration that _constants made a text of."""
    values = json.loads(text)
    tiles = {len(names): kind for kind, names in _TILES.items()}
    fields: list[Any] = [tiles[len(x)](*x) if isinstance(x, list) else x for x in values]
    return Config(*fields) if fields else None


@library.custom_op("tri_apsp::shortest_paths", mutates_args=())
def _shortest_paths(
    weights: Tensor,
    sizes: Tensor | None,
    method: str,
    config: str,
    check: bool,
    predecessors: bool,
    negative_cycles: str,
    weight_error: float,
) -> tuple[Tensor, Tensor]:
    """Return distances, and predecessors, which are empty unless they are asked for."""
    result = solve_dense(
        weights.detach(),
        sizes=sizes,
        method=method,
        config=_config(config),
        options=Options(
            check=check,
            predecessors=predecessors,
            negative_cycles=negative_cycles,  # type: ignore[arg-type]
            weight_error=weight_error,
        ),
    )
    found = (
        weights.new_empty(0, dtype=torch.int32)
        if result.predecessors is None
        else result.predecessors
    )
    return _no_view(result.distances), _no_view(found)


def _no_view(tensor: Tensor) -> Tensor:
    """Return the same memory as a tensor of its own, which a caller may change in place although it
    has a gradient.
    """
    found: Tensor = torch.ops.aten._unsafe_view(tensor, tensor.shape)
    return found


@_shortest_paths.register_fake
def _(
    weights: Tensor,
    sizes: Tensor | None,
    method: str,
    config: str,
    check: bool,
    predecessors: bool,
    negative_cycles: str,
    weight_error: float,
) -> tuple[Tensor, Tensor]:
    dtype = solved_dtype(weights.dtype)
    found = weights.new_empty(weights.shape if predecessors else (0,), dtype=torch.int32)
    return weights.new_empty(weights.shape, dtype=dtype), found


def _solve_backward(
    gradient: Tensor,
    weights: Tensor,
    distances: Tensor,
    sizes: Tensor | None,
    predecessors: Tensor,
    check: bool,
) -> Tensor:
    found = predecessors if predecessors.shape == weights.shape else None
    return weights_gradient(gradient, weights.detach(), distances, sizes, found, check=check)


_shortest_paths_backward = library.custom_op(
    "tri_apsp::shortest_paths_backward", _solve_backward, mutates_args=()
)


@_shortest_paths_backward.register_fake
def _(
    gradient: Tensor,
    weights: Tensor,
    distances: Tensor,
    sizes: Tensor | None,
    predecessors: Tensor,
    check: bool,
) -> Tensor:
    return weights.new_empty(weights.shape)


def _save_solve(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    weights, sizes, _, _, check, *_ = inputs
    distances, predecessors = output
    ctx.save_for_backward(weights, distances, sizes, predecessors)
    ctx.mark_non_differentiable(predecessors)
    ctx.check = check


def _gradient_of_solve(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    weights, distances, sizes, predecessors = ctx.saved_tensors
    tensors = gradient, weights, distances
    # An operation only where torch must see it: it takes longer than the gradient of a small graph.
    operation = _SolveBackward.apply if needs_operation(*tensors) else _solve_backward
    found = operation(*tensors, sizes, predecessors, ctx.check)
    return found, *[None] * 7


_shortest_paths.register_autograd(_gradient_of_solve, setup_context=_save_solve)


class _SolveBackward(Gradient):
    forward = staticmethod(_shortest_paths_backward)


class _Solve(Operation):
    """The same operation for torch.func.grad, which does not see the gradients of a custom
    operation.
    """

    forward = staticmethod(_shortest_paths)
    setup_context = staticmethod(_save_solve)
    backward = staticmethod(_gradient_of_solve)


def _as_batch(info: Any, tensor: Tensor | None, dim: int | None, last: int) -> Tensor | None:
    """Return what vmap maps over as one batch: its dimension first, merged with that of the tensor,
    of `last` dimensions.
    """
    if tensor is None:
        return None
    tensor = (
        tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    )
    return tensor.flatten(0, tensor.dim() - last - 1)


def _of_samples(info: Any, batch: Tensor, like: Tensor, dim: int | None) -> Tensor:
    """Return a batch of matrices that _as_batch merged, with the dimension of vmap first; `like` is
    an argument over whose dimension `dim` vmap maps.
    """
    sample = [length for place, length in enumerate(like.shape) if place != dim]
    return batch.reshape(info.batch_size, *sample[:-2], *batch.shape[1:])


@_shortest_paths.register_vmap
def _(
    info: Any, in_dims: Any, weights: Tensor, sizes: Tensor | None, *options: Any
) -> tuple[Any, Any]:
    graphs = _as_batch(info, weights, in_dims[0], 2)
    given = _as_batch(info, sizes, in_dims[1], 0)
    distances, predecessors = torch.ops.tri_apsp.shortest_paths(graphs, given, *options)
    found = (
        predecessors.new_empty((info.batch_size, 0))
        if predecessors.dim() == 1  # they were not asked for
        else _of_samples(info, predecessors, weights, in_dims[0])
    )
    return (_of_samples(info, distances, weights, in_dims[0]), found), (0, 0)


@_shortest_paths_backward.register_vmap
def _(
    info: Any,
    in_dims: Any,
    gradient: Tensor,
    weights: Tensor,
    distances: Tensor,
    sizes: Tensor | None,
    predecessors: Tensor,
    check: bool,
) -> tuple[Tensor, int]:
    tensors = (gradient, weights, distances, sizes, predecessors)
    operands = [
        _as_batch(info, tensor, dim, 0 if tensor is sizes else 2)
        for tensor, dim in zip(tensors, in_dims, strict=False)
    ]
    result = torch.ops.tri_apsp.shortest_paths_backward(*operands, check)
    return _of_samples(info, result, weights, in_dims[1]), 0


def semiring_product(
    a: Tensor, b: Tensor, c: Tensor | None, semiring: str, *, arguments: bool, check: bool
) -> tuple[Tensor, Tensor]:
    """As tri_apsp.semiring_product, with the arguments, which are empty unless they are wanted."""
    if not all(
        isinstance(operand, torch.Tensor) for operand in ((a, b) if c is None else (a, b, c))
    ):
        check_operands(a, b, c)  # refuses them
    refuse_hidden_derivatives(a, b, c)
    operation: Any = (
        _Product.apply if has_functorch_wrapper(a, b, c) else torch.ops.tri_apsp.semiring_product
    )
    result: tuple[Tensor, Tensor] = operation(a, b, c, semiring, arguments, check)
    return result


@library.custom_op("tri_apsp::semiring_product", mutates_args=())
def _semiring_product(
    a: Tensor, b: Tensor, c: Tensor | None, semiring: str, arguments: bool, check: bool
) -> tuple[Tensor, Tensor]:
    operands = a.detach(), b.detach(), None if c is None else c.detach()
    result, chosen = product(*operands, SEMIRINGS[semiring], arguments=arguments, check=check)
    empty = a.new_empty(0, dtype=torch.int64)
    return _no_view(result), empty if chosen is None else _no_view(chosen)


@_semiring_product.register_fake
def _(
    a: Tensor, b: Tensor, c: Tensor | None, semiring: str, arguments: bool, check: bool
) -> tuple[Tensor, Tensor]:
    shape = (*a.shape[:-1], b.shape[-1])
    chosen = a.new_empty(shape if arguments else (0,), dtype=torch.int64)
    return a.new_empty(shape, dtype=solved_dtype(a.dtype)), chosen


def _product_backward(
    gradient: Tensor, a: Tensor, b: Tensor, c: Tensor | None, result: Tensor, semiring: str
) -> list[Tensor]:
    operands = a.detach(), b.detach(), None if c is None else c.detach()
    return product_gradients(gradient, *operands, result, SEMIRINGS[semiring])


_semiring_product_backward = library.custom_op(
    "tri_apsp::semiring_product_backward", _product_backward, mutates_args=()
)


@_semiring_product_backward.register_fake
def _(
    gradient: Tensor, a: Tensor, b: Tensor, c: Tensor | None, result: Tensor, semiring: str
) -> list[Tensor]:
    return [x.new_empty(x.shape) for x in (a, b, c) if x is not None]


def _save_product(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    a, b, c, semiring, *_ = inputs
    ctx.save_for_backward(a, b, c, output[0])
    ctx.mark_non_differentiable(output[1])
    ctx.semiring = semiring


def _gradients_of_product(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    a, b, c, result = ctx.saved_tensors
    tensors = gradient, a, b, c, result
    with torch.no_grad():
        is_plain = not needs_operation(*tensors)
    if ctx.semiring == "log" and is_plain:  # by operations that have derivatives
        found = product_gradients(*tensors, SEMIRINGS["log"])
    else:
        operation = _ProductBackward.apply if needs_operation(*tensors) else _product_backward
        found = operation(*tensors, ctx.semiring)
    return found[0], found[1], found[2] if c is not None else None, None, None, None


_semiring_product.register_autograd(_gradients_of_product, setup_context=_save_product)


class _ProductBackward(Gradient):
    @staticmethod
    def forward(
        gradient: Tensor, a: Tensor, b: Tensor, c: Tensor | None, result: Tensor, semiring: str
    ) -> tuple[Tensor, ...]:
        return tuple(_semiring_product_backward(gradient, a, b, c, result, semiring))


class _Product(Operation):
    """As _Solve."""

    forward = staticmethod(_semiring_product)
    setup_context = staticmethod(_save_product)
    backward = staticmethod(_gradients_of_product)


@_semiring_product.register_vmap
def _(
    info: Any,
    in_dims: Any,
    a: Tensor,
    b: Tensor,
    c: Tensor | None,
    semiring: str,
    arguments: bool,
    check: bool,
) -> tuple[Any, Any]:
    operands = [
        _as_batch(info, tensor, dim, 2) for tensor, dim in zip((a, b, c), in_dims[:3], strict=True)
    ]
    result, chosen = torch.ops.tri_apsp.semiring_product(*operands, semiring, arguments, check)
    found = (
        _of_samples(info, chosen, a, in_dims[0])
        if arguments
        else chosen.new_empty((info.batch_size, 0))
    )
    return (_of_samples(info, result, a, in_dims[0]), found), (0, 0)


@_semiring_product_backward.register_vmap
def _(
    info: Any,
    in_dims: Any,
    gradient: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor | None,
    result: Tensor,
    semiring: str,
) -> tuple[list[Tensor], list[int]]:
    tensors = (gradient, a, b, c, result)
    operands = [
        _as_batch(info, tensor, dim, 2) for tensor, dim in zip(tensors, in_dims[:5], strict=True)
    ]
    found = torch.ops.tri_apsp.semiring_product_backward(*operands, semiring)
    return [_of_samples(info, x, a, in_dims[1]) for x in found], [0] * len(found)


def reachability(adjacency: Tensor) -> Tensor:
    """As tri_apsp.reachability."""
    result: Tensor = torch.ops.tri_apsp.reachability(adjacency)
    return result


@library.custom_op("tri_apsp::reachability", mutates_args=())
def _reachability(adjacency: Tensor) -> Tensor:
    return reachability_of(adjacency)


@_reachability.register_fake
def _(adjacency: Tensor) -> Tensor:
    return adjacency.new_empty(adjacency.shape, dtype=torch.bool)


@_reachability.register_vmap
def _(info: Any, in_dims: Any, adjacency: Tensor) -> tuple[Tensor, int]:
    result = torch.ops.tri_apsp.reachability(_as_batch(info, adjacency, in_dims[0], 2))
    return _of_samples(info, result, adjacency, in_dims[0]), 0
