"""Every check of what a caller hands over. Nothing here changes a tensor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

import torch

from tri_apsp.device import check_memory, check_product_memory, is_small
from tri_apsp.errors import DistanceRangeError, InputError, TooLargeError
from tri_apsp.semirings import DTYPES, distance_range, dtype_name, no_edge
from tri_apsp.solver.value_range import Scan, scan

__all__ = [
    "Bounds",
    "Problem",
    "check_graphs",
    "check_operands",
    "check_overwrite",
    "check_values",
    "check_weights",
    "copies_fit",
    "padding_of",
    "product_fits",
]

_SIZE_DTYPES = (torch.int32, torch.int64)


class Bounds(NamedTuple):
    """The smallest value of a tensor, or 0 where it has none; and the largest that is not "no edge", or None."""

    lowest: float | int
    longest: float | int | None


@dataclass(frozen=True)
class Problem:
    """Weights as (batch, n, n), whose values nobody has checked yet, and the sizes, if any."""

    weights: torch.Tensor
    batched: bool
    sizes: torch.Tensor | None = None

    @property
    def n(self) -> int:
        return self.weights.shape[-1]

    @property
    def batch(self) -> int:
        return self.weights.shape[0]


def check_weights(weights: object, *, sizes: object | None = None, values: bool = True) -> Problem:
    """Check the arguments of shortest_paths; with `values` those of the sizes too, which waits for the device.

    The values of the weights are left to check_graphs, which a solve on a GPU calls when it has waited anyway.

    Raises:
        InputError: not a dense real tensor (n, n) or (batch, n, n) of our dtypes; sizes that do not fit the weights.
    """
    tensor = _check_tensor(weights, "weights")
    if tensor.dim() not in (2, 3) or tensor.shape[-1] != tensor.shape[-2]:
        raise InputError(
            f"`weights` must be square, (n, n) or (batch, n, n), but has shape {tuple(tensor.shape)}; "
            "pad missing vertices with no_edge."
        )
    batched = tensor.dim() == 3
    if sizes is not None:
        return Problem(tensor, batched, _check_sizes(sizes, tensor, values))
    return Problem(tensor if batched else tensor[None], batched)


def check_graphs(weights: torch.Tensor, sizes: torch.Tensor | None = None, found: Scan | None = None) -> Bounds:
    """Check the values of weights (batch, n, n); return their bounds.

    Args:
        weights: the graphs.
        sizes: (batch,), the leading vertices of each graph; rows and columns of others count as no_edge. None: all matter.
        found: what a scan below no_edge found in them, if there was one; 0 may count as one of their values, NaN as -inf.

    Raises:
        InputError: NaN, minus infinity, or an integer outside [-no_edge, no_edge].
        DistanceRangeError: negative integer weights beside one that the dtype cannot keep apart from "no edge".

    Cost: one scan, if there was none.
    """
    bounds = check_values(weights, "weights", sizes, found)
    if bounds.lowest < 0 and not weights.is_floating_point():
        _check_negative_integers(weights.dtype, bounds)
    return bounds


def padding_of(weights: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Return which vertices (batch, n) of weights (batch, n, n) are padding."""
    return torch.arange(weights.shape[-1], device=weights.device) >= sizes[:, None]


def _check_sizes(sizes: object, weights: torch.Tensor, values: bool) -> torch.Tensor:
    """Check the sizes of a batch of weights; `values` refuses those out of range, else they go to the nearest in range."""
    if not isinstance(sizes, torch.Tensor) or sizes.layout != torch.strided:
        raise InputError(
            f"`sizes` must be a dense torch tensor, but is {_kind(sizes)}; make one with torch.tensor(sizes, "
            "device=weights.device)."
        )
    if weights.dim() != 3:
        raise InputError(
            f"`sizes` must come with weights (batch, n, n), but these have shape {tuple(weights.shape)}; leave sizes out, "
            "or give the weights a batch dimension."
        )
    batch, n, _ = weights.shape
    if sizes.shape != (batch,):
        raise InputError(
            f"`sizes` must have shape ({batch},), one size for each graph, but has shape {tuple(sizes.shape)}; reshape it."
        )
    if sizes.dtype not in _SIZE_DTYPES:
        valid = " or ".join(map(dtype_name, _SIZE_DTYPES))
        raise InputError(f"`sizes` must have dtype {valid}, but has {dtype_name(sizes.dtype)}; convert it.")
    if sizes.device != weights.device:
        raise InputError(
            f"`sizes` must be on the device of the weights, {weights.device}, but is on {sizes.device}; move it there."
        )
    if not values:
        return sizes.clamp(0, n)
    outside = (sizes < 0) | (sizes > n)
    if bool(outside.any()):
        index = int(outside.nonzero()[0])
        raise InputError(
            f"`sizes` must lie in [0, {n}], the vertices that the weights have room for, but sizes[{index}] is "
            f"{int(sizes[index])}; count the vertices of graph {index} again, or pad the weights further."
        )
    return sizes.contiguous()


