"""Checking the arguments of a call: types, shapes, dtypes, devices and overlap. Nothing here
changes a tensor.
"""

import operator
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.configs import Config
from tri_apsp.device import only_compiles
from tri_apsp.errors import InputError, InputTypeError, error_for
from tri_apsp.memory import require_memory
from tri_apsp.messages import remedy_of_sparse, shown
from tri_apsp.plan import Options
from tri_apsp.semirings import (
    DTYPES,
    dtype_name,
    from_bool,
    largest_distance,
    no_edge,
    remedy_for,
    solved_dtype,
)

_OF_EDGES = ("edge_index", "edge_weight", "batch")
# What arguments may be besides a tensor, and what to do about anything else.
_OTHERS = {
    "graph": (
        ", dense (n, n) or sparse, a NumPy array (n, n), a SciPy sparse array, or a graph that "
        "tri_apsp made",
        "give torch.tensor() of numbers, from_pandas() of a table of edges, from_networkx() of a "
        "graph of NetworkX, or read_sparse_graph() of a file",
    ),
    "adjacency": (
        " or a NumPy array",
        "give torch.tensor() of a list, and from_networkx(graph) < inf of a graph of NetworkX",
    ),
    "distances": ("", "give the distances of a Result, result.distances"),
    "costs": (" or an array, one number for each edge", "convert it with torch.as_tensor"),
    **{
        name: ("", f"convert it with torch.as_tensor, or give data.{name} of Data")
        for name in _OF_EDGES
    },
    "values": (
        "",
        "convert it with torch.as_tensor, or a dict with [values[x] for x in graph.labels]",
    ),
}
Vertices: TypeAlias = int | Sequence[int] | torch.Tensor | npt.NDArray[Any]
"""A vertex, or several; a column of pandas too, which no annotation names."""

Numbers: TypeAlias = Sequence[float] | torch.Tensor | npt.NDArray[Any]
"""Several numbers; a column of pandas too, which no annotation names."""

SIZE_DTYPES = (torch.int32, torch.int64)
"""The dtypes of sizes and offsets that a caller may give."""

INDEX_DTYPES = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)
"""The dtypes of vertices that a caller may give."""

_WEIGHT_DTYPES = (*DTYPES, torch.bool)
_ADJACENCY_DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class DenseBatch:
    """Dense graphs to solve together.

    Attributes:
        weights: (batch, n, n), whose values are not checked yet.
        batched: whether the caller gave a batch dimension.
        sizes: (batch,), the leading vertices of each graph; None: all of them.
    """

    weights: torch.Tensor
    batched: bool
    sizes: torch.Tensor | None = None

    @property
    def n(self) -> int:
        return self.weights.shape[-1]

    @property
    def count(self) -> int:
        """The number of graphs."""
        return self.weights.shape[0]


def check_weights(
    weights: object, *, sizes: object | None = None, check: bool = True
) -> DenseBatch:
    """Check dense weights and the sizes of their graphs, without the values of either.

    With `check`, the caller checks both later. Without it, a size out of range is replaced by the
    nearest in range.

    Raises:
        InputError: not a dense real tensor (n, n) or (batch, n, n) of a supported dtype; sizes that
            do not fit the weights.
    """
    tensor = check_tensor(weights, "graph")
    check_dtype(tensor, "graph")
    check_square(tensor, "graph")
    batch = as_batch(numbers_of(tensor, "graph"))
    return batch if sizes is None else with_sizes(batch, sizes, check=check)


def with_sizes(batch: DenseBatch, sizes: object, *, check: bool) -> DenseBatch:
    """Return a batch of checked weights with the sizes of its graphs, as check_weights.

    Raises:
        InputError: sizes that do not fit the weights.
    """
    checked = _check_sizes(sizes, batch)
    return DenseBatch(batch.weights, batch.batched, checked if check else checked.clamp(0, batch.n))


def check_adjacency(adjacency: object) -> DenseBatch:
    """Check the argument of reachability, without values.

    Raises:
        InputError: not a dense tensor (n, n) or (batch, n, n) of bool or integers.
    """
    tensor = check_tensor(adjacency, "adjacency")
    remedy = "give `adjacency != no_edge` of weights, else `adjacency != 0`"
    check_dtype(tensor, "adjacency", _ADJACENCY_DTYPES, remedy)
    check_square(tensor, "adjacency", "0")
    return as_batch(tensor)


