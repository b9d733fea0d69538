"""The folder of TRI_APSP_CACHE_DIR: processes find in it what the command compiled, wherever it and
the package lie; a manifest that does not fit gives one warning.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import tri_apsp
from tri_apsp import ApspWarning, cache_folder
from tri_apsp.cache_folder import VARIABLE, contents, record, warn_unless_made_for
from tri_apsp.gpu.ahead import GPUS

PACKAGE = Path(tri_apsp.__path__[0])
HERE = {"device": "cpu", "processor": "zen 1", "python": "3.11", "kernels": "abc"}

# Counts what Numba compiles; afterwards `compiled` are the names.
COUNTED = """
from numba.core import event
import torch
from tri_apsp import min_plus, prepare, shortest_paths
from tri_apsp.graphs import generate

class Compiled(event.Listener):
    names = []
    def on_start(self, found):
        self.names.append(found.data["dispatcher"].py_func.__name__)
    def on_end(self, found):
        pass

event.register("numba:compile", Compiled())
"""
OTHER = COUNTED + "min_plus(*torch.ones(2, 9, 9, dtype=torch.int64))\nprint(len(Compiled.names))"
DENSE = COUNTED + "shortest_paths(torch.rand(50, 50))\nprint(len(Compiled.names))"
ROW = """
graph = prepare(generate("roads", 1000), dtype=torch.float32)
shortest_paths(graph, sources=0)
print(len(Compiled.names), Compiled.names)
"""
# An image's read-only layer: also root cannot write below the folder.
READ_ONLY = """
import errno, os, sys

def refuse(event, arguments):
    writes = event in ("os.mkdir", "os.rename", "os.remove") or (
        event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    )
    if writes and str(arguments[0]).startswith(os.environ["TRI_APSP_CACHE_DIR"]):
        raise OSError(errno.EROFS, "read-only")

sys.addaudithook(refuse)
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run Python in a new process, whose user has empty caches; return what it printed."""
    return Runner(tmp_path / "home")


class Runner:
    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *words: object, package: Path = PACKAGE, **variables: object) -> str:
        known = {name: value for name, value in os.environ.items() if "CACHE" not in name}
        home = {"HOME": self.home, "XDG_CACHE_HOME": self.home / "cache"}
        given = known | home | {"PYTHONPATH": package.parent} | variables
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            env={name: str(value) for name, value in given.items()},
            cwd=package.parent,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        self.err = done.stderr
        return done.stdout

    def fill(self, folder: Path, *words: object, **options: object) -> dict[str, int]:
        """Run the command, and return the kernels that it compiled."""
        command = ("-m", "tri_apsp", "warmup", "--folder", folder, "--json", *words)
        return json.loads(self(*command, **options))["compiled"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for this CPU."""
    folder = tmp_path_factory.mktemp("filled")
    run = Runner(tmp_path_factory.mktemp("home"))
    found = run.fill(folder, "--device", "cpu", "--n", 40, "--prepared")
    assert list(found) == ["cpu"]
    assert found["cpu"] > 10
    assert not list(run.home.rglob("*.nbc"))
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package at another path, with other times."""
    copy = tmp_path / "elsewhere" / "tri_apsp"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in copy.rglob("*.py"):
        os.utime(path, (1e9, 1e9))
    return copy


@pytest.mark.slow
def test_a_second_process_compiles_nothing(run: Runner, filled: Path) -> None:
    assert run("-c", DENSE + ROW, **{VARIABLE: filled}).split("\n")[:2] == ["0", "0 []"]
    assert run.err == ""


@pytest.mark.slow
def test_a_moved_package_finds_a_moved_folder(run: Runner, filled: Path, copy: Path) -> None:
    moved = shutil.copytree(filled, copy.parent / "moved")
    assert run("-c", DENSE, package=copy, **{VARIABLE: moved}) == "0\n"
    assert run.err == ""


@pytest.mark.slow
def test_other_kernels_are_compiled_with_one_warning(run: Runner, filled: Path, copy: Path) -> None:
    with (copy / "kernels/cpu/vectors.py").open("a") as file:
        file.write("# changed\n")
    assert int(run("-c", DENSE, package=copy, **{VARIABLE: filled})) > 0
    assert run.err.count("ApspWarning") == 1
    assert f"{filled} belongs to kernels {contents('cpu')}-" in run.err


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_read(run: Runner, filled: Path) -> None:
    assert run("-c", READ_ONLY + DENSE, **{VARIABLE: filled}) == "0\n"
    before = sorted(filled.rglob("*"))
    assert int(run("-c", READ_ONLY + OTHER, **{VARIABLE: filled})) > 0
    assert (run.err, sorted(filled.rglob("*"))) == ("", before)


@pytest.mark.slow
def test_kernels_are_compiled_for_a_gpu_that_is_not_here(run: Runner, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    folder = tmp_path / "folder"
    words = ("--device", "sm_90", "--n", 20)
    found = run.fill(folder, *words)
    assert (found["cpu"], found["gpu"] > 0) == (0, True)
    assert run.fill(folder, *words)["gpu"] == 0
    (entry,) = json.loads((folder / "manifest.json").read_text())
    assert entry["device"] == "sm_90"
    moved = folder.rename(tmp_path / "moved")
    assert run.fill(moved, *words)["gpu"] == 0
    assert not list(run.home.rglob("*.cubin"))
    # In a read-only folder, other kernels are kept where Triton keeps them.
    code = f"""
