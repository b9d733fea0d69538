"""A bar on a terminal, on stderr alone, and only for what takes longer than a moment."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time

import pytest

from tri_apsp.console import progress as module
from tri_apsp.console.progress import progress

# The delay is cut, so that a small graph is slow enough on any machine.
SCRIPT = """
import sys
from tri_apsp.__main__ import main
from tri_apsp.console import progress
progress.DELAY = 0
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def graph(cli, tmp_path):
    path = tmp_path / "chain.gr"
    assert cli("generate", "chain", "--n", 300, "-o", path).status == 0
    return path


def on_terminal(*words):
    """Run with stderr on a terminal; return what came out on stdout and there."""
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-c", SCRIPT, *map(str, words)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as running:
            os.close(theirs)
            seen = b""
            while chunk := _read(ours):
                seen += chunk
            out = running.stdout.read()
        assert running.returncode == 0
        return out, seen.decode()
    finally:
        os.close(ours)


def _read(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says so where the other end was closed
        return b""


@pytest.mark.parametrize(("options", "shown"), [([], True), (["--json"], False)])
def test_terminal(graph, options, shown):
    out, seen = on_terminal("solve", graph, "--method", "iterative", "--device", "cpu", *options)
    assert "%" not in out
    assert ("solving   0% |" in seen) == shown
    assert shown or seen == ""


class Terminal:
    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def fileno(self):
        return 2


def take_stderr(monkeypatch):
    # In the test itself, since pytest sets its own between a fixture and the test.
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((60, 20)))
    return terminal


def test_short_solve_flashes_no_bar(monkeypatch):
    terminal = take_stderr(monkeypatch)
    with progress(wanted=True) as report:
        for percent in range(101):
            report(percent / 100)
    assert terminal.text.strip() == ""


def test_bar_follows_the_reports_and_leaves(monkeypatch):
    terminal = take_stderr(monkeypatch)
    monkeypatch.setattr(module, "DELAY", 0)
    with progress(wanted=True) as report:
        time.sleep(0.2)  # tqdm draws at most ten times a second
        report(0.5)
    assert "50% |" in terminal.text
    assert terminal.text.endswith("\r")


def test_pipe_shows_none(cli, graph, monkeypatch):
    monkeypatch.setattr(module, "DELAY", 0)
    assert cli("solve", graph, "--method", "iterative").err == ""
