"""A frozen directory: one set of files for every rank and run."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from tuned.conftest import GPU

from tri_apsp import InputError, tuned
from tri_apsp.__main__ import main
from tri_apsp.tuned import pending
from tri_apsp.tuned.store import require_writable

CUDA = torch.device("cuda", 0)

pytestmark = [pytest.mark.usefixtures("gpu"), pytest.mark.filterwarnings("error::tri_apsp.TuningWarning")]


def find(n=1024):
    found = tuned.find("nvidia", CUDA, torch.float32, n=n)
    pending.issue()
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
    tuned.save(made(entry(1024, block_m=32), entry(4096, block_m=32), seed=1), directories["shipped"])
    tuned.save(made(entry(1024, block_m=128), seed=2), directories["user"])
    tuned.save(made(entry(1024, "closure"), kernel="closure"), directories["shipped"])
    before = {n: find(n) for n in (1024, 4096)}
    paths = frozen()
    assert paths == [directories["named"] / "a-gpu" / f"nvidia-{kernel}-float32.json" for kernel in ("product", "closure")]
    assert {n: dataclasses.replace(find(n), source="") for n in before} == {
        n: dataclasses.replace(config, source="") for n, config in before.items()
    }
    assert find(1024).source == ", ".join(map(str, paths))
    assert [(e.n, e.config["product"]["block_m"]) for e in tuned.load(paths[0]).entries] == [(1024, 128), (4096, 32)]
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
    tuned.save(made(entry(1024), device=dataclasses.replace(GPU, slug="c-gpu", capability=(10, 0))), directories["user"])
    assert frozen() == []
    assert find().source == f"{directories['named'] / 'b-gpu' / 'nvidia-product-float32.json'}, tuned for B GPU"
    assert find().product.block_m == 128
    assert not (directories["named"] / "c-gpu").exists()


def test_files_that_cannot_be_used_are_left_out(entry, made, directories, frozen):
    path = tuned.save(made(entry(1024)), directories["user"])
    path.write_text("{")
    assert frozen() == []


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
    with pytest.raises(InputError, match=r"^freeze must write to an empty|^tuned files must be written to .*File exists"):
        tuned.freeze(tmp_path / name)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes"]


def test_nothing_is_saved_there(entry, made, directories, frozen):
    frozen()
    for write in (lambda: tuned.save(made(entry(1024)), force=True), lambda: require_writable("a-gpu")):
        with pytest.raises(
            InputError, match=r"^tuned files must not change in a frozen directory, which .*named is; [^\n]*\.$"
        ):
            write()
    assert [path.name for path in directories["named"].iterdir() if path.name != ".lock"] == ["FROZEN"]


def test_a_miss_there_is_silent(frozen):
    frozen()
    tuned.issue_warnings(tuned.call_of("nvidia", CUDA, torch.float32, n=1024), find())


def test_info_shows_the_only_directory(directories, frozen, capsys):
    frozen()
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["tuned"]
    assert found["directories"] == [str(directories["named"])]
