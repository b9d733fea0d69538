"""Converting weights between dtypes: "no edge" stays "no edge", and a value that the new dtype
cannot hold is refused.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.arguments import check_square, check_tensor
from tri_apsp.errors import DistanceRangeError, InputError, RoundingWarning
from tri_apsp.memory import check_memory
from tri_apsp.messages import shown, warn_caller
from tri_apsp.semirings import dtype_name, from_bool, no_edge, remedy_beyond
from tri_apsp.value_checks import check_values
from tri_apsp.value_range import value_range

# Values per block of the conversion, which limits temporaries to a few dozen MiB for a matrix of
# any size.
_BLOCK = 1 << 22
_INT64_END = 1 << 62  # no_edge(int64) + 1, exact as a float64


def cast_weights(weights: torch.Tensor, dtype: torch.dtype, name: str = "weights") -> torch.Tensor:
    """Convert dense weights to `dtype`: the "no edge" of the old dtype becomes the "no edge" of the
    new one.

    Args:
        weights: (n, n) or (batch, n, n), float32, float64, int16, int32, int64 or bool, in which
            True is an edge of weight 1; on any device. An array of NumPy too.
        dtype: one of the first five dtypes.
        name: what error messages call the weights.

    Returns:
        A new contiguous tensor of the same shape on the same device, or `weights` itself if it is a
        tensor of `dtype`. A float is rounded to the nearest float of `dtype`.

    Warns:
        RoundingWarning: once, if an integer is not exact in `dtype`.

    Raises:
        InputError: for another shape or dtype, for NaN or -inf, or for a fraction where `dtype` is
            an integer.
        DistanceRangeError: for a value that `dtype` cannot hold; integers hold [-no_edge, no_edge).
        TooLargeError: if the result does not fit the memory of the device.

    Cost:
        Two passes over the matrix; workspace of a few blocks of 2**22 values.
    """
    given, weights = weights, check_tensor(weights, name)
    if weights.dtype == torch.bool:
        check_square(weights, name)
    else:
        check_dense(weights, name)
    no_edge(dtype)  # refuses an unsupported dtype
    if weights.dtype == dtype:
        if weights is given:
            return weights
        return weights.clone(memory_format=torch.contiguous_format)
    n = weights.shape[-1]
    check_memory(n, weights.shape[0] if weights.ndim == 3 else 1, dtype, weights.device)
    if weights.dtype == torch.bool:
        return from_bool(weights, dtype)
    result = torch.empty(weights.shape, dtype=dtype, device=weights.device)
    if weights.numel():
        step = max(1, _BLOCK // n)
        source, target = weights.flatten(0, -2), result.flatten(0, -2)
        cast = Cast(dtype)
        for start in range(0, len(source), step):
            target[start : start + step] = cast(source[start : start + step])
        cast.warn()
    return result


class Cast:
    """Converts blocks of weights to `dtype`, and then warns once if an integer was rounded."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._rounded: int | None = None

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        """Return values of any shape, which include neither NaN nor -inf, in the dtype; errors as
        `cast_weights`.
        """
        result = _cast(values, self._dtype)
        if self._rounded is None and self._dtype.is_floating_point:
            self._rounded = _first_rounded(values, result)
        return result

    def warn(self) -> None:
        """Warn if an integer of some block was rounded."""
        if self._rounded is not None:
            warn_of_rounding(self._dtype, f"a weight is {self._rounded}")


def integer_limit(dtype: torch.dtype) -> int:
    """Return the number below which a float dtype holds every integer: 2**24 or 2**53."""
    return round(2 / torch.finfo(dtype).eps)


def warn_of_rounding(dtype: torch.dtype, found: str) -> None:
    """Issue the RoundingWarning of a float dtype; `found` names the integer that it does not
    hold exactly.
    """
    remedy = "use float64 or int64 for exact distances"
    if dtype == torch.float64:
        remedy = (
            f"use int64 for exact distances, up to {no_edge(torch.int64)}, or scale the weights"
        )
    warn_caller(
        f"{dtype_name(dtype)} is exact for integers below {integer_limit(dtype)} only, but "
        f"{found}; {remedy}.",
        RoundingWarning,
    )


