"""Compiling the kernels of a solve side by side, before its method launches them."""

from functools import lru_cache

import torch

from tri_apsp import engines
from tri_apsp.arguments import DenseBatch
from tri_apsp.configs import CompleteConfig
from tri_apsp.dense.exponents import by_exponents
from tri_apsp.dense.plan import DensePlan
from tri_apsp.dense.verification import EarlyCheck, verify
from tri_apsp.engines import MatrixSpec
from tri_apsp.gpu.launcher import compiling_side_by_side
from tri_apsp.methods import Method, Observer
from tri_apsp.values import Bounds


def compile_solve(batch: DenseBatch, plan: DensePlan, matrix: torch.Tensor) -> None:
    """Compile or load what a method launches, and what follows it, unless an earlier call has.

    Args:
        batch: the graphs.
        plan: of the solve; only a method whose launches do not depend on values is run ahead.
        matrix: that the solve starts from.

    Cost: microseconds if an earlier call had the same arguments; else one look-up in Triton's
    cache, or one compilation, for each kernel.
    """
    if not plan.algorithm.launches_are_fixed or matrix.device.type != "cuda":
        return
    _compile(
        plan.algorithm,
        plan.config,
        matrix.device,
        matrix.dtype,
        batch.n,
        plan.nonnegative,
        matrix.shape,
        matrix.stride(),
        None if batch.sizes is None else batch.sizes.dtype,
        plan.threshold,
    )


@lru_cache(maxsize=1024)
def _compile(
    method: Method,
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
    engine = by_exponents(engines.type_of(config.engine)(spec, config), threshold)
    with compiling_side_by_side():
        early = EarlyCheck(engine)
        total = shape[0] * method.operations(n)
        check = None if nonnegative else early
        method.solve(matrix, engine, Observer(total, check, None, total // 16))
        early.finish()
        bounds = Bounds(0 if nonnegative else -1, None)
        verify(matrix[:, :n, :n].contiguous(), bounds, engine, engine.closure)
