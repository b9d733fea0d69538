"""Choosing the method, the engine and the configuration of a solve."""

from __future__ import annotations

from typing import Any

import torch

from tri_apsp import engines, tuned
from tri_apsp.configs import Config, MethodChoice
from tri_apsp.methods import METHODS, auto, require_used
from tri_apsp.solver.arguments import Problem, check_config, check_method, check_weights
from tri_apsp.solver.result import DenseSelection

__all__ = ["Choice", "choice_of", "is_one_closure", "select_dense"]

_GIVEN = "asked for by name"
_CHOICES: dict[Any, Choice] = {}
# The most choices kept.
_MAX_CHOICES = 1024


class Choice:
    """What solves weights of one shape, dtype and device. It is kept, because choosing takes longer
    than small solves.

    Attributes:
        call: the call for which tuned configurations are looked up, with the engine, for weights of
            which none is negative.
    """

    def __init__(self, call: tuned.Call, method: MethodChoice, config: Config | None) -> None:
        self.call = call
        self._method, self._config = method, config
        self._selections: dict[bool, DenseSelection] = {}

    def select(self, nonnegative: bool) -> DenseSelection:
        """Return the method, the engine and a complete configuration for weights of which none is
        negative, or of any sign.

        Raises:
            InputError: the configuration cannot run.
        """
        found = self._selections.get(nonnegative)
        if found is None:
            call = self.call if nonnegative else self.call.of_any_sign()
            found = self._selections[nonnegative] = _select(call, self._method, self._config)
        return found


def choice_of(problem: Problem, method: MethodChoice, config: Config | None) -> Choice:
    """Return what solves weights whose values are not read.

    Args:
        problem: the weights.
        method: "auto", or a key of METHODS.
        config: what the caller asks for.

    Raises:
        InputError: no such method, `config` is no Config, or the method does not use one of its
            fields.
        EngineError: the engine that `config` names, or every engine, cannot run on the device.

    Cost: some microseconds if an earlier call had the same arguments.
    """
    check_method(method, ("auto", *METHODS))
    check_config(config)
    weights = problem.weights
    key = (
        weights.shape,
        weights.dtype,
        weights.device,
        method,
        None if config is None else repr(config),
        tuned.environment(),
    )
    choice = _CHOICES.get(key)
    if choice is None:
        choice = Choice(_call_of(problem, method, config), method, config)
        if len(_CHOICES) >= _MAX_CHOICES:
            _CHOICES.clear()
        _CHOICES[key] = choice
    return choice


def _call_of(problem: Problem, method: MethodChoice, config: Config | None) -> tuned.Call:
    weights, wanted = problem.weights, tuned.with_forced(config)
    require_used(method, METHODS.get(method), config)
    engine = engines.choose(weights.device, wanted, weights.dtype)
    return tuned.call_of(
        engine, weights.device, weights.dtype, n=problem.n, batch=problem.batch, nonnegative=True
    )


def _select(call: tuned.Call, method: MethodChoice, config: Config | None) -> DenseSelection:
    """Return what solves a call: the method by name or by the rules of methods.auto, and a complete
    configuration.
    """
    config = tuned.with_forced(config)
    found = tuned.config_for_call(call, config)
    if method == "auto":
        rule = auto.choose(call.n, found)
        given = config is not None and config.method is not None
        return DenseSelection(
            rule.method, call.engine, found, _GIVEN if given else auto.reason(rule, found)
        )
    return DenseSelection(method, call.engine, found, _GIVEN)


def select_dense(
    weights: torch.Tensor, method: MethodChoice, config: Config | None, *, nonnegative: bool = True
) -> DenseSelection:
    """Return what solves dense weights, whose values are not read, with the arguments of
    shortest_paths.
    """
    return choice_of(check_weights(weights), method, config).select(nonnegative)


def is_one_closure(selection: DenseSelection, n: int) -> bool:
    """Return whether a graph of `n` vertices is one diagonal block, so that one closure is the
    whole solve.
    """
    return selection.method == "floyd_warshall" and n <= selection.config.block_size
