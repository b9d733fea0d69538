"""The arguments of solves on several devices, checked."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias, Union

import numpy as np
import torch

from tri_apsp.arguments import (
    as_integer,
    check_config,
    check_dtype,
    check_options,
    check_tensor,
    check_writable,
)
from tri_apsp.configs import Config
from tri_apsp.distributed.shared_memory import is_mapped_from, shares_memory
from tri_apsp.distributed.target import FileTarget, Target, TensorTarget
from tri_apsp.errors import InputError, InputTypeError, error_for
from tri_apsp.graphs import check_output, is_sparse
from tri_apsp.graphs.files import file_format, to_path
from tri_apsp.graphs.npy_file import NpyFile
from tri_apsp.messages import file_errors, shown
from tri_apsp.plan import Options
from tri_apsp.semirings import DTYPES, DTYPES_BY_NAME, dtype_name

Place: TypeAlias = Union[torch.Tensor, str, "os.PathLike[str]"]
"""A tensor, or the path of a `.npy` file."""

DeviceName: TypeAlias = str | torch.device
Devices: TypeAlias = DeviceName | Sequence[DeviceName]
BlockRows: TypeAlias = Place | Sequence[torch.Tensor]
"""Weights (n, n) in memory or in a `.npy` file, or in blocks of rows."""


EVERY = 600.0
"""Seconds between two checkpoints."""


@dataclass(frozen=True)
class BlockRowRequest:
    """What the caller of a rank asks for.

    Attributes:
        device: of this rank.
        config: fields that are given; those of rank 0 count.
        options: as for shortest_paths.
        memory: the bytes that a solve may take on the device; None: what is free.
        checkpoint: a folder; None: no checkpoint is written.
        every: seconds between two checkpoints.
        name: of the argument that gave the weights, for messages.
    """

    device: torch.device
    config: Config | None = None
    options: Options = Options()
    memory: int | None = None
    checkpoint: Path | None = None
    every: float = EVERY
    name: str = "graph"


def request_of(
    device: torch.device,
    config: Config | None,
    options: Options,
    memory: int | None,
    checkpoint: "str | os.PathLike[str] | None",
    every: float,
) -> BlockRowRequest:
    """Return what a caller asks for, checked.

    Raises:
        InputError: an argument breaks a rule; `every` is given without `checkpoint`.
    """
    check_config(config)
    check_options(options)
    if isinstance(every, bool) or not isinstance(every, Real) or not every >= 0:
        raise error_for(every, int, float)(
            f"`every` must be a number of seconds that is not negative, but is {shown(every)}; "
            "give one."
        )
    if checkpoint is None and every != EVERY:
        raise InputError(
            f"`every` needs `checkpoint`, the folder that is written every {every:g} s, but there "
            "is none; name it."
        )
    return BlockRowRequest(
        device,
        config,
        options,
        None if memory is None else as_integer(memory, "memory", 1, "give bytes, such as 2**30"),
        None if checkpoint is None else to_path(checkpoint, "checkpoint").absolute(),
        float(every),
    )


def rows_tensor(value: object, name: str) -> torch.Tensor:
    """Return an argument that is rows (rows, n) of weights.

    Raises:
        InputError: it is something else, or of a dtype or kind that block rows do not solve.
    """
    if is_sparse(value):
        raise InputTypeError(
            f"`{name}` must be dense weights to be solved in blocks of rows, but is "
            f"{shown(value)}; give rows of prepare(graph, order='none').dense()."
        )
    tensor = check_tensor(value, name)
    is_bool = tensor.dtype == torch.bool
    remedy = f"give torch.where({name}, 1.0, torch.inf)" if is_bool else None
    check_dtype(tensor, name, DTYPES, remedy)
    if tensor.dim() != 2:
        raise InputError(
            f"`{name}` must be rows of one matrix, (rows, n), but has shape "
            f"{tuple(tensor.shape)}; give a tensor of two dimensions."
        )
    if tensor.requires_grad:
        raise InputError(
            f"`{name}` must not require a gradient, which a solve of block rows does not compute; "
            "give its .detach()."
        )
    if tensor.is_neg():
        raise InputError(
            f"`{name}` must hold its values, but is a view with torch's negative bit; give its "
            ".resolve_neg()."
        )
    return tensor


def weights_file(path: "str | os.PathLike[str]", name: str) -> NpyFile:
    """Return the weights (n, n) in a `.npy` file.

    Raises:
        InputError: it cannot be read, or holds something else.
    """
    target = to_path(path, name, or_tensor=True)
    file_format(target, (".npy",), "load another format with read_graph, and give its dense tensor")
    with file_errors(name, target, "read", "give a .npy file of numbers"):
        try:
            file = NpyFile(target)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"`{name}` must be a .npy file of numbers, but {str(target)!r} is not, or is cut "
                "off; save a matrix of numbers by numpy.save."
            ) from None
    rows, columns = file.shape
    if rows != columns or file.dtype.name not in DTYPES_BY_NAME:
        remedy = "save a square matrix" if rows != columns else _conversion(file.dtype)
        raise InputError(
            f"`{name}` must hold weights (n, n) of {', '.join(DTYPES_BY_NAME)}, but {target} holds "
            f"({rows}, {columns}) of {file.dtype.name}; {remedy}."
        )
    return file


def _conversion(dtype: np.dtype[Any]) -> str:
    """Return what makes weights of a matrix of another dtype, for messages."""
    if dtype.kind == "b":
        return "save numpy.where(matrix, 1.0, numpy.inf)"
    if dtype.kind in "iuf":
        wider = np.promote_types(dtype, np.float32 if dtype.kind == "f" else np.int16).name
        return f"save matrix.astype({wider if wider in DTYPES_BY_NAME else 'float64'!r})"
    return "save real numbers"


def target_of(
    weights: torch.Tensor | NpyFile | Sequence[torch.Tensor],
    out: Place | None,
    shape: Sequence[int],
    dtype: torch.dtype,
    *,
    overwrite: bool,
    checkpoint: Path | None = None,
    first: int = 0,
) -> Target | None:
    """Return where distances go on the host; None: to the device.

    Args:
        weights: that are solved; blocks of rows are overwritten where they are.
        out: as the caller gave it.
        shape, dtype: of the distances that a tensor `out` holds.
        overwrite: replace the weights.
        checkpoint: the folder of checkpoints; None: none is written.
        first: the vertex of the first row of tensors.

    Raises:
        InputError: `out` cannot take the distances, or shares memory or a file with the weights;
            `overwrite` or `checkpoint` do not go with it.
    """
    if isinstance(out, torch.Tensor):
        if overwrite:
            raise InputError(
                "`out` must not be a tensor with `overwrite`, which replaces the weights; leave "
                "one of them out."
            )
        is_dense = out.layout == torch.strided
        has = " with a gradient" * out.requires_grad + " with the negative bit" * out.is_neg()
        has += " on the device meta" * out.is_meta
        if tuple(out.shape) != tuple(shape) or out.dtype != dtype or not is_dense or has:
            raise InputError(
                f"`out` must be a dense tensor {tuple(shape)} of {dtype_name(dtype)} in memory, "
                f"without a gradient or the negative bit, but is {shown(out)}{has}; make one with "
                "torch.empty."
            )
        check_writable(out, "out")
        if isinstance(weights, NpyFile):
            is_shared = out.device.type == "cpu" and is_mapped_from(out, weights.path)
        else:
            given = [weights] if isinstance(weights, torch.Tensor) else weights
            is_shared = any(shares_memory(out, each) for each in given)
        if is_shared:
            raise InputError(
                "`out` must not share memory with the weights, but does; give overwrite=True "
                "without `out` to replace them, or another tensor."
            )
        return TensorTarget(out, first) if out.device.type == "cpu" else None
    file = weights if isinstance(weights, NpyFile) else None
    if file is not None and overwrite and not os.access(file.path, os.W_OK):
        raise InputError(
            f"`overwrite` needs a file that can be written, but {str(file.path)!r} cannot; change "
            "its rights, or give `out`."
        )
    if file is not None and overwrite and checkpoint is not None:
        raise InputError(
            "`checkpoint` needs weights that a later run can read, but `overwrite` replaces their "
            "file; leave one of them out."
        )
    if out is None:
        if overwrite and file is not None:
            return FileTarget(file.path, file)
        if not overwrite or not isinstance(weights, torch.Tensor):
            return None
        check_writable(weights, "graph")
        return TensorTarget(weights, first) if weights.device.type == "cpu" else None
    path, _ = check_output(to_path(out, "out", or_tensor=True), (".npy",))
    if checkpoint is not None and path.resolve().parent == checkpoint.resolve():
        raise InputError(
            "`out` must not be in the folder of `checkpoint`, whose files are removed, but is "
            f"{path}; name another folder."
        )
    is_same = file is not None and path.exists() and path.samefile(file.path)
    if is_same != overwrite:
        raise InputError(
            f"`out` must be another file than the weights, but both are {path}; give "
            "overwrite=True to replace the weights, or another name."
            if is_same
            else "`overwrite` must not be given with another `out`, since it replaces the weights; "
            "leave one of them out."
        )
    return FileTarget(path, file if is_same else None)
