"""Finding the fastest configuration in few evaluations: Optuna proposes, the caller evaluates (ask
and tell), and the trials are stored by Optuna: in a journal on this machine, or where several hosts
share them.
"""

import contextlib
import math
import random
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.samplers import PartialFixedSampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import Trial, TrialState

from tri_apsp.errors import InputError
from tri_apsp.tune.outcome import CardShare, Evaluated, Outcome
from tri_apsp.tune.tasks import TuningTask, studies_directory
from tri_apsp.tuned.records import Space, Values

Evaluate = Callable[[Values, Callable[[float], bool], Callable[[], bool]], Outcome | None]
"""Evaluates values; the other arguments are those of Workers.evaluate."""

Key = tuple[Any, ...]
"""The values of a candidate, in the order of the parameters."""

# Random candidates before TPE has something to model, and trials before slow ones are pruned.
_STARTUP = 10


class Search:
    """Evaluates up to `trials` of the candidates, the most promising first; all of them if there
    are no more than that.

    A trial is pruned if its first run is slower than the median of those of earlier trials, or if
    its configuration fails; the user attribute "outcome" has the class of a failure, and "card" the
    device that measured it.

    Other processes may search in the same study: what they evaluate counts here too, and is not
    evaluated again. A search that has nothing else left takes over what they still run, since a
    process that was killed never finishes it.

    Args:
        space: the parameters and their choices.
        candidates: the combinations that may be evaluated.
        study: holds the trials. Those in it already count as evaluated, except those that failed
            when they ran, which are tried again.
        default: evaluated first, whether it is a candidate or not.
        anchors: evaluated next, if they are candidates.
        seed: the seed of the sampler.
        trials: the largest number of configurations evaluated, those already in the study included.
        end: the time of the monotonic clock after which only the default may still run.
        on_trial: called after each new evaluation with the best time so far in ms; infinity if
            there is none.
    """

    def __init__(
        self,
        space: Space,
        candidates: Sequence[Values],
        *,
        study: optuna.Study,
        default: Values,
        anchors: Iterable[Values] = (),
        seed: int = 0,
        trials: int,
        end: float = math.inf,
        on_trial: Callable[[float], None] = lambda best_ms: None,
    ) -> None:
        self._space, self._study, self._default = space, study, default
        self._trials, self._end, self._on_trial = trials, end, on_trial
        self._distributions: dict[str, BaseDistribution] = {
            p.name: CategoricalDistribution(p.choices) for p in space.parameters
        }
        # The candidates that were not proposed yet.
        self._open = {self._key(values): values for values in (default, *candidates)}
        # Once, since a search is the quicker the sooner it proposes.
        self._places = {key: self._place(values) for key, values in self._open.items()}
        self._evaluated: list[Evaluated] = []
        self._samples = len(self._open) > trials
        # The numbers of the trials that need no further look, and of those that other processes
        # run.
        self._seen = set[int]()
        self._elsewhere = dict[Key, int]()
        self._update(retry=True)
        order = [] if self._samples else list(candidates)
        random.Random(seed).shuffle(order)
        self._planned = iter([default, *anchors, *order])
        # A search that is resumed continues with other random configurations.
        seed += len(study.get_trials(deepcopy=False))
        # Every setting is given in which Optuna 4 and 5 differ; 4 calls some of them experimental.
        with _experimental():
            self._sampler = optuna.samplers.TPESampler(
                seed=seed,
                n_startup_trials=_STARTUP,
                multivariate=True,
                group=False,
                constant_liar=True,
            )
        study.pruner = optuna.pruners.MedianPruner(n_startup_trials=_STARTUP)

    def run(self, evaluate: Evaluate, parallel: int = 1) -> list[Evaluated]:
        """Search, and return the distinct configurations that were evaluated, those of earlier runs
        of the study first. After Ctrl-C, which is raised, the study has those that were finished.

        Args:
            evaluate: evaluates one configuration, in a thread of its own.
            parallel: the number of configurations to evaluate at the same time.
        """
        pool = ThreadPoolExecutor(parallel, thread_name_prefix="tri_apsp-tune")
        running: dict[Future[Outcome | None], Trial] = {}
        try:
            while True:
                while len(running) < parallel and (trial := self._ask(len(running))) is not None:
                    is_slow, is_late = partial(self._is_slow, trial), partial(self._is_late, trial)
                    running[pool.submit(evaluate, trial.params, is_slow, is_late)] = trial
                if not running:
                    break
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    self._tell(running[done], done.result())
                    del running[done]
        finally:
            # Evaluations in progress end when the caller closes their worker.
            pool.shutdown(wait=False, cancel_futures=True)
            for trial in running.values():
                self._study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
        return self._evaluated

    def _update(self, *, retry: bool = False) -> None:
        """Take over what other processes, and earlier runs, evaluated or are evaluating; with
        `retry`, what failed when it ran stays open.
        """
        self._elsewhere.clear()
        for trial in self._study.get_trials(deepcopy=False):
            if trial.number in self._seen:
                continue
            key = self._key(trial.params)
            is_begun = len(trial.params) < len(self._distributions)  # and sets its parameters
            if trial.state is TrialState.RUNNING and (is_begun or key in self._open):
                self._elsewhere[key] = trial.number
            elif trial.state.is_finished():
                self._seen.add(trial.number)
                if "outcome" in trial.user_attrs:
                    outcome = Outcome.from_dict(trial.user_attrs["outcome"])
                    counts = outcome.kind.deterministic or not retry
                    if counts and self._open.pop(key, None) is not None:
                        self._evaluated.append(Evaluated(trial.params, outcome))

    def _ask(self, running: int) -> Trial | None:
        """Return the next trial; None at the end of the budget or of the candidates."""
        self._update()
        count = len(self._evaluated) + running
        is_late = count and time.monotonic() >= self._end
        if count >= self._trials or not self._open or is_late:
            return None
        free = {key: values for key, values in self._open.items() if key not in self._elsewhere}
        if not free or count + len(self._elsewhere) >= self._trials:
            if running:
                return None
            for number in self._elsewhere.values():
                self._study.tell(number, state=TrialState.FAIL, skip_if_finished=True)
            return self._ask(running)  # one that was killed after it measured counts now
        for values in self._planned:
            if self._key(values) in free:
                return self._begun(values)
        if not self._samples:  # what was taken over
            return self._begun(next(iter(free.values())))
        trial = self._begun({})
        if self._key(trial.params) in free:
            return trial
        # Known, or no candidate: TPE learns to propose others.
        self._study.tell(trial, state=TrialState.PRUNED)
        return self._begun(self._nearest(trial.params, free))

    def _begun(self, values: Values) -> Trial:
        """Return a trial of `values`; of {}, one that TPE proposes.

        Optuna's queue of enqueued trials is not used: any process may take a trial from it, and in
        SQLite two may take the same.
        """
        with _experimental():
            self._study.sampler = PartialFixedSampler(dict(values), self._sampler)
        trial = self._study.ask(self._distributions)
        self._seen.add(trial.number)
        self._open.pop(self._key(trial.params), None)
        return trial

    def _tell(self, trial: Trial, outcome: Outcome | None) -> None:
        if outcome is None:  # the time was up
            self._study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
            return
        with contextlib.suppress(UpdateFinishedTrialError):  # another process took it over
            trial.set_user_attr("outcome", outcome.to_dict())
            if outcome.card:
                trial.set_user_attr("card", outcome.card)
            if outcome.times is None or trial.should_prune():
                self._study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)
            else:
                self._study.tell(trial, outcome.median_ms, skip_if_finished=True)
        self._evaluated.append(Evaluated(trial.params, outcome))
        self._on_trial(min(each.outcome.median_ms for each in self._evaluated))

    def _is_slow(self, trial: Trial, ms: float) -> bool:
        with contextlib.suppress(UpdateFinishedTrialError):  # another process took it over
            trial.report(ms, step=0)
        return trial.should_prune()

    def _is_late(self, trial: Trial) -> bool:
        return trial.params != self._default and time.monotonic() >= self._end

    def _nearest(self, values: Values, free: Mapping[Key, Values]) -> Values:
        """Return the candidate whose values are the fewest steps from `values`, in parts of the
        range of each parameter.
        """
        places = np.array([self._places[key] for key in free])
        steps = np.abs(places - self._place(values)).sum(axis=1)
        return [*free.values()][int(steps.argmin())]

    def _place(self, values: Values) -> list[float]:
        return [
            p.choices.index(values[p.name]) / max(1, len(p.choices) - 1)
            for p in self._space.parameters
        ]

    def _key(self, values: Mapping[str, Any]) -> Key:
        return tuple(values.get(parameter.name) for parameter in self._space.parameters)


