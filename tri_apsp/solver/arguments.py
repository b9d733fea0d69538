"""Checking the arguments of a call: types, shapes, dtypes, devices and overlap. Nothing here
changes a tensor.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch

from tri_apsp.configs import Config
from tri_apsp.device import require_memory
from tri_apsp.errors import InputError
from tri_apsp.messages import remedy_of_sparse, shown
from tri_apsp.semirings import DTYPES, dtype_name, from_bool, remedy_for

__all__ = [
    "Problem",
    "check_adjacency",
    "check_config",
    "check_device",
    "check_flags",
    "check_method",
    "check_negative_cycles",
    "check_numbering",
    "check_operands",
    "check_overwrite",
    "check_size_values",
    "check_weights",
    "with_sizes",
]

# What arguments may be besides a tensor, and what to do about anything else.
_OTHER_GRAPHS = {
    "weights": (
        " or a sparse graph",
        "convert an array with from_numpy, a graph of NetworkX with from_networkx, and read a file with read_graph",
    ),
    "adjacency": (
        "",
        "give torch.tensor() of an array, torch.from_numpy(matrix.toarray() != 0) of a SciPy matrix, and from_networkx() of a "
        "graph of NetworkX, with weights=True",
    ),
}
_SIZE_DTYPES = (torch.int32, torch.int64)
_WEIGHT_DTYPES = (*DTYPES, torch.bool)
_ADJACENCY_DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Problem:
    """What to solve.

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
    def batch(self) -> int:
        return self.weights.shape[0]


def check_weights(weights: object, *, sizes: object | None = None, check: bool = True) -> Problem:
    """Check the arguments of shortest_paths, without the values of the weights (see solver.values)
    and of the sizes.

    With `check`, the caller checks both later. Without it, a size out of range is replaced by the
    nearest in range.

    Raises:
        InputError: not a dense real tensor (n, n) or (batch, n, n) of a supported dtype; sizes that
            do not fit the weights.
    """
    tensor = _check_tensor(weights, "weights")
    _check_dtype(tensor, "weights")
    _check_square(tensor, "weights", "no_edge")
    tensor = _numbers(tensor, "weights")
    batched = tensor.dim() == 3
    problem = Problem(tensor if batched else tensor[None], batched)
    return problem if sizes is None else with_sizes(problem, sizes, check=check)


def with_sizes(problem: Problem, sizes: object, *, check: bool) -> Problem:
    """Return a problem of checked weights with the sizes of its graphs, as check_weights.

    Raises:
        InputError: sizes that do not fit the weights.
    """
    checked = _check_sizes(sizes, problem)
    return Problem(
        problem.weights, problem.batched, checked if check else checked.clamp(0, problem.n)
    )


def check_adjacency(adjacency: object, *, weights: object) -> Problem:
    """Check the arguments of reachability, without values; a tensor of bool stays one.

    Raises:
        InputError: as check_weights; `weights` is no bool; without `weights`, a dtype that is
            neither bool nor one of whole numbers.
    """
    if not isinstance(weights, bool):
        raise InputError(
            f"`weights` must be True or False, but is {type(weights).__name__}; give weights=True if `adjacency` holds "
            "weights, else leave it out."
        )
    tensor = _check_tensor(adjacency, "adjacency")
    if weights:
        _check_dtype(tensor, "adjacency")
    elif tensor.is_floating_point() and tensor.dtype in DTYPES:
        raise InputError(
            f"`adjacency` must be of bool or of whole numbers, where 0 is no edge, but has {dtype_name(tensor.dtype)}; give "
            "weights=True if inf is no edge and 0 an edge, else `adjacency != 0`."
        )
    else:
        _check_dtype(tensor, "adjacency", _ADJACENCY_DTYPES, "give `adjacency != 0`")
    _check_square(tensor, "adjacency", "no_edge" if weights else "0")
    batched = tensor.dim() == 3
    return Problem(tensor if batched else tensor[None], batched)


