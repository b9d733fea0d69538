"""info: the machine, the versions, the engines that can run here, and tuned files."""

from __future__ import annotations

import importlib.metadata
import json

import pytest
import torch

import tri_apsp
from tri_apsp.cli import info
from tri_apsp.device import Device, triton_version
from tri_apsp.engines import ENGINES


def test_json(cli):
    found = cli("info", "--json").json
    assert list(found) == ["machine", "versions", "engines", "tuned"]
    assert list(found["machine"]["cpu"]) == ["name", "slug", "units", "memory", "capability"]
    assert found["machine"]["cpu"]["memory"] > 2**20
    assert found["versions"]["tri_apsp"] == tri_apsp.__version__
    assert list(found["versions"]) == ["tri_apsp", "python", "torch", "cuda", "triton", "numba", "numpy", "scipy"]
    assert found["machine"].keys() == found["engines"].keys()
    for engines in found["engines"].values():
        assert {name.split()[0] for name in (*engines["usable"], *engines["unusable"])} == set(ENGINES)
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
    tuned = cli("info", "--json").json["tuned"]
    assert tuned["directories"][0] == str(tmp_path)
    assert tuned["files"][0] == str(file)
    assert str(file) in cli("info").out


def test_without_triton(cli, monkeypatch):
    def version(name):
        if "triton" in name:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed(name)

    installed = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr("tri_apsp.engines.has_triton", lambda: False)
    monkeypatch.setattr("tri_apsp.console.machine.triton_version", triton_version.__wrapped__)  # which keeps no answer
    found = cli("info", "--json").json
    assert found["versions"]["triton"] is None
    assert "needs a GPU" in found["engines"]["cpu"]["unusable"]["portable"]  # no remedy that would not help


def test_text(cli, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    outcome = cli("info")
    assert (outcome.status, outcome.err) == (0, "")
    for part in ("cores", "slug", "torch", "numba", "engines on cpu", "the portable engine needs", "searched in"):
        assert part in outcome.out


@pytest.mark.gpu
def test_gpu(cli):
    found = cli("info", "--json").json
    assert found["machine"]["cuda:0"]["capability"]
    assert "portable" in found["engines"]["cuda:0"]["usable"]
