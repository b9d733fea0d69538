"""The progress bar of solve: on a terminal alone, on stderr, and not with --json."""

from __future__ import annotations

import os
import pty
import sys
import threading

import pytest

from tri_apsp import progress


@pytest.fixture
def graph(cli, tmp_path):
    path = tmp_path / "chain.gr"
    assert cli("generate", "chain", "--n", 300, "-o", path).status == 0
    return path


@pytest.fixture
def on_terminal(cli, monkeypatch):
    """Run a command line with stderr on a terminal; return its stdout, and what is shown there."""

    def call(*words):
        ours, theirs = pty.openpty()
        shown = bytearray()

        def read():
            try:
                while chunk := os.read(ours, 4096):
                    shown.extend(chunk)
            except OSError:  # Linux raises it once the other end is closed
                pass

        reader = threading.Thread(target=read)
        reader.start()
        with os.fdopen(theirs, "w") as terminal, monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", terminal)
            outcome = cli(*words)
        reader.join()
        os.close(ours)
        assert outcome.status == 0
        return outcome.out, shown.decode()

    return call


@pytest.mark.parametrize(
    ("options", "delay", "shown"), [([], 0, True), ([], 60, False), (["--json"], 0, False)]
)
def test_terminal(graph, on_terminal, monkeypatch, options, delay, shown):
    """A solve that takes longer than the delay shows a bar, in a terminal of unknown size too."""
    monkeypatch.setattr(progress, "_DELAY", delay)
    out, seen = on_terminal(
        "solve", graph, "--method", "rank_one_updates", "--device", "cpu", *options
    )
    assert "%" not in out
    assert ("solving   0% |" in seen) == shown
    assert shown or not seen.strip()


def test_betweenness(graph, on_terminal, monkeypatch, tmp_path):
    monkeypatch.setattr(progress, "_DELAY", 0)
    _, seen = on_terminal("hops", graph, "--betweenness", tmp_path / "b.csv")
    assert "solving   0% |" in seen
