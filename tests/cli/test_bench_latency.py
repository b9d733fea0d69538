"""bench --latency: first calls in new processes, and small calls in units of torch's."""

import pytest

from tri_apsp.bench import latency
from tri_apsp.errors import EngineError

pytestmark = pytest.mark.tools


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "FIRST_CALLS", ("dense",))
    monkeypatch.setattr(latency, "OF_NETWORKX", ())
    monkeypatch.setattr(latency, "_ROUNDS", 1)
    monkeypatch.setattr(latency, "_CALLS", 3)
    monkeypatch.setattr(latency, "_ROADS", 300)


def test_json(quick, cli):
    found = cli("bench", "--latency", "--device", "cpu", "--json").json
    assert list(found) == ["machine", "versions", "command", "first_calls", "small_calls"]
    (first,) = found["first_calls"]
    assert first["name"] == "dense"
    assert first["functions"] > 0
    assert first["kernels"] == 0  # which Triton compiles
    assert first["process_seconds"] > first["seconds"] > 0
    small = {call["name"]: call for call in found["small_calls"]}
    assert all(call["units"] > 0 for name, call in small.items() if "torch" not in name)


@pytest.mark.slow
def test_tables(quick, cli):
    lines = cli("bench", "--latency", "--device", "cpu").out.splitlines()
    assert latency.FIRST_TITLES in lines
    assert lines.index(latency.SMALL_TITLES) == lines.index(latency.FIRST_TITLES) + 3
    assert "command   python -m tri_apsp bench --latency --device cpu" in lines
    assert lines[-1].startswith("one row of 300 crossings")


def test_a_first_call_that_fails(monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    import torch

    monkeypatch.setattr(latency, "FIRST_CALLS", ("no such call",))
    with pytest.raises(EngineError, match="first call of no such call must run to its end"):
        list(latency.first_calls(torch.device("cpu")))
    assert "KeyError" in capfd.readouterr().err
