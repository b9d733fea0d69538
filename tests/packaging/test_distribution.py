"""The contents of a wheel and a source archive, and that every way to install finds the tuned files."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUNED = "tri_apsp/_tuned/README.md"
# Prints, for each site-packages folder named, the folder of tuned files of the tri_apsp installed there. One process serves
# all, since importing torch takes most of its time.
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
    print(next(path for path in reversed(tuned.directories()) if path != tuned.user_directory()))
"""


def build(kind: str, project: Path, target: Path) -> Path:
    """Build a "wheel", "sdist" or "editable" of `project` with hatchling, as pip would but without the network."""
    code = f"import sys; from hatchling.build import build_{kind}; build_{kind}(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(target)], cwd=project, check=True, capture_output=True, timeout=120)
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
    for name in ("tuning/README.md", "README.md", "LICENSE", "constraints.txt", "pyproject.toml", "tests/conftest.py"):
        assert (sdist / name).is_file()
    assert {path.name for path in sdist.iterdir() if path.is_dir()} == {"reports", "tests", "tri_apsp", "tuning"}


def test_a_wheel_built_from_the_source_archive_is_the_same(wheel, sdist, tmp_path):
    assert names(build("wheel", sdist, tmp_path)) == names(wheel)


def test_every_way_to_install_finds_the_tuned_files(wheel, tmp_path):
    installed = unpack(wheel, tmp_path / "wheel")
    editable = unpack(build("editable", ROOT, tmp_path / "built"), tmp_path / "editable")
    assert [line.rstrip("/") for path in editable.glob("*.pth") for line in path.read_text().split()] == [str(ROOT)]
    expected = {installed: installed / "tri_apsp" / "_tuned", ROOT: ROOT / "tuning", editable: ROOT / "tuning"}
    # -I: neither the environment nor the current folder counts. A tri_apsp that is installed comes after `packages`.
    command = [sys.executable, "-I", "-c", SHIPPED, *map(str, expected)]
    result = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120)
    assert [Path(line) for line in result.stdout.splitlines()] == list(expected.values())
