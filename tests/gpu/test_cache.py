"""Triton's files in the folder of TRI_APSP_CACHE_DIR."""

from pathlib import Path

import pytest

from tri_apsp.cache_folder import VARIABLE

pytest.importorskip("triton")

from tri_apsp.gpu import cache

NAME = "kernel.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "folder"
    monkeypatch.setenv(VARIABLE, str(folder))
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    return folder


def written(key: str = "KEY") -> Path:
    files = cache._Files(key)
    path = files.put(b"{}", NAME)
    files.put_group(NAME, {NAME: path})
    return Path(path)


def test_a_kernel_is_found_where_the_folder_is_now(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache._Files("KEY").get_group(NAME) is None
    assert written() == folder / "triton/KEY" / NAME
    moved = folder.rename(folder.with_name("moved"))
    assert cache._Files("KEY").get_group(NAME) is None
    monkeypatch.setenv(VARIABLE, str(moved))
    assert cache._Files("KEY").get_group(NAME) == {NAME: str(moved / "triton/KEY" / NAME)}


@pytest.mark.parametrize("name", [NAME, f"__grp__{NAME}"])
def test_a_damaged_kernel_is_compiled_again(folder: Path, name: str) -> None:
    path = written().with_name(name)
    path.write_text("{")
    if name == NAME:
        path.unlink()
    assert cache._Files("KEY").get_group(NAME) is None


def test_the_variable_of_triton_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = folder.with_name("own")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(own))
    assert written() == own / "KEY" / NAME


def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    folder.mkdir()
    (folder / "triton").touch()
    own = folder.with_name(".triton") / "cache"
    assert written() == own / "KEY" / NAME
    assert cache._Files("KEY").get_group(NAME) == {NAME: str(own / "KEY" / NAME)}


def test_no_folder_that_can_be_written(folder: Path) -> None:
    for path in (folder, folder.with_name(".triton")):
        path.touch()
    files = cache._Files("KEY")
    path = files.put(b"code", NAME)
    assert (Path(path).read_bytes(), files.get_file(NAME)) == (b"code", path)