def _check_square(tensor: torch.Tensor, name: str, padding: str) -> None:
    if tensor.dim() not in (2, 3) or tensor.shape[-1] != tensor.shape[-2]:
        remedy = (
            "reshape it" if tensor.dim() not in (2, 3) else f"pad missing vertices with {padding}"
        )
        if tensor.dim() == 1 and name == "weights":
            remedy = "give `offsets` too for packed graphs"
        raise InputError(
            f"`{name}` must be square, (n, n) or (batch, n, n), but has shape {tuple(tensor.shape)}; {remedy}."
        )


def _check_dtype(
    tensor: torch.Tensor,
    name: str,
    dtypes: tuple[torch.dtype, ...] = _WEIGHT_DTYPES,
    remedy: str | None = None,
) -> None:
    if tensor.dtype not in dtypes:
        *first, last = map(dtype_name, dtypes)
        raise InputError(
            f"`{name}` must have one of the dtypes {', '.join(first)} or {last}, but has {dtype_name(tensor.dtype)}; "
            f"{remedy or remedy_for(tensor.dtype)}."
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
            f"`sizes` must lie in [0, {n}], the vertices that the weights can hold, but sizes[{index}] is "
            f"{int(sizes[index])}; count the vertices of graph {index} again, or pad the weights further."
        )


def _check_sizes(sizes: object, problem: Problem) -> torch.Tensor:
    """Check the sizes of a batch, without their values, and return them as a contiguous tensor."""
    if not isinstance(sizes, torch.Tensor) or sizes.layout != torch.strided:
        raise InputError(
            f"`sizes` must be a dense torch tensor, but is {_kind(sizes)}; make one with torch.tensor(sizes, "
            "device=weights.device)."
        )
    weights, batch = problem.weights, problem.batch
    if not problem.batched:
        raise InputError(
            f"`sizes` must come with weights (batch, n, n), but these have shape {tuple(weights.shape[1:])}; leave sizes out, "
            "or give the weights a batch dimension."
        )
    if sizes.shape != (batch,):
        raise InputError(
            f"`sizes` must have shape ({batch},), one size for each graph, but has shape {tuple(sizes.shape)}; reshape it."
        )
    if sizes.dtype not in _SIZE_DTYPES:
        valid = " or ".join(map(dtype_name, _SIZE_DTYPES))
        raise InputError(
            f"`sizes` must have dtype {valid}, but has {dtype_name(sizes.dtype)}; convert it."
        )
    if sizes.device != weights.device:
        raise InputError(
            f"`sizes` must be on the device of the weights, {weights.device}, but is on {sizes.device}; move it there."
        )
    return sizes.contiguous()


def _kind(value: object) -> str:
    """Return what was given instead of a dense tensor: the layout of a tensor, or the type of
    another object.
    """
    return (
        str(value.layout).removeprefix("torch.")
        if isinstance(value, torch.Tensor)
        else type(value).__name__
    )


def check_operands(
    a: object, b: object, c: object | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, bool]:
    """Check the arguments of min_plus, without their values; return them as (batch, ., .) and
    whether they had a batch.

    Raises:
        InputError: not dense real tensors of one supported dtype on one device, or shapes that do
            not fit.
    """
    named = {"a": _check_tensor(a, "a"), "b": _check_tensor(b, "b")}
    if c is not None:
        named["c"] = _check_tensor(c, "c")
    first = named["a"]
    for name, tensor in named.items():
        _check_dtype(tensor, name)
        if tensor.device != first.device:
            raise InputError(
                f"`a` and `{name}` must be on one device, but `a` is on {first.device} and `{name}` on {tensor.device}; "
                "move one of them."
            )
        if _solved_dtype(tensor) != _solved_dtype(first):
            raise InputError(
                f"`a` and `{name}` must have one dtype, but `a` is {dtype_name(first.dtype)} and `{name}` "
                f"{dtype_name(tensor.dtype)}; convert one of them."
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
            f"`a` and `b` must have shapes (m, k) and (k, n), or (batch, m, k) and (batch, k, n), but have {shapes['a']} "
            f"and {shapes['b']}; reshape one of them."
        )
    result = (*shapes["a"][:-1], shapes["b"][-1])
    if c is not None and shapes["c"] != result:
        raise InputError(
            f"`c` must have the shape of the product, {result}, but has {shapes['c']}; reshape it."
        )
    named = {name: _numbers(tensor, name) for name, tensor in named.items()}
    if not batched:
        named = {name: tensor[None] for name, tensor in named.items()}
    return named["a"], named["b"], named.get("c"), batched


