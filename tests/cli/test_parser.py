"""The parser: its help, its version, and the subcommands that are command lines of their own."""

from __future__ import annotations

import re
import sys

import pytest
from command_line import in_this_process

import tri_apsp
from tri_apsp.cli.main import COMMANDS, OTHERS
from tri_apsp.console.exit_status import BAD_INPUT
from tri_apsp.tune.__main__ import main as tune


def test_help_and_version(cli):
    outcome = cli("--help")
    assert (outcome.status, outcome.err) == (0, "")
    words = " ".join(outcome.out.split())
    assert all(part in words for part in ("exit status", "negative cycle", "130"))
    assert all(f" {name} {summary}" in words for name, summary in (COMMANDS | OTHERS).items())
    assert cli("--version").out == f"tri_apsp {tri_apsp.__version__}\n"
    outcome = cli()
    assert (outcome.status, outcome.out) == (BAD_INPUT, "")
    assert "usage: python -m tri_apsp " in outcome.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(cli, command, monkeypatch):
    assert f"usage: python -m tri_apsp {command} " in cli(command, "--help").out
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tri-apsp"])
    assert cli(command, "--help").out.startswith(f"usage: tri-apsp {command} ")


@pytest.mark.parametrize("command", ["", *COMMANDS, *OTHERS])
def test_help_is_no_wider_than_the_terminal(cli, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert not [line for line in cli(*command.split(), "--help").out.splitlines() if len(line) > 80]


@pytest.mark.parametrize("word", ["--help", "--nn"])
def test_tune_is_its_module(cli, capsys, word):
    expected = in_this_process(tune, capsys)(word)
    found = cli("tune", word)
    module, command = "python -m tri_apsp.tune", "python -m tri_apsp tune"
    assert found.status == expected.status
    # A usage is indented, and its lines are broken, by the length of the command.
    assert found.err.split() == expected.err.replace(module, command).split()
    assert found.out.split() == expected.out.replace(module, command).split()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sssp {0} --source=1 --target 2 --min-only", "sssp {0} --sources=1 --targets 2 --nearest"),
        ("hops {0} -o {1} --source 1", "hops {0} -o {1} --sources 1"),
    ],
)
def test_options_of_0_2(cli, five, tmp_path, old, new):
    found, expected = (cli(*words.format(five, tmp_path / "d.csv").split()) for words in (old, new))
    untimed = [re.sub(r"\S+ s\b", "", outcome.out) for outcome in (found, expected)]
    assert (found.status, untimed[0], expected.err) == (0, untimed[1], "")
    renamed = zip(*(re.findall("--[a-z-]+", words) for words in (old, new)), strict=True)
    assert found.err.splitlines() == [
        f"warning: {before} is deprecated, and goes with version 0.4; give {now}."
        for before, now in renamed
    ]
