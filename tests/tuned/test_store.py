"""Writing and reading tuned files, with whatever can go wrong on a disk."""

import errno
import json
import multiprocessing
import os
import re
from pathlib import Path

import filelock
import pytest
import torch
from tuned.conftest import CONFIGS

from tri_apsp import InputError, tuned
from tri_apsp.tuned import store

CUDA = torch.device("cuda", 0)


def find(n):
    return tuned.find("nvidia", CUDA, torch.float32, n=n)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def test_a_saved_file_is_found(gpu, entry, made, directories):
    file = made(entry(1024, block_m=128), budget_seconds=60.0)
    path = tuned.save(file, directories["user"])
    assert path == directories["user"] / "a-gpu" / "nvidia-product-float32.json"
    assert tuned.load(path) == tuned.load(str(path)) == file
    assert tuned.files() == [path]
    assert names(path.parent) == {path.name}
    found = find(1024)
    assert (found.product.block_m, found.source) == (128, str(path))


def test_the_header_says_what_was_measured(entry, made):
    content = json.loads(tuned.save(made(entry(1024))).read_text())
    header = {"schema_version": 1, "engine": "nvidia", "kernel": "product", "dtype": "float32"}
    machine = {"gpu": "A GPU", "slug": "a-gpu", "units": 100, "capability": [9, 0]}
    versions = {"torch": torch.__version__, "kernel_hash": tuned.kernel_hash("nvidia", "product")}
    assert content.items() >= (header | machine | versions).items()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", content["created"])
    assert "run" not in content["entries"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "panels"}, "kernel 'panels' must exist for engine 'nvidia', but the"),
        ({"kernel": "closure"}, "a config must have fields of closure_tile, .*, but has product"),
        ({"seed": "0"}, "seed\n"),
        ({"budget_seconds": 0.0}, "budget_seconds\n"),
    ],
)
def test_a_file_that_breaks_the_schema_is_not_made(entry, made, arguments, message):
    with pytest.raises(ValueError, match=message):
        made(entry(1024), **arguments)


def test_two_entries_with_the_same_key_are_refused(entry, made):
    with pytest.raises(ValueError, match="no two entries may have the same sign, n and batch"):
        made(entry(1024), entry(1024))


def test_entries_are_merged_and_the_newest_wins(gpu, entry, made):
    tuned.save(made(entry(256), entry(1024, block_m=128), entry(1024, sign="nonnegative"), seed=1))
    path = tuned.save(made(entry(1024, block_m=32), entry(1024, batch=4), seed=2))
    merged = tuned.load(path)
    assert [(e.sign, e.batch, e.n) for e in merged.entries] == [
        ("any", 1, 256),
        ("any", 1, 1024),
        ("any", 4, 1024),
        ("nonnegative", 1, 1024),
    ]
    assert merged.entries[1].config["product"]["block_m"] == 32
    assert merged.seed == 2
    assert [e.run and e.run.seed for e in merged.entries] == [1, None, None, 1]


DAMAGED = {
    "truncated": lambda text: text[:100],
    "other schema": lambda text: json.dumps({**json.loads(text), "schema_version": 9}),
    "another GPU": lambda text: json.dumps({**json.loads(text), "gpu": "B GPU"}),
    "other sources": lambda text: json.dumps({**json.loads(text), "kernel_hash": "0"}),
    "another dtype": lambda text: json.dumps({**json.loads(text), "dtype": "int32"}),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_refused_file_is_never_overwritten_but_by_force(gpu, entry, made, case):
    path = tuned.save(made(entry(256)))
    names = ("nvidia", "product", "float32", gpu)
    assert tuned.existing(*names)[1] is None
    path.write_text(DAMAGED[case](path.read_text()))
    before = path.read_bytes()
    with pytest.raises(InputError, match="--force") as caught:
        tuned.save(made(entry(1024)))
    assert re.fullmatch(r"[^\n]*\.", str(caught.value))
    assert str(path) in str(caught.value)
    assert tuned.existing(*names)[1] == str(caught.value)
    assert path.read_bytes() == before
    assert tuned.save(made(entry(1024)), force=True) == path
    assert [e.n for e in tuned.load(path).entries] == [1024]
    assert tuned.existing(*names)[1] is None


def _save_many(writer: int, made, entry, directory: Path) -> None:
    for n in range(8):
        tuned.save(made(entry(1000 * (writer + 1) + n)), directory)


@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_two_writers_at_once_lose_nothing(entry, made, directories):
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_save_many, args=(i, made, entry, directories["user"]))
        for i in range(3)
    ]
    for writer in writers:
        writer.start()
    path = tuned.path_of("nvidia", "product", "float32", "a-gpu", directories["user"])
    seen = 0
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            seen = max(seen, len(tuned.load(path).entries))  # never a part of a file
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert seen
    assert len(tuned.load(path).entries) == 24
    assert names(path.parent) == {path.name}


def test_a_directory_that_stays_locked_is_an_error(gpu, entry, made, directories, monkeypatch):
    path = tuned.save(made(entry(256)))
    monkeypatch.setattr(store, "LOCK_SECONDS", 0.05)
    with (
        filelock.FileLock(path.parent / ".lock"),
        pytest.raises(
            InputError,
            match=r"must not be locked, but another process has held .*\.lock for 0\.05 s; wait",
        ),
    ):
        tuned.save(made(entry(1024)))
    assert len(tuned.load(path).entries) == 1


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_an_error(gpu, entry, made, directories, monkeypatch, code):
    path = tuned.save(made(entry(256)))
    before = path.read_bytes()

    def fail(_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match=re.escape(os.strerror(code))) as caught:
        tuned.save(made(entry(1024)))
    assert re.fullmatch(r"tuned files must be written to [^\n]*\.", str(caught.value))
    assert path.read_bytes() == before
    assert names(path.parent) == {path.name}


def test_remains_of_a_crash_are_ignored_and_replaced(gpu, entry, made):
    path = tuned.path_of("nvidia", "product", "float32", "a-gpu")
    path.parent.mkdir(parents=True)
    path.with_name(f".{path.name}.part").write_text("{" * 10_000)
    assert find(1024).source == "default"
    tuned.save(made(entry(1024)))
    assert names(path.parent) == {path.name}
    assert find(1024).source == str(path)


class TestFoundAgain:
    @pytest.mark.parametrize("kernel", CONFIGS)
    def test_files_of_every_kernel_are_found(self, gpu, entry, made, kernel):
        n, batch = {"batch": (256, 64), "exponents": (8192, 1)}.get(kernel, (1024, 1))
        path = tuned.save(made(entry(n, kernel, batch=batch), kernel=kernel))
        found = tuned.find(
            "nvidia",
            CUDA,
            torch.float32,
            n=n,
            batch=batch,
            product=kernel == "small_product",
            sweep=kernel == "sweep",
        )
        assert found.source == str(path)


class TestDirectories:
    @pytest.mark.parametrize("installed", ["checkout", "wheel"])
    def test_are_the_same_however_the_package_is_installed(
        self, directories, monkeypatch, tmp_path, installed
    ):
        if installed == "wheel":
            monkeypatch.setattr(store, "_WHEEL", directories["shipped"])
            monkeypatch.setattr(store, "_CHECKOUT", tmp_path)
        assert tuned.directories() == [directories[place] for place in ("user", "shipped")]
        assert tuned.save_directory() == directories["user"]
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
        assert tuned.directories() == [directories[place] for place in ("named", "user", "shipped")]
        assert tuned.save_directory() == directories["named"]
