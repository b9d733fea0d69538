"""Solves as `bench` and the reports time them: the only module of both that calls single steps of a
solve.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig, Config, MethodChoice
from tri_apsp.engines import Engine, MatrixSpec
from tri_apsp.solver.arguments import check_weights
from tri_apsp.solver.exponents import ordinary_products as direct_products
from tri_apsp.solver.result import DenseSelection, Result
from tri_apsp.solver.run import run, solve
from tri_apsp.solver.selection import select_dense

__all__ = [
    "direct_products",
    "engine_of_product",
    "selection_of",
    "solve",
    "solve_by_system",
    "solve_with",
]


def selection_of(weights: torch.Tensor, method: MethodChoice, config: Config) -> DenseSelection:
    """Return method, engine and configuration that solve dense weights, whose values are not read."""
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


def solve_by_system(
    weights: torch.Tensor, name: str, engine: str, parameter: int | None = None
) -> Result:
    """Solve by a system of a paper, with the paper's parameter by default."""
    config = Config(engine=engine, method_parameter=parameter)
    return solve(weights, method=name, config=config)  # type: ignore[arg-type]


def engine_of_product(like: torch.Tensor, name: str, exponents_from: int | None) -> Engine:
    """Return an engine for products of matrices like one (1, n, n) without negative values, by
    exponents from `exponents_from` vertices on; None: all are direct.
    """
    spec = MatrixSpec(like.shape[-1], like.dtype, like.device, True, exponents_from=exponents_from)
    return engines.make(name, spec, select_dense(like, "kleene", Config(engine=name)).config)
