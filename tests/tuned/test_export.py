"""Exports: what a user tuned in one file, and the way back into a directory."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from tuned.conftest import GPU

from tri_apsp import InputError, TuningWarning, tuned

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.fixture
def export(entry, made, directories, tmp_path):
    """An export of two files, which are then removed."""
    for kernel in ("product", "closure"):
        tuned.save(made(entry(1024, kernel), kernel=kernel))
    path = tmp_path / "export.json"
    tuned.export_file(path)
    for file in tuned.files():
        file.unlink()
    tuned.reload()
    return path


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_an_export_is_imported_as_it_was(entry, made, directories, tmp_path):
    saved = {
        tuned.save(made(entry(1024, kernel), kernel=kernel)) for kernel in ("product", "closure")
    }
    contents = {path.name: tuned.load(path) for path in saved}
    assert set(tuned.export_file(tmp_path / "export.json")) == saved
    paths = tuned.import_file(tmp_path / "export.json", directories["shipped"])
    assert {path.parent for path in paths} == {directories["shipped"] / "a-gpu"}
    assert {path.name: tuned.load(path) for path in paths} == contents


def test_an_export_holds_what_this_user_tuned_for_the_device(
    entry, made, directories, monkeypatch, tmp_path
):
    monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
    tuned.save(made(entry(1024, block_m=16), entry(8192)), directories["shipped"])
    tuned.save(made(entry(1024, block_m=32), entry(4096)), directories["user"])
    tuned.save(made(entry(1024, block_m=128)))
    tuned.save(made(entry(1024), device=dataclasses.replace(GPU, slug="b-gpu")))
    tuned.export_file(tmp_path / "export.json")
    (file,) = json.loads((tmp_path / "export.json").read_text())["files"]
    assert [(entry["n"], entry["config"]["product"]["block_m"]) for entry in file["entries"]] == [
        (1024, 128),
        (4096, 64),
    ]


def test_a_frozen_directory_is_not_exported(entry, made, directories, monkeypatch, tmp_path):
    tuned.save(made(entry(1024)), directories["shipped"])
    assert tuned.freeze(directories["named"])
    monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
    with pytest.raises(InputError, match=rf"but {directories['user']} has none"):
        tuned.export_file(tmp_path / "export.json")


def test_without_tuned_files_nothing_is_exported(entry, made, directories, tmp_path):
    tuned.save(made(entry(1024)), directories["shipped"])
    with pytest.raises(
        InputError,
        match=r"^an export must hold tuned files, but .* has none that can be used on A GPU; [^\n]*\.$",
    ):
        tuned.export_file(tmp_path / "export.json")
    assert not (tmp_path / "export.json").exists()


def test_a_file_that_cannot_be_used_is_left_out_with_a_warning(entry, made, tmp_path):
    tuned.save(made(entry(1024)))
    tuned.save(made(entry(1024, "closure"), kernel="closure")).write_text("{")
    with pytest.warns(TuningWarning, match="a tuned file is not exported: .* damaged") as caught:
        assert len(tuned.export_file(tmp_path / "export.json")) == 1
    assert caught[0].filename == __file__


def test_a_directory_can_be_exported(entry, made, directories, tmp_path):
    path = tuned.save(made(entry(1024, block_m=16)), directories["shipped"])
    tuned.save(made(entry(4096)))
    assert tuned.export_file(tmp_path / "export.json", directory=directories["shipped"]) == [path]
    (file,) = json.loads((tmp_path / "export.json").read_text())["files"]
    assert [entry["n"] for entry in file["entries"]] == [1024]
    with pytest.raises(InputError, match=rf"but {tmp_path / 'none'} has none"):
        tuned.export_file(tmp_path / "export.json", directory=tmp_path / "none")


def test_the_reasons_are_given_where_no_file_can_be_exported(entry, made, tmp_path):
    tuned.save(made(entry(1024))).write_text("{")
    with (
        pytest.warns(TuningWarning, match="not exported: .* damaged"),
        pytest.raises(InputError, match="has none that can"),
    ):
        tuned.export_file(tmp_path / "export.json")


@pytest.mark.parametrize("name", ["", ".", "..", "folder"])
def test_a_folder_is_no_export(entry, made, monkeypatch, tmp_path, name):
    tuned.save(made(entry(1024)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(
        InputError,
        match=rf"^an export must be written to a file, but {name or '.'} is a folder; name a file",
    ):
        tuned.export_file(name)


def test_an_export_that_cannot_be_written_is_an_error(entry, made, tmp_path):
    tuned.save(made(entry(1024)))
    with pytest.raises(
        InputError, match=r"must be written to .*none/export\.json, but that failed \(No such file"
    ):
        tuned.export_file(tmp_path / "none" / "export.json")


def test_imported_entries_are_merged(entry, made, directories, export):
    path = tuned.save(made(entry(4096)))
    tuned.import_file(export)
    assert [each.n for each in tuned.load(path).entries] == [1024, 4096]


REFUSED = {
    "damaged": (
        lambda path: path.write_text("{"),
        "must hold JSON, but is damaged .*; export again",
    ),
    "empty": (
        lambda path: edit(path, lambda content: content.update(files=[])),
        r"breaks its schema \(files",
    ),
    "an unknown field": (
        lambda path: edit(path, lambda content: content.update(more=1)),
        r"breaks its schema \(more",
    ),
    "another version": (
        lambda path: edit(path, lambda content: content.update(schema_version=2)),
        "schema version 1, but has 2",
    ),
    "other sources": (
        lambda path: edit(path, lambda content: content["files"][1].update(kernel_hash="0" * 64)),
        r"nvidia-\w+-float32\.json in export .* must be tuned for the present sources of its kernel",
    ),
    "a slug that leaves the directory": (
        lambda path: edit(path, lambda content: content["files"][1].update(slug="../../b")),
        r"breaks its schema \(files\.1\.slug",
    ),
    "no export": (lambda path: path.unlink(), "must be readable, but is not"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_export_that_does_not_fit_is_refused_as_a_whole(directories, export, case):
    change, message = REFUSED[case]
    change(export)
    with pytest.raises(InputError, match=message) as caught:
        tuned.import_file(export)
    assert re.fullmatch(r"[^\n]*\.", str(caught.value))
    assert tuned.files() == []


def test_a_file_that_would_not_be_overwritten_refuses_the_whole_export(entry, made, export):
    damaged = tuned.save(made(entry(1024, "closure"), kernel="closure"))
    damaged.write_text("{")
    with pytest.raises(InputError, match="--force"):
        tuned.import_file(export)
    assert tuned.files() == [damaged]
    assert len(tuned.import_file(export, force=True)) == 2
    assert tuned.load(damaged).kernel == "closure"
