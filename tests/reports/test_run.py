"""The command line of reports, and studies of real calls on small graphs."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("matplotlib")

from fake_study import CPU

from reports.__main__ import main
from reports.studies.calls import CallMeasurer, SolveCall
from reports.studies.run import STUDIES
from reports.studies.study import Point
from tri_apsp.api import shortest_paths
from tri_apsp.device import describe
from tri_apsp.graphs import erdos_renyi
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Values

TASK = TuningTask("cpu", "solve", "float32", "nonnegative", 64)


def study(name: str, folder: Path, *words: str) -> tuple[str, list[dict[str, str]]]:
    """Run a study, and return its page and its rows."""
    given = [name, "--commit", "abc", "--out", str(folder), *words]
    assert main(given) == 0
    (page,) = folder.glob(f"*/{name}.md")
    with page.with_suffix(".csv").open(encoding="utf-8", newline="") as stream:
        return page.read_text(encoding="utf-8"), list(csv.DictReader(stream))


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("concurrency", 48),
        ("squaring", 48),
        ("implementations", 48),
        ("paths", 64),
        ("sparse", 300),
    ],
)
def test_a_study_from_end_to_end(name: str, n: int, tmp_path: Path) -> None:
    page, rows = study(name, tmp_path, "--device", "cpu", "--n", str(n), "--budget", "60")
    assert {row["outcome"] for row in rows} == {"correct"}
    assert study(name, tmp_path, "--render-only", describe(CPU).slug) == (page, rows)


def test_kernels_are_measured_in_worker_processes(tmp_path: Path) -> None:
    words = ["--device", "cpu", "--n", "64", "--dtype", "int32", "--budget", "60"]
    page, rows = study("cutoff", tmp_path, *words)
    assert {row["outcome"] for row in rows} == {"correct"}
    assert "| solve, int32, n = 64: " in page
    assert {row["commit"] for row in rows} == {"abc"}


def screen(wrong_at: int) -> tuple[OutcomeKind, bool]:
    """Measure a call that is wrong for one size; return its outcome, and whether it has times."""

    def call_of(task: TuningTask, values: Values, weights: torch.Tensor) -> SolveCall:
        distances = shortest_paths(weights).distances
        return lambda: (distances + (len(weights) == wrong_at), None)

    def weights_of(task: TuningTask, graph: str, device: torch.device) -> torch.Tensor:
        return erdos_renyi(task.n, 0.2, seed=1).to_weights(task.torch_dtype)

    outcome = CallMeasurer(CPU, weights_of, call_of).screen(TASK, Point({"call": "some"}), 60.0)
    return outcome.kind, outcome.times is not None


def test_a_call_is_timed_only_if_it_is_right() -> None:
    """On the small graphs of a check, and on the timed graph."""
    assert screen(0) == (OutcomeKind.correct, True)
    assert screen(100) == screen(TASK.n) == (OutcomeKind.wrong_result, False)


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["cutoff", "--device", "cuda:99"], 2, "device cuda:99 must exist"),
        (["roofline", "--device", "cpu"], 1, "here; run it on an NVIDIA GPU."),
        (["cutoff", "--device", "cpu", "--n", "9999999"], 1, "must fit the memory"),
        (["cutoff", "--render-only", "nowhere"], 2, "--render-only must name a folder below --out"),
    ],
)
def test_an_error_is_one_sentence(
    words: list[str],
    status: int,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*words, "--out", str(tmp_path)]) == status
    output = capsys.readouterr().err
    assert output.startswith("error: ")
    assert sentence in output
    assert output.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_help_needs_no_matplotlib_and_measuring_names_the_remedy() -> None:
    code = """
import sys
from reports.__main__ import main
sys.modules["matplotlib"] = None
for words in ([], ["cutoff"], ["tuning"], ["jobs"], ["rates"], ["index"]):
    try:
        main([*words, "--help"])
    except SystemExit as exit_:
        assert exit_.code == 0
sys.exit(main(["cutoff", "--device", "cpu"]))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 2
    assert all(name in ended.stdout for name in (*STUDIES, "--render-only", "--from"))
    assert ended.stderr.startswith("error: reports need matplotlib, but it is not installed; run ")


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name",
    [
        name
        if name in ("implementations", "threads")
        else pytest.param(name, marks=pytest.mark.slow)
        for name in STUDIES
    ],
)
def test_a_study_on_a_gpu(name: str, tmp_path: Path) -> None:
    if name == "energy":
        pytest.importorskip("pynvml")
    sizes = {"exponents": "2048", "sparse": "1024"}
    words = ["--device", "cuda", "--n", sizes.get(name, "256"), "--budget", "20"]
    dtype = "int16" if name == "exponents" else "float32"
    page, rows = study(name, tmp_path, *words, "--dtype", dtype)
    assert "wrong result" not in {row["outcome"] for row in rows}
    assert any(row["outcome"] == "correct" for row in rows)
    assert page.startswith("# ")
