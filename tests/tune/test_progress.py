"""The progress on stderr: a live line on a terminal, else one line per task, or nothing if it is not shown."""

from __future__ import annotations

import os
import sys
import time

import pytest
import torch
from tune.synthetic import correct

from tri_apsp.tune.measure.outcome import Kind, Outcome, Times
from tri_apsp.tune.progress import Progress, milliseconds, outcome_line
from tri_apsp.tune.search.evaluated import Evaluated, SearchResult
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.plan import Plan, Settings
from tri_apsp.tune.sweep.result import TaskResult, Winner

TASK = Task("cpu", "product", "float32", "any", 512)
PLAN = Plan((TASK, TASK), (torch.device("cpu"),), Settings())
COUNTED = "3 of 40 configurations"
WINNER = Winner({"product": {}}, True, Times(1.5, 2.0, 2.5), 5.0)
SEARCH = SearchResult([Evaluated({}, correct(2.0), "tpe")] * 3, candidates=40)
DONE = TaskResult(TASK, SEARCH, WINNER, complete=True)


class Terminal:
    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        return 2


def follow(shown: bool) -> None:
    progress = Progress(PLAN, shown=shown)
    progress.started(TASK, 40, time.monotonic() + 30)
    outcomes = [correct(5.0), Outcome(Kind.timeout), correct(2.0), Outcome(Kind.compile_error), Outcome(Kind.timeout)]
    found = SearchResult()
    for outcome in outcomes:
        time.sleep(0.11)  # tqdm draws at most ten times per second
        found.evaluated.append(Evaluated({}, outcome, "tpe" if found.evaluated else "default"))
        progress.evaluated(found)
    progress.final(found, 4)
    progress.finished(DONE)
    progress.close()


def test_a_terminal_shows_a_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((160, 20)))
    follow(shown=True)
    assert "[1/2] cpu product, float32 any, n = 512 |" in terminal.text
    assert "5/40, best 2 ms (2.50 x default), failed: 2 timeout, 1 compile error, at most 00:2" in terminal.text
    assert "left, final of 4" in terminal.text
    assert terminal.text.endswith(f"[1/2] {outcome_line(DONE)}\n")


def test_a_pipe_gets_a_line_per_task(capsys: pytest.CaptureFixture[str]) -> None:
    follow(shown=True)
    assert capsys.readouterr().err == f"[1/2] {outcome_line(DONE)}\n"


def test_hidden_progress_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    follow(shown=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (DONE, f"2 ms, 2.50 x the default, {COUNTED}"),
        (
            TaskResult(TASK, SEARCH, Winner({}, False, Times(1.0, 2.0, 3.0), 2.0), complete=True),
            "2 ms, the default stays, 3 of 40 configurations",
        ),
        (
            TaskResult(TASK, SEARCH, WINNER),
            "2 ms, 2.50 x the default, 3 of 40 configurations, interrupted",
        ),
        (TaskResult(TASK), "interrupted before anything was known"),
        (TaskResult(TASK, error="it broke."), "it broke."),
    ],
)
def test_outcome_line(result: TaskResult, message: str) -> None:
    assert outcome_line(result) == f"cpu product, float32 any, n = 512: {message}"


def test_milliseconds() -> None:
    assert [milliseconds(time_ms) for time_ms in (0.01234, 12.34, 12340.0)] == ["0.0123 ms", "12.3 ms", "12.3 s"]
