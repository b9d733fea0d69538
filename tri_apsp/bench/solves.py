"""Solves as `bench` and the reports time them: the only module of both that calls single steps of a
solve.
"""

from collections.abc import Callable

import torch

from tri_apsp import engines, papers
from tri_apsp.arguments import check_weights
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.dense.exponents import direct_products
from tri_apsp.dense.plan import plan_dense
from tri_apsp.dense.run import run, solve
from tri_apsp.engines import Engine, MatrixSpec
from tri_apsp.result import Result

__all__ = [
    "direct_products",
    "solve",
    "solve_by",
    "solve_with",
]


def solve_with(
    weights: torch.Tensor, method: str, config: Config, adapt: Callable[[Engine], None]
) -> Result:
    """Solve by an engine that `adapt` has changed."""

    def make(spec: MatrixSpec, config: CompleteConfig) -> Engine:
        engine = engines.make(spec, config)
        adapt(engine)
        return engine

    batch = check_weights(weights)
    return run(batch, plan_dense(batch, method, config), make=make)


def solve_by(
    name: str, weights: torch.Tensor, config: Config, parameter: int | None = None
) -> Result:
    """Solve by "auto", by a method of METHODS, or by a system of a paper, which has a parameter."""
    if name in papers.SYSTEMS:
        return papers.solve(weights, name, parameter=parameter, config=config)
    return solve(weights, method=name, config=config)
