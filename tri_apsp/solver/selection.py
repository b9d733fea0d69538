"""Choosing the method, the engine and the configuration of a solve."""

from __future__ import annotations

from tri_apsp import engines, tuned
from tri_apsp.configs import Config, MethodChoice
from tri_apsp.errors import InputError
from tri_apsp.methods import METHODS, auto
from tri_apsp.solver.arguments import Problem
from tri_apsp.solver.result import Selection

__all__ = ["is_one_closure", "select"]

_GIVEN = "asked for by name"


def select(problem: Problem, method: MethodChoice, config: Config | None, *, nonnegative: bool) -> Selection:
    """Return what solves `problem`: the method by name or by the rules of methods.auto, and a complete configuration.

    Args:
        problem: the weights, whose values are not read.
        method: "auto", or a key of METHODS.
        config: what the caller asks for; unset fields come from tuned files or defaults.
        nonnegative: whether no weight is negative.

    Raises:
        InputError: no such method, or `config` is not a Config that can run.
        EngineError: the engine that `config` names, or every engine, cannot run on the device.
    """
    if method != "auto" and method not in METHODS:
        raise InputError(f"method must be one of auto, {', '.join(METHODS)}, but is {method!r}; choose one of these.")
    if config is not None and not isinstance(config, Config):
        raise InputError(f"config must be a tri_apsp.Config, but is {type(config).__name__}; give a Config or leave it out.")
    weights, config = problem.weights, tuned.with_forced(config)
    engine = engines.choose(weights.device, config, weights.dtype)
    found = tuned.choose(
        engine, weights.device, weights.dtype, config, n=problem.n, batch=problem.batch, nonnegative=nonnegative
    )
    if method == "auto":
        rule = auto.choose(problem.n, found)
        given = config is not None and config.method is not None
        return Selection(rule.method, engine, found, _GIVEN if given else auto.reason(rule, found))
    return Selection(method, engine, found, _GIVEN)


def is_one_closure(selection: Selection, n: int) -> bool:
    """Return whether a graph of `n` vertices is one diagonal block, so that one closure is the whole solve."""
    return selection.method == "floyd_warshall" and n <= selection.config.block_size
