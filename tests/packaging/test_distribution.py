"""The contents of a wheel and a source archive, and that every way to install finds the tuned
files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUNED = "tri_apsp/_tuned/README.md"
# Prints, for each site-packages folder named, the folder of tuned files of the tri_apsp installed
# there. One process serves all, since importing torch takes most of its time.
SHIPPED = """
import site, sys
installed = sys.path[:]
for packages in sys.argv[1:]:
    for name in [name for name in sys.modules if name.partition(".")[0] == "tri_apsp"]:
        del sys.modules[name]
    sys.path.clear()
    site.addsitedir(packages)  # reads .pth files too
    sys.path += installed
    from tri_apsp import tuned
    print(next(path for path in reversed(tuned.directories()) if path != tuned.save_directory()))
"""


def build(kind: str, project: Path, target: Path) -> Path:
    """Build a "wheel", "sdist" or "editable" of `project` with hatchling, as pip would but without
    the network.
    """
    code = f"import sys; from hatchling.build import build_{kind}; build_{kind}(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", code, str(target)],
        cwd=project,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = target.iterdir()
    return built


def unpack(archive: Path, target: Path) -> Path:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(target)
    else:
        with tarfile.open(archive) as source:
            source.extractall(target, filter="data")
    return target


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    return next(unpack(build("sdist", ROOT, folder / "built"), folder / "unpacked").iterdir())


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_a_wheel_holds_the_package_and_the_tuned_files(wheel):
    found = names(wheel)
    folders = {name.split("/")[0] for name in found}
    assert {TUNED, "tri_apsp/py.typed", "tri_apsp/__main__.py"} <= found
    assert {name for name in folders if not name.endswith(".dist-info")} == {"tri_apsp"}
    files = (path for path in ROOT.glob("tuning/**/*") if path.is_file() and path.name != ".lock")
    tuned = {f"tri_apsp/_tuned/{path.relative_to(ROOT / 'tuning').as_posix()}" for path in files}
    assert {name for name in found if "/_tuned/" in name} == tuned
    assert not [name for name in found if "test" in name or name.endswith((".pyc", ".nbc", ".nbi"))]


def test_a_source_archive_holds_what_building_and_testing_need(sdist):
    for name in (
        "tuning/README.md",
        "README.md",
        "LICENSE",
        "constraints.txt",
        "pyproject.toml",
        "tests/conftest.py",
    ):
        assert (sdist / name).is_file()
    assert {path.name for path in sdist.iterdir() if path.is_dir()} == {
        "reports",
        "tests",
        "tri_apsp",
        "tuning",
    }


def test_a_wheel_built_from_the_source_archive_is_the_same(wheel, sdist, tmp_path):
    assert names(build("wheel", sdist, tmp_path)) == names(wheel)


def test_every_way_to_install_finds_the_tuned_files(wheel, tmp_path):
    installed = unpack(wheel, tmp_path / "wheel")
    editable = unpack(build("editable", ROOT, tmp_path / "built"), tmp_path / "editable")
    assert [
        line.rstrip("/") for path in editable.glob("*.pth") for line in path.read_text().split()
    ] == [str(ROOT)]
    expected = {
        installed: installed / "tri_apsp" / "_tuned",
        ROOT: ROOT / "tuning",
        editable: ROOT / "tuning",
    }
    # -I: neither the environment nor the current folder counts. A tri_apsp that is installed comes
    # after `packages`.
    command = [sys.executable, "-I", "-c", SHIPPED, *map(str, expected)]
    result = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120
    )
    assert [Path(line) for line in result.stdout.splitlines()] == list(expected.values())


def test_an_installed_solve_uses_what_the_tuner_of_a_clone_wrote(wheel, tmp_path):
    """The tuner runs in the clone, as in README's main job, and the installed command solves in
    another folder.
    """
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-index",
        "--no-deps",
        "--quiet",
    ]
    subprocess.run([*pip, "--target", site, wheel], check=True, capture_output=True, timeout=120)
    elsewhere.mkdir()
    (elsewhere / "line.txt").write_text("# base 0\n0 255 1\n")
    folders = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA")}
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("TRI_APSP_")
    } | folders

    def run(*command: object, folder: Path, **more: str) -> str:
        words = list(map(str, command))
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment | more,
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.stdout

    solve = [site / "bin" / "tri-apsp", "solve", "line.txt", "--device", "cpu", "--json"]
    first = json.loads(run(*solve, folder=elsewhere, PYTHONPATH=str(site)))
    few = ("--device", "cpu", "--kernel", "solve", "--n", 256, "--trials", 2)
    run(sys.executable, "-m", "tri_apsp.tune", *few, folder=ROOT)
    second = json.loads(run(*solve, folder=elsewhere, PYTHONPATH=str(site)))
    written = tmp_path / "config" / "tri_apsp"
    assert str(written) not in first["source"]
    assert str(written) in second["source"]
    assert first["sum_distances"] == second["sum_distances"]
