"""Compiling the kernels of a solve side by side, before its method launches them one after another."""

from __future__ import annotations

from functools import lru_cache

import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig
from tri_apsp.engines import MatrixSpec
from tri_apsp.methods import Method, Observer
from tri_apsp.solver.arguments import Problem
from tri_apsp.solver.values import Bounds
from tri_apsp.solver.verification import EarlyCheck, verify

__all__ = ["compile_solve"]


def compile_solve(
    problem: Problem,
    method: Method,
    engine_name: str,
    config: CompleteConfig,
    matrix: torch.Tensor,
    spec: MatrixSpec,
) -> None:
    """Compile or load what a method launches, and what follows it, unless an earlier call has.

    Args:
        problem: the graphs.
        method: only one whose launches do not depend on values is run ahead.
        engine_name: of the engine.
        config: of the engine.
        matrix: that the solve starts from.
        spec: of the engine.

    Cost: microseconds if an earlier call had the same arguments; else one look-up in Triton's
    cache, or one compilation, for each kernel.
    """
    if not method.launches_are_fixed or matrix.device.type != "cuda":
        return
    sizes = problem.sizes
    _compile(
        method,
        engine_name,
        config,
        matrix.device,
        matrix.dtype,
        problem.n,
        spec.nonnegative,
        matrix.shape,
        matrix.stride(),
        None if sizes is None else sizes.dtype,
        spec.exponents_from,
    )


@lru_cache(maxsize=1024)
def _compile(
    method: Method,
    engine_name: str,
    config: CompleteConfig,
    device: torch.device,
    dtype: torch.dtype,
    n: int,
    nonnegative: bool,
    shape: torch.Size,
    strides: tuple[int, ...],
    sizes_dtype: torch.dtype | None,
    exponents_from: int | None = None,
) -> None:
    """Run the method on a matrix of the device "meta", which has no memory: nothing is launched."""
    matrix = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
    sizes = None if sizes_dtype is None else torch.empty(shape[0], dtype=sizes_dtype, device="meta")
    engine = engines.type_of(engine_name)(
        MatrixSpec(shape[-1], dtype, device, nonnegative, sizes, exponents_from), config
    )
    distances = matrix[:, :n, :n]
    problem = Problem(distances, batched=True, sizes=sizes)
    with engine.compiling():
        early = EarlyCheck(engine, problem, distances, overwritten=False)
        total = shape[0] * method.operations(n)
        method.solve(
            matrix, engine, Observer(total, None if nonnegative else early, None, total // 16)
        )
        early.finish()
        verify(
            problem,
            distances.contiguous(),
            Bounds(0 if nonnegative else -1, None),
            engine,
            engine.closure,
        )
