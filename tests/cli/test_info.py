"""info: the machine, the versions, the engines that can run here, and tuned files."""

from __future__ import annotations

import importlib.metadata
import json

import pytest
import torch

import tri_apsp
from tri_apsp import tuned
from tri_apsp.cli import info
from tri_apsp.device import Device, describe, triton_version
from tri_apsp.engines import ENGINES
from tri_apsp.tuned import store
from tri_apsp.tuned.schema import Entry


def test_json(cli):
    found = cli("info", "--json").json
    assert list(found) == ["machine", "versions", "engines", "tuned"]
    assert list(found["machine"]["cpu"]) == ["name", "slug", "units", "memory", "capability"]
    assert found["machine"]["cpu"]["memory"] > 2**20
    assert found["versions"]["tri_apsp"] == tri_apsp.__version__
    assert list(found["versions"]) == [
        "tri_apsp",
        "python",
        "torch",
        "cuda",
        "triton",
        "numba",
        "numpy",
        "scipy",
    ]
    assert found["machine"].keys() == found["engines"].keys()
    for engines in found["engines"].values():
        assert {name.split()[0] for name in (*engines["usable"], *engines["unusable"])} == set(
            ENGINES
        )
        assert all(reason.endswith(".") for reason in engines["unusable"].values())
    assert "cpu" in found["engines"]["cpu"]["usable"]


def test_a_dtype_that_an_engine_does_not_support(monkeypatch):
    a100 = Device("cuda", "NVIDIA A100", "nvidia-a100", 108, 40 << 30, 163 << 10, (8, 0))
    monkeypatch.setattr("tri_apsp.engines.describe", lambda device: a100)
    found = info._engines(torch.device("cuda"))
    assert {"nvidia", "portable"} <= set(found["usable"])
    assert "9.0 for int16, but NVIDIA A100 has 8.0" in found["unusable"]["nvidia int16"]
    assert [name for name in found["unusable"] if name.startswith("nvidia")] == ["nvidia int16"]


def test_tuned_files(cli, tmp_path, monkeypatch):
    file = tmp_path / "some-gpu" / "product.json"
    file.parent.mkdir()
    file.write_text(json.dumps({}))
    monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(tmp_path))
    found = cli("info", "--json").json["tuned"]
    assert found["directories"][0] == str(tmp_path)
    assert found["files"][0] == str(file)
    out = cli("info").out
    assert f"save to         {tmp_path}, in {describe(torch.device('cpu')).slug}/" in out
    assert f"  some-gpu/: {file.stem}; not used: " in out


def test_a_thing_is_said_once(cli, tmp_path, monkeypatch):
    """Files that are not used for one reason are one line; a directory, a version and a device are
    named once.
    """
    gpu = Device("cuda", "Some GPU", "some-gpu", 9, 1 << 30, 1 << 17, (9, 0))
    entry = Entry(
        sign="any",
        n=5,
        config={"cutoff": 32},
        p20_ms=1.0,
        p50_ms=1.0,
        p80_ms=1.0,
        default_ms=1.0,
        speedup=1.0,
        evaluated=1,
    )
    header = {"space_hash": "", "protocol": "", "seed": 0, "budget_seconds": None, "complete": True}
    for dtype in ("float32", "int32", "int64"):
        tuned.save(tuned.new_file("cpu", "solve", dtype, gpu, [entry], **header), tmp_path)
    monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr(store, "_CHECKOUT", tmp_path / "none")
    out = cli("info").out
    assert out.count("not used here") == 1
    assert "  some-gpu/: 3 files; not used here: " in out
    assert out.count(str(tmp_path)) == 2  # saved to, and searched in
    for text in (describe(torch.device("cpu")).name + ", ", "torch 2", "versions"):
        assert out.count(text) == 1


def test_without_triton(cli, monkeypatch):
    def version(name):
        if "triton" in name:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed(name)

    installed = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr("tri_apsp.engines.has_triton", lambda: False)
    monkeypatch.setattr(
        "tri_apsp.console.machine.triton_version", triton_version.__wrapped__
    )  # which keeps no answer
    found = cli("info", "--json").json
    assert found["versions"]["triton"] is None
    assert (
        "needs a GPU" in found["engines"]["cpu"]["unusable"]["portable"]
    )  # no remedy that would not help


def test_text(cli, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    outcome = cli("info")
    assert (outcome.status, outcome.err) == (0, "")
    for part in (
        "cores",
        "torch",
        "numba",
        "engines on cpu",
        "the portable engine needs",
        "save to",
        "search order",
    ):
        assert part in outcome.out


@pytest.mark.gpu
def test_gpu(cli):
    found = cli("info", "--json").json
    assert found["machine"]["cuda:0"]["capability"]
    assert "portable" in found["engines"]["cuda:0"]["usable"]
