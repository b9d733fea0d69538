"""Writing and reading tuned files, with whatever can go wrong on a disk."""

from __future__ import annotations

import dataclasses
import errno
import json
import multiprocessing
import os
import re
import warnings
from pathlib import Path

import filelock
import pytest
import torch
from tuned.conftest import CONFIGS, GPU

from tri_apsp import InputError, tuned
from tri_apsp.device import describe
from tri_apsp.errors import TuningWarning
from tri_apsp.tuned import paths, store

CUDA = torch.device("cuda", 0)


def find(n):
    return tuned.find("nvidia", CUDA, torch.float32, n=n)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def test_a_saved_file_is_found(gpu, entry, made, directories):
    file = made(entry(1024, block_m=128), driver="570.1")
    path = tuned.save(file, directories["user"])
    assert path == directories["user"] / "a-gpu" / "nvidia-product-float32.json"
    assert tuned.load(path) == tuned.load(str(path)) == file
    assert tuned.files() == [path]
    assert names(path.parent) == {path.name}
    found = find(1024)
    assert (found.product.block_m, found.source) == (128, str(path))


def test_the_header_says_what_was_measured(entry, made):
    content = json.loads(tuned.save(made(entry(1024))).read_text())
    assert {
        name: content[name]
        for name in ("schema_version", "engine", "kernel", "dtype", "gpu", "slug", "units")
    } == {
        "schema_version": 1,
        "engine": "nvidia",
        "kernel": "product",
        "dtype": "float32",
        "gpu": "A GPU",
        "slug": "a-gpu",
        "units": 100,
    }
    assert content["capability"] == [9, 0]
    assert content["torch"] == torch.__version__
    assert content["kernel_hash"] == tuned.kernel_hash("nvidia", "product")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", content["created"])
    assert "run" not in content["entries"][0]
    cpu = tuned.new_file(
        "cpu",
        "solve",
        "int16",
        describe(torch.device("cpu")),
        [entry(9, "solve")],
        space_hash="",
        protocol="",
        seed=0,
        budget_seconds=None,
        complete=False,
    )
    assert (cpu.triton, cpu.capability, cpu.dtype) == (None, None, "int16")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "panels"}, "kernel must be one of product, .*, but is 'panels'"),
        ({"kernel": "closure"}, "a config must have fields of closure_tile, .*, but has product"),
        ({"seed": "0"}, "breaks its schema .seed"),
        ({"budget_seconds": 0.0}, "breaks its schema .budget_seconds"),
    ],
)
def test_a_file_that_breaks_the_schema_is_not_made(entry, made, arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        made(entry(1024), **arguments)
    assert re.fullmatch(r"[^\n]*\.", str(caught.value))


def test_two_entries_with_the_same_key_are_refused(entry, made):
    with pytest.raises(
        InputError, match="no two entries may have the same sign, n, batch and objective"
    ):
        made(entry(1024), entry(1024))
    with pytest.raises(InputError, match=r"breaks its schema \(entries: "):
        made()


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


def test_the_run_of_an_entry_is_kept_through_several_saves(gpu, entry, made):
    for seed, n in ((1, 256), (2, 1024), (3, 8192)):
        path = tuned.save(made(entry(n), seed=seed))
    assert [(e.n, e.run and e.run.seed) for e in tuned.load(path).entries] == [
        (256, 1),
        (1024, 2),
        (8192, None),
    ]


def test_entries_of_the_same_run_do_not_repeat_it(gpu, entry, made):
    tuned.save(made(entry(256)))
    path = tuned.save(made(entry(1024)))
    assert [e.run for e in tuned.load(path).entries] == [None, None]
    assert "run" not in path.read_text()


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


def test_a_file_that_cannot_be_read_is_replaced_by_force(gpu, entry, made, monkeypatch):
    path = tuned.save(made(entry(256)))
    unreadable = path.stat().st_ino

    def refusing(read):
        def refuse(self, *args, **options):
            if self == path and path.stat().st_ino == unreadable:
                raise PermissionError(errno.EACCES, "Permission denied")
            return read(self, *args, **options)

        return refuse

    for name in ("read_text", "read_bytes"):
        monkeypatch.setattr(Path, name, refusing(getattr(Path, name)))
    with pytest.raises(InputError, match="Permission denied"):
        tuned.save(made(entry(1024)))
    assert tuned.save(made(entry(1024)), force=True) == path
    assert [e.n for e in tuned.load(path).entries] == [1024]


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


def _save_as_nobody(file, directory: Path, queue) -> None:
    if os.geteuid() == 0:  # whom no rights stop
        os.setgid(65534)
        os.setuid(65534)
    try:
        tuned.save(file, directory)
        queue.put("saved")
    except InputError as error:
        queue.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*")
@pytest.mark.parametrize("depth", ["the directory", "the folder of the GPU"])
def test_a_read_only_directory_is_an_error(entry, made, tmp_path_factory, depth):
    base = tmp_path_factory.mktemp("store")
    for parent in (base, *base.parents[:2]):
        parent.chmod(0o755)
    file = made(entry(1024))
    path = tuned.path_of("nvidia", "product", "float32", "a-gpu", base)
    if depth != "the directory":
        tuned.save(made(entry(256)), base)
    locked = base if depth == "the directory" else path.parent
    locked.chmod(0o555)
    before = path.read_bytes() if path.exists() else None
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    writer = context.Process(target=_save_as_nobody, args=(file, base, queue))
    writer.start()
    message = queue.get()
    writer.join()
    locked.chmod(0o755)
    assert re.fullmatch(
        r"tuned files must be written to [^\n]*a-gpu, but that failed \(Permission denied\); [^\n]*\.",
        message,
    )
    assert (path.read_bytes() if path.exists() else None) == before


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


def test_a_full_device_is_an_error(entry, made, tmp_path):
    """The operating system reports a full device: /dev/full takes no byte."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    path = tuned.path_of("nvidia", "product", "float32", "a-gpu", tmp_path)
    path.parent.mkdir()
    path.with_name(f".{path.name}.part").symlink_to("/dev/full")
    with pytest.raises(InputError, match="No space left on device"):
        tuned.save(made(entry(1024)), tmp_path)
    assert names(path.parent) == set()


def test_a_directory_below_a_file_is_an_error(entry, made, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        InputError, match=r"tuned files must be written to .*file/a-gpu, but that failed"
    ):
        tuned.save(made(entry(1024)), tmp_path / "file")


def test_remains_of_a_crash_are_ignored_and_replaced(gpu, entry, made):
    path = tuned.path_of("nvidia", "product", "float32", "a-gpu")
    path.parent.mkdir(parents=True)
    path.with_name(f".{path.name}.part").write_text("{" * 10_000)
    assert find(1024).source == "default"
    tuned.save(made(entry(1024)))
    assert names(path.parent) == {path.name}
    assert find(1024).source == str(path)


class TestFoundAgain:
    """A saved file is found, or it is not saved."""

    @pytest.mark.parametrize("kernel", CONFIGS)
    def test_files_of_every_kernel_are_found(self, gpu, entry, made, kernel):
        n, batch = {"batch": (256, 64), "exponents": (8192, 1)}.get(kernel, (1024, 1))
        path = tuned.save(made(entry(n, kernel, batch=batch), kernel=kernel))
        found = tuned.find(
            "nvidia", CUDA, torch.float32, n=n, batch=batch, product=kernel == "small_product"
        )
        assert found.source == str(path)

    def test_a_file_of_other_kernel_sources_is_not_saved(self, entry, made, directories):
        file = made(entry(1024)).model_copy(update={"kernel_hash": "0"})
        with pytest.raises(
            InputError, match="must be tuned for the present sources of its kernel"
        ) as caught:
            tuned.save(file, force=True)
        assert re.fullmatch(r"a tuned file must [^\n]*; tune again\.", str(caught.value))
        assert tuned.files() == []

    def test_a_file_is_saved_although_another_directory_comes_first(
        self, gpu, entry, made, directories, monkeypatch, tmp_path
    ):
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
        first = tuned.save(made(entry(1024, block_m=32)))
        tuned.remember(made(entry(1024, block_m=16)))
        for directory in (directories["user"], tmp_path / "not searched"):
            assert tuned.load(tuned.save(made(entry(1024)), directory)).entries == (entry(1024),)
        assert find(1024).source == str(first)

    def test_a_file_of_another_gpu_is_saved(self, entry, made, monkeypatch):
        monkeypatch.setenv("TRI_APSP_TUNED_FOR", "c-gpu")
        file = made(
            entry(1024),
            device=dataclasses.replace(GPU, name="B GPU", slug="b-gpu", capability=None),
        )
        assert tuned.load(tuned.save(file)) == file

    def test_saving_warns_of_nothing(self, entry, made, directories, monkeypatch):
        monkeypatch.setattr(tuned.compatibility, "triton_version", lambda: "9.0.0")
        with warnings.catch_warnings():
            warnings.simplefilter("error", TuningWarning)
            tuned.save(made(entry(1024)))


class TestDirectories:
    @pytest.mark.parametrize("installed", ["checkout", "read-only checkout", "wheel"])
    def test_are_the_same_however_the_package_is_installed(
        self, directories, monkeypatch, tmp_path, installed
    ):
        if installed == "wheel":
            monkeypatch.setattr(paths, "_WHEEL", directories["shipped"])
            monkeypatch.setattr(paths, "_CHECKOUT", tmp_path)
        elif installed == "read-only checkout":
            monkeypatch.setattr("os.access", lambda path, _: path != directories["shipped"])
        assert tuned.directories() == [directories[place] for place in ("user", "shipped")]
        assert tuned.save_directory() == directories["user"]
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
        assert tuned.directories() == [directories[place] for place in ("named", "user", "shipped")]
        assert tuned.save_directory() == directories["named"]

    def test_a_checkout_has_one_for_maintainers(self, directories, monkeypatch):
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
        assert tuned.checkout_directory() == directories["shipped"]

    def test_without_a_checkout_nothing_is_shipped(self, directories, monkeypatch, tmp_path):
        for name, path in (("_CHECKOUT", tmp_path / "none"), ("_WHEEL", directories["shipped"])):
            with monkeypatch.context() as changed:
                changed.setattr(paths, name, path)
                with pytest.raises(
                    InputError, match=r"shipped from a checkout, but .* is in none; [^\n]*\."
                ):
                    tuned.checkout_directory()

    def test_a_read_only_checkout_is_an_error(self, directories, monkeypatch):
        monkeypatch.setattr("os.access", lambda path, _: path != directories["shipped"])
        with pytest.raises(
            InputError, match=r"written to .*shipped, but it is read-only; change its rights\."
        ):
            tuned.checkout_directory()


@pytest.mark.usefixtures("gpu")
class TestReset:
    def save(self, entry, made, directory):
        return [
            tuned.save(made(entry(1024, kernel), kernel=kernel), directory)
            for kernel in ("product", "small_product", "solve")
        ]

    def test_reset_removes_only_files_of_the_user(self, entry, made, directories, recwarn):
        shipped = self.save(entry, made, directories["shipped"])
        other = directories["user"] / "b-gpu" / "nvidia-product-float32.json"
        own = self.save(entry, made, directories["user"])
        other.parent.mkdir()
        other.write_text("{}")
        assert find(1024).source != ", ".join(map(str, shipped))
        assert sorted(tuned.reset()) == sorted(own)
        assert find(1024).source == f"{shipped[2]}, {shipped[0]}"
        assert other.exists()
        assert tuned.reset() == []
        assert not recwarn.list

    def test_files_that_stay_in_use_are_named(self, entry, made, directories, monkeypatch):
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
        kept, own = (
            self.save(entry, made, directories["named"]),
            self.save(entry, made, directories["user"]),
        )
        with pytest.warns(TuningWarning) as caught:
            assert tuned.reset(kernel="solve") == own[2:]
        assert [str(warning.message) for warning in caught] == [
            f"reset must be told to remove tuned files outside the user's directory, but {kept[0].parent}, which is "
            f"searched first, still has 1; give directory={str(directories['named'])!r} to remove them."
        ]
        assert caught[0].filename == __file__
        assert all(path.exists() for path in kept)
        assert find(1024).source == f"{kept[2]}, {kept[0]}"
        with warnings.catch_warnings():
            warnings.simplefilter("error", TuningWarning)
            assert tuned.reset(kernel="solve", directory=directories["named"]) == kept[2:]
            assert tuned.reset(kernel="solve") == []

    def test_reset_removes_only_the_files_named(self, entry, made, directories):
        own = self.save(entry, made, directories["user"])
        assert (
            tuned.reset(dtype="int32")
            == tuned.reset(engine="portable")
            == tuned.reset(kernel="panels")
            == []
        )
        assert tuned.reset(kernel="product") == own[:1]
        assert sorted(tuned.reset(engine="nvidia", dtype="float32")) == sorted(own[1:])

    def test_reset_of_another_directory(self, entry, made, directories):
        shipped = self.save(entry, made, directories["shipped"])
        assert sorted(tuned.reset(directory=directories["shipped"])) == sorted(shipped)

    def test_reset_of_another_directory_leaves_the_save_directory_alone(
        self, entry, made, directories, recwarn
    ):
        shipped, own = (
            self.save(entry, made, directories["shipped"]),
            self.save(entry, made, directories["user"]),
        )
        assert sorted(tuned.reset(directory=directories["user"])) == sorted(own)
        assert all(path.exists() for path in shipped)
        assert not recwarn.list

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"kernel": "products"}, "reset takes one of product, .*, but got 'products'"),
            ({"dtype": "float16"}, "reset takes one of float32, .*, but got 'float16'"),
            ({"engine": "tpu"}, "reset takes one of cpu, nvidia, portable, but got 'tpu'"),
            ({"device": "tpu"}, "device must be auto, cpu, cuda or cuda:N"),
        ],
    )
    def test_unknown_names_are_refused(self, arguments, message):
        with pytest.raises(InputError, match=message):
            tuned.reset(**arguments)

    def test_reset_forgets_files_in_memory(self, entry, made):
        tuned.remember(made(entry(1024)))
        assert find(1024).source == "this process"
        tuned.reset()
        assert find(1024).source == "default"