def as_batch(tensor: torch.Tensor) -> DenseBatch:
    batched = tensor.dim() == 3
    return DenseBatch(tensor if batched else tensor[None], batched)


def check_square(tensor: torch.Tensor, name: str, padding: str = "no_edge") -> None:
    """Check the shape of one graph or of a batch; missing vertices are padded with `padding`.

    Raises:
        InputError: it is neither (n, n) nor (batch, n, n).
    """
    if tensor.dim() not in (2, 3) or tensor.shape[-1] != tensor.shape[-2]:
        remedy = (
            "reshape it" if tensor.dim() not in (2, 3) else f"pad missing vertices with {padding}"
        )
        if tensor.dim() == 1 and name == "graph":
            remedy = "give `offsets` too for packed graphs"
        raise InputError(
            f"`{name}` must be square, (n, n) or (batch, n, n), but has shape "
            f"{tuple(tensor.shape)}; {remedy}."
        )


def check_dtype(
    tensor: torch.Tensor,
    name: str,
    dtypes: tuple[torch.dtype, ...] = _WEIGHT_DTYPES,
    remedy: str | None = None,
) -> None:
    """Check the dtype of a tensor; `remedy` ends the message, by default that of the dtype.

    Raises:
        InputError: it is none of `dtypes`.
    """
    if tensor.dtype not in dtypes:
        *first, last = map(dtype_name, dtypes)
        raise InputError(
            f"`{name}` must have one of the dtypes {', '.join(first)} or {last}, but has "
            f"{dtype_name(tensor.dtype)}; {remedy or remedy_for(tensor.dtype)}."
        )


def check_size_values(sizes: torch.Tensor, n: int) -> None:
    """Check the sizes of graphs in weights (batch, n, n), which blocks until the device has
    computed them.

    Raises:
        InputError: one is out of range.
    """
    outside = (sizes < 0) | (sizes > n)
    if bool(outside.any()):
        index = int(outside.nonzero()[0])
        raise InputError(
            f"`sizes` must lie in [0, {n}], the vertices that the weights can hold, but "
            f"sizes[{index}] is {int(sizes[index])}; count the vertices of graph {index} again, or "
            "pad the weights further."
        )


def _check_sizes(sizes: object, batch: DenseBatch) -> torch.Tensor:
    """Check the sizes of a batch, without their values, and return them as a contiguous tensor."""
    sizes = as_vector(sizes, "sizes")
    if not isinstance(sizes, torch.Tensor) or sizes.layout != torch.strided:
        raise error_for(sizes, torch.Tensor)(
            f"`sizes` must be a dense torch tensor, but is {shown(sizes)}; make one with "
            "torch.tensor(sizes, device=weights.device)."
        )
    weights = batch.weights
    if not batch.batched:
        raise InputError(
            "`sizes` must come with weights (batch, n, n), but these have shape "
            f"{tuple(weights.shape[1:])}; leave sizes out, or give the weights a batch dimension."
        )
    if sizes.shape != (batch.count,):
        raise InputError(
            f"`sizes` must have shape ({batch.count},), one size for each graph, but has shape "
            f"{tuple(sizes.shape)}; reshape it."
        )
    if sizes.dtype not in SIZE_DTYPES:
        valid = " or ".join(map(dtype_name, SIZE_DTYPES))
        raise InputError(
            f"`sizes` must have dtype {valid}, but has {dtype_name(sizes.dtype)}; convert it."
        )
    if sizes.device != weights.device:
        raise InputError(
            f"`sizes` must be on the device of the weights, {weights.device}, but is on "
            f"{sizes.device}; move it there."
        )
    return sizes.contiguous()


