"""Ctrl-C and SIGTERM end a command with one word, also while libraries are imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tri_apsp.console.exit_status import INTERRUPTED

# Sends the process a signal when it first imports a module; variables of the environment name both.
HOOK = """
import os, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            os.kill(os.getpid(), int(os.environ["INTERRUPT_BY"]))
sys.meta_path.insert(0, Interrupt())
"""


slow = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("words", "module"),
    [
        ("tri_apsp solve graph.gr", "tri_apsp.cli.main"),
        *(
            pytest.param("tri_apsp solve graph.gr", name, marks=slow)
            for name in ("tri_apsp.cli.solve", "torch._C", "numpy.linalg")
        ),
        pytest.param("tri_apsp tune --show", "optuna", marks=slow),
        pytest.param("reports paths", "matplotlib", marks=slow),
    ],
)
def test_while_a_module_is_imported(tmp_path, words, module, number):
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    hook = {"INTERRUPT_AT": module, "INTERRUPT_BY": str(int(number)), "PYTHONPATH": path}
    command, environment = [sys.executable, "-m", *words.split()], os.environ | hook
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_while_scipy_runs(number):
    """SciPy's loop would handle no signal until it ends."""
    words = ["bench", "--device", "cpu", "--n", "3000", "--scipy-up-to", "3000"]
    command, pipe = [sys.executable, "-m", "tri_apsp", *words], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True) as bench:
        found = []
        while not found:
            time.sleep(0.1)
            found = psutil.Process(bench.pid).children()
        time.sleep(3)
        os.killpg(bench.pid, number)  # as a terminal and `timeout` do
        _, err = bench.communicate(timeout=20)
    assert (bench.returncode, err) == (INTERRUPTED, b"interrupted\n")
    alive = [process for process in found if process.is_running()]
    assert all(process.status() == psutil.STATUS_ZOMBIE for process in alive)
