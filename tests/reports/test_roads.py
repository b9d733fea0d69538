"""The study of road networks on small graphs: what each call finds is SciPy's, and is timed."""

import json
from collections.abc import Callable

import pytest
import torch

pytest.importorskip("matplotlib")

from reports.studies import roads
from reports.studies.road_calls import CALLS, FIRST_CALLS, GRAPHS, PHASES, is_installed
from reports.studies.study import Point
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.tasks import TuningTask

N = 301
CPU = torch.device("cpu")


@pytest.fixture
def measurer(monkeypatch: pytest.MonkeyPatch) -> roads._RoadsMeasurer:
    first = [dict.fromkeys(FIRST_CALLS, 2.0), dict.fromkeys(FIRST_CALLS, 1.0)]
    monkeypatch.setattr(roads, "_first_calls", lambda *_: first)
    return roads._RoadsMeasurer(CPU)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", [name for name in PHASES | CALLS if "pairs" not in name])
def test_a_call_finds_the_distances(name: str, graph: str, measurer: roads._RoadsMeasurer) -> None:
    if not is_installed(name):
        pytest.skip("needs another project")
    task = TuningTask("cpu", "solve", "float32", "nonnegative", N)
    outcome = measurer.screen(task, Point({"call": name, "graph": graph}), 60)
    assert outcome.kind is OutcomeKind.correct
    assert outcome.metrics["ops_per_second"] > 0 or name in PHASES
    assert (outcome.metrics.get("compiled_ms") == 2000) == (name in FIRST_CALLS)
    assert (outcome.metrics.get("filled_edges", 0) > N) == name.startswith("order")


@pytest.mark.parametrize(
    "name", ["closeness", "betweenness", "betweenness, 128 sources", "edge flows, 1,000 zones"]
)
def test_a_wrong_value_is_found(
    name: str, measurer: roads._RoadsMeasurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = CALLS[name]
    wrong = right._replace(make=lambda case: _too_large(right.make(case)))
    monkeypatch.setitem(roads._EVERY, name, wrong)
    task = TuningTask("cpu", "solve", "float32", "nonnegative", N)
    outcome = measurer.screen(task, Point({"call": name, "graph": "roads"}), 60)
    assert outcome.kind is OutcomeKind.wrong_result


def _too_large(work: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    return lambda: 1.0001 * work()


def test_the_first_calls_of_a_process_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    roads.main(["cpu", str(N), "int32", "roads"])
    seconds = json.loads(capsys.readouterr().out)
    assert tuple(seconds) == FIRST_CALLS
    assert all(one > 0 for one in seconds.values())
