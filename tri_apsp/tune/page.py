"""The searches of the tuner as one HTML page, by Optuna's own plots: how each search came to its
best configuration, and which parameters mattered.

The page holds plotly.js, so that it asks no network for anything.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from tri_apsp.console.output import duration
from tri_apsp.errors import InputError
from tri_apsp.messages import file_errors, remedy_of_extra
from tri_apsp.tune.run import task_of_study
from tri_apsp.tune.search import cards_of, open_storage
from tri_apsp.tune.tasks import TuningTask

_FASTEST = 500  # configurations in parallel coordinates and slices
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Searches on {device}</title>
<style>
body {{ font-family: sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; }}
table {{ border-collapse: collapse; }}
th, td {{ border-bottom: 1px solid #ccc; padding: 0.2em 1em 0.2em 0; text-align: left; }}
.changed {{ font-weight: bold; }}
</style>
<script>{plotly}</script>
</head>
<body>
<h1>Searches on {device}</h1>
<p>The trials of python -m tri_apsp.tune, in Optuna's own plots.</p>
<p>Times are those of the search, each configuration measured once; the final, which decides, is not
among them. A configuration that is slower than the median of the first runs is pruned after one
run, and is not in the plots. Parallel coordinates and slices have the {fastest} fastest.</p>
<ul>
{contents}
</ul>
{sections}
</body>
</html>
"""


def read_studies(where: str) -> dict[TuningTask, optuna.Study]:
    """Return the newest study of each task that has times in a storage; none if it is a file that
    does not exist.

    Raises:
        InputError: the storage cannot be used.
    """
    found = dict[TuningTask, optuna.Study]()
    if "://" not in where and not Path(where).is_file():
        return found
    storage = open_storage(where)
    for name in optuna.get_all_study_names(storage):  # the oldest first
        task = task_of_study(name)
        study = optuna.load_study(study_name=name, storage=storage)
        if task is not None and _timed(study):
            found[task] = study
    return found


def write_page(studies: Mapping[TuningTask, optuna.Study], path: Path, device: str) -> None:
    """Write a page with a section for each study. The first trial of a study is the default, if
    that was measured.

    Raises:
        InputError: plotly is not installed, or the file cannot be written.
    """
    if find_spec("plotly") is None:
        raise InputError(
            f"{path.name} needs plotly, but it is not installed; {remedy_of_extra('plots')}."
        )
    from plotly.offline import get_plotlyjs

    contents, sections = [], []
    for index, (task, study) in enumerate(studies.items()):
        title = escape(str(task))
        contents.append(f'<li><a href="#task-{index}">{title}</a></li>')
        sections += [f'<h2 id="task-{index}">{title}</h2>', _result(study), _cards(study)]
        sections += [_html(each) for each in _figures(study)]
    page = _PAGE.format(
        device=escape(device),
        plotly=get_plotlyjs(),
        fastest=_FASTEST,
        contents="\n".join(contents),
        sections="\n".join(sections),
    )
    with file_errors("page", path, "written", "give another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")


def _timed(study: optuna.Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def _result(study: optuna.Study) -> str:
    """Return what was measured, and the default beside the best."""
    trials, timed = study.get_trials(deepcopy=False), _timed(study)
    measured = [trial for trial in trials if "outcome" in trial.user_attrs]
    failed = sum(trial.user_attrs["outcome"]["kind"] != "correct" for trial in measured)
    best, default = study.best_trial, trials[0]
    rows = [(name, default.params.get(name), best.params[name]) for name in best.params]
    cells = "\n".join(
        f"<tr{'' if ours == theirs else ' class=changed'}>"
        f"<td>{escape(name)}</td><td>{escape(str(theirs))}</td><td>{escape(str(ours))}</td></tr>"
        for name, theirs, ours in [("time", _time(default.value), _time(best.value)), *rows]
    )
    return (
        f"<p>{len(measured)} configurations: {len(timed)} timed, "
        f"{len(measured) - len(timed) - failed} pruned as slow, {failed} failed.</p>\n"
        f"<table>\n<tr><th></th><th>default</th><th>best</th></tr>\n{cells}\n</table>"
    )


def _time(ms: float | None) -> str:
    return "none" if ms is None else duration(ms / 1000)


def _cards(study: optuna.Study) -> str:
    """Return what each card measured, and its time of the default; "" of a single card."""
    shares = cards_of(study)
    if len(shares) < 2:
        return ""
    fastest = min((share.default_ms for share in shares if share.default_ms), default=1.0)
    cells = "\n".join(
        f"<tr><td>{escape(share.card)}</td><td>{share.measured}</td>"
        f"<td>{_time(share.default_ms)}</td>"
        f"<td>{(share.default_ms or math.nan) / fastest:.3f}</td></tr>"
        for share in shares
    )
    heads = "<th>card</th><th>configurations</th><th>default</th><th>to the fastest card</th>"
    return f"<table>\n<tr>{heads}</tr>\n{cells}\n</table>"


def _figures(study: optuna.Study) -> Sequence[Any]:
    """Return Optuna's plots of a study; none where fewer than two configurations have times."""
    from optuna import visualization
    from optuna.importance import PedAnovaImportanceEvaluator

    if len(_timed(study)) < 2:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # The default of Optuna 4 needs scikit-learn.
        evaluator = PedAnovaImportanceEvaluator()
    timed = sorted(_timed(study), key=lambda trial: trial.value or 0.0)[:_FASTEST]
    fastest = optuna.create_study()
    for trial in sorted(timed, key=lambda trial: trial.number):
        params, distributions = (
            {name.rpartition(".")[2]: value for name, value in known.items()}
            for known in (trial.params, trial.distributions)
        )
        fastest.add_trial(
            create_trial(value=trial.value, params=params, distributions=distributions)
        )
    history = visualization.plot_optimization_history(study, target_name="ms")
    slices = visualization.plot_slice(fastest, target_name="ms")
    for each in (history, slices):
        each.update_yaxes(type="log")
    return [
        history,
        visualization.plot_param_importances(study, evaluator=evaluator, target_name="ms"),
        visualization.plot_parallel_coordinate(fastest, target_name="ms"),
        slices,
    ]


def _html(drawn: Any) -> str:
    """Return a plot for a page that has plotly.js."""
    drawn.update_layout(template="none", width=None)  # each plot would repeat another template
    drawn.update_yaxes(automargin=True)
    return str(
        drawn.to_html(full_html=False, include_plotlyjs=False, config={"displayModeBar": False})
    )