def check_overwrite(weights: torch.Tensor, *, predecessors: bool) -> None:
    """Refuse to overwrite weights that are still needed, those of bool, and those whose elements
    share memory, as of expand().

    Raises:
        InputError: for predecessors or bool, or if two elements may lie at one address.
    """
    if predecessors:
        raise InputError(
            "`weights` must stay unchanged, since predecessors are found in them; leave overwrite out."
        )
    if weights.dtype == torch.bool:
        raise InputError(
            "`weights` of bool must not be overwritten, since distances are float32; leave overwrite out."
        )
    span = 1
    for size, stride in sorted(
        zip(weights.shape, weights.stride(), strict=True), key=lambda pair: pair[1]
    ):
        if size > 1 and stride < span:
            raise InputError(
                f"`weights` must not overlap itself in memory to be overwritten, but has strides {weights.stride()}; "
                "call contiguous() on it first, or leave overwrite out."
            )
        span = max(span, stride * size)


def check_config(config: object) -> None:
    """Check the type of a configuration.

    Raises:
        InputError: it is neither a Config nor None.
    """
    if config is not None and not isinstance(config, Config):
        raise InputError(
            f"config must be a tri_apsp.Config, but is {type(config).__name__}; give a Config or leave it out."
        )


def check_device(tensor: torch.Tensor, name: str) -> None:
    """Check that a tensor is on a device that some engine may run on.

    Raises:
        InputError: it is on another.
    """
    if tensor.device.type not in ("cpu", "cuda"):
        raise InputError(
            f"`{name}` must be on the CPU or a CUDA device, but is on {tensor.device}; move it."
        )


def check_flags(**flags: object) -> None:
    """Check options that are on or off.

    Raises:
        InputError: one is no bool.
    """
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):
            raise InputError(
                f"`{name}` must be True or False, but is {shown(value)}; give one of these."
            )


def check_method(method: object, names: Collection[str]) -> None:
    """Check the name of a method.

    Raises:
        InputError: it is none of `names`.
    """
    if method not in names:
        raise InputError(
            f"`method` must be one of {', '.join(names)}, but is {shown(method)}; choose one of these."
        )


def check_negative_cycles(choice: object, *, check: bool, overwrite: bool) -> None:
    """Check what to do about negative cycles.

    Raises:
        InputError: neither "raise" nor "mark"; or "mark" without a check of the values, or in the
            memory of the weights.
    """
    if choice not in ("raise", "mark"):
        raise InputError(
            f"`negative_cycles` must be 'raise' or 'mark', but is {shown(choice)}; give one of these."
        )
    if choice == "mark" and (overwrite or not check):
        left_out = "overwrite" if overwrite else "check=False"
        raise InputError(
            f'`negative_cycles="mark"` needs checked weights that stay unchanged, but {left_out} was given; leave it out.'
        )


def check_numbering(problem: Problem) -> None:
    """Refuse predecessors that int32 cannot number.

    Raises:
        InputError: for more than 2^31 - 1 vertices.
    """
    most = torch.iinfo(torch.int32).max
    if problem.n > most:
        raise InputError(
            f"with predecessors, n must be at most {most}, the largest int32, but is {problem.n}; leave them out."
        )


def _check_tensor(value: object, name: str) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        other, remedy = _OTHER_GRAPHS.get(
            name, ("", "convert it with from_numpy, from_scipy or from_networkx")
        )
        raise InputError(
            f"`{name}` must be a torch tensor{other}, but is {type(value).__name__}; {remedy}."
        )
    if value.layout != torch.strided:
        remedy = remedy_of_sparse()
        if name == "adjacency":
            remedy = f"call .to_dense() on it, or if it holds weights, {remedy}"
        raise InputError(
            f"`{name}` must be a dense tensor, but has layout {_kind(value)}; {remedy}."
        )
    check_device(value, name)
    return value


def _solved_dtype(tensor: torch.Tensor) -> torch.dtype:
    return torch.float32 if tensor.dtype == torch.bool else tensor.dtype


def _numbers(tensor: torch.Tensor, name: str) -> torch.Tensor:
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
