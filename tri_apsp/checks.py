"""Every check of what a caller hands over. Nothing here changes a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch

from tri_apsp.device import check_memory, check_product_memory
from tri_apsp.errors import DistanceRangeError, InputError
from tri_apsp.semirings import DTYPES, distance_range, dtype_name, no_edge

__all__ = [
    "Bounds",
    "Problem",
    "check_copy_fits",
    "check_operands",
    "check_overwrite",
    "check_product_fits",
    "check_values",
    "check_weights",
    "largest_below",
    "largest_weight",
    "row_blocks",
]

# A scan of more than _SMALL values goes in _BLOCKS parts, so that its masks take little memory.
_BLOCKS = 32
_SMALL = 1 << 16


class Bounds(NamedTuple):
    """The smallest and the largest value of a tensor; both 0 where it has none."""

    lowest: float | int
    highest: float | int


@dataclass(frozen=True)
class Problem:
    """Checked weights as (batch, n, n), and the bounds of their values; None where nobody looked."""

    weights: torch.Tensor
    batched: bool
    bounds: Bounds | None

    @property
    def n(self) -> int:
        return self.weights.shape[-1]

    @property
    def batch(self) -> int:
        return self.weights.shape[0]


def check_weights(weights: object, *, scan: bool = True) -> Problem:
    """Check the argument of shortest_paths; `scan` also reads the values, which waits for the device.

    Raises:
        InputError: not a dense real tensor (n, n) or (batch, n, n) of our dtypes; NaN, minus infinity, or an integer
            outside [-no_edge, no_edge].
        DistanceRangeError: negative integer weights beside one that the dtype cannot keep apart from "no edge".
    """
    tensor = _check_tensor(weights, "weights")
    if tensor.dim() not in (2, 3) or tensor.shape[-1] != tensor.shape[-2]:
        raise InputError(
            f"`weights` must be square, (n, n) or (batch, n, n), but has shape {tuple(tensor.shape)}; "
            "pad missing vertices with no_edge."
        )
    batched = tensor.dim() == 3
    tensor = tensor if batched else tensor[None]
    if not scan:
        return Problem(tensor, batched, bounds=None)
    bounds = check_values(tensor, "weights")
    if bounds.lowest < 0 and not tensor.is_floating_point():
        _check_negative_integers(tensor, bounds)
    return Problem(tensor, batched, bounds)


def check_operands(a: object, b: object, c: object | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, bool]:
    """Check the arguments of min_plus, without their values; return them as (batch, ., .) and whether they had a batch.

    Raises:
        InputError: not dense real tensors of one of our dtypes on one device, or shapes that do not fit.
    """
    named = {"a": _check_tensor(a, "a"), "b": _check_tensor(b, "b")}
    if c is not None:
        named["c"] = _check_tensor(c, "c")
    first = named["a"]
    for name, tensor in named.items():
        if tensor.device != first.device:
            raise InputError(
                f"`a`, `b` and `c` must be on one device, but `a` is on {first.device} and `{name}` on {tensor.device}; "
                "move one of them."
            )
        if tensor.dtype != first.dtype:
            raise InputError(
                f"`a`, `b` and `c` must have one dtype, but `a` is {dtype_name(first.dtype)} and `{name}` "
                f"{dtype_name(tensor.dtype)}; convert one of them."
            )
    shapes = {name: tuple(tensor.shape) for name, tensor in named.items()}
    batched = len(shapes["a"]) == 3
    fits = len(shapes["a"]) in (2, 3) and len(shapes["b"]) == len(shapes["a"]) and shapes["a"][-1] == shapes["b"][-2]
    if not fits or (batched and shapes["a"][0] != shapes["b"][0]):
        raise InputError(
            f"`a` and `b` must have shapes (m, k) and (k, n), or (batch, m, k) and (batch, k, n), but have {shapes['a']} "
            f"and {shapes['b']}; reshape one of them."
        )
    result = (*shapes["a"][:-1], shapes["b"][-1])
    if c is not None and shapes["c"] != result:
        raise InputError(f"`c` must have the shape of the product, {result}, but has {shapes['c']}; reshape it.")
    if not batched:
        named = {name: tensor[None] for name, tensor in named.items()}
    return named["a"], named["b"], named.get("c"), batched


def check_overwrite(weights: torch.Tensor) -> None:
    """Refuse to overwrite a tensor whose elements share memory with each other, such as an expanded one.

    Raises:
        InputError: if two elements may lie at one address.
    """
    span = 1
    for size, stride in sorted(zip(weights.shape, weights.stride(), strict=True), key=lambda pair: pair[1]):
        if size > 1 and stride < span:
            raise InputError(
                f"`weights` must not overlap itself in memory to be overwritten, but has strides {weights.stride()}; "
                "call contiguous() on it first, or leave overwrite out."
            )
        span = max(span, stride * size)


def check_copy_fits(problem: Problem, matrices: float) -> None:
    """Refuse a solve whose `matrices` copies of the weights do not fit the device (TooLargeError)."""
    weights = problem.weights
    if weights.numel() > _SMALL:  # smaller ones always fit, and asking costs as much as solving them
        check_memory(problem.n, problem.batch, weights.dtype, weights.device, matrices=matrices)


def check_product_fits(shape: tuple[int, int, int], like: torch.Tensor) -> None:
    """Refuse a product of `shape` that does not fit the device of `like` (TooLargeError)."""
    if shape[0] * shape[1] * shape[2] > _SMALL:
        check_product_memory(*shape, like.dtype, like.device)


def row_blocks(matrices: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield about _BLOCKS views that cover (batch, m, n): whole matrices of a large batch, else rows of one matrix.

    A mask and a copy of one of them take less than 5% of the whole.
    """
    batch, rows, _ = matrices.shape
    if matrices.numel() <= _SMALL:
        yield matrices
    elif batch >= _BLOCKS:
        yield from torch.split(matrices, -(-batch // _BLOCKS))
    else:
        for matrix in matrices:
            yield from torch.split(matrix, max(1, rows * batch // _BLOCKS))


def largest_below(matrices: torch.Tensor, bound: float | int) -> float | int | None:
    """Return the largest value below `bound`, or None if there is none."""
    smallest = -float("inf") if matrices.is_floating_point() else torch.iinfo(matrices.dtype).min
    blocks = [block.masked_fill(block >= bound, smallest).amax() for block in row_blocks(matrices) if block.numel()]
    largest = torch.stack(blocks).amax().item() if blocks else smallest
    return None if largest == smallest else largest


def largest_weight(tensor: torch.Tensor, bounds: Bounds) -> float | int | None:
    """Return the largest value that is not "no edge", or None; reads the tensor only where some value is "no edge"."""
    infinity = no_edge(tensor.dtype)
    return bounds.highest if tensor.numel() and bounds.highest < infinity else largest_below(tensor, infinity)


def _check_tensor(value: object, name: str) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise InputError(
            f"`{name}` must be a torch tensor, but is {type(value).__name__}; convert it with from_numpy, from_scipy or "
            "from_networkx."
        )
    if value.layout != torch.strided:
        raise InputError(
            f"`{name}` must be a dense tensor, but has layout {str(value.layout).removeprefix('torch.')}; build a dense one "
            "with from_scipy, where a missing entry becomes no_edge rather than 0."
        )
    if value.dtype not in DTYPES:
        valid = ", ".join(map(dtype_name, DTYPES))
        raise InputError(f"`{name}` must have one of the dtypes {valid}, but has {dtype_name(value.dtype)}; convert it.")
    if value.device.type not in ("cpu", "cuda"):
        raise InputError(f"`{name}` must be on the CPU or a CUDA device, but is on {value.device}; move it.")
    return value.detach()


def check_values(tensor: torch.Tensor, name: str) -> Bounds:
    """Refuse values that are no weights, by the rules of check_weights (InputError); return their bounds."""
    if tensor.numel() == 0:
        return Bounds(0, 0)
    lowest, highest = (bound.item() for bound in tensor.aminmax())
    if lowest != lowest:
        raise InputError(
            f"`{name}` must hold numbers, but has NaN at {_where(tensor.isnan())}; replace it, by inf for no edge."
        )
    if lowest == -float("inf"):
        raise InputError(
            f"`{name}` must be greater than minus infinity, but is -inf at {_where(tensor == lowest)}; replace it by a finite "
            "weight."
        )
    if not tensor.is_floating_point():
        limit = no_edge(tensor.dtype)
        for value in (lowest, highest):
            if abs(value) > limit:
                raise InputError(
                    f"`{name}` of dtype {dtype_name(tensor.dtype)} must lie in [-{limit}, {limit}], where {limit} means no "
                    f"edge, but one is {value} at {_where(tensor == value)}; use tri_apsp.no_edge(dtype) for missing edges, "
                    "or a wider dtype."
                )
    return Bounds(lowest, highest)


def _check_negative_integers(tensor: torch.Tensor, bounds: Bounds) -> None:
    allowed = distance_range(tensor.dtype, negative=True)
    for value in (bounds.lowest, largest_weight(tensor, bounds)):
        if value is not None and not allowed.lowest <= value < allowed.beyond:
            raise DistanceRangeError(
                f"beside negative weights, {dtype_name(tensor.dtype)} weights must lie in "
                f"[{allowed.lowest}, {allowed.beyond}), but one is {value}; use a wider dtype."
            )


def _where(mask: torch.Tensor) -> tuple[int, ...]:
    """Return the index of the first true element, without a batch dimension of 1."""
    index = tuple(int(i) for i in mask.nonzero()[0])
    return index[1:] if mask.shape[0] == 1 else index
