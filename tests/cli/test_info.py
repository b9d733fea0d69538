"""info: the machine, the versions, the engines that can run here, and tuned files."""

from __future__ import annotations

import json

import pytest
import torch

import tri_apsp
from tri_apsp import tuned
from tri_apsp.device import Device, describe
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
    times = dict.fromkeys(("p20_ms", "p50_ms", "p80_ms", "default_ms", "speedup"), 1.0)
    entry = Entry(sign="any", n=5, config={"cutoff": 32}, **times, evaluated=1)
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
