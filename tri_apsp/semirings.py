"""The min-plus semiring on each dtype: its identities, and how far a distance may go before a sum
would wrap. And the other semirings of `semiring_product`, as minima of another operation.

"Addition" is min, with annihilator `no_edge` (inf); "multiplication" is +, with identity 0. Every
engine keeps one invariant: **a stored value lies in [floor, no_edge]**, because a product clamps
from below when it stores (n^2 work) and from above by starting at no_edge. The sum of any two
stored values then fits the dtype, whatever the weights, so no sum ever wraps, not even while a
negative cycle doubles its weight at each step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch

from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.messages import shown

DTYPES: tuple[torch.dtype, ...] = (
    torch.float32,
    torch.float64,
    torch.int32,
    torch.int64,
    torch.int16,
)


def dtype_name(dtype: torch.dtype) -> str:
    """Return the bare name of a dtype: "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


DTYPES_BY_NAME: Mapping[str, torch.dtype] = {dtype_name(dtype): dtype for dtype in DTYPES}

_NO_EDGE: Mapping[torch.dtype, float | int] = {
    dtype: float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max // 2
    for dtype in DTYPES
}


Sign: TypeAlias = Literal["nonnegative", "any"]

SIGNS: tuple[Sign, ...] = get_args(Sign)
"""The signs of weights between which kernels and measurements distinguish."""


def no_edge(dtype: torch.dtype) -> float | int:
    """Return the weight that means "no edge", and the distance that means "unreachable".

    Args:
        dtype: float32, float64, int16, int32 or int64.

    Returns:
        inf for floats. For integers the largest value whose double does not overflow: 16383,
        2^30 - 1 and 2^62 - 1.

    Raises:
        InputError: any other dtype.

    Source:
        Catinello, Parallel Floyd-Warshall, section 1.2.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> tri_apsp.no_edge(torch.float32), tri_apsp.no_edge(torch.int16)
        (inf, 16383)
    """
    if not isinstance(dtype, torch.dtype):
        raise InputTypeError(
            f"a dtype must be one of torch, such as torch.float32, but is {shown(dtype)}; give one "
            "of these."
        )
    if dtype not in _NO_EDGE:
        valid = ", ".join(DTYPES_BY_NAME)
        raise InputError(
            f"weights must have one of the dtypes {valid}, but have {dtype_name(dtype)}; convert "
            "them."
        )
    return _NO_EDGE[dtype]


