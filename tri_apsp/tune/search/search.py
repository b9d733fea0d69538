"""Find the fastest configuration in few evaluations: Optuna proposes, whoever calls evaluates (ask and tell)."""

from __future__ import annotations

import contextlib
import itertools
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
from tri_apsp.tune.space.space import Space, Values, needs_more
from tri_apsp.tune.workers.measurement_queue import LateError, Turn

__all__ = [
    "Evaluate",
    "Evaluated",
    "SearchResult",
    "known_trials",
    "memory_study",
    "neighbours",
    "opening",
    "search",
    "tpe_sampler",
]

Evaluate = Callable[[Values, Turn], Outcome]
"""Evaluate a configuration when it is its turn; may raise LateError, which the turn then did."""

_Key = tuple[Any, ...]

# Random candidates before TPE has something to model; the anchors count.
STARTUP = 10
# What is left of the budget when the hill-climb starts: .97, .99 and .99 of the optimum after 100 evaluations of a model of the
# product's space where it was 0, 1/5 and 3/10, in the mean of 21 runs.
CLIMB = 0.25
# A configuration that takes this many times the best so far has lost.
_GIVE_UP = 2.0
# A study may hold others: RUNNING and FAIL, of earlier versions.
_EVALUATED = (TrialState.COMPLETE, TrialState.PRUNED)


def neighbours(space: Space, values: Values, others: Iterable[Values]) -> list[Values]:
    """Return those of `others` that are one step from `values`, in one parameter."""
    places = [{choice: place for place, choice in enumerate(parameter.choices)} for parameter in space.parameters]

    def steps(other: Values) -> int:
        pairs = zip(space.parameters, places, strict=True)
        return sum(abs(place[other[parameter.name]] - place[values[parameter.name]]) for parameter, place in pairs)

    return [other for other in others if steps(other) == 1]


def tpe_sampler(seed: int) -> optuna.samplers.TPESampler:
    """Return Optuna's TPE with every setting spelled out in which its versions 4 and 5 differ."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # version 4, of settings that stayed
        return optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP, multivariate=True, group=False, constant_liar=True
        )


def memory_study() -> optuna.Study:
    """Return an empty study that nothing keeps, to minimise milliseconds."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it tells of each study on stderr
    return optuna.create_study(direction="minimize")


def known_trials(study: optuna.Study) -> list[Evaluated]:
    """Return the configurations that were evaluated in `study`, by whatever process, in their order."""
    found: dict[_Key, Evaluated] = {}
    started = None
    for trial in study.get_trials(deepcopy=False, states=_EVALUATED):
        assert trial.datetime_start is not None
        assert trial.datetime_complete is not None
        started = started or trial.datetime_start
        outcome, origin = Outcome.from_dict(trial.user_attrs["outcome"]), trial.user_attrs["origin"]
        key = tuple(sorted(trial.params.items()))
        if key not in found:
            seconds = (trial.datetime_complete - started).total_seconds()
            found[key] = Evaluated(trial.params, outcome, origin, seconds, earlier=True)
    return list(found.values())


def search(
    space: Space,
    candidates: Sequence[Values],
    evaluators: Sequence[Evaluate],
    *,
    study: optuna.Study,
    default: Values,
    anchors: Iterable[Values] = (),
    sampler: str = "tpe",
    seed: int = 0,
    trials: int,
    seconds: float = float("inf"),
    leave: Callable[[float], float] | None = None,
    on_trial: Callable[[Evaluated], None] | None = None,
) -> SearchResult:
    """Evaluate up to `trials` of the candidates, the most promising first; all of them if they are no more than that.

    Only the thread of the caller touches the study; each evaluator runs in a thread of its own. Ctrl-C ends the search, and
    what is known is returned.

    The study gets a trial when an evaluation ends, in one write, and nothing of one that was interrupted. So what another
    machine evaluates at this moment is not known, and both may now and then evaluate the same.

    Args:
        space: the parameters and their choices.
        candidates: the combinations that may be evaluated.
        evaluators: each evaluates one configuration at a time, side by side; one a worker.
        study: where the trials are kept. Those in it already count as evaluated, and those that other machines add meanwhile.
            A failed configuration is pruned there, with its class in the user attribute "outcome".
        default: evaluated first, be it a candidate or not.
        anchors: evaluated next, if they are candidates.
        sampler: "tpe", "random", or "grid" for the order in which the candidates are listed.
        seed: of the sampler.
        trials: most distinct configurations to know in the end.
        seconds: nothing is proposed or measured later, but the default.
        leave: of these, what is to be left over where the fastest takes so many ms; None: nothing.
        on_trial: called after each evaluation that told something new.
    """
    run = _Search(space, candidates, evaluators, study, default, list(anchors), sampler, seed, trials, seconds, leave, on_trial)
    return run.run()


