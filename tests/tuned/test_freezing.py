"""A frozen directory: one set of files for every rank and run."""

from __future__ import annotations

import dataclasses
import errno
import json
import threading
from pathlib import Path

import pytest
import torch
from tuned.conftest import GPU

from tri_apsp import InputError, TuningWarning, tuned
from tri_apsp.__main__ import main
from tri_apsp.tuned import delayed_warnings, freezing
from tri_apsp.tuned.store import require_writable

CUDA = torch.device("cuda", 0)

pytestmark = [
    pytest.mark.usefixtures("gpu"),
    pytest.mark.filterwarnings("error::tri_apsp.TuningWarning"),
]


def find(n=1024):
    found = tuned.find("nvidia", CUDA, torch.float32, n=n)
    delayed_warnings.issue()
    return found


@pytest.fixture
def frozen(directories, monkeypatch):
    """Freeze, and make lookups use the result."""

    def freeze():
        paths = tuned.freeze(directories["named"])
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
        return paths

    return freeze


def test_it_holds_what_lookups_use(entry, made, directories, frozen):
    tuned.save(
        made(entry(1024, block_m=32), entry(4096, block_m=32), seed=1), directories["shipped"]
    )
    tuned.save(made(entry(1024, block_m=128), seed=2), directories["user"])
    tuned.save(made(entry(1024, "closure"), kernel="closure"), directories["shipped"])
    before = {n: find(n) for n in (1024, 4096)}
    paths = frozen()
    assert paths == [
        directories["named"] / "a-gpu" / f"nvidia-{kernel}-float32.json"
        for kernel in ("product", "closure")
    ]
    assert {n: dataclasses.replace(find(n), source="") for n in before} == {
        n: dataclasses.replace(config, source="") for n, config in before.items()
    }
    assert find(1024).source == ", ".join(map(str, paths))
    assert [(e.n, e.config["product"]["block_m"]) for e in tuned.load(paths[0]).entries] == [
        (1024, 128),
        (4096, 32),
    ]
    assert tuned.load(paths[0]).entries[1].run.seed == 1


def test_nothing_else_is_searched(entry, made, directories, frozen):
    assert frozen() == []
    for place in ("user", "shipped"):
        tuned.save(made(entry(1024)), directories[place])
    assert tuned.directories() == [directories["named"]]
    assert tuned.files() == []
    assert find().source == "default"
    (directories["named"] / "FROZEN").unlink()
    tuned.reload()
    assert find().source != "default"


def test_files_in_memory_are_included(entry, made, frozen):
    tuned.remember(made(entry(1024, block_m=128)))
    (path,) = frozen()
    assert tuned.load(path).entries[0].config["product"]["block_m"] == 128


def test_files_of_other_gpus_of_the_architecture_are_included(entry, made, directories, frozen):
    other = dataclasses.replace(GPU, name="B GPU", slug="b-gpu")
    for place, block_m in (("shipped", 32), ("user", 128)):
        tuned.save(made(entry(1024, block_m=block_m), device=other), directories[place])
    tuned.save(
        made(entry(1024), device=dataclasses.replace(GPU, slug="c-gpu", capability=(10, 0))),
        directories["user"],
    )
    assert frozen() == []
    assert (
        find().source
        == f"{directories['named'] / 'b-gpu' / 'nvidia-product-float32.json'}, tuned for B GPU"
    )
    assert find().product.block_m == 128
    assert not (directories["named"] / "c-gpu").exists()


def test_files_that_cannot_be_used_are_left_out_with_a_warning(entry, made, directories, frozen):
    path = tuned.save(made(entry(1024)), directories["user"])
    path.write_text("{")
    tuned.reload()
    with pytest.warns(
        TuningWarning, match=f"a tuned file is not used: tuned file {path} must hold JSON"
    ) as caught:
        assert frozen() == []
    assert [warning.filename for warning in caught] == [__file__]


def test_a_directory_that_freeze_creates_is_not_reported_as_missing(
    entry, made, directories, monkeypatch
):
    monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
    tuned.save(made(entry(1024)), directories["user"])
    assert len(tuned.freeze(directories["named"])) == 1


def test_the_frozen_directory_that_lookups_search_is_not_frozen_again(
    entry, made, directories, tmp_path, frozen
):
    frozen()
    tuned.save(made(entry(1024)), directories["user"])
    (tmp_path / "link").symlink_to(directories["named"])
    for path in (directories["named"], tmp_path / "link"):
        with pytest.raises(
            InputError,
            match=r"^freeze must search other directories than [^\n]*; unset the variable [^\n]*\.$",
        ):
            tuned.freeze(path)
    assert tuned.freeze(tmp_path / "copy") == []


