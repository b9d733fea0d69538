"""Which calls must be operations of torch: for derivatives, torch.compile, torch.jit, torch.func,
or a subclass of tensors.
"""

from typing import Any

import torch
from torch.autograd import forward_ad

from tri_apsp.errors import InputError

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def needs_operation(*tensors: Any) -> bool:
    """Return whether a call with these arguments, of which some may be no tensors, must be one
    operation of torch (ops/).
    """
    if (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack()
    ):
        return True
    gradients = torch.is_grad_enabled()
    functorch = torch._C._functorch
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
            continue
        # An operation also batches for is_grads_batched, and resolves a negative bit, which
        # kernels do not see.
        if (
            (gradients and tensor.requires_grad)
            or type(tensor) not in _PLAIN
            or functorch.is_legacy_batchedtensor(tensor)
            or functorch.is_functorch_wrapped_tensor(tensor)
            or tensor.is_neg()
            or has_tangent(tensor)
        ):
            return True
    return False


def operation_error(option: str, remedy: str) -> InputError:
    """Return the error for an argument that an operation of torch does not take."""
    return InputError(
        f"`{option}` must not be given with weights that require a gradient, or under "
        f"torch.compile, a transform of torch.func or a dispatch mode of torch; {remedy}"
    )


def has_functorch_wrapper(*tensors: torch.Tensor | None) -> bool:
    """Return whether torch.func transforms a call with these arguments, and torch.compile does not
    trace it.
    """
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return not torch.compiler.is_compiling() and any(
        tensor is not None and wrapped(tensor) for tensor in tensors
    )


def has_tangent(*tensors: Any) -> bool:
    """Return whether forward mode differentiates with respect to one of these arguments; never
    while torch.compile traces.
    """
    # Outside of every level, torch has cleared all tangents.
    if forward_ad._current_level < 0 or torch.compiler.is_compiling():
        return False
    return any(isinstance(x, torch.Tensor) and _is_dual(x) for x in tensors)


def _is_dual(tensor: torch.Tensor) -> bool:
    functorch = torch._C._functorch
    # vmap does not know unpack_dual.
    dual = None if functorch.is_batchedtensor(tensor) else forward_ad.unpack_dual(tensor)  # type: ignore[no-untyped-call]
    if dual is not None and dual.tangent is not None:
        return True
    return functorch.is_functorch_wrapped_tensor(tensor) and _is_dual(
        functorch.get_unwrapped(tensor)
    )
