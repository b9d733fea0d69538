"""Checking the values of weights: NaN, minus infinity, and integers that the dtype cannot keep
apart from "no edge".
"""

from typing import NoReturn

import torch

from tri_apsp.arguments import check_size_values, fill_of
from tri_apsp.errors import DistanceRangeError, InputError
from tri_apsp.semirings import (
    MIN_PLUS,
    Semiring,
    distance_range,
    dtype_name,
    floor,
    no_edge,
    remedy_beyond,
)
from tri_apsp.value_range import ValueRange, padding_of, value_range


def check_graphs(
    weights: torch.Tensor, sizes: torch.Tensor | None, found: ValueRange
) -> ValueRange:
    """Check the values of weights (batch, n, n), and return their value range below no_edge.

    Args:
        weights: the graphs, a single one also as (n, n).
        sizes: (batch,), the leading vertices of each graph; the rows and columns of the others
            count as no_edge. None: all.
        found: the value range of the weights below no_edge; 0 may count as one of the values, and
            NaN as -inf. A size that is out of range and was not checked counts as the lowest value
            of the dtype.

    Raises:
        InputError: a size out of range; NaN, minus infinity, or an integer outside [-no_edge,
            no_edge].
        DistanceRangeError: negative integer weights beside one that the dtype cannot keep apart
            from "no edge"; a float weight so low that a path of n such edges would be below the
            floor of the dtype (see semirings).
    """
    if sizes is not None and found.lowest <= -no_edge(weights.dtype):
        check_size_values(sizes, weights.shape[-1])
    found = check_values(weights, "graph", found, sizes)
    check_negative(weights.dtype, weights.shape[-1], found)
    return found


def check_negative(dtype: torch.dtype, n: int, found: ValueRange) -> None:
    """Raise the DistanceRangeError of check_graphs, for the value range of checked weights of n
    vertices.
    """
    if found.lowest < 0:
        if dtype.is_floating_point:
            _check_low_floats(dtype, n, found.lowest)
        else:
            _check_negative_integers(dtype, found)


def check_values(
    tensor: torch.Tensor,
    name: str,
    found: ValueRange,
    sizes: torch.Tensor | None = None,
    *,
    row: int = 0,
) -> ValueRange:
    """Check that `tensor`, which messages call `name`, holds weights; as check_graphs, without its
    DistanceRangeError. Messages count rows from `row` on.
    """
    if tensor.numel() == 0:
        return ValueRange(0, 0)
    if found.lowest >= 0 and found.highest <= no_edge(tensor.dtype):
        return found
    if tensor.dim() == 2:
        tensor = tensor[None]
    if found.lowest == -float("inf"):  # which may stand for NaN
        found = value_range(
            tensor,
            no_edge(tensor.dtype),
            padding=None if sizes is None else padding_of(tensor, sizes),
        )
    lowest, highest = found.lowest, found.highest
    if lowest != lowest:
        raise InputError(
            f"`{name}` must hold numbers, but has NaN at {_where(tensor.isnan(), sizes, row)}; "
            "replace it, by inf for no edge."
        )
    if lowest == -float("inf"):
        raise InputError(
            f"`{name}` must be greater than minus infinity, but is -inf at "
            f"{_where(tensor == lowest, sizes, row)}; replace it by a finite weight."
        )
    if not tensor.is_floating_point():
        limit = no_edge(tensor.dtype)
        for value in (lowest, highest):
            if abs(value) > limit:
                raise InputError(
                    f"`{name}` of dtype {dtype_name(tensor.dtype)} must lie in [-{limit}, "
                    f"{limit}], where {limit} means no edge, but one is {value} at "
                    f"{_where(tensor == value, sizes, row)}; give tri_apsp.no_edge(dtype) for "
                    f"missing edges, or {remedy_beyond(tensor.dtype)}."
                )
    return found


def filled(
    distances: torch.Tensor, value: float, name: str = "fill", semiring: Semiring = MIN_PLUS
) -> torch.Tensor:
    """Return distances with a value in place of zero of the semiring, as a new tensor; see
    Result.filled.
    """
    value, none = fill_of(value, distances.dtype, name), semiring.zero(distances.dtype)
    if value != none and bool((distances == value).any()):
        raise InputError(
            f"`{name}` must differ from every distance, but one is {value}; give another number."
        )
    return distances.masked_fill(distances == none, value)


def in_dtype(
    distances: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return distances in a narrower dtype of integers, and which of them do not fit, as bool; None
    if they have that dtype.
    """
    if distances.dtype == dtype:
        return distances, None
    beyond = distances.abs() >= no_edge(dtype)
    if not bool(beyond.any()):
        return distances.to(dtype), None
    unfit = beyond & (distances != no_edge(distances.dtype))
    return distances.to(dtype).masked_fill_(beyond, no_edge(dtype)), unfit


def raise_unfit(unfit: torch.Tensor | None, dtype: torch.dtype) -> None:
    """Raise DistanceRangeError if some distance does not fit a dtype."""
    if unfit is not None and bool(unfit.any()):
        raise_out_of_range(dtype, "a path weighs too much or too little")


def raise_out_of_range(dtype: torch.dtype, reason: str) -> NoReturn:
    """Raise DistanceRangeError for distances of a dtype; `reason` names the value that does not
    fit.
    """
    raise DistanceRangeError(
        f"distances must fit {dtype_name(dtype)}, but {reason}; {remedy_beyond(dtype)}."
    )


def _check_negative_integers(dtype: torch.dtype, found: ValueRange) -> None:
    allowed = distance_range(dtype, negative=True)
    for value in (found.lowest, found.highest_below):
        if value is not None and not allowed.lowest <= value < allowed.beyond:
            raise DistanceRangeError(
                f"beside negative weights, {dtype_name(dtype)} weights must lie in "
                f"[{allowed.lowest}, {allowed.beyond}), but one is {value}; {remedy_beyond(dtype)}."
            )


def _check_low_floats(dtype: torch.dtype, n: int, lowest: float) -> None:
    least = floor(dtype) / n
    if lowest < least:
        raise DistanceRangeError(
            f"{dtype_name(dtype)} weights must be at least {least:.4g} for n = {n}, so that the "
            f"sum of any path fits, but one is {lowest:.4g}; {remedy_beyond(dtype)}."
        )


def _where(mask: torch.Tensor, sizes: torch.Tensor | None, row: int) -> tuple[int, ...]:
    """Return the index of the first true element outside the padding, without a batch dimension of
    1; rows count from `row` on.
    """
    if sizes is not None:
        padding = padding_of(mask, sizes)
        mask = mask & ~padding[:, :, None] & ~padding[:, None, :]
    item, first, *rest = (int(i) for i in mask.nonzero()[0])
    index = item, first + row, *rest
    return index[1:] if mask.shape[0] == 1 else index
