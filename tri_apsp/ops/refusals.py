"""Derivatives that no operation has: gradients of gradients, and forward mode."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from tri_apsp.errors import InputError

__all__ = ["refuse_forward_mode", "refuse_second_derivatives", "save_nothing"]


def save_nothing(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
    """Save nothing of an operation whose gradient is refused."""


def refuse_second_derivatives(ctx: Any, *gradients: object) -> tuple[torch.Tensor | None, ...]:
    """Raise InputError, as the gradient of an operation of gradients."""
    raise InputError(
        "gradients of shortest_paths and min_plus must not be differentiated again, since there are no second derivatives; "
        "take them without create_graph=True, or call .detach() on them."
    )


def refuse_forward_mode(ctx: Any, *tangents: object) -> NoReturn:
    """Raise InputError, as the product of an operation's Jacobian with a vector."""
    raise InputError(
        "shortest_paths and min_plus must be differentiated in reverse mode, since they have no forward mode; use backward(), "
        "torch.func.grad, vjp or jacrev."
    )