def _kind(value: object) -> str:
    """Return what stands in the place of a dense tensor: the layout of a tensor, or the type of something else."""
    return str(value.layout).removeprefix("torch.") if isinstance(value, torch.Tensor) else type(value).__name__


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


class _Fits:
    """Runs `check`, which raises what does not fit: at once, unless so few values surely do, and where an allocation fails."""

    def __init__(self, check: Callable[[], None], values: float, like: torch.Tensor) -> None:
        self._check = check
        self._sure = is_small(values * like.dtype.itemsize, like.device)

    def __enter__(self) -> None:
        if not self._sure:
            self._check()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, torch.OutOfMemoryError):
            self._check()
            raise TooLargeError(
                "a call must get the memory that it asks for, but an allocation failed although enough seemed free "
                f"({str(error).splitlines()[0].rstrip('.')}); free what else is on the device, or solve less at a time."
            ) from error


def copies_fit(problem: Problem, matrices: float) -> AbstractContextManager[None]:
    """Refuse what is done in a `with` and needs `matrices` copies of the weights, if these do not fit the device.

    Raises:
        TooLargeError: before the first line, or instead of an allocation that fails.
    """
    weights = problem.weights

    def check() -> None:
        check_memory(problem.n, problem.batch, weights.dtype, weights.device, matrices=matrices)

    return _Fits(check, matrices * weights.numel(), weights)


def product_fits(shape: tuple[int, int, int], like: torch.Tensor) -> AbstractContextManager[None]:
    """As copies_fit, for a product of `shape` with the dtype and on the device of `like`."""

    def check() -> None:
        check_product_memory(*shape, like.dtype, like.device)

    return _Fits(check, shape[0] * shape[1] * shape[2], like)


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
    return value.detach() if value.requires_grad else value


def check_values(tensor: torch.Tensor, name: str, sizes: torch.Tensor | None = None, found: Scan | None = None) -> Bounds:
    """Refuse values that are no weights (InputError) and return their bounds; see check_graphs."""
    if tensor.numel() == 0:
        return Bounds(0, None)
    if found is None or found.lowest == -float("inf"):  # which may stand for NaN
        found = scan(tensor, no_edge(tensor.dtype), padding=None if sizes is None else padding_of(tensor, sizes))
    lowest, highest = found.lowest, found.highest
    if lowest != lowest:
        raise InputError(
            f"`{name}` must hold numbers, but has NaN at {_where(tensor.isnan(), sizes)}; replace it, by inf for no edge."
        )
    if lowest == -float("inf"):
        raise InputError(
            f"`{name}` must be greater than minus infinity, but is -inf at {_where(tensor == lowest, sizes)}; replace it by "
            "a finite weight."
        )
    if not tensor.is_floating_point():
        limit = no_edge(tensor.dtype)
        for value in (lowest, highest):
            if abs(value) > limit:
                raise InputError(
                    f"`{name}` of dtype {dtype_name(tensor.dtype)} must lie in [-{limit}, {limit}], where {limit} means no "
                    f"edge, but one is {value} at {_where(tensor == value, sizes)}; use tri_apsp.no_edge(dtype) for missing "
                    "edges, or a wider dtype."
                )
    return Bounds(lowest, found.highest_below)


def _check_negative_integers(dtype: torch.dtype, bounds: Bounds) -> None:
    allowed = distance_range(dtype, negative=True)
    for value in bounds:
        if value is not None and not allowed.lowest <= value < allowed.beyond:
            raise DistanceRangeError(
                f"beside negative weights, {dtype_name(dtype)} weights must lie in "
                f"[{allowed.lowest}, {allowed.beyond}), but one is {value}; use a wider dtype."
            )


def _where(mask: torch.Tensor, sizes: torch.Tensor | None) -> tuple[int, ...]:
    """Return the index of the first true element outside the padding, without a batch dimension of 1."""
    if sizes is not None:
        padding = padding_of(mask, sizes)
        mask = mask & ~padding[:, :, None] & ~padding[:, None, :]
    index = tuple(int(i) for i in mask.nonzero()[0])
    return index[1:] if mask.shape[0] == 1 else index