import sys
from tri_apsp import warm_up
from tri_apsp.gpu.ahead import GPUS, META, only_compile
{READ_ONLY}
only_compile(GPUS["sm_90"])
torch = sys.modules["torch"]
list(warm_up.run([lambda: warm_up._solve((40, 40), torch.float32, META, False)], META))
"""
    run("-c", code, **{VARIABLE: moved})
    assert list(run.home.rglob("*.cubin"))
    run.home = Path(os.devnull)
    run("-c", code, **{VARIABLE: moved})


@pytest.mark.slow
def test_prepared_graphs_of_a_gpu_that_is_not_here(
    run: Runner, filled: Path, tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    folder = shutil.copytree(filled, tmp_path / "folder")
    words = ("--device", "sm_80", "--dtype", "int32", "--prepared", "--predecessors")
    assert run.fill(folder, *words, "--n", 20, "--batch", 3)["gpu"] > 20
    entries = json.loads((folder / "manifest.json").read_text())
    assert [entry["device"] for entry in entries] == ["cpu", "sm_80"]
    names = {path.name for path in folder.rglob("__grp__*")}
    for kernel in (
        "sweep",
        "table",
        "pairs",
        "pull_rows",
        "tight",
        "push",
        "small_graphs",
        "search_lists",
    ):
        assert f"__grp___{kernel}_kernel.json" in names


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True])
def test_a_gpu_starts_no_compiler(run: Runner, tmp_path: Path, named: bool) -> None:
    properties = torch.cuda.get_device_properties(0)
    device = f"sm_{properties.major}{properties.minor}" if named else "cuda:0"
    if named and device not in GPUS:
        pytest.skip("no named capability")
    units = ("--units", properties.multi_processor_count) if named else ()
    run.fill(tmp_path / "folder", "--device", device, "--n", 300, 20, *units)
    code = """
import torch
torch.ones(1, device="cuda")
from triton.backends.nvidia.compiler import CUDABackend

def fail(*_):
    raise AssertionError("compiled")

CUDABackend.make_ttir = CUDABackend.make_cubin = CUDABackend.gluon_to_ttgir = fail
import tri_apsp
for n in (300, 20):
    weights = torch.rand(n, n, device="cuda")
    tri_apsp.shortest_paths(weights)
    weights[0, 1] = -0.001
    tri_apsp.shortest_paths(weights)
"""
    run("-c", code, **{VARIABLE: tmp_path / "folder"})
    assert run.err == ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that the variable names, and of which no warning was issued."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(cache_folder, "_WARNED", set())
    return tmp_path


def warned(here: dict[str, str]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ApspWarning)
        warn_unless_made_for(here)
        warn_unless_made_for(here)
    return [str(each.message) for each in found]


def test_a_folder_that_was_filled_here_gives_no_warning(folder: Path) -> None:
    assert not warned(HERE)
    record(folder, [HERE | {"processor": "zen 2"}, HERE])
    record(folder, [HERE])
    assert len(json.loads((folder / "manifest.json").read_text())) == 2
    assert not warned(HERE)
    assert not warned({"device": "sm_90", "triton": "3.6"}), "it was filled for no GPU"


@pytest.mark.parametrize(
    ("other", "here", "parts"),
    [
        ({"processor": "zen 2"}, {}, ["belongs to processor zen 2,", "here is processor zen 1;"]),
        ({"python": "3.12", "numba": "1"}, {"numba": "2"}, ["python 3.12, numba 1", "numba 2"]),
        ({"device": "sm_80"}, {"device": "sm_90"}, ["belongs to device sm_80, while", "sm_90"]),
        ({"processor": None}, {}, ["belongs to processor None"]),
    ],
)
def test_a_folder_of_another_machine_gives_one_warning(
    folder: Path, other: dict[str, str], here: dict[str, str], parts: list[str]
) -> None:
    record(folder, [HERE | other])
    (message,) = warned(HERE | here)
    assert all(part in message for part in parts)
    assert message.startswith(f"{VARIABLE} must name a folder that was filled for this machine")


@pytest.mark.parametrize("text", ["", "{", "3", "[3]", '{"device": 3}', "[{}]", '["a"]', "\xff"])
def test_a_damaged_manifest_gives_one_warning_and_is_replaced(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text, encoding="latin-1")
    (message,) = warned(HERE)
    assert "has a manifest that cannot be read" in message
    record(folder, [HERE])
    cache_folder._WARNED.clear()
    assert not warned(HERE)