def from_bool(edges: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return weights for a tensor of bool: 1 where it is True, no edge elsewhere; one new
    tensor of its shape.
    """
    return torch.full(edges.shape, no_edge(dtype), dtype=dtype, device=edges.device).masked_fill_(
        edges, 1
    )


def solved_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that weights are solved in: float32 for bool, else their own."""
    return torch.float32 if dtype == torch.bool else dtype


def minus_infinity(dtype: torch.dtype) -> float | int:
    """Return the distance that means "through a negative cycle": -inf for floats, -no_edge(dtype)
    for integers.
    """
    return -float("inf") if dtype.is_floating_point else -int(no_edge(dtype))


def largest_distance(dtype: torch.dtype) -> float | int:
    """Return the largest distance that a dtype holds."""
    return torch.finfo(dtype).max if dtype.is_floating_point else int(no_edge(dtype)) - 1


def remedy_beyond(dtype: torch.dtype) -> str:
    """Return what to do about a value that `dtype` cannot hold, for the end of a message."""
    wider = {torch.int16: "int32", torch.int32: "int64", torch.float32: "float64"}
    if dtype in wider:
        return f"use a wider dtype, such as {wider[dtype]}"
    return "use float64, or scale the weights" if dtype == torch.int64 else "scale the weights"


def remedy_for(dtype: torch.dtype | np.dtype[Any]) -> str:
    """Return what to do about a tensor or an array of another dtype than DTYPES, for the end of a
    message.
    """
    if dtype.is_complex if isinstance(dtype, torch.dtype) else dtype.kind == "c":
        return "give its .real, or abs() of it"
    if isinstance(dtype, torch.dtype):
        return "convert it to float32"
    if dtype.kind not in "biuf":
        return "give an array of numbers"
    # Of 64 bits, as far as float64 holds them.
    fits = "float64" if dtype.itemsize >= 8 else "float32"
    return f"convert it with .astype(np.{fits})"


Operation: TypeAlias = Literal["plus", "max", "times", "log"]
"""What kernels take the minimum of: sums, the greater of two values, or products; "log": sums of
exponentials, which no kernel computes.
"""


@cache
def missing(dtype: torch.dtype, operation: Operation = "plus") -> float | int:
    """Return the value that changes no minimum, whatever it is combined with: no_edge of sums; the
    largest integer of greater values; 0 of products, of which none is positive.
    """
    if operation == "plus":
        return no_edge(dtype)
    return 0.0 if operation == "times" else torch.iinfo(dtype).max


@cache
def floor(dtype: torch.dtype, operation: Operation = "plus") -> float | int:
    """Return the least value of a matrix: the sum of two such values does not overflow."""
    if operation == "plus":
        return -torch.finfo(dtype).max / 4 if dtype.is_floating_point else -no_edge(dtype)
    return -float("inf") if operation == "times" else torch.iinfo(dtype).min


@dataclass(frozen=True)
class DistanceRange:
    """Which stored values are distances: those in [lowest, beyond); from `beyond` on, a value means
    "no edge".

    With negative integer weights `no_edge + w` may be stored for a pair that has no path. Let q =
    no_edge // 4. If no stored value is below -q, a walk with a missing edge weighs at least no_edge
    - 2q, and no distance in [-q, no_edge - 2q) can be confused with it. `ceiling` is the first sum
    that the dtype could not tell from infinity.
    """

    lowest: float | int
    beyond: float | int
    ceiling: float | int


@cache
def distance_range(dtype: torch.dtype, *, negative: bool) -> DistanceRange:
    """Return the distances that `dtype` can hold; `negative`: whether any weight is negative."""
    if dtype.is_floating_point:
        return DistanceRange(
            lowest=floor(dtype), beyond=no_edge(dtype), ceiling=torch.finfo(dtype).max
        )
    infinity = int(no_edge(dtype))
    quarter = infinity // 4 if negative else 0
    return DistanceRange(
        lowest=-quarter, beyond=infinity - 2 * quarter, ceiling=infinity - 2 * quarter
    )


SemiringName: TypeAlias = Literal["min_plus", "max_plus", "max_min", "min_max", "max_times", "log"]


class Semiring(NamedTuple):
    """A semiring whose addition is a minimum or a maximum, as the kernels compute it: the minimum
    of one of three operations on encoded values.

    Attributes:
        name: the addition, then the multiplication.
        operation: what the kernels take the minimum of.
        is_reversed: whether the addition is a maximum: encoding reverses the order of values.
    """

    name: SemiringName
    operation: Operation
    is_reversed: bool

    def zero(self, dtype: torch.dtype) -> float | int:
        """Return what changes no sum and makes each product with it zero: "no edge"."""
        if self.operation in ("plus", "log"):
            return -no_edge(dtype) if self.is_reversed else no_edge(dtype)
        if self.operation == "times":
            return 0
        if dtype.is_floating_point:
            return -float("inf") if self.is_reversed else float("inf")
        return torch.iinfo(dtype).min if self.is_reversed else torch.iinfo(dtype).max

    def allowed(self, dtype: torch.dtype) -> tuple[float | int, float | int]:
        """Return the least and the greatest value of an operand."""
        if self.operation == "max" and not dtype.is_floating_point:
            return torch.iinfo(dtype).min, torch.iinfo(dtype).max
        if self.operation == "max":
            return -float("inf"), float("inf")
        largest = torch.finfo(dtype).max if dtype.is_floating_point else no_edge(dtype)
        if self.operation == "times":
            return 0, largest
        least, most = -largest, no_edge(dtype)
        return (-most, -least) if self.is_reversed else (least, most)

    def encode(self, x: torch.Tensor, *, is_right: bool = False) -> torch.Tensor:
        """Return an operand as the kernels take it; `is_right`: the right factor of a product."""
        if self.operation == "max":
            keys = _keys(x) if x.is_floating_point() else x
            return ~keys if self.is_reversed else keys
        if not self.is_reversed or (self.operation == "times" and is_right):
            return x
        return 0 - x  # unlike -x never -0.0

    def decode(self, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return the value of what encode returned."""
        if self.operation == "max":
            keys = ~x if self.is_reversed else x
            return _bits_of_keys(keys).view(dtype) if dtype.is_floating_point else keys
        return 0 - x if self.is_reversed else x


SEMIRINGS: Mapping[str, Semiring] = {
    semiring.name: semiring
    for semiring in (
        Semiring("min_plus", "plus", False),
        Semiring("max_plus", "plus", True),
        Semiring("max_min", "max", True),
        Semiring("min_max", "max", False),
        Semiring("max_times", "times", True),
        Semiring("log", "log", True),
    )
}
MIN_PLUS = SEMIRINGS["min_plus"]


def semiring_of(name: object) -> Semiring:
    """Return the semiring of a name.

    Raises:
        InputError: there is none.
    """
    if not isinstance(name, str) or name not in SEMIRINGS:
        names = ", ".join(map(repr, SEMIRINGS))
        raise InputError(f"`semiring` must be one of {names}, but is {shown(name)}; choose one.")
    return SEMIRINGS[name]


def _keys(x: torch.Tensor) -> torch.Tensor:
    """Return integers in the order of floats other than NaN; -0.0 and 0.0 have one."""
    kind = torch.int32 if x.dtype == torch.float32 else torch.int64
    return _bits_of_keys((x + 0.0).view(kind))


def _bits_of_keys(bits: torch.Tensor) -> torch.Tensor:
    """Return the keys of bits, which are their own inverse."""
    most = torch.iinfo(bits.dtype)
    return (bits >> (most.bits - 1)).bitwise_and_(most.max).bitwise_xor_(bits)
