"""info: the machine, the versions, the engines that can run here, and tuned files."""

from __future__ import annotations

import pytest
import torch
from tuned_files import entry_of, file_of

import tri_apsp
from tri_apsp import tuned
from tri_apsp.device import Device, describe
from tri_apsp.engines import ENGINES


def test_json(cli):
    found = cli("info", "--json").json
    assert list(found) == ["machine", "versions", "engines", "tuned"]
    assert list(found["machine"]["cpu"]) == ["name", "slug", "units", "memory", "capability"]
    assert found["machine"]["cpu"]["memory"] > 2**20
    assert found["versions"]["tri_apsp"] == tri_apsp.__version__
    names = ["tri_apsp", "python", "torch", "cuda", "triton", "numba", "numpy", "scipy"]
    assert list(found["versions"]) == names
    assert found["machine"].keys() == found["engines"].keys()
    for engines in found["engines"].values():
        assert {name.split()[0] for name in (*engines["usable"], *engines["unusable"])} == set(
            ENGINES
        )
        assert all(reason.endswith(".") for reason in engines["unusable"].values())
    assert "cpu" in found["engines"]["cpu"]["usable"]


def test_tuned_files(cli, tmp_path, monkeypatch):
    """Files that are not used for one reason are one line."""
    gpu = Device("cuda", "Some GPU", "some-gpu", 9, 1 << 30, 1 << 17, (9, 0))
    for dtype in ("float32", "int32", "int64"):
        tuned.save(file_of("cpu", "solve", dtype, gpu, entry_of(5, {"cutoff": 32})), tmp_path)
    (tmp_path / "some-gpu" / "product.json").write_text("{}")
    monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(tmp_path))
    found = cli("info", "--json").json["tuned"]
    assert found["directories"][0] == str(tmp_path)
    assert len([path for path in found["files"] if path.startswith(str(tmp_path))]) == 4
    out = cli("info").out
    assert f"save to         {tmp_path}, in {describe(torch.device('cpu')).slug}/" in out
    assert out.count("  some-gpu/: 3 files; not used here: ") == 1
    assert "  some-gpu/: product; not used: " in out


def test_text(cli, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    outcome = cli("info")
    assert (outcome.status, outcome.err) == (0, "")
    for part in ("cores", "numba", "engines on cpu", "the portable engine needs", "search order"):
        assert part in outcome.out


@pytest.mark.gpu
def test_gpu(cli):
    found = cli("info", "--json").json
    assert found["machine"]["cuda:0"]["capability"]
    assert "portable" in found["engines"]["cuda:0"]["usable"]
