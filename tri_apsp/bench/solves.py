"""Solves as `bench` and the reports time them: the only module of both that calls single steps of a
solve.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tri_apsp import engines, papers
from tri_apsp.configs import CompleteConfig, Config, MethodChoice
from tri_apsp.engines import Engine, MatrixSpec
from tri_apsp.solver.arguments import check_weights
from tri_apsp.solver.exponents import ordinary_products as direct_products
from tri_apsp.solver.result import DenseSelection, Result
from tri_apsp.solver.run import run, solve
from tri_apsp.solver.selection import select_dense

__all__ = [
    "DenseSelection",
    "direct_products",
    "selection_of",
    "solve",
    "solve_by",
    "solve_with",
]


def selection_of(weights: torch.Tensor, method: MethodChoice, config: Config) -> DenseSelection:
    """Return what solves dense weights, whose values are not read."""
    return select_dense(weights, method, config)


def solve_with(
    weights: torch.Tensor, selection: DenseSelection, adapt: Callable[[Engine], None]
) -> Result:
    """Solve by an engine that `adapt` has changed."""

    def make(name: str, spec: MatrixSpec, config: CompleteConfig) -> Engine:
        engine = engines.make(name, spec, config)
        adapt(engine)
        return engine

    return run(check_weights(weights), lambda nonnegative: selection, make=make)


def solve_by(
    name: str, weights: torch.Tensor, config: Config, parameter: int | None = None
) -> Result:
    """Solve by "auto", by a method of METHODS, or by a system of a paper, which has a parameter."""
    if name in papers.SYSTEMS:
        return papers.solve(weights, name, parameter=parameter, config=config)
    return solve(weights, method=name, config=config)  # type: ignore[arg-type]
