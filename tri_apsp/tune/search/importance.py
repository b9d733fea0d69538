"""The importance of each parameter: how much it decides whether a configuration is among the
fastest.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution

from tri_apsp.tune.search.evaluated import Evaluated
from tri_apsp.tune.search.search import memory_study
from tri_apsp.tuned.records import Space

__all__ = ["importances"]

# The evaluator considers the fastest tenth of the configurations; a tenth of fewer than this would
# be one configuration.
_MIN_TRIALS = 20


def importances(space: Space, trials: Sequence[Evaluated]) -> dict[str, float]:
    """Return the share of each parameter, 1 in all, most important first, by Optuna's PED-ANOVA.

    Fewer than 20 correct configurations give none. Unless every candidate is among the trials, the
    shares describe those that the search preferred.
    """
    # Imported here, since it takes seconds where scikit-learn is installed, before anything is
    # measured.
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    measured = [
        (trial.values, trial.outcome.cost) for trial in trials if trial.outcome.cost is not None
    ]
    if len(measured) < _MIN_TRIALS:
        return {}
    distributions: dict[str, BaseDistribution] = {
        p.name: CategoricalDistribution(p.choices) for p in space.parameters
    }
    study = memory_study()
    study.add_trials(
        optuna.create_trial(value=cost.median, params=values, distributions=distributions)
        for values, cost in measured
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # version 4 warns that the evaluator is experimental
        return get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
