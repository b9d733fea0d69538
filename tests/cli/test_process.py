"""A few command lines, each in a process of its own: its streams and its exit status."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tri_apsp.console.exit_status import BAD_INPUT, BROKEN_PIPE, FAILED


def test_solve(process, five, tmp_path):
    found = process("solve", five, "--json", "--undirected", "-o", tmp_path / "d.csv").json
    assert found.items() >= {"n": 5, "edges": 8, "reachable_pairs": 17}.items()
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
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=buffered
    ) as running:
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == BROKEN_PIPE


BENCH = ["bench", "--device", "cpu", "--n", "8", "--repeat", "3", "--method", "kleene"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "words",
    [
        ["solve", "{five}"],
        ["solve", "{five}", "--json"],
        ["info", "--json"],
        BENCH,
        ["--help"],
        ["tune", "--show"],
        ["--version"],
    ],
)
def test_a_full_disk(five, words):
    """The error is one line whether Python writes the output while the command runs or at its end."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "tri_apsp", *(word.format(five=five) for word in words)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=buffered,
            timeout=120,
            check=False,
        )
    assert done.returncode == BAD_INPUT
    assert done.stderr.startswith(
        "error: the output must be written, but it cannot be (No space left on device); "
    )
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_rows_on_a_full_disk(process):
    outcome = process(*BENCH, "--rows", "/dev/full", "--scipy-up-to", 0)
    assert outcome.status == BAD_INPUT
    assert outcome.err == (
        "error: --rows must name a file that can be written, but /dev/full cannot be (No space left on device); name another.\n"
    )


def test_without_a_standard_output(five):
    command = f"'{sys.executable}' -m tri_apsp solve '{five}' >&-"
    done = subprocess.run(
        command, shell=True, stderr=subprocess.PIPE, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
def test_standard_input(five, pack):
    command = [sys.executable, "-m", "tri_apsp", "solve", "-", "--format", "gr"]
    done = subprocess.run(
        command, input=pack(five.read_bytes()), capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert re.match(rb"graph +standard input: 5 vertices, ", done.stdout)


def test_a_closed_standard_input():
    command = f"'{sys.executable}' -m tri_apsp solve - --format gr <&-"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (BAD_INPUT, "")
    assert done.stderr.startswith(
        "error: a graph must be read from an open file, but standard input is closed; "
    )


def test_a_standard_input_without_a_format(process):
    outcome = process("solve", "-")
    assert (outcome.status, outcome.out) == (BAD_INPUT, "")
    assert outcome.err.startswith(
        "error: standard input must come with its format, but none is given; add --format with "
    )
    assert outcome.err.count("\n") == 1
