"""A progress bar on a terminal, and only for what takes longer than a second."""

from __future__ import annotations

import io
import os
import sys
import time

import pytest

from tri_apsp.console import progress as module
from tri_apsp.console.progress import progress, terminal_shape


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def fileno(self):
        return 2


def terminal_as_stderr(monkeypatch):
    # Called by the test, since pytest replaces stderr between a fixture and the test.
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((60, 20)))
    return terminal


def test_a_short_solve_shows_no_bar(monkeypatch):
    terminal = terminal_as_stderr(monkeypatch)
    with progress(wanted=True) as report:
        for percent in range(101):
            report(percent / 100)
    with progress(wanted=False) as report:
        assert report is None
    assert terminal.getvalue().strip() == ""


def test_a_bar_follows_the_reports_and_disappears(monkeypatch):
    terminal = terminal_as_stderr(monkeypatch)
    monkeypatch.setattr(module, "DELAY", 0)
    with progress(wanted=True) as report:
        time.sleep(0.2)  # tqdm draws at most ten times per second
        report(0.5)
    assert "50% |" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")


@pytest.mark.parametrize(("size", "shape"), [((60, 20), (60, 20)), ((0, 0), (80, 24))])
def test_a_terminal_of_unknown_size(monkeypatch, size, shape):
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size(size))
    assert tuple(terminal_shape().values()) == shape