def check_operands(
    a: object, b: object, c: object | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, bool]:
    """Check the arguments of min_plus, without their values; return them as (batch, ., .) and
    whether they had a batch.

    Raises:
        InputError: not dense real tensors of one supported dtype on one device, or shapes that do
            not fit.
    """
    named = {"a": check_tensor(a, "a"), "b": check_tensor(b, "b")}
    if c is not None:
        named["c"] = check_tensor(c, "c")
    first = named["a"]
    for name, tensor in named.items():
        check_dtype(tensor, name)
        if tensor.device != first.device:
            raise InputError(
                f"`a` and `{name}` must be on one device, but `a` is on {first.device} and "
                f"`{name}` on {tensor.device}; move one of them."
            )
        if solved_dtype(tensor.dtype) != solved_dtype(first.dtype):
            raise InputError(
                f"`a` and `{name}` must have one dtype, but `a` is {dtype_name(first.dtype)} and "
                f"`{name}` {dtype_name(tensor.dtype)}; convert one of them."
            )
    shapes = {name: tuple(tensor.shape) for name, tensor in named.items()}
    batched = len(shapes["a"]) == 3
    fits = (
        len(shapes["a"]) in (2, 3)
        and len(shapes["b"]) == len(shapes["a"])
        and shapes["a"][-1] == shapes["b"][-2]
    )
    if not fits or (batched and shapes["a"][0] != shapes["b"][0]):
        raise InputError(
            "`a` and `b` must have shapes (m, k) and (k, n), or (batch, m, k) and (batch, k, n), "
            f"but have {shapes['a']} and {shapes['b']}; reshape one of them."
        )
    result = (*shapes["a"][:-1], shapes["b"][-1])
    if c is not None and shapes["c"] != result:
        raise InputError(
            f"`c` must have the shape of the product, {result}, but has {shapes['c']}; reshape it."
        )
    named = {name: numbers_of(tensor, name) for name, tensor in named.items()}
    if not batched:
        named = {name: tensor[None] for name, tensor in named.items()}
    return named["a"], named["b"], named.get("c"), batched


def check_overwrite(weights: torch.Tensor) -> None:
    """Refuse to overwrite weights of bool, and those whose elements share memory, as of expand().

    Raises:
        InputError: for bool, or if two elements may lie at one address.
    """
    if weights.dtype == torch.bool:
        raise InputError(
            "`out` must not be weights of bool, since distances are float32; give another tensor."
        )
    check_writable(weights, "graph")


def check_out_tensor(out: torch.Tensor, shape: Sequence[int], dtype: torch.dtype) -> None:
    """Refuse a tensor that cannot take distances of a shape and a dtype."""
    has = " with a gradient" * out.requires_grad + " with the negative bit" * out.is_neg()
    has += " on the device meta" * out.is_meta
    is_dense = out.layout == torch.strided
    if tuple(out.shape) != tuple(shape) or out.dtype != dtype or not is_dense or has:
        raise InputError(
            f"`out` must be a dense tensor {tuple(shape)} of {dtype_name(dtype)} in memory, "
            f"without a gradient or the negative bit, but is {shown(out)}{has}; make one with "
            "torch.empty."
        )
    check_writable(out, "out")


def check_writable(tensor: torch.Tensor, name: str) -> None:
    """Refuse to write to a tensor whose elements share memory, as those of expand() do, or which
    torch does not change here.

    Raises:
        InputError: two elements may lie at one address; it was made under torch.inference_mode,
            and this is outside it.
    """
    if tensor.is_inference() and not torch.is_inference_mode_enabled():
        raise InputError(
            f"`{name}` must not be a tensor of torch.inference_mode, which can be overwritten only "
            "within it; give its .clone()."
        )
    if not tensor.numel():  # NumPy gives it strides of 0
        return
    span = 1
    for size, stride in sorted(
        zip(tensor.shape, tensor.stride(), strict=True), key=lambda pair: pair[1]
    ):
        if size > 1 and stride < span:
            raise InputError(
                f"`{name}` must not overlap itself in memory to be overwritten, but has strides "
                f"{tensor.stride()}; call contiguous() on it first, or leave it unchanged."
            )
        span = max(span, stride * size)


def check_config(config: object) -> None:
    """Check the type of a configuration.

    Raises:
        InputTypeError: it is neither a Config nor None.
    """
    if config is not None and not isinstance(config, Config):
        raise InputTypeError(
            f"config must be a tri_apsp.Config, but is {type(config).__name__}; give a Config or "
            "leave it out."
        )


