"""report all: every study once, within one budget, whatever one of them does."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from tri_apsp.console.exit_status import BAD_INPUT, FAILED
from tri_apsp.errors import EngineError, TooLargeError
from tri_apsp.report import all as module
from tri_apsp.report.__main__ import main
from tri_apsp.report.studies import STUDIES


@pytest.fixture
def ran(monkeypatch):
    """The names and budgets of the studies that ran; each takes three seconds of a fake clock."""
    seen: list[tuple[str, float]] = []
    clock = iter(range(0, 1000, 3))

    def run_study(study, args):
        seen.append((study.name, args.budget))

    monkeypatch.setattr(module, "run_study", run_study)
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    return seen


def test_each_study_gets_an_equal_share_of_what_is_left(ran, tmp_path):
    assert main(["all", "--device", "cpu", "--budget", "90", "--out", str(tmp_path)]) == 0
    names, budgets = zip(*ran, strict=True)
    assert names == tuple(STUDIES)
    count = len(STUDIES)
    assert budgets == tuple(int((90 - 3 * (index + 1)) / (count - index)) for index in range(count))


def test_the_default_is_the_budget_of_all_studies_together(ran, tmp_path):
    assert main(["all", "--device", "cpu", "--out", str(tmp_path)]) == 0
    assert ran[0][1] == 119


def test_a_study_that_fails_costs_no_other(ran, tmp_path, monkeypatch, capsys):
    run_study = module.run_study

    def failing(study, args):
        run_study(study, args)
        if study.name == "energy":
            raise EngineError("energy must be measured on an NVIDIA GPU.")
        if study.name == "cutoff":
            raise TooLargeError("the solve must fit the memory.")

    monkeypatch.setattr(module, "run_study", failing)
    assert main(["all", "--device", "cpu", "--out", str(tmp_path)]) == FAILED
    assert [name for name, _ in ran] == list(STUDIES)
    output = capsys.readouterr().err
    assert "energy: not on this device: energy must be measured on an NVIDIA GPU." in output
    assert "cutoff: the solve must fit the memory." in output


def test_rendering_has_no_budget(ran, tmp_path, capsys):
    assert main(["all", "--render-only", "some", "--device", "cpu", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err.splitlines() == list(STUDIES)
    assert {budget for _, budget in ran} == {None}


def test_a_device_that_does_not_exist_is_one_error(ran, tmp_path, capsys):
    assert (
        main(["all", "--device", "cuda:99", "--budget", "90", "--out", str(tmp_path)]) == BAD_INPUT
    )
    assert capsys.readouterr().err.count("\n") == 1
    assert ran == []
