"""The searches of the tuner as one HTML page: what each search measured, what won the final, and a
figure of both. It asks no network for anything.
"""

import math
from collections.abc import Mapping
from html import escape
from importlib.util import find_spec
from pathlib import Path

import optuna

from tri_apsp.console.output import duration
from tri_apsp.errors import ApspWarning, InputError
from tri_apsp.messages import file_errors, remedy_of_extra, warn_caller
from tri_apsp.tune.figures import final_of, steps_of, svg_of, timed_trials
from tri_apsp.tune.search import cards_of, open_storage, task_of_study
from tri_apsp.tune.tasks import TuningTask, studies_directory

# Figures take some 70 kB each; a page has no more of them than fit.
_MOST_CHARACTERS = 1_000_000
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Searches on {device}</title>
<style>
body {{ font-family: sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; }}
table {{ border-collapse: collapse; }}
th, td {{ border-bottom: 1px solid #ccc; padding: 0.2em 1em 0.2em 0; text-align: left; }}
svg {{ max-width: 100%; height: auto; }}
.changed {{ font-weight: bold; }}
</style>
</head>
<body>
<h1>Searches on {device}</h1>
<p>The trials of python -m tri_apsp.tune:</p>
<ul>
<li>Each configuration is checked and runs once. One that is slower than the median of the first
runs is pruned; the others are timed in full.</li>
<li>Trials depend on chance. So the fastest of them, from number 1 on, the default and the
configuration in use are timed again in turns, in the final. There the one in use is kept, unless
another is faster by more than 2% and by more than the noise: half of the wider of their two ranges
from the 20th to the 80th percentile.</li>
<li>The table has trials. A bold row differs from the default.</li>
<li>Numbers of trials also count proposals that were known already, or no candidates.</li>
<li>The importance of a parameter is how much its choices in the fastest tenth of the trials differ
from those in all (PED-ANOVA); the sum is 1. With few trials it says little.</li>
<li>Plots of a parameter show the best and the median time of each choice in ms, and below it how
many configurations were timed in full with it.</li>
<li>Axes of times and of numbers of configurations are logarithmic, but not that of the final.</li>
</ul>
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
        if task is not None and timed_trials(study):
            found[task] = study
    return found


def page_of_run(studies: Mapping[TuningTask, optuna.Study], slug: str) -> Path | None:
    """Write the page of the studies of a run beside the journals, and return its path; None if
    matplotlib is missing, nothing was timed or, with a warning, the page cannot be written.
    """
    timed = {task: study for task, study in studies.items() if timed_trials(study)}
    if not timed or find_spec("matplotlib") is None:
        return None
    path = studies_directory() / f"{slug}.html"
    try:
        write_page(timed, path, slug)
    except Exception as error:  # of matplotlib too: the results of hours are printed after this
        warn_caller(f"the page of this run could not be written: {error}", ApspWarning)
        return None
    return path


def write_page(studies: Mapping[TuningTask, optuna.Study], path: Path, device: str) -> None:
    """Write a page with a section for each study. The first trial of a study is the default, if
    that was measured.

    Raises:
        InputError: matplotlib is not installed, or the file cannot be written.
    """
    if find_spec("matplotlib") is None:
        raise InputError(
            f"{path.name} needs matplotlib, but it is not installed; {remedy_of_extra('plots')}."
        )
    contents, sections, left = [], [], _MOST_CHARACTERS
    for index, (task, study) in enumerate(studies.items()):
        title = escape(str(task))
        contents.append(f'<li><a href="#task-{index}">{title}</a></li>')
        sections += [f'<h2 id="task-{index}">{title}</h2>', _result(study), _cards(study)]
        figure = svg_of(study) if left > 0 and len(timed_trials(study)) > 1 else ""
        left -= len(figure)
        sections.append(figure if left > 0 else "<p>Its figure would make this page too large.</p>")
    page = _PAGE.format(
        device=escape(device),
        contents="\n".join(contents),
        sections="\n".join(sections),
    )
    with file_errors("page", path, "written", "give another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")


def _result(study: optuna.Study) -> str:
    """Return where and what was measured, and the default beside the best."""
    best, default = study.best_trial, study.get_trials(deepcopy=False)[0]
    about = [study.user_attrs[name] for name in ("device", "versions") if name in study.user_attrs]
    if best.datetime_complete is not None:
        about.append(str(best.datetime_complete.date()))
    steps = steps_of(study)
    measured, right, timed = (steps[name] for name in ("measured", "correct", "timed in full"))
    rows = [(name, default.params.get(name), best.params[name]) for name in best.params]
    cells = "\n".join(
        f"<tr{'' if ours == theirs else ' class=changed'}>"
        f"<td>{escape(name)}</td><td>{escape(str(theirs))}</td><td>{escape(str(ours))}</td></tr>"
        for name, theirs, ours in [("time", _time(default.value), _time(best.value)), *rows]
    )
    final = {name.partition(","): times for name, times in final_of(study).items()}
    decision = {"default": "the default stays", "in use": "the configuration in use stays"}
    medians = ", ".join(f"{name} {_time(times[1])}" for (name, _, _), times in final.items())
    words = [
        f"<p>After the final: {decision.get(name, name + ' wins')}. Medians: {medians}.</p>\n"
        for name, comma, _ in final
        if comma
    ]
    return (
        f"<p>{escape('; '.join(about))}</p>\n"
        f"<p>{measured} configurations: {timed} timed, {right - timed} pruned as slow, "
        f"{measured - right} failed.</p>\n"
        f"<table>\n<tr><th></th><th>default</th><th>fastest trial</th></tr>\n{cells}\n</table>\n"
        + "".join(words)
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