@pytest.mark.parametrize("usable", [False, True])
def test_a_file_of_another_gpu_is_replaced_if_it_cannot_be_used(entry, made, directories, usable):
    other = dataclasses.replace(GPU, name="B GPU", slug="b-gpu")
    tuned.save(made(entry(1024, block_m=32), device=other), directories["shipped"])
    tuned.freeze(directories["named"])
    target = directories["named"] / "b-gpu" / "nvidia-product-float32.json"
    content = json.loads(target.read_text())
    content["entries"][0]["n"] = 2048
    if not usable:
        content["kernel_hash"] = "0" * 64
    target.write_text(json.dumps(content))
    tuned.freeze(directories["named"])
    assert tuned.load(target).entries[0].n == (2048 if usable else 1024)


class TestWhileItIsWritten:
    """A process that starts before every file is there must not take the directory for complete."""

    @pytest.fixture
    def interrupted(self, entry, made, directories, monkeypatch):
        """Freeze, and run a function before the first file is written, which may raise."""

        def freeze(function):
            def first(*arguments):
                monkeypatch.setattr(freezing, "write", write)
                function()
                write(*arguments)

            write = freezing.write
            monkeypatch.setattr(freezing, "write", first)
            return tuned.freeze(directories["named"])

        tuned.save(made(entry(1024)), directories["user"])
        return freeze

    def test_it_is_not_frozen_yet(self, directories, interrupted, monkeypatch):
        def start():
            with monkeypatch.context() as changed:
                changed.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
                assert find().source != "default"

        assert len(interrupted(start)) == 1
        assert sorted(path.name for path in directories["named"].iterdir()) == [
            ".lock",
            "FROZEN",
            "a-gpu",
        ]

    def test_another_process_waits(self, directories, interrupted):
        found = []
        other = threading.Thread(
            target=lambda: found.append(tuned.freeze(directories["named"])), daemon=True
        )

        def start():
            (directories["named"] / "a-gpu").mkdir(exist_ok=True)
            other.start()
            other.join(0.3)
            assert other.is_alive()

        paths = interrupted(start)
        other.join(10)
        assert found == [paths]

    def test_after_an_interrupt_it_can_be_repeated(self, directories, interrupted):
        def press():
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted(press)
        assert not (directories["named"] / "FROZEN").exists()
        assert len(tuned.freeze(directories["named"])) == 1


def test_a_directory_that_cannot_be_listed_is_refused(directories, monkeypatch):
    def forbidden(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    directories["named"].mkdir()
    monkeypatch.setattr(Path, "iterdir", forbidden)
    with pytest.raises(
        InputError,
        match=r"^freeze must be able to list [^\n]*named cannot be listed \(Permission denied\); ",
    ):
        tuned.freeze(directories["named"])


def test_freezing_again_replaces_the_files_of_this_device(entry, made, directories):
    product = tuned.save(made(entry(1024)), directories["user"])
    foreign = directories["named"] / "c-gpu" / "nvidia-product-float32.json"
    assert len(tuned.freeze(directories["named"])) == 1
    foreign.parent.mkdir()
    foreign.write_text("{}")
    product.unlink()
    tuned.save(made(entry(1024, "closure"), kernel="closure"), directories["user"])
    (path,) = tuned.freeze(directories["named"])
    assert [each.name for each in path.parent.glob("*.json")] == ["nvidia-closure-float32.json"]
    assert foreign.exists()


@pytest.mark.parametrize("name", ["full", "file"])
def test_another_directory_is_refused_and_left_as_it_is(entry, made, directories, tmp_path, name):
    tuned.save(made(entry(1024)), directories["user"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("")
    (tmp_path / "file").write_text("")
    with pytest.raises(
        InputError,
        match=r"^freeze must write to an empty|^tuned files must be written to .*File exists",
    ):
        tuned.freeze(tmp_path / name)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes"]


def test_nothing_is_saved_there(entry, made, directories, frozen):
    frozen()
    for write in (
        lambda: tuned.save(made(entry(1024)), force=True),
        lambda: require_writable("a-gpu"),
    ):
        with pytest.raises(
            InputError,
            match=r"^tuned files must not change in a frozen directory, which .*named is; [^\n]*\.$",
        ):
            write()
    assert [path.name for path in directories["named"].iterdir() if path.name != ".lock"] == [
        "FROZEN"
    ]


def test_a_miss_there_is_silent(frozen):
    frozen()
    tuned.issue_warnings(tuned.call_of("nvidia", CUDA, torch.float32, n=1024), find())


def test_info_shows_the_only_directory(directories, frozen, capsys):
    frozen()
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["tuned"]
    assert found["directories"] == [str(directories["named"])]
