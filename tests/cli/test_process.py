"""A few command lines, each in a process of its own: its streams and its exit status."""

from __future__ import annotations

import os
import subprocess
import sys

from tri_apsp.console.exit_status import BROKEN_PIPE, FAILED


def test_solve(process, five, tmp_path):
    found = process("solve", five, "--json", "--undirected", "-o", tmp_path / "d.csv").json
    assert found.items() >= {"n": 5, "edges": 10, "reachable_pairs": 17}.items()
    assert (tmp_path / "d.csv").read_text().splitlines()[4] == "inf,inf,inf,inf,0"


def test_negative_cycle(process, save, tmp_path):
    path = save("g.gr", "p sp 3 2\na 1 2 3\na 2 1 -4\n")
    outcome = process("solve", path, "-o", tmp_path / "d.npy")
    assert (outcome.status, outcome.out) == (FAILED, "")
    assert outcome.err.startswith("error: shortest paths need a graph without negative cycles")
    assert not (tmp_path / "d.npy").exists()


def test_a_reader_that_exits(five):
    command = [sys.executable, "-m", "tri_apsp", "solve", five]
    # With a buffer the pipe breaks only when Python flushes it, at the end.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=buffered) as running:
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == BROKEN_PIPE
