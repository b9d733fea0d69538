"""The arguments of solves on several devices, checked."""

import os
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import TypeAlias, Union

import torch

from tri_apsp.arguments import (
    as_integer,
    check_config,
    check_dtype,
    check_options,
    check_overlap,
    check_tensor,
)
from tri_apsp.configs import Config
from tri_apsp.distributed.run import Wishes
from tri_apsp.distributed.target import FileTarget, Target, TensorTarget
from tri_apsp.errors import InputError, error_for
from tri_apsp.graphs.files import file_format, to_path
from tri_apsp.graphs.npy_file import NpyFile
from tri_apsp.messages import shown
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


def wishes_of(
    device: torch.device,
    config: Config | None,
    options: Options,
    memory: int | None,
    checkpoint: "str | os.PathLike[str] | None",
    every: float,
) -> Wishes:
    """Return what a caller asks for, checked."""
    check_config(config)
    check_options(options)
    if isinstance(every, bool) or not isinstance(every, Real) or not every >= 0:
        raise error_for(every, int, float)(
            f"`every` must be a number of seconds that is not negative, but is {shown(every)}; "
            "give one."
        )
    return Wishes(
        device,
        config,
        options,
        None if memory is None else as_integer(memory, "memory", least=1),
        None if checkpoint is None else to_path(checkpoint, "checkpoint"),
        float(every),
    )


def rows_tensor(value: object, name: str) -> torch.Tensor:
    """Return an argument that is rows (rows, n) of weights."""
    tensor = check_tensor(value, name)
    check_dtype(tensor, name, DTYPES)
    if tensor.dim() != 2:
        raise InputError(
            f"`{name}` must be rows of one matrix, (rows, n), but has shape "
            f"{tuple(tensor.shape)}; solve the graphs of a batch one by one."
        )
    if tensor.requires_grad:
        raise InputError(
            f"`{name}` must not require a gradient, which a solve of block rows does not compute; "
            "give its .detach()."
        )
    return tensor


def weights_file(path: "str | os.PathLike[str]", name: str) -> NpyFile:
    """Return the weights (n, n) in a `.npy` file."""
    target = to_path(path, name)
    file_format(target, (".npy",))
    try:
        file = NpyFile(target)
    except InputError:
        raise
    except (OSError, EOFError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"`{name}` must be a .npy file that can be read, but {target} cannot: {reason}; give "
            "another file."
        ) from None
    rows, columns = file.shape
    if rows != columns or file.dtype.name not in DTYPES_BY_NAME:
        raise InputError(
            f"`{name}` must hold weights (n, n) of {', '.join(DTYPES_BY_NAME)}, but {target} holds "
            f"({rows}, {columns}) of {file.dtype.name}; save such a matrix."
        )
    return file


def target_of(
    weights: torch.Tensor | NpyFile | None,
    out: Place | None,
    shape: Sequence[int],
    dtype: torch.dtype,
    *,
    overwrite: bool,
    checkpoint: bool = False,
    first: int = 0,
) -> Target | None:
    """Return where distances go on the host; None: to the device.

    Args:
        weights: that are solved; None: blocks of rows, which are overwritten where they are.
        out: as the caller gave it.
        shape, dtype: of the distances that a tensor `out` holds.
        overwrite: replace the weights.
        checkpoint: whether checkpoints are written.
        first: the vertex of the first row of tensors.
    """
    if isinstance(out, torch.Tensor):
        if overwrite:
            raise InputError(
                "`out` must not be a tensor with `overwrite`, which replaces the weights; leave "
                "one of them out."
            )
        if tuple(out.shape) != tuple(shape) or out.dtype != dtype or out.layout != torch.strided:
            raise InputError(
                f"`out` must be a dense tensor {tuple(shape)} of {dtype_name(dtype)}, but is "
                f"{shown(out)}; make one with torch.empty."
            )
        check_overlap(out, "out")
        if isinstance(weights, torch.Tensor) and weights.data_ptr() == out.data_ptr() != 0:
            raise InputError(
                "`out` must not be the weights; give overwrite=True to replace them, or another "
                "tensor."
            )
        return TensorTarget(out, first) if out.device.type == "cpu" else None
    file = weights if isinstance(weights, NpyFile) else None
    if file is not None and overwrite and checkpoint:
        raise InputError(
            "`checkpoint` needs weights that a later run can read, but `overwrite` replaces their "
            "file; leave one of them out."
        )
    if out is None:
        if not overwrite or weights is None:
            return None
        if file is not None:
            return FileTarget(file.path, file)
        assert isinstance(weights, torch.Tensor)
        check_overlap(weights, "graph")
        return TensorTarget(weights, first) if weights.device.type == "cpu" else None
    path = to_path(out, "out")
    file_format(path, (".npy",))
    is_same = file is not None and path.exists() and path.samefile(file.path)
    if is_same != overwrite:
        raise InputError(
            f"`out` must be another file than the weights, but both are {path}; give "
            "overwrite=True to replace the weights, or another name."
            if is_same
            else "`overwrite` must not be given with another `out`, since it replaces the weights; "
            "leave one of them out."
        )
    _check_folder(path)
    return FileTarget(path, file if is_same else None)


def _check_folder(path: Path) -> None:
    if not os.access(path.parent, os.W_OK) or path.is_dir():
        raise InputError(
            f"`out` must be a file that can be written, but {path} cannot; give another file name."
        )
