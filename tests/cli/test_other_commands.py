"""`tri-apsp tune` and `tri-apsp report` are python -m tri_apsp.tune and python -m tri_apsp.report."""

from __future__ import annotations

import sys

import pytest
from command_line import in_this_process

from tri_apsp.cli.parser import COMMANDS, OTHERS
from tri_apsp.report.__main__ import main as report
from tri_apsp.tune.__main__ import main as tune

MAIN = {"tune": tune, "report": report}


@pytest.mark.parametrize(
    "words",
    [
        ["tune", "--help"],
        ["tune", "--show"],
        ["tune", "--dry-run", "--n", "64"],
        ["tune", "--n", "-5"],
        ["tune", "--nn"],
        ["report", "--help"],
        ["report", "threads", "--help"],
        ["report"],
        ["report", "index", "--out", "no/such/folder"],
    ],
)
def test_the_same_as_the_module(cli, capsys, words):
    name, *rest = words
    expected = in_this_process(MAIN[name], capsys)(*rest)
    found = cli(*words)
    module, command = f"python -m tri_apsp.{name}", f"python -m tri_apsp {name}"
    assert found.status == expected.status
    # A usage is indented, and its lines are broken, by the length of the command.
    assert found.err.split() == expected.err.replace(module, command).split()
    assert (
        found.out.split() == expected.out.replace(f"usage: {module}", f"usage: {command}").split()
    )


def test_all_subcommands_are_listed(cli):
    out = cli("--help").out
    for name, summary in (COMMANDS | OTHERS).items():
        assert f"    {name} " in out
        assert " ".join(summary.split()) in " ".join(out.split())


@pytest.mark.parametrize("words", [["solve"], ["tune"], ["report", "stages"]])
def test_the_usage_shows_the_command_that_was_typed(cli, monkeypatch, words):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tri-apsp"])
    assert cli(*words, "--help").out.startswith(f"usage: tri-apsp {' '.join(words)} ")
