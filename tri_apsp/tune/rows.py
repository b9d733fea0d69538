"""The rows of a sweep, for reports: trials, importances of parameters, results, and the machine and
versions.
"""

import dataclasses
import datetime
import json
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from tri_apsp.console.machine import versions
from tri_apsp.console.output import command_line
from tri_apsp.console.tables import cell, read_csv, write_csv
from tri_apsp.errors import InputError
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.plan import Settings
from tri_apsp.tune.results import SweepResult, TaskResult, task_of
from tri_apsp.tune.search import Evaluated
from tri_apsp.tune.tasks import TuningTask

_OUTCOME = Outcome(OutcomeKind.correct).to_dict()
# The evaluator of importances considers the fastest tenth of the configurations.
_MIN_TRIALS = 20


@dataclass(frozen=True)
class SweepRows:
    """The content of the files that `write_rows` wrote.

    Attributes:
        header: `sweep.json` without the results: device, versions, command, settings, created,
            seconds and so on.
        results: one result per task, with its trials.
        importances: the importances of the parameters, by task, if it had enough trials.
    """

    header: dict[str, Any]
    results: tuple[TaskResult, ...]
    importances: dict[TuningTask, dict[str, float]]


def write_rows(result: SweepResult, settings: Settings, directory: Path) -> None:
    """Write the rows of a sweep, with the machine and versions.

    `trials.csv` has one row per configuration that was evaluated, `importances.csv` one per
    parameter of a task that had enough trials; `sweep.json` has the machine, versions, settings and
    results. Numbers have six digits, more than the measurements have, and paths below the current
    folder are relative, so that the files can be kept with the project.

    Args:
        result: the result of the sweep. A task that an earlier run finished has its trials too.
        settings: the settings of the sweep.
        directory: a folder; files of these names in it are replaced.
    """
    trials, shares = [], []
    for done in result.results:
        head = dataclasses.asdict(done.task)
        for number, trial in enumerate(done.search.evaluated):
            tried = {"number": number, "origin": trial.origin}
            trials.append({**head, **tried, **trial.outcome.to_dict(), **trial.values})
        for name, share in _importances(done.search.study).items():
            shares.append({**head, "parameter": name, "importance": share})
    here = f"{Path.cwd()}{os.sep}"
    write_csv(directory / "trials.csv", _short(trials, here))
    write_csv(directory / "importances.csv", shares)
    header = {
        "created": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "command": command_line("tri_apsp.tune", *sys.argv[1:]),
        "versions": versions(),
        "settings": {**dataclasses.asdict(settings), "save_dir": None, "storage": None},
    }
    content = json.dumps(_short({**header, **result.to_dict()}, here), indent=2)
    (directory / "sweep.json").write_text(content + "\n", encoding="utf-8")


def _importances(study: optuna.Study | None) -> dict[str, float]:
    """Return the share of each parameter, 1 in all, most important first, by Optuna's PED-ANOVA;
    none for a few trials.

    The shares describe the configurations that the search preferred.
    """
    states = (TrialState.COMPLETE,)
    if study is None or len(study.get_trials(deepcopy=False, states=states)) < _MIN_TRIALS:
        return {}
    # Imported here, since it takes seconds where scikit-learn is installed.
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # version 4 warns that the evaluator is experimental
        return get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())


def _short(value: Any, here: str) -> Any:
    """Return a value of JSON with numbers of six digits, and paths below `here` relative to it."""
    if isinstance(value, dict):
        return {name: _short(item, here) for name, item in value.items()}
    if isinstance(value, list):
        return [_short(item, here) for item in value]
    if isinstance(value, float):
        return float(cell(value))
    return value.removeprefix(here) if isinstance(value, str) else value


def read_rows(directory: Path) -> SweepRows:
    """Read what `write_rows` wrote to `directory`.

    Raises:
        InputError: a file is missing, or was not written by `write_rows`.
    """
    trials: dict[TuningTask, list[Evaluated]] = {}
    shares: dict[TuningTask, dict[str, float]] = {}
    path = directory / "trials.csv"
    try:
        for cells in _read_csv(path):
            trials.setdefault(task_of(cells), []).append(_trial(cells))
        path = directory / "importances.csv"
        for cells in _read_csv(path):
            shares.setdefault(task_of(cells), {})[cells["parameter"]] = float(cells["importance"])
        path = directory / "sweep.json"
        header = json.loads(path.read_text(encoding="utf-8"))
        results = tuple(
            TaskResult.from_dict(row, trials.get(task_of(row), ())) for row in header.pop("results")
        )
    except OSError as error:
        raise _refused(path, error.strerror or "unreadable") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _refused(path, f"{type(error).__name__}: {error}") from None
    return SweepRows(header, results, shares)


def _trial(cells: dict[str, Any]) -> Evaluated:
    parameters = {parameter.name for parameter in task_of(cells).record.space.parameters}
    values = {name: value for name, value in cells.items() if name in parameters}
    # Other columns, which files of earlier versions have, are ignored.
    known = {name: value for name, value in cells.items() if name in _OUTCOME}
    outcome = Outcome.from_dict(_OUTCOME | known)
    return Evaluated(values, outcome, cells["origin"])


def _read_csv(path: Path) -> list[dict[str, Any]]:
    """Return the cells of each row that have a value."""
    return [{name: _value(text) for name, text in row.items() if text} for row in read_csv(path)]


def _value(text: str) -> Any:
    """Return the value that was written as `text`: a number, a bool, or text."""
    try:
        return json.loads({"True": "true", "False": "false"}.get(text, text))
    except ValueError:
        return text


def _refused(path: Path, why: str) -> InputError:
    return InputError(
        f"--from must name what `python -m tri_apsp.tune --report DIR` wrote, but {path} is not "
        f"({why}); tune again."
    )
