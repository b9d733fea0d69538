"""Ctrl-C at any moment, also while libraries are imported, ends a command quietly."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tri_apsp.console.exit_status import INTERRUPTED

# Interrupts the process when it first imports the module that a variable of the environment names.
HOOK = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""
SOLVE = ["tri_apsp", "solve", "graph.gr"]
TUNE = ["tri_apsp.tune", "--list"]
REPORT = ["tri_apsp.report", "index"]


@pytest.mark.parametrize(
    ("words", "module"),
    [
        *(
            (SOLVE, name)
            for name in ("tri_apsp.cli.solve", "torch", "torch._C", "numpy", "numpy.linalg", "torch.cuda", "psutil")
        ),
        *((TUNE, name) for name in ("torch", "numpy", "optuna")),
        *((REPORT, name) for name in ("torch", "numpy", "matplotlib")),
        (["tri_apsp", *TUNE[0].split(".")[1:], *TUNE[1:]], "torch"),
    ],
)
def test_while_a_module_is_imported(tmp_path, words, module):
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"INTERRUPT_AT": module, "PYTHONPATH": path}
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "")