@contextlib.contextmanager
def _experimental() -> Iterator[None]:
    """Use what Optuna calls experimental, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def journal_path(slug: str) -> Path:
    """Return the path of the journal of searches for the device that `slug` names."""
    return studies_directory() / f"{slug}.log"


def _open_journal(path: Path) -> BaseStorage:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = JournalFileOpenLock(str(path))
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))
    except OSError as error:
        raise InputError(
            f"the journal of searches must be readable and writable, but {path} is not "
            f"({error.strerror}); change its rights."
        ) from None
    except Exception:  # Optuna checks no line, so a damaged one may raise any exception
        raise InputError(
            f"the journal of searches must be one that Optuna wrote, but {path} is not; "
            "move it away."
        ) from None


def open_storage(storage: str) -> BaseStorage:
    """Return the storage of searches: a journal file, which is created if there is none, or the
    database of a URL such as sqlite:///searches.db.

    Raises:
        InputError: it cannot be used, or a package that it needs is not installed.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # else it logs each trial on stderr
    kind, is_url, _ = storage.partition("://")
    if not is_url:
        return _open_journal(Path(storage))
    try:
        # Without Optuna's heartbeats, which are for `optimize` only, not for ask and tell.
        return RDBStorage(storage)
    except ImportError as error:
        package = getattr(error.__cause__ or error, "name", None) or "sqlalchemy"
        raise InputError(
            f"a storage of {kind} needs {package}, but it is not installed; run pip install "
            f"{package}, or give a journal file."
        ) from None
    except Exception as error:  # of SQLAlchemy, a driver or Optuna
        reason = str(error).splitlines()[0]
        raise InputError(
            f"the storage of searches must be a database that Optuna can open, but that of the "
            f"{kind} URL is not ({reason}); correct the URL, or give a journal file."
        ) from None


