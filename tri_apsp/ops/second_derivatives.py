"""What the operations of gradients share: they have no gradients of their own."""

from __future__ import annotations

from typing import Any

import torch

from tri_apsp.errors import InputError

__all__ = ["refuse_second_derivatives", "save_nothing"]


def save_nothing(ctx: Any, inputs: tuple[Any, ...], output: object) -> None:
    """Save nothing of an operation whose gradient is refused."""


def refuse_second_derivatives(ctx: Any, *gradients: object) -> tuple[torch.Tensor | None, ...]:
    """Raise InputError, as the gradient of an operation of gradients."""
    raise InputError(
        "gradients of shortest_paths and min_plus must not be differentiated again, since there are no second derivatives; "
        "take them without create_graph=True, or call .detach() on them."
    )
