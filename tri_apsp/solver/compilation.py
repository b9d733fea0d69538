"""Compiling the kernels of a solve side by side, before its method launches them one after another."""

from __future__ import annotations

from functools import lru_cache

import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig
from tri_apsp.engines import Engine, MatrixSpec
from tri_apsp.gpu.launcher import compiling_side_by_side
from tri_apsp.methods import Method, Observer
from tri_apsp.solver.arguments import Problem
from tri_apsp.solver.exponents import by_exponents
from tri_apsp.solver.values import Bounds
from tri_apsp.solver.verification import EarlyCheck, verify

__all__ = ["compile_solve"]


def compile_solve(
    problem: Problem,
    method: Method,
    engine_name: str,
    matrix: torch.Tensor,
    engine: Engine,
    threshold: int | None,
) -> None:
    """Compile or load what a method launches, and what follows it, unless an earlier call has.

    Args:
        problem: the graphs.
        method: only one whose launches do not depend on values is run ahead.
        engine_name: the name in ENGINES of the engine.
        matrix: that the solve starts from.
        engine: of the solve.
        threshold: of its products by exponents; None: it has none.

    Cost: microseconds if an earlier call had the same arguments; else one look-up in Triton's
    cache, or one compilation, for each kernel.
    """
    if not method.launches_are_fixed or matrix.device.type != "cuda":
        return
    sizes = problem.sizes
    _compile(
        method,
        engine_name,
        engine.config,
        matrix.device,
        matrix.dtype,
        problem.n,
        engine.spec.nonnegative,
        matrix.shape,
        matrix.stride(),
        None if sizes is None else sizes.dtype,
        threshold,
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
    threshold: int | None,
) -> None:
    """Run the method on a matrix of the device "meta", which has no memory: nothing is launched."""
    matrix = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
    sizes = None if sizes_dtype is None else torch.empty(shape[0], dtype=sizes_dtype, device="meta")
    spec = MatrixSpec(shape[-1], dtype, device, nonnegative, sizes)
    engine = by_exponents(engines.type_of(engine_name)(spec, config), threshold)
    distances = matrix[:, :n, :n]
    problem = Problem(distances, batched=True, sizes=sizes)
    with compiling_side_by_side():
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
