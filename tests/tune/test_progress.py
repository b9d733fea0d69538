"""The progress on stderr: a live line on a terminal, else one line per task, or nothing if it is
not shown.
"""

from __future__ import annotations

import dataclasses
import os
import re
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
TIMES = Times(1.5, 2.0, 2.5)
WINNER = Winner(
    {"product": {"block_m": 64}}, True, TIMES, 5.0, {"product": {"block_m": 96}}, 4.0, 2.0
)
KEPT = Winner({"product": {}}, False, TIMES, 2.0, {"product": {}}, 2.0, 1.99)
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
    outcomes = [
        correct(5.0),
        Outcome(Kind.timeout),
        correct(2.0),
        Outcome(Kind.compile_error),
        Outcome(Kind.timeout),
    ]
    found = SearchResult()
    for outcome in outcomes:
        time.sleep(0.11)  # tqdm draws at most ten times per second
        found.evaluated.append(Evaluated({}, outcome, "tpe" if found.evaluated else "default"))
        progress.evaluated(found)
    progress.final(found, 4)
    progress.finished(DONE)
    progress.close()


def use_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> Terminal:
    """Make stderr a terminal."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((columns, 20)))
    return terminal


def test_a_terminal_shows_a_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch, 160)
    follow(shown=True)
    assert "[1/2] measuring the default, 00:" in terminal.text
    assert re.search(r"\[1/2\] best 2 ms \(2\.50 x default\), 00:2\d left \|", terminal.text)
    assert "| 5/40, cpu product, float32 any, n = 512, 3 failed" in terminal.text
    assert "| 5/40, final of 4, cpu product" in terminal.text
    assert terminal.text.endswith(f"[1/2] {outcome_line(DONE)}\n")


def test_the_best_and_the_time_left_fit_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = use_terminal(monkeypatch, 80)
    task = dataclasses.replace(
        TASK, engine="nvidia", kernel="small_product", sign="nonnegative", n=16384, batch=4096
    )
    progress = Progress(Plan((task,) * 100, (torch.device("cpu"),), Settings()), shown=True)
    progress.started(task, 400, time.monotonic() + 36000)
    time.sleep(0.11)
    found = SearchResult(
        [Evaluated({}, correct(123.4), "default"), Evaluated({}, correct(0.0123), "tpe")]
    )
    progress.evaluated(found)
    progress.close()
    lines = [line for line in terminal.text.replace("\n", "\r").split("\r") if "best" in line]
    assert lines
    for line in lines:
        assert len(line) <= 80
        assert "best 0.0123 ms (10032.52 x default), 9:59:5" in line
        assert "/400" in line


def test_a_pipe_gets_a_line_per_task(capsys: pytest.CaptureFixture[str]) -> None:
    follow(shown=True)
    assert capsys.readouterr().err == f"[1/2] {outcome_line(DONE)}\n"


def test_hidden_progress_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    follow(shown=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (DONE, f"4 ms before, now 2 ms, 2.00 times as fast, {COUNTED}"),
        (TaskResult(TASK, SEARCH, KEPT, complete=True), f"the default stays at 2 ms, {COUNTED}"),
        (
            TaskResult(
                TASK,
                SEARCH,
                dataclasses.replace(KEPT, best_ms=1.8, conclusive=False),
                complete=True,
            ),
            f"inconclusive: the default stays at 2 ms, since 1.8 ms of another is within the noise, {COUNTED}",
        ),
        (
            TaskResult(TASK, SEARCH, dataclasses.replace(WINNER, before_ms=None), complete=True),
            f"the configuration in use failed, now 2 ms, {COUNTED}",
        ),
        (
            TaskResult(TASK, SEARCH, Winner({}, True, TIMES, 5.0), complete=True, resumed=True),
            "2 ms, 2.50 x the default, found by an earlier run",
        ),
        (
            TaskResult(TASK, SEARCH, WINNER),
            f"4 ms before, now 2 ms, 2.00 times as fast, {COUNTED}, interrupted",
        ),
        (TaskResult(TASK), "interrupted before anything was known"),
        (TaskResult(TASK, error="it broke."), "it broke."),
    ],
)
def test_outcome_line(result: TaskResult, message: str) -> None:
    assert outcome_line(result) == f"cpu product, float32 any, n = 512: {message}"


def test_milliseconds() -> None:
    assert [milliseconds(time_ms) for time_ms in (0.01234, 12.34, 12340.0)] == [
        "0.0123 ms",
        "12.3 ms",
        "12.3 s",
    ]
