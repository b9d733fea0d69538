"""Entries for energy beside those for time: which one a lookup takes, and that neither replaces the
other.
"""

from __future__ import annotations

import json

import pytest
import torch

from tri_apsp import tuned
from tri_apsp.errors import InputError
from tri_apsp.tuned import misses
from tri_apsp.tuned.policy import POLICIES

CUDA = torch.device("cuda", 0)


def block_m(n: int = 1024, **arguments: object) -> int:
    return tuned.find("nvidia", CUDA, torch.float32, n=n, product=True, **arguments).product.block_m


def test_solves_take_the_entries_for_the_objective_that_is_asked_for(gpu, entry, made, monkeypatch):
    tuned.save(made(entry(1024, block_m=32), entry(1024, objective="energy", block_m=128)))
    for value, found in ((None, 32), ("", 32), ("time", 32), ("energy", 128), ("time", 32)):
        monkeypatch.delenv("TRI_APSP_OBJECTIVE", raising=False)
        if value is not None:
            monkeypatch.setenv("TRI_APSP_OBJECTIVE", value)
        assert block_m() == found, value
    assert (block_m(objective="energy"), block_m(objective="time")) == (128, 32)


def test_an_entry_for_time_serves_where_there_is_none_for_energy(gpu, entry, made, monkeypatch):
    tuned.save(made(entry(1024, block_m=32), entry(4096, objective="energy", block_m=128)))
    monkeypatch.setenv("TRI_APSP_OBJECTIVE", "energy")
    assert [block_m(n) for n in (512, 1024, 2047, 2048, 4096)] == [32, 32, 32, 128, 128]


def test_an_entry_for_energy_never_serves_for_time(gpu, entry, made):
    tuned.save(made(entry(1024, objective="energy", block_m=32)))
    found = tuned.find("nvidia", CUDA, torch.float32, n=1024, product=True)
    assert found.source == "default"


def test_the_objective_comes_before_the_sign_and_the_size(gpu, entry, made):
    tuned.save(
        made(
            entry(1024, sign="nonnegative", block_m=32),
            entry(2000, objective="energy", block_m=128),
        )
    )
    assert block_m(objective="energy", nonnegative=True) == 128


def test_another_value_is_an_error(gpu, monkeypatch):
    monkeypatch.setenv("TRI_APSP_OBJECTIVE", "power")
    with pytest.raises(
        InputError,
        match="TRI_APSP_OBJECTIVE must be one of time, energy, but is 'power'; correct or unset it",
    ):
        block_m()


def test_both_live_in_one_file_and_each_replaces_its_own(gpu, entry, made):
    tuned.save(made(entry(1024, block_m=32), entry(1024, objective="energy", block_m=64)))
    path = tuned.save(made(entry(1024, objective="energy", block_m=128)))
    file = tuned.load(path)
    assert [(each.objective, each.config["product"]["block_m"]) for each in file.entries] == [
        ("energy", 128),
        ("time", 32),
    ]
    assert file.held == "n = 1024; for energy n = 1024"
    assert [each.gain for each in file.entries] == [1.5, 2.0]
    tuned.export_file(path.parent / "all", "auto", path.parents[1])
    assert [
        each.key
        for each in tuned.load(
            tuned.import_file(path.parent / "all", path.parent / "there")[0]
        ).entries
    ] == [
        ("any", 1, 1024, "energy"),
        ("any", 1, 1024, "time"),
    ]


def test_files_have_an_objective_only_for_energy(gpu, entry, made):
    """Files from before there were objectives are of time, and stay as they are."""
    path = tuned.save(made(entry(1024, objective="energy"), entry(1024)))
    energy, time = json.loads(path.read_text())["entries"]
    assert (energy["objective"], energy["p50_joules"], energy["default_joules"]) == (
        "energy",
        14.0,
        21.0,
    )
    assert not {name for name in time if "joules" in name or name in ("objective", "run")}
    assert tuned.load(path).entries[1].objective == "time"


@pytest.mark.parametrize(
    ("objective", "change"), [("energy", {"p50_joules": None}), ("time", {"default_joules": 1.0})]
)
def test_joules_belong_to_energy(gpu, entry, made, objective, change):
    path = tuned.save(made(entry(1024, objective=objective)))
    content = json.loads(path.read_text())
    content["entries"][0].update(change)
    path.write_text(json.dumps(content))
    with pytest.raises(
        InputError, match="an entry must have all joules if its objective is energy, else none"
    ):
        tuned.load(path)


def test_a_miss_names_the_objective(gpu, monkeypatch):
    monkeypatch.setenv("TRI_APSP_TUNE", POLICIES[-1])
    monkeypatch.setenv("TRI_APSP_OBJECTIVE", "energy")
    with pytest.raises(
        InputError, match=r"python -m tri_apsp\.tune .* --objective energy, or unset"
    ):
        misses.config_for_call(tuned.call_of("nvidia", CUDA, torch.float32, n=1024))


def test_a_miss_on_a_cpu_names_no_objective_that_the_tuner_refuses(monkeypatch):
    monkeypatch.setenv("TRI_APSP_OBJECTIVE", "energy")
    command = tuned.call_of("cpu", torch.device("cpu"), torch.float32, n=1024).command()
    assert command.startswith("python -m tri_apsp.tune --device cpu ")
    assert "--objective" not in command
