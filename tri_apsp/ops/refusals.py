"""Derivatives that no operation has: gradients of gradients, and forward mode."""

from typing import Any, ClassVar, NoReturn

import torch

from tri_apsp.dispatch import has_tangent
from tri_apsp.errors import InputError

_NO_FORWARD_MODE = (
    "tri_apsp must be differentiated once and in reverse mode, since it has no second derivatives "
    "and no forward mode; use backward(), torch.func.grad, vjp or jacrev."
)


class Operation(torch.autograd.Function):
    """An operation that vmap batches, without forward mode."""

    apply: ClassVar[Any]  # to which torch gives no types
    generate_vmap_rule = True

    @staticmethod
    def jvp(ctx: Any, *tangents: object) -> NoReturn:
        raise InputError(_NO_FORWARD_MODE)


class Gradient(Operation):
    """A gradient of an operation, which has no derivatives itself; subclasses define `forward`."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
        """Save nothing."""

    @staticmethod
    def backward(ctx: Any, *gradients: object) -> NoReturn:
        raise InputError(
            "gradients of shortest_paths and min_plus must not be differentiated again, since "
            "there are no second derivatives; take them without create_graph=True, or call "
            ".detach() on them."
        )


def refuse_hidden_derivatives(*tensors: object) -> None:
    """Raise InputError for derivatives that custom operations of PyTorch would take as 0.

    That is, for dual tensors, and for a derivative by torch.func in a trace of torch.compile, which
    then runs the call eagerly.
    """
    if has_tangent(*tensors):
        raise InputError(_NO_FORWARD_MODE)
    if torch.compiler.is_compiling() and _is_differentiated():
        raise InputError(
            "tri_apsp must not be differentiated by torch.func in a graph of torch.compile, which "
            "would drop the derivative; use backward(), or compile without fullgraph=True, so that "
            "this call runs outside of the graph."
        )


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _is_differentiated() -> bool:
    """Return whether torch.func differentiates what is being traced; torch.compile traces anew
    where that changes.
    """
    layers = torch._C._functorch.get_interpreter_stack() or []
    return any(layer.key() != torch._C._functorch.TransformType.Vmap for layer in layers)
