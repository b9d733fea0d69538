"""A few command lines, each in a process of its own: its streams and its exit status."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tri_apsp.console.exit_status import BAD_INPUT, BROKEN_PIPE

pytestmark = pytest.mark.packaging

BENCH = ["bench", "--device", "cpu", "--n", "8", "--repeat", "3", "--method", "kleene"]
# With a buffer, output is written only when Python flushes it, at the end.
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def run(*words: object, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tri_apsp", *map(str, words)]
    return subprocess.run(command, stderr=subprocess.PIPE, timeout=120, check=False, **options)


def test_solve(process, five, tmp_path):
    found = process("solve", five, "--json", "--undirected", "-o", tmp_path / "d.csv").json
    assert found.items() >= {"n": 5, "edges": 8, "reachable_pairs": 17}.items()
    assert (tmp_path / "d.csv").read_text().splitlines()[4] == "inf,inf,inf,inf,0"


@pytest.mark.slow
def test_times_leave_out_what_a_first_run_loads(process, five, save):
    """A first run loads SciPy's search for components, and kernels."""
    vertices, pairs = save("v.txt", "1\n"), save("p.txt", "1 2\n")
    for words in (
        ["nearest", five, "--sources", vertices],
        ["table", five, "--sources", vertices],
        ["table", five, "--pairs", pairs],
        ["hops", five, "--diameter"],
    ):
        seconds = process(*words, "--json").json["seconds"]
        assert (seconds if isinstance(seconds, float) else seconds["diameter"]) < 0.01


@pytest.mark.slow
def test_a_reader_that_exits(five):
    command = [sys.executable, "-m", "tri_apsp", "solve", five]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=BUFFERED
    ) as running:
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == BROKEN_PIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [["solve", "{}"], BENCH, ["--help"], ["tune", "--show"]])
@pytest.mark.slow
def test_a_full_disk(five, words):
    """The error is one line, whenever Python writes the output."""
    for env in (BUFFERED, BUFFERED | {"PYTHONUNBUFFERED": "1"}):
        with Path("/dev/full").open("w") as full:
            done = run(*(word.format(five) for word in words), stdout=full, env=env)
        assert done.returncode == BAD_INPUT
        start = b"error: the output must be written, but it cannot be (No space left on device); "
        assert done.stderr.startswith(start)
        assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.slow
def test_standard_input(five, pack):
    words = ["solve", "-", "--format", "gr"]
    done = run(*words, input=pack(five.read_bytes()), stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert re.match(rb"graph +standard input: 5 vertices, ", done.stdout)


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        ("solve '{}' >&-", BAD_INPUT, "error: the output must be written, but standard output "),
        ("--help >&-", BAD_INPUT, "error: the output must be written, but standard output "),
        ("solve missing.gr 2>&-", BAD_INPUT, ""),
        ("solve missing.gr 2>/dev/full", BAD_INPUT, ""),
        ("solve '{}' --engine none 2>/dev/full", BAD_INPUT, ""),
        ("sssp '{}' --source 1 2>/dev/full | grep -q reachable", 0, ""),
        ("solve - --format gr <&-", BAD_INPUT, "error: a graph must be read from an open file, "),
        ("solve -", BAD_INPUT, "error: --format must be one of gr, mtx, "),
    ],
)
@pytest.mark.slow
def test_closed_streams(five, words, status, error):
    command = f"'{sys.executable}' -m tri_apsp {words.format(five)}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(error)
    assert done.stderr.count("\n") == bool(error)