def open_study(
    storage: BaseStorage, name: str, *, resume: bool, shared: bool = False
) -> optuna.Study:
    """Return a study to minimise milliseconds, whose name is `name` and a number.

    Args:
        storage: the storage that holds the study.
        name: readable words, and a hash of what the times depend on.
        resume: continue the newest study of that name, if there is one; else begin another, and
            leave the old ones.
        shared: join the newest study if it is not finished.
    """
    names = optuna.get_all_study_names(storage)
    numbers = [int(known.rpartition("-")[2]) for known in names if known.startswith(f"{name}-")]
    newest = max(numbers, default=0)
    if numbers and (resume or shared):
        study = optuna.load_study(storage=storage, study_name=f"{name}-{newest}")
        if resume or "finished" not in study.user_attrs:
            return study
    # Another process may begin the same one.
    study = optuna.create_study(
        storage=storage, study_name=f"{name}-{newest + 1}", load_if_exists=True
    )
    with _experimental():
        study.set_metric_names(["ms"])  # as optuna-dashboard names the values
    return study


# With the name of a card: the user attribute of a study with the time of the default there.
_DEFAULT_ON = "default on "


def add_default_times(study: optuna.Study, times_ms: Mapping[str, float]) -> None:
    """Store the time of the default on each card, in ms, by which cards are compared."""
    for card, ms in times_ms.items():
        study.set_user_attr(f"{_DEFAULT_ON}{card}", ms)


# What a tuning run writes.
_STUDY_NAME = re.compile(
    r"(?P<engine>\w+)-(?P<kernel>\w+)-(?P<dtype>\w+)-(?P<sign>\w+)"
    r"-n(?P<n>\d+)(?:-b(?P<batch>\d+))?-"
)


def task_of_study(name: str) -> TuningTask | None:
    """Return the task of a study of this name; None: the tuner made no such study."""
    known = _STUDY_NAME.match(name)
    if known is None:
        return None
    words = known.groupdict()
    n, batch = int(words.pop("n")), int(words.pop("batch") or 1)
    return TuningTask(**words, n=n, batch=batch)


def cards_of(study: optuna.Study) -> list[CardShare]:
    """Return what each card measured in a study."""
    trials = study.get_trials(deepcopy=False)
    counts = Counter(trial.user_attrs["card"] for trial in trials if "card" in trial.user_attrs)
    about = study.user_attrs
    return [
        CardShare(card, count, about.get(f"{_DEFAULT_ON}{card}"))
        for card, count in sorted(counts.items())
    ]
