"""Completion in a shell: of commands, options, choices and files."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import shtab

from tri_apsp.cli.main import main

BASH = shutil.which("bash")
COMPLETE = """
source ./script
COMP_WORDS=(tri-apsp "$@"); COMP_CWORD=$#; COMPREPLY=()
_shtab_tri_apsp
echo "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["so"], "solve"),
        (["solve", "--neg"], "--negative-cycles"),
        (["solve", "--method", "kl"], "kleene"),
        (["solve", "gri"], "grid.gr"),
        (["tune", "--effort", ""], "quick full"),
        (["tune", "--pa"], "--page"),
    ],
)
def test_bash_completes(words, found, tmp_path, script):
    (tmp_path / "grid.gr").touch()
    (tmp_path / "script").write_text(script)
    done = subprocess.run(
        [BASH, "-c", COMPLETE, "bash", *words],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == found.split()


@pytest.mark.parametrize("shell", shtab.SUPPORTED_SHELLS)
def test_every_shell_has_a_script(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "--negative-cycles" in capsys.readouterr().out


@pytest.fixture
def script(capsys):
    assert main(["completion", "bash"]) == 0
    return capsys.readouterr().out
