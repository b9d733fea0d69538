"""Compiling and loading what solves need before the first of them, as servers do."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import torch

from tri_apsp.device import resolve
from tri_apsp.errors import InputError
from tri_apsp.messages import shown
from tri_apsp.semirings import DTYPES, dtype_name
from tri_apsp.solver.run import solve

__all__ = ["warmup"]

# Triton compiles in part without the interpreter's lock.
_THREADS = 4


def warmup(
    dtypes: Iterable[torch.dtype] = (torch.float32,),
    sizes: Iterable[int | tuple[int, int]] = (256,),
    *,
    device: str | torch.device = "auto",
    predecessors: bool = False,
) -> None:
    """Compile and load what shortest_paths needs, so that its first call takes as long as later ones.

        tri_apsp.warmup([torch.float32, torch.int16], [1000, (4096, 32)])

    Each graph is solved as it is and with a negative weight, since other kernels may solve it then.

    Args:
        dtypes: of the weights: float32, float64, int16, int32, int64.
        sizes: the vertices n of later weights (n, n), or (batch, n) for weights (batch, n, n). Kernels for other sizes are
            mostly the same, above all if 16 divides both or neither.
        device: "auto", which is a GPU if there is one, "cpu", "cuda" or "cuda:1".
        predecessors: also those of shortest_paths(..., predecessors=True).

    Raises:
        InputError: another dtype, size or device.
        TooLargeError: a solve does not fit the memory of the device.

    Cost: compiling takes seconds for each dtype and sign on a GPU, unless an earlier process of this user has done so; then two
    solves of each size.
    """
    given_dtypes, given_sizes = list(dtypes), list(sizes)
    for dtype in given_dtypes:
        if dtype not in DTYPES:
            names = ", ".join(map(dtype_name, DTYPES))
            raise InputError(f"`dtypes` must be among {names}, but one is {_name(dtype)}; give some of these.")
    shapes = [_shape(size) for size in given_sizes]
    place = resolve(str(device))
    with ThreadPoolExecutor(_THREADS) as threads:
        solves = [threads.submit(_solve, shape, dtype, place, predecessors) for dtype in given_dtypes for shape in shapes]
        for done in solves:
            done.result()


def _solve(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, predecessors: bool) -> None:
    weights = torch.full(shape, 2, dtype=dtype, device=device)
    solve(weights, predecessors=predecessors)
    if shape[-1] > 1 and shape[0]:
        weights[..., 0, -1] = -1
        solve(weights, predecessors=predecessors)


def _shape(size: object) -> tuple[int, ...]:
    numbers = size if isinstance(size, tuple) else (size,)
    if len(numbers) not in (1, 2) or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers):
        raise InputError(
            f"`sizes` must hold whole numbers n or pairs (batch, n), but one is {shown(size) if len(numbers) == 1 else size}; "
            "give such sizes."
        )
    return (*numbers, numbers[-1])


def _name(dtype: object) -> str:
    return dtype_name(dtype) if isinstance(dtype, torch.dtype) else shown(dtype)
