"""import tri_apsp: names are imported when they are used, and libraries when they are needed."""

import subprocess
import sys

import pytest

import tri_apsp

IN_A_NEW_PROCESS = """
import sys
import tri_apsp
assert "torch" not in sys.modules and "tri_apsp.api" not in sys.modules
assert {"shortest_paths", "tuned", "csgraph"} <= set(dir(tri_apsp))
assert not hasattr(tri_apsp, "no_such_name")
tri_apsp.shortest_paths
assert "torch" in sys.modules and not {"numba", "torch._dynamo", "triton"} & {*sys.modules}
assert callable(tri_apsp.tuned.find) and callable(tri_apsp.csgraph.dijkstra)
from tri_apsp import *
assert shortest_paths is tri_apsp.shortest_paths is tri_apsp.api.shortest_paths
assert issubclass(InputTypeError, TypeError) and issubclass(InputTypeError, ValueError)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.packaging
def test_names_are_imported_when_they_are_used():
    done = run(IN_A_NEW_PROCESS)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", tri_apsp.__all__)
def test_every_name_exists(name):
    assert getattr(tri_apsp, name) is not None


@pytest.mark.packaging
@pytest.mark.parametrize(
    "words",
    [
        ["-m", "tri_apsp.report"],
        ["-m", "tri_apsp", "report", "paths"],
        ["-c", "import tri_apsp.report.plots"],
    ],
)
def test_the_old_name_of_the_reports_says_the_new_one(words):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith(("error: ", "ModuleNotFoundError: "))
    assert "`tri_apsp.report` is now `python -m reports`" in sentence
    assert "`python -m tri_apsp.tune --page DIR`" in sentence


SOLVE = """
from pathlib import Path
from tempfile import TemporaryDirectory
with TemporaryDirectory() as folder:
    path = Path(folder) / "g.gr"
    path.write_text("p sp 2 1\\na 1 2 3\\n")
    main(["solve", str(path)])
"""
MAIN = "from tri_apsp.__main__ import main\n"


@pytest.mark.packaging
@pytest.mark.parametrize(
    ("code", "loads", "leaves_out"),
    [
        (f"{MAIN}main(['--help'])", "tri_apsp.cli.main", "torch numpy optuna matplotlib"),
        (MAIN + SOLVE, "numba", "optuna matplotlib sqlalchemy tri_apsp.tune reports"),
    ],
)
def test_what_is_imported(code, loads, leaves_out):
    at_exit = "import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    loaded = set(run(at_exit + code).stderr.split())
    assert loads in loaded
    assert not set(leaves_out.split()) & loaded
