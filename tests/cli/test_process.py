"""A few command lines in a process of their own: streams, statuses, and nothing else on them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tri_apsp
from tri_apsp.cli.parser import BAD_INPUT, BROKEN_PIPE, COMMANDS, FAILED


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


def test_no_command(process):
    outcome = process()
    assert (outcome.status, outcome.out) == (BAD_INPUT, "")
    assert all(command in outcome.err for command in COMMANDS)


def test_version(process):
    outcome = process("--version")
    assert (outcome.status, outcome.out, outcome.err) == (0, f"tri_apsp {tri_apsp.__version__}\n", "")


def test_help_tells_the_statuses(process):
    outcome = process("--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert all(part in outcome.out for part in ("exit status", "negative cycle", "130"))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(cli, command):
    outcome = cli(command, "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert f"usage: python -m tri_apsp {command} " in outcome.out


def test_reader_that_goes_away(five):
    command = [sys.executable, "-m", "tri_apsp", "solve", five]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == BROKEN_PIPE