def _first_rounded(values: torch.Tensor, result: torch.Tensor) -> int | None:
    """Return an integer among `values` that `result`, in a float dtype, does not hold exactly;
    None if there is none.
    """
    limits = torch.finfo if values.is_floating_point() else torch.iinfo
    limit = integer_limit(result.dtype)
    if limits(values.dtype).max <= limit or (
        values.is_floating_point() and values.dtype.itemsize <= result.dtype.itemsize
    ):
        return None
    # An integer that is beyond `limit` but exact is no reason to warn; neither is a fraction,
    # which is rounded as always.
    large = values[values.abs() > limit]
    # From 2**53 on a float64 is an integer, whether or not the number that it was rounded from is.
    if values.is_floating_point():
        large = large[large.abs() < integer_limit(torch.float64)]
    else:
        large = large[large != no_edge(values.dtype)]
    wrong = large[(large == large.trunc()) & (large.to(result.dtype).to(large.dtype) != large)]
    return int(wrong[0]) if wrong.numel() else None


def _cast(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Convert values of any shape, without a warning.

    Workspace: several times the memory of `values`.

    Raises:
        InputError: for a fraction where `dtype` is an integer.
        DistanceRangeError: for a value that `dtype` cannot hold.
    """
    missing = values == no_edge(values.dtype)
    if dtype.is_floating_point:
        result = values.to(dtype).masked_fill_(missing, no_edge(dtype))
        _refuse_outside(values, result.isinf() & ~missing, dtype)
        return result
    finite = values.masked_fill(missing, 0)
    if values.is_floating_point():
        fractions = finite != finite.trunc()
        if fractions.any():
            raise InputError(
                f"weights must be integers to be stored as {dtype_name(dtype)}, but one is "
                f"{finite[fractions][0].item()}; use float32, or scale and round the weights."
            )
        # Before the conversion to int64, which would wrap.
        _refuse_outside(finite, finite.abs() >= _INT64_END, dtype)
    integers = finite.to(torch.int64)
    limit = no_edge(dtype)
    _refuse_outside(integers, (integers < -limit) | (integers >= limit), dtype)
    return integers.to(dtype).masked_fill_(missing, limit)


def _refuse_outside(values: torch.Tensor, outside: torch.Tensor, dtype: torch.dtype) -> None:
    if outside.any():
        limit = torch.finfo(dtype).max if dtype.is_floating_point else no_edge(dtype)
        raise DistanceRangeError(
            f"weights must be less than {limit} in magnitude to be stored as {dtype_name(dtype)}, "
            f"but one is {values[outside][0].item()}; {remedy_beyond(dtype)}."
        )


def check_dense(weights: torch.Tensor, name: str = "weights") -> torch.Tensor:
    """Return dense weights, one matrix or a batch, that are checked; an array as as_tensor does.

    Args:
        weights: (n, n) or (batch, n, n), float32, float64, int16, int32 or int64.
        name: what error messages call the tensor.

    Raises:
        InputError: for another shape, layout or dtype, for NaN or -inf, or for an integer outside
            [-no_edge, no_edge].

    Cost:
        One pass over the matrix.
    """
    weights = check_tensor(weights, name)
    check_square(weights, name)
    batch = weights if weights.ndim == 3 else weights[None]
    check_values(batch, name, value_range(batch, no_edge(weights.dtype)))
    return weights


def widen(values: npt.NDArray[Any]) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Return real values of any NumPy dtype, or Python's int and float as objects, as int64 where
    every one is an integer below 2**53, else as float64.

    Integers stay exact up to 2^62 - 2; larger ones round to float64.

    Warns:
        RoundingWarning: once, if an integer was rounded.

    Raises:
        DistanceRangeError: for a number beyond float64.
    """
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            reals = values.astype(np.float64, copy=False)
        if values.dtype.itemsize > reals.dtype.itemsize:
            beyond = values[np.isinf(reals) & np.isfinite(values)]
            if len(beyond):
                raise DistanceRangeError(
                    f"weights must be inf or at most {np.finfo(np.float64).max:.4g} in magnitude, "
                    f"but one is {beyond[0]!s}; {remedy_beyond(torch.float64)}."
                )
        # Every float64 from 2**53 on is an integer, whether or not the number that it was rounded
        # from is.
        integers = np.all(np.abs(reals) < 2.0**53) and np.all(reals == np.trunc(reals))
        return reals.astype(np.int64) if integers else reals
    limit = no_edge(torch.int64)
    has_reals = values.dtype == object and any(isinstance(value, float) for value in values.flat)
    if has_reals or (values.size and not -limit < int(values.min()) <= int(values.max()) < limit):
        written = (int(value) for value in values.flat if not isinstance(value, float))
        rounded = next((value for value in written if int(float(value)) != value), None)
        if rounded is not None:
            warn_of_rounding(torch.float64, f"a weight is {shown(rounded)}")
        return widen(values.astype(np.float64))
    return values.astype(np.int64, copy=False)