def as_integer(value: Any, name: str, least: int = 0, remedy: str = "give one") -> int:
    """Return an argument of any integer type, such as one of NumPy, as an int.

    Raises:
        InputTypeError: for another type, and for a bool.
        InputError: for an integer below `least`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise InputTypeError(f"`{name}` must be an integer, but is {shown(value)}; {remedy}.")
    if number < least:
        raise InputError(f"`{name}` must be at least {least}, but is {shown(number)}; raise it.")
    return number


def byte_count(size: Any, name: str) -> int:
    """Return a number of bytes, or one with a unit, such as "6GiB", "500MB" or "4096", as an int.

    Raises:
        InputTypeError: for another type.
        InputError: for another text, and for less than a byte.
    """
    remedy = 'give bytes, such as 4096 or "6GiB"'
    if isinstance(size, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?))?b?", size.strip().lower())
        if found is None:
            raise InputError(
                f"`{name}` must be a number of bytes such as 6GiB, but is {shown(size)}; {remedy}."
            )
        number, prefix, binary = found.groups()
        base = 1024 if binary else 1000
        size = int(Fraction(number) * base ** " kmgt".index(prefix or " "))
    return as_integer(size, name, 1, remedy)


def as_float_or_inf(number: float) -> float:
    """Return a number that is not negative as a float; inf for an integer beyond all floats."""
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def as_index(value: int, name: str, count: int) -> int:
    """Return a number as an int in [0, count)."""
    found = as_integer(value, name)
    if found >= count:
        raise InputError(
            f"`{name}` must lie in [0, {count}), but is {shown(found)}; give a number in range."
        )
    return found


def check_flags(**flags: object) -> None:
    """Check options that are on or off.

    Raises:
        InputTypeError: one is no bool.
    """
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):
            raise InputTypeError(
                f"`{name}` must be True or False, but is {shown(value)}; give one of these."
            )


def check_method(method: object, names: Collection[str]) -> None:
    """Check the name of a method.

    Raises:
        InputError: it is none of `names`.
    """
    if not isinstance(method, str) or method not in names:
        raise error_for(method, str)(
            f"`method` must be one of {', '.join(names)}, but is {shown(method)}; choose one of "
            "these."
        )


def check_options(options: Options) -> None:
    """Check the options of a solve by themselves and beside each other.

    Raises:
        InputError: a flag that is no bool; `negative_cycles` that is neither "raise" nor "mark"; a
            weight_error that is no finite number from 0 on; predecessors with overwrite; "mark" or
            a weight_error with overwrite or without check.
    """
    check_flags(check=options.check, predecessors=options.predecessors)
    wanted = options.negative_cycles
    if not isinstance(wanted, str) or wanted not in ("raise", "mark"):
        raise error_for(options.negative_cycles, str)(
            "`negative_cycles` must be 'raise' or 'mark', but is "
            f"{shown(options.negative_cycles)}; give one of these."
        )
    if options.overwrite and options.predecessors:
        raise InputError(
            "`predecessors` needs weights that stay unchanged, but they are `out`; give another "
            "tensor."
        )
    error = options.weight_error
    is_number = isinstance(error, Real) and not isinstance(error, bool)
    if not (is_number and error >= 0 and as_float_or_inf(error) < float("inf")):
        raise error_for(error, Real)(
            "`weight_error` must be a finite number that is not negative, but is "
            f"{shown(error)}; give the largest absolute error of a weight."
        )
    if options.check and not options.overwrite:
        return
    name = 'negative_cycles="mark"' if wanted == "mark" else "weight_error"
    if wanted == "mark" or error:
        is_out = "they are `out`; give another tensor"
        given = is_out if options.check else "check=False was given; leave it out"
        raise InputError(f"`{name}` needs checked weights that stay unchanged, but {given}.")


class _Writable:
    """Presents the memory of a read-only array to NumPy as writable: torch.from_numpy warns of
    read-only arrays.
    """

    def __init__(self, array: npt.NDArray[Any]) -> None:
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = array.__array_interface__ | {"data": (address, False)}
        self._array = array


def as_tensor(value: Any, name: str) -> Any:
    """Return an array of NumPy as a tensor; any other value as it is.

    The tensor shares the memory of the array where torch can, also of a read-only one, where a
    write may end the process. So nothing writes to it, and no public function returns it.

    Raises:
        InputError: an array with a mask.
        InputTypeError: an array of a dtype that torch does not have.
    """
    if not isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(
            f"`{name}` must not be a masked array; give from_numpy() of weights, where a masked "
            "entry is no edge, and .compressed() of others."
        )
    array = np.asarray(value)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if any(step < 0 or step % max(1, array.itemsize) for step in array.strides):
        array = array.copy()  # torch has no such strides
    try:
        return torch.from_numpy(np.asarray(_Writable(array)))
    except (TypeError, ValueError):
        raise InputTypeError(
            f"`{name}` must hold numbers of a dtype of torch, but has dtype {array.dtype}; convert "
            "it with .astype(float)."
        ) from None


def as_vector(values: Any, name: str) -> Any:
    """Return an array, or a column of pandas, as as_tensor does; an array of objects as a list; any
    other value as it is. The labels of a column do not count, only its order.

    Raises:
        InputError, InputTypeError: as as_tensor.
    """
    if not hasattr(values, "__array__") or isinstance(values, (torch.Tensor, np.generic)):
        return values
    array = np.asanyarray(values)
    # As an extension dtype of pandas and a list of Python's integers become.
    return array.tolist() if array.dtype == object else as_tensor(array, name)


def check_tensor(value: object, name: str) -> torch.Tensor:
    """Return an argument that is a dense tensor on the CPU or a GPU, or an array as as_tensor
    returns it.

    Raises:
        InputError: a sparse tensor, one on another device, or as as_tensor.
        InputTypeError: it is something else.
    """
    value = as_tensor(value, name)
    if not isinstance(value, torch.Tensor):
        other, remedy = _OTHERS.get(
            name,
            (
                "",
                "convert it with from_numpy, from_scipy or from_networkx, or if it is a prepared "
                "graph, give its .dense()",
            ),
        )
        raise InputTypeError(
            f"`{name}` must be a torch tensor{other}, but is {type(value).__name__}; {remedy}."
        )
    if value.layout != torch.strided:
        remedy = remedy_of_sparse()
        if name in ("distances", *_OF_EDGES):  # which are no weights
            remedy = "call .to_dense() on it"
        raise InputError(f"`{name}` must be a dense tensor, but is {shown(value)}; {remedy}.")
    check_device(value, name)
    return value


def check_device(tensor: torch.Tensor, name: str) -> None:
    """Check that a tensor is on a device that some engine may run on.

    Raises:
        InputError: it is on another.
    """
    if tensor.device.type not in ("cpu", "cuda") and not (tensor.is_meta and only_compiles()):
        raise InputError(
            f"`{name}` must be on the CPU or a CUDA device, but is on {tensor.device}; move it."
        )


def numbers_of(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """Return a tensor that has one of DTYPES, or the weights that a tensor of bool stands for.

    Raises:
        TooLargeError: before these are allocated, if they do not fit the memory.
    """
    if tensor.dtype != torch.bool:
        return tensor
    size = tensor.numel() * torch.float32.itemsize
    remedy = "use a smaller graph, fewer graphs at a time, or a device with more memory"
    require_memory(f"`{name}` of bool, as float32,", size, tensor.device, remedy)
    return from_bool(tensor)


def as_indices(values: Any, name: str, count: int, device: torch.device) -> torch.Tensor:
    """Return `values` as int64 on a device, each in [0, count)."""
    rule = f"`{name}` must be a list or a 1-D tensor of integers"
    values = as_vector(values, name)
    try:
        found = torch.as_tensor(values, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        if "verflow" in str(error):
            raise InputError(
                f"`{name}` must lie in [0, {count}), but one is beyond int64; give numbers in "
                "range."
            ) from None
        items = values if isinstance(values, (list, tuple)) else ()
        wrong = next((item for item in items if not isinstance(item, SupportsIndex)), values)
        raise InputTypeError(
            f"{rule}, but {'one' if items else 'this'} is {shown(wrong)}; give such a list."
        ) from None
    if found.dtype == torch.bool:
        raise InputTypeError(
            f"{rule}, but is a mask of bool; give numpy.flatnonzero(mask), or of a tensor "
            "mask.nonzero().flatten()."
        )
    # An empty list becomes a tensor of floats.
    if found.dtype not in INDEX_DTYPES and found.numel():
        raise InputTypeError(
            f"{rule}, but has dtype {dtype_name(found.dtype)}; convert it to int64."
        )
    if found.layout != torch.strided or found.dim() != 1:
        raise InputError(f"{rule}, but is {shown(found)}; give it as one list.")
    # A narrow dtype may not hold `count`; a result keeps the copy.
    found = found.to(torch.int64, copy=True)
    lowest, highest = found.aminmax() if found.numel() else (0, -1)
    if lowest < 0 or highest >= count:
        wrong = found[(found < 0) | (found >= count)][0]
        raise InputError(
            f"`{name}` must lie in [0, {count}), but one is {int(wrong)}; give numbers in range."
        )
    return found


def sources_of(sources: Any, n: int, name: str = "sources", least: int = 1) -> torch.Tensor:
    """Return an argument `name`, a vertex or at least `least` of them, as int64 on the CPU."""
    if isinstance(sources, torch.Tensor):
        single = sources.ndim == 0 and sources.dtype in INDEX_DTYPES
    else:  # an int first: a protocol asks for each of its attributes
        is_index = isinstance(sources, (int, SupportsIndex))
        single = is_index and not isinstance(sources, (bool, np.ndarray))
    vertices = as_indices([sources] if single else sources, name, n, torch.device("cpu"))
    if len(vertices) < least:
        raise InputError(f"`{name}` must name at least one vertex, but is empty; give one.")
    return vertices


def finite_numbers(
    values: Any, name: str, count: int, owner: str, owners: str, *, several: bool = False
) -> torch.Tensor:
    """Return finite numbers, one for each of `count` owners, as float64 on the CPU: (count,), or
    with `several` also (rows, count).

    Raises:
        InputError: they are something else.
    """
    try:
        given = as_vector(values, name)
        if isinstance(given, (list, tuple)):
            has_rows = len(given) > 0 and not isinstance(given[0], Real)
            rows = [torch.as_tensor(as_vector(row, name)).double() for row in given if has_rows]
            given = torch.stack(rows) if rows else torch.as_tensor(given, dtype=torch.float64)
        given = check_tensor(given, name)
        if given.is_complex():
            raise TypeError
        found = given.detach().to("cpu", torch.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputTypeError(
            f"`{name}` must be real numbers that float64 holds, one for each {owner}, but are "
            f"{shown(values)} of others; give a tensor ({count},)."
        ) from None
    if found.shape[-1:] != (count,) or found.ndim > 1 + several:
        raise InputError(
            f"`{name}` must have one value for each of the {count} {owners}, but have shape "
            f"{tuple(found.shape)}; give one for each."
        )
    if not bool(found.isfinite().all()):
        wrong = tuple((~found.isfinite()).nonzero()[0])
        raise InputError(
            f"`{name}` must be finite, but that of {owner} {wrong[-1]} is {found[wrong].item()}; "
            "replace it."
        )
    return found


def farthest_of(limit: float | None, dtype: torch.dtype) -> float | None:
    """Return a checked limit; None also where it is beyond every distance of the dtype: one that
    does not fit may be within it, and is an error.
    """
    if limit is None:
        return None
    found = limit_of(limit, dtype)
    return None if max(as_float_or_inf(limit), found) > largest_distance(dtype) else found


def limit_of(limit: float, dtype: torch.dtype, name: str = "limit") -> float:
    """Return a checked limit as the distances are rounded."""
    if isinstance(limit, bool) or not isinstance(limit, Real) or not limit >= 0:
        raise error_for(limit, int, float)(
            f"`{name}` must be a number that is not negative, but is {shown(limit)}; give the "
            "farthest distance."
        )
    if dtype.is_floating_point:
        return torch.tensor(as_float_or_inf(limit), dtype=dtype).item()
    number = limit.item() if isinstance(limit, np.generic) else limit  # of a narrow float
    return min(int(min(number, 2**62)), largest_distance(dtype))


def fill_of(value: object, dtype: torch.dtype, name: str = "fill") -> float | int:
    """Return what stands for no path or for padding, rounded to a dtype; None is no_edge.

    Raises:
        InputError: the dtype does not hold it.
    """
    if value is None:
        if dtype not in DTYPES:
            raise InputError(
                f"`{name}` must be given for values of {dtype_name(dtype)}, which have no no_edge; "
                "give one."
            )
        return no_edge(dtype)
    try:
        found = torch.tensor(value, dtype=dtype).item()
        fits = found == value or (dtype.is_floating_point and isinstance(value, (int, float)))
    except (TypeError, ValueError, RuntimeError, OverflowError):
        fits = False
    if not fits:
        raise error_for(value, int, float)(
            f"`{name}` must be a value of {dtype_name(dtype)}, as the others are, but is "
            f"{shown(value)}; give one."
        )
    return found
