"""A wheel and a source archive: what they hold, and that an installed solve finds tuned files."""

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: object, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=os.environ | environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(kind: str, project: Path, target: Path) -> Path:
    """Build a "wheel" or an "sdist" of `project`, as pip would but without the network."""
    code = f"import sys; from hatchling.build import build_{kind}; build_{kind}(sys.argv[1])"
    run("-c", code, target, folder=project)
    (built,) = target.iterdir()
    return built


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def test_a_wheel_holds_the_package_and_the_tuned_files(wheel):
    found = names(wheel)
    assert {"tri_apsp/py.typed", "tri_apsp/__init__.pyi", "tri_apsp/__main__.py"} <= found
    assert {name.split("/")[0].partition("-")[0] for name in found} == {"tri_apsp"}
    files = (path for path in ROOT.glob("tuning/**/*") if path.is_file() and path.name != ".lock")
    tuned = {f"tri_apsp/_tuned/{path.relative_to(ROOT / 'tuning').as_posix()}" for path in files}
    assert {name for name in found if "/_tuned/" in name} == tuned
    assert not [name for name in found if "test" in name or name.endswith((".pyc", ".nbc", ".nbi"))]


def test_a_package_index_shows_readme_without_links_that_lead_nowhere(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    assert "\n# tri_apsp\n" in text
    assert not re.findall(r"\]\((?!https?:)[^)]*\)", text)


def test_a_wheel_built_from_the_source_archive_is_the_same(wheel, tmp_path):
    with tarfile.open(build("sdist", ROOT, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    folders = {path.name for path in source.iterdir() if path.is_dir()}
    assert folders == {"docs", "reports", "tests", "tri_apsp", "tuning"}
    assert {"README.md", "LICENSE", "constraints.txt", "mkdocs.yml"} <= {
        path.name for path in source.iterdir()
    }
    assert names(build("wheel", source, tmp_path / "wheel")) == names(wheel)


def test_an_installed_solve_uses_what_the_tuner_of_a_clone_wrote(wheel, tmp_path):
    """The tuner runs in the clone, as in README, and the installed command in another folder."""
    site = tmp_path / "site"
    run("-m", "pip", "install", "--no-index", "--no-deps", "--target", site, wheel, folder=tmp_path)
    (tmp_path / "line.txt").write_text("# base 0 vertices 256\n0 255 1\n")
    homes = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA")}

    def solve() -> dict[str, object]:
        words = (
            site / "bin" / "tri-apsp",
            *["solve", "line.txt", "--method", "kleene", "--device", "cpu", "--json"],
        )
        return json.loads(run(*words, folder=tmp_path, PYTHONPATH=str(site), **homes))

    first = solve()
    few = ("--device", "cpu", "--kernel", "solve", "--n", 256, "--trials", 2)
    run("-m", "tri_apsp.tune", *few, folder=ROOT, **homes)
    second, written = solve(), str(tmp_path / "config" / "tri_apsp")
    assert written not in first["source"]
    assert written in second["source"]
    assert first["sum_distances"] == second["sum_distances"]
