"""The command line of reports: what it lists, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tri_apsp.tune.space.task import Task
from tune.synthetic import correct

import tri_apsp
from tri_apsp import report
from tri_apsp.console.exit_status import BAD_INPUT
from tri_apsp.report import threads
from tri_apsp.report.__main__ import main
from tri_apsp.report.grids import Point
from tri_apsp.report.studies import STUDIES

TASK = Task("cpu", "product", "float32", "nonnegative", 32)
FOLDER = Path(tri_apsp.__file__).parent / "report"


def test_every_report_has_a_module():
    assert all(
        (FOLDER / f"{name.replace('-', '_')}.py").is_file()
        for name in (*STUDIES, "all", "tuning", "index")
    )


def test_help_needs_no_matplotlib():
    # One process for all, since importing torch takes it a second.
    code = """
import sys
from tri_apsp.report.__main__ import main
sys.modules["matplotlib"] = None
from tri_apsp.report.studies import STUDIES
for words in ([], *([name] for name in STUDIES), ["all"], ["tuning"], ["index"]):
    try:
        main([*words, "--help"])
    except SystemExit as exit_:
        assert exit_.code == 0
"""
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert output.returncode == 0, output.stderr
    assert all(name in output.stdout for name in (*STUDIES, "--render-only", "--from"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing"], "invalid choice: 'nothing'"),
        (["cutoff", "--budget", "0"], "must be seconds above 0, but is '0'"),
        (["cutoff", "--budget", "nan"], "must be seconds above 0"),
        (["cutoff", "--dtype", "float16"], "invalid choice: 'float16'"),
        (["cutoff", "--n", "0"], "must be a whole number from 1"),
        ([], "required: REPORT"),
    ],
)
def test_bad_arguments_are_refused(words, sentence, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(words)
    assert exit_.value.code == 2
    output = capsys.readouterr().err
    assert output.startswith("error: ")
    assert sentence in output
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["cutoff", "--device", "cuda:99"], 2, "device cuda:99 must exist"),
        (
            ["cutoff", "--device", "cpu", "--engine", "nvidia"],
            1,
            "the nvidia engine needs a GPU, but the device is cpu",
        ),
        (["cutoff", "--device", "cpu", "--n", "9999999"], 1, "must fit the memory"),
        (["cutoff", "--render-only", "nowhere"], 2, "--render-only must name a folder below --out"),
        (["index", "--out", "/nowhere"], 2, "--out must name a folder"),
    ],
)
def test_an_error_is_one_sentence(words, status, sentence, capsys, tmp_path):
    assert main([*words, *(["--out", str(tmp_path)] if words[0] != "index" else [])]) == status
    output = capsys.readouterr()
    assert output.err.startswith("error: ")
    assert sentence in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        *([name, "--device", "cpu"] for name in STUDIES),
        ["all", "--device", "cpu"],
        ["tuning", "--from", "x"],
        ["index"],
    ],
)
def test_without_matplotlib_the_remedy_is_named_before_anything_is_measured(
    words, monkeypatch, capsys
):
    for name in [
        name for name in sys.modules if name.startswith(("matplotlib", "tri_apsp.report."))
    ]:
        if name.startswith("tri_apsp") and hasattr(report, name.rpartition(".")[2]):
            monkeypatch.delattr(
                report, name.rpartition(".")[2]
            )  # else `from tri_apsp.report import plots` finds it there
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(
        "tri_apsp.tune.workers.pool.Workers", lambda devices: pytest.fail("measured")
    )
    assert main(words) == 2
    remedy = 'run pip install -c constraints.txt ".[report]" in a clone of tri_apsp'
    assert (
        capsys.readouterr().err
        == f"error: reports need matplotlib, but it is not installed; {remedy}.\n"
    )


def test_numbers_of_cpu_threads():
    assert threads._thread_counts(2) == [2, 1, 4]
    assert threads._thread_counts(6) == [6, 1, 2, 4, 8]


def test_a_worker_sets_its_number_of_threads(monkeypatch):
    # The number is set before anything is made that reads it.
    monkeypatch.setattr(threads, "Measurement", lambda task, device: torch.get_num_threads())
    before = torch.get_num_threads()
    try:
        assert threads._prepare(TASK, torch.device("cpu"), threads=3) == 3
    finally:
        torch.set_num_threads(before)


def test_each_number_of_threads_has_its_worker(monkeypatch):
    made = []

    class Worker:
        def __init__(self, device, prepare):
            self.count, self.calls = prepare.keywords["threads"], 0
            made.append(self)

        def screen(self, task, config):
            return correct(float(self.count))

        def final(self, task, configs, rounds):
            self.calls += 1
            assert rounds == 1
            return [correct([3.0, 1.0, 2.0][self.calls - 1])]

        def close(self):
            made.remove(self)

    monkeypatch.setattr(threads, "Worker", Worker)
    measurer = threads.Threads(torch.device("cpu"))
    points = [Point({"threads": count}, tri_apsp.Config()) for count in (1, 2)]
    assert [measurer.screen(TASK, point, 9.0).median_ms for point in points] == [1, 2]
    assert [outcome.median_ms for outcome in measurer.final(TASK, points, 5)] == [2.0, 2.0]
    assert [(worker.count, worker.calls) for worker in made] == [(1, 3), (2, 3)]
    measurer.close()
    assert len(made) <= 1


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path, capsys, monkeypatch
):
    (tmp_path / "out").write_text("a file")
    monkeypatch.setattr("tri_apsp.report.run.measure", lambda *args: pytest.fail("measured"))
    assert main(["threads", "--device", "cpu", "--out", str(tmp_path / "out")]) == BAD_INPUT
    assert capsys.readouterr().err.startswith("error: --out must name a folder that can be written")