def opening(
    space: Space,
    candidates: Sequence[Values],
    *,
    default: Values,
    anchors: Iterable[Values] = (),
    sampler: str = "tpe",
    seed: int = 0,
    trials: int,
    count: int,
) -> list[Values]:
    """Return the first values, `count` at most, that a search of an empty study evaluates whatever comes of them.

    Args: as search().
    """
    study, end = memory_study(), float("inf")
    run = _Search(space, candidates, [], study, default, list(anchors), sampler, seed, trials, end, None, None)
    first = dict.fromkeys(index for _, index in run._planned)
    return [run._candidates[index] for index in itertools.islice(first, min(count, trials))]


@dataclass
class _Proposal:
    values: Values
    origin: str
    trial: optuna.Trial | None = None  # None: not of the sampler


class _Search:
    """The state of one search.

    TPE samples from a mirror of the study in memory: to ask writes a dozen times, and a write to a journal takes milliseconds.
    """

    def __init__(
        self,
        space: Space,
        candidates: Sequence[Values],
        evaluators: Sequence[Evaluate],
        study: optuna.Study,
        default: Values,
        anchors: list[Values],
        sampler: str,
        seed: int,
        trials: int,
        seconds: float,
        leave: Callable[[float], float] | None,
        on_trial: Callable[[Evaluated], None] | None,
    ) -> None:
        self._space, self._study = space, study
        self._evaluators, self._on_trial = evaluators, on_trial
        self._trials, self._seconds, self._leave = trials, seconds, leave
        self._names = [parameter.name for parameter in space.parameters]
        self._distributions: dict[str, BaseDistribution] = {
            p.name: CategoricalDistribution(p.choices) for p in space.parameters
        }
        self._random = random.Random(seed)
        self._start = time.monotonic()
        self._candidates = [default, *(values for values in candidates if values != default)]
        self._index = {self._key(values): index for index, values in enumerate(self._candidates)}
        self._places = np.array([self._place(values) for values in self._candidates])
        self._open = np.full(len(self._candidates), True)
        self._known: dict[_Key, Outcome] = {}
        self._in_flight = 0
        self._result = SearchResult(candidates=len(self._candidates))
        self._read: set[int] = set()
        self._id = uuid.uuid4().hex
        self._mirror = memory_study()
        self._refresh()
        self._mirror.sampler = tpe_sampler(seed + len(self._read))
        exhaustive = len(self._candidates) <= trials
        self._tpe = sampler == "tpe" and not exhaustive
        self._planned = self._plan(default, anchors, shuffled=exhaustive or sampler != "grid")

    def _plan(self, default: Values, anchors: list[Values], *, shuffled: bool) -> Iterator[tuple[str, int]]:
        """Yield the origin and the index of what is evaluated in any case."""
        order = list(range(len(self._candidates)))
        if shuffled:
            self._random.shuffle(order)
        # One whose every place is in the middle of its parameter.
        median = int(np.abs(self._places - 0.5).sum(axis=1).argmin())
        first = [self._index[key] for key in map(self._key, anchors) if key in self._index]
        yield "default", self._index[self._key(default)]
        yield from (("anchor", index) for index in (*first, median))
        if self._tpe:
            order = order[: max(0, STARTUP - 2 - len(first))]
        yield from (("start" if self._tpe else "sweep", index) for index in order)

    def run(self) -> SearchResult:
        pool = ThreadPoolExecutor(len(self._evaluators), thread_name_prefix="tri_apsp-tune")
        idle = list(self._evaluators)
        running: dict[Future[Outcome], tuple[_Proposal, Evaluate]] = {}
        numbers = itertools.count()
        try:
            while True:
                while idle and (proposal := self._propose()) is not None:
                    evaluate = idle.pop()
                    turn = Turn(next(numbers), partial(self._limit, proposal))
                    running[pool.submit(evaluate, proposal.values, turn)] = (proposal, evaluate)
                    self._in_flight = len(running)
                if not running:
                    break
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    proposal, evaluate = running.pop(done)
                    self._in_flight = len(running)
                    with contextlib.suppress(LateError):  # then nothing is proposed any more
                        self._finish(proposal, done.result())
                    idle.append(evaluate)
        except KeyboardInterrupt:
            self._result.interrupted = True
        finally:
            # What still runs ends when the caller closes its worker.
            pool.shutdown(wait=False, cancel_futures=True)
        self._result.seconds = time.monotonic() - self._start
        return self._result

    def _propose(self) -> _Proposal | None:
        """Return what to evaluate next; None at the end of the budget or of the candidates."""
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
        """Ask TPE. A proposal that is known, or no candidate, is told at once, and the nearest new candidate evaluated."""
        trial = self._mirror.ask(self._distributions)
        index = self._index.get(self._key(trial.params))
        if index is not None and self._open[index]:
            self._open[index] = False
            return _Proposal(self._candidates[index], "tpe", trial)
        known = self._known.get(self._key(trial.params))
        if known is not None:
            self._mirror.tell(trial, known.p50_ms, state=_state(known))
        elif index is None:
            self._mirror.tell(trial, state=TrialState.PRUNED)
        else:  # evaluated at this moment, or passed over
            self._mirror.tell(trial, state=TrialState.FAIL)
        distances = np.where(self._open, np.abs(self._places - self._place(trial.params)).sum(axis=1), np.inf)
        return self._take("tpe", int(distances.argmin()))

    def _take(self, origin: str, index: int) -> _Proposal:
        self._open[index] = False
        return _Proposal(self._candidates[index], origin)

    def _finish(self, proposal: _Proposal, outcome: Outcome) -> None:
        finished = optuna.create_trial(
            state=_state(outcome),
            value=outcome.p50_ms,
            params=proposal.values,
            distributions=self._distributions,
            user_attrs={"outcome": outcome.to_dict(), "origin": proposal.origin, "search": self._id},
        )
        self._study.add_trial(finished)
        if proposal.trial is not None:
            self._mirror.tell(proposal.trial, outcome.p50_ms, state=_state(outcome))
        else:
            self._mirror.add_trial(finished)
        if self._key(proposal.values) in self._known:
            return  # another machine was faster
        self._learn(proposal.values, outcome, proposal.origin)
        if self._on_trial is not None:
            self._on_trial(self._result.evaluated[-1])

    def _learn(self, values: Values, outcome: Outcome, origin: str, *, earlier: bool = False) -> None:
        key = self._key(values)
        self._known[key] = outcome
        self._open[self._index[key]] = False
        seconds = time.monotonic() - self._start
        self._result.evaluated.append(Evaluated(values, outcome, origin, seconds, earlier))
        if outcome.kind is Kind.does_not_fit:
            for index in np.flatnonzero(self._open):
                if needs_more(self._candidates[index], values):
                    self._open[index] = False
                    self._result.dominated += 1

    def _refresh(self) -> None:
        """Learn what others told the study: earlier runs, and other machines."""
        for trial in self._study.get_trials(deepcopy=False, states=_EVALUATED):
            if trial.number in self._read:
                continue
            self._read.add(trial.number)
            if trial.user_attrs.get("search") == self._id:
                continue
            self._mirror.add_trial(trial)
            key = self._key(trial.params)
            if key not in self._index or key in self._known:
                continue
            outcome = Outcome.from_dict(trial.user_attrs["outcome"])
            if outcome.kind is Kind.correct or outcome.kind.lasting:
                self._learn(self._candidates[self._index[key]], outcome, trial.user_attrs["origin"], earlier=True)

    def _spent(self) -> float:
        """Return the part of the budget that is used up, 1 or more at its end."""
        count = len(self._known) + self._in_flight
        return max(count / self._trials, self._elapsed())

    def _elapsed(self) -> float:
        gone = time.monotonic() - self._start
        if self._leave is not None and (best_ms := self._result.best_ms) < float("inf"):
            gone += self._leave(best_ms)
        return gone / self._seconds

    def _limit(self, proposal: _Proposal) -> float | None:
        """Return when to give up, in ms, as a proposal is about to be measured; called by the thread that evaluates it.

        Raises:
            LateError: the time is up.
        """
        if self._elapsed() >= 1 and proposal.origin != "default":
            raise LateError
        best_ms = self._result.best_ms
        return _GIVE_UP * best_ms if best_ms < float("inf") else None

    def _climb(self) -> int | None:
        """Return a new neighbour of the best, one step away in one parameter; None where every one is known."""
        best = self._result.best
        if best is None:
            return None
        new = []
        for parameter in self._space.parameters:
            place = parameter.choices.index(best.values[parameter.name])
            for choice in (*parameter.choices[max(0, place - 1) : place], *parameter.choices[place + 1 : place + 2]):
                index = self._index.get(self._key(best.values | {parameter.name: choice}))
                if index is not None and self._open[index]:
                    new.append(index)
        return self._random.choice(new) if new else None

    def _place(self, values: Mapping[str, Any]) -> list[float]:
        """Return where each value lies in the range of its parameter, from 0 to 1."""
        return [p.choices.index(values[p.name]) / max(1, len(p.choices) - 1) for p in self._space.parameters]

    def _key(self, values: Mapping[str, Any]) -> _Key:
        return tuple(values[name] for name in self._names)


def _state(outcome: Outcome) -> TrialState:
    # TPE would ignore a failed trial; a pruned one teaches it to stay away.
    return TrialState.COMPLETE if outcome.kind is Kind.correct else TrialState.PRUNED
