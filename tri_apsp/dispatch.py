"""Which calls must be operations of torch: for gradients, torch.compile, torch.jit, torch.func, or a subclass of tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

__all__ = ["is_transformed", "needs_operation"]

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def needs_operation(*tensors: Any) -> bool:
    """Return whether a call with these arguments, of which some may be no tensors, must be one operation of torch (ops/)."""
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None or torch._C._len_torch_dispatch_stack():
        return True
    gradients = torch.is_grad_enabled()
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided:
            if gradients and tensor.requires_grad:
                return True
            # An operation also batches for is_grads_batched, and resolves a negative bit, which kernels do not see.
            batched = torch._C._functorch.is_legacy_batchedtensor(tensor)
            if type(tensor) not in _PLAIN or batched or tensor.is_neg() or is_transformed(tensor):
                return True
    return False


def is_transformed(*tensors: torch.Tensor | None) -> bool:
    """Return whether torch.func or forward mode transforms a call with these arguments, and torch.compile does not trace it."""
    if torch.compiler.is_compiling():
        return False
    given = [tensor for tensor in tensors if tensor is not None]
    if any(map(torch._C._functorch.is_functorch_wrapped_tensor, given)):
        return True
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in given)  # type: ignore[no-untyped-call]
