"""The parser: its help, its version, and a command line without a subcommand."""

from __future__ import annotations

import pytest

import tri_apsp
from tri_apsp.cli.parser import COMMANDS
from tri_apsp.console.exit_status import BAD_INPUT


def test_no_command(cli):
    outcome = cli()
    assert (outcome.status, outcome.out) == (BAD_INPUT, "")
    assert all(command in outcome.err for command in COMMANDS)


def test_version(cli):
    outcome = cli("--version")
    assert (outcome.status, outcome.out, outcome.err) == (
        0,
        f"tri_apsp {tri_apsp.__version__}\n",
        "",
    )


def test_help_lists_the_exit_statuses(cli):
    outcome = cli("--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert all(part in outcome.out for part in ("exit status", "negative cycle", "130"))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(cli, command):
    outcome = cli(command, "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert f"usage: python -m tri_apsp {command} " in outcome.out
