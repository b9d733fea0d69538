"""Finding the fastest configuration in few evaluations: Optuna proposes, the caller evaluates (ask
and tell).
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import TrialState

from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.search.evaluated import Evaluated, SearchResult
from tri_apsp.tune.space.candidates import needs_more
from tri_apsp.tune.workers.measurement_queue import OutOfTimeError, Request
from tri_apsp.tuned.records import Space, Values

__all__ = ["Evaluate", "Search", "known_trials", "memory_study"]

Evaluate = Callable[[Values, Request], Outcome]
"""Evaluates a configuration; raises OutOfTimeError if the request does."""

_Key = tuple[Any, ...]

# Random candidates before TPE has something to model, anchors included.
STARTUP = 10
# Fraction of the budget left for the hill climb; reports/nvidia-h200/sampler.md shows the rates
# reached.
CLIMB = 0.25
# A configuration that takes this many times the best time so far cannot win.
_GIVE_UP = 2.0


def _tpe_sampler(seed: int) -> optuna.samplers.TPESampler:
    """Return Optuna's TPE with every setting given in which its versions 4 and 5 differ."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", optuna.exceptions.ExperimentalWarning
        )  # version 4, of settings that stayed
        return optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP, multivariate=True, group=False, constant_liar=True
        )


def memory_study() -> optuna.Study:
    """Return an empty study in memory, to minimise the cost: milliseconds, or joules."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # else it logs each study on stderr
    return optuna.create_study(direction="minimize")


def known_trials(study: optuna.Study) -> list[Evaluated]:
    """Return the distinct configurations that any process evaluated in `study`, in their order,
    each with its last outcome.
    """
    found: dict[_Key, Evaluated] = {}
    for trial in study.get_trials(deepcopy=False):
        found[tuple(sorted(trial.params.items()))] = _evaluated(trial)
    return list(found.values())


def _evaluated(trial: optuna.trial.FrozenTrial) -> Evaluated:
    return Evaluated(
        trial.params, Outcome.from_dict(trial.user_attrs["outcome"]), trial.user_attrs["origin"]
    )


@dataclass
class _Proposal:
    values: Values
    origin: str
    trial: optuna.Trial | None = None  # None: not of the sampler


class Search:
    """Evaluates up to `trials` of the candidates, the most promising first; all of them if there
    are no more than that.

    A finished evaluation adds one trial to the study, in one write; an interrupted one adds none.
    So machines that share a study may occasionally evaluate the same configuration. TPE samples
    from a mirror of the study in memory, since asking for a proposal takes a dozen writes, and a
    write to a journal takes milliseconds.

    Args:
        space: the parameters and their choices.
        candidates: the combinations that may be evaluated.
        study: holds the trials. Those in it already count as evaluated, and so do those that other
            machines add meanwhile. A failed configuration is pruned there, with its class in the
            user attribute "outcome".
        default: evaluated first, whether it is a candidate or not.
        anchors: evaluated next, if they are candidates.
        sampler: "tpe", "random", or "grid" for the order in which the candidates are listed.
        seed: the seed of the sampler.
        trials: the largest number of configurations evaluated, those already in the study included.
        seconds: time limit, after which only the default may still run.
        reserve: maps the best time in ms to the seconds to keep for the final; None: 0.
        on_trial: called with the result so far after each new evaluation.
    """

    def __init__(
        self,
        space: Space,
        candidates: Sequence[Values],
        *,
        study: optuna.Study,
        default: Values,
        anchors: Iterable[Values] = (),
        sampler: str = "tpe",
        seed: int = 0,
        trials: int,
        seconds: float = math.inf,
        reserve: Callable[[float], float] | None = None,
        on_trial: Callable[[SearchResult], None] | None = None,
    ) -> None:
        self._space, self._study, self._on_trial = space, study, on_trial
        self._trials, self._seconds, self._reserve = trials, seconds, reserve
        self._names = [parameter.name for parameter in space.parameters]
        self._distributions: dict[str, BaseDistribution] = {
            p.name: CategoricalDistribution(p.choices) for p in space.parameters
        }
        self._random = random.Random(seed)
        self._start = time.monotonic()
        self._candidates = [default, *(values for values in candidates if values != default)]
        self._index = {self._key(values): index for index, values in enumerate(self._candidates)}
        self._positions = np.array([self._position(values) for values in self._candidates])
        self._open = np.full(len(self._candidates), True)
        self._known: dict[_Key, Outcome] = {}
        self._in_flight = 0
        self._result = SearchResult(candidates=len(self._candidates))
        self._read: set[int] = set()
        self._id = uuid.uuid4().hex
        self._mirror = memory_study()
        self._refresh()
        self._mirror.sampler = _tpe_sampler(seed + len(self._read))
        exhaustive = len(self._candidates) <= trials
        self._tpe = sampler == "tpe" and not exhaustive
        self._planned = self._plan(default, list(anchors), shuffled=exhaustive or sampler != "grid")

    def run(self, evaluators: Sequence[Evaluate]) -> SearchResult:
        """Search, and return the configurations evaluated; Ctrl-C ends the search.

        Args:
            evaluators: each evaluates one configuration at a time in a thread of its own. Only the
                thread of the caller touches the study.
        """
        pool = ThreadPoolExecutor(len(evaluators), thread_name_prefix="tri_apsp-tune")
        idle, numbers = list(evaluators), itertools.count()
        running: dict[Future[Outcome], tuple[_Proposal, Evaluate]] = {}
        try:
            while True:
                while idle and (proposal := self._propose()) is not None:
                    evaluate = idle.pop()
                    request = Request(next(numbers), partial(self._limit_ms, proposal))
                    running[pool.submit(evaluate, proposal.values, request)] = (proposal, evaluate)
                    self._in_flight = len(running)
                if not running:
                    break
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    proposal, evaluate = running.pop(done)
                    self._in_flight = len(running)
                    with contextlib.suppress(OutOfTimeError):  # then nothing more is proposed
                        self._finish(proposal, done.result())
                    idle.append(evaluate)
        except KeyboardInterrupt:
            self._result.interrupted = True
        finally:
            # Evaluations in progress end when the caller closes their worker.
            pool.shutdown(wait=False, cancel_futures=True)
        return self._result

    def _plan(
        self, default: Values, anchors: list[Values], *, shuffled: bool
    ) -> Iterator[tuple[str, int]]:
        """Yield the origin and the index of the candidates that need no sampler."""
        order = list(range(len(self._candidates)))
        if shuffled:
            self._random.shuffle(order)
        # The candidate whose values are nearest the middle of their parameters.
        median = int(np.abs(self._positions - 0.5).sum(axis=1).argmin())
        first = [self._index[key] for key in map(self._key, anchors) if key in self._index]
        yield "default", self._index[self._key(default)]
        yield from (("anchor", index) for index in (*first, median))
        if self._tpe:
            order = order[: max(0, STARTUP - 2 - len(first))]
        yield from (("start" if self._tpe else "sweep", index) for index in order)

    def _propose(self) -> _Proposal | None:
        """Return the next configuration to evaluate; None at the end of the budget or of the
        candidates.
        """
        self._refresh()
        if self._spent() >= 1 and (self._known or self._in_flight):
            return None
        for origin, index in self._planned:
            if self._open[index]:
                return self._take(origin, index)
        if not self._tpe or not self._open.any():
            return None
        if self._spent() >= 1 - CLIMB and (step := self._climb()) is not None:
            return self._take("climb", step)
        return self._ask()

    def _ask(self) -> _Proposal:
        """Ask TPE. If its proposal is known or no candidate, tell it so, and take the nearest new
        candidate instead.
        """
        trial = self._mirror.ask(self._distributions)
        index = self._index.get(self._key(trial.params))
        if index is not None and self._open[index]:
            self._open[index] = False
            return _Proposal(self._candidates[index], "tpe", trial)
        known = self._known.get(self._key(trial.params))
        if known is not None:
            self._mirror.tell(trial, _value(known), state=_state(known))
        elif index is None:
            self._mirror.tell(trial, state=TrialState.PRUNED)
        else:  # being evaluated, or passed over
            self._mirror.tell(trial, state=TrialState.FAIL)
        distances = np.where(
            self._open, np.abs(self._positions - self._position(trial.params)).sum(axis=1), np.inf
        )
        return self._take("tpe", int(distances.argmin()))

    def _take(self, origin: str, index: int) -> _Proposal:
        self._open[index] = False
        return _Proposal(self._candidates[index], origin)

    def _finish(self, proposal: _Proposal, outcome: Outcome) -> None:
        finished = optuna.create_trial(
            state=_state(outcome),
            value=_value(outcome),
            params=proposal.values,
            distributions=self._distributions,
            user_attrs={
                "outcome": outcome.to_dict(),
                "origin": proposal.origin,
                "search": self._id,
            },
        )
        self._study.add_trial(finished)
        if proposal.trial is not None:
            self._mirror.tell(proposal.trial, _value(outcome), state=_state(outcome))
        else:
            self._mirror.add_trial(finished)
        if self._key(proposal.values) in self._known:
            return  # another machine evaluated it meanwhile
        self._learn(Evaluated(proposal.values, outcome, proposal.origin))
        if self._on_trial is not None:
            self._on_trial(self._result)

    def _learn(self, trial: Evaluated) -> None:
        key = self._key(trial.values)
        self._known[key] = trial.outcome
        self._open[self._index[key]] = False
        self._result.evaluated.append(trial)
        if trial.outcome.kind is Kind.does_not_fit:
            for index in np.flatnonzero(self._open):
                if needs_more(self._candidates[index], trial.values):
                    self._open[index] = False
                    self._result.dominated += 1

    def _refresh(self) -> None:
        """Learn the trials that earlier runs and other machines added to the study."""
        for trial in self._study.get_trials(deepcopy=False):
            if trial.number in self._read:
                continue
            self._read.add(trial.number)
            if trial.user_attrs.get("search") == self._id:
                continue
            self._mirror.add_trial(trial)
            key, known = self._key(trial.params), _evaluated(trial)
            if key in self._index and key not in self._known and known.outcome.kind.deterministic:
                self._learn(known)

    def _spent(self) -> float:
        """Return the fraction of the budget that is spent, 1 or more at its end."""
        count = len(self._known) + self._in_flight
        return max(count / self._trials, self._spent_time())

    def _spent_time(self) -> float:
        elapsed = time.monotonic() - self._start
        if self._reserve is not None and (best_ms := self._result.best_ms) < math.inf:
            elapsed += self._reserve(best_ms)
        return elapsed / self._seconds

    def _limit_ms(self, proposal: _Proposal) -> float | None:
        """Return the time in ms beyond which a proposal cannot win; called by the evaluating thread
        before it measures.

        Raises:
            OutOfTimeError: the time is up.
        """
        if self._spent_time() >= 1 and proposal.origin != "default":
            raise OutOfTimeError
        best_ms = self._result.best_ms
        return _GIVE_UP * best_ms if best_ms < math.inf else None

    def _climb(self) -> int | None:
        """Return a new neighbour of the best, one step away in one parameter; None if all
        neighbours are known.
        """
        best = self._result.best
        if best is None:
            return None
        new = []
        for parameter in self._space.parameters:
            own = parameter.choices.index(best.values[parameter.name])
            for choice in (
                *parameter.choices[max(0, own - 1) : own],
                *parameter.choices[own + 1 : own + 2],
            ):
                index = self._index.get(self._key(best.values | {parameter.name: choice}))
                if index is not None and self._open[index]:
                    new.append(index)
        return self._random.choice(new) if new else None

    def _position(self, values: Mapping[str, Any]) -> list[float]:
        """Return the position of each value in the range of its parameter, from 0 to 1."""
        return [
            p.choices.index(values[p.name]) / max(1, len(p.choices) - 1)
            for p in self._space.parameters
        ]

    def _key(self, values: Mapping[str, Any]) -> _Key:
        return tuple(values[name] for name in self._names)


def _state(outcome: Outcome) -> TrialState:
    # TPE ignores a failed trial, and learns to avoid a pruned one.
    return TrialState.COMPLETE if outcome.kind is Kind.correct else TrialState.PRUNED


def _value(outcome: Outcome) -> float | None:
    return None if outcome.cost is None else outcome.cost.median
