"""Rows of `bench --json` on the page of a machine."""

import json
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from reports.__main__ import main
from reports.studies import rates
from tri_apsp.errors import InputError


def run_of(rate: float, n: int = 512) -> str:
    row = {"operation": "auto", "dtype": "float32", "sign": "nonnegative", "n": n, "batch": 1}
    times = {"p20_seconds": 1.0, "p50_seconds": 1.0, "p80_seconds": 1.0, "ops_per_second": rate}
    machine = {"cpu": {"name": "Some CPU", "slug": "some-cpu-2-cores"}}
    rows = [row | times | {"engine": "cpu", "bound_fraction": None, "ratio": 2.0}]
    return json.dumps({"machine": machine, "command": "python -m tri_apsp bench", "rows": rows})


def test_the_newest_row_of_a_call_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_REPORTS", tmp_path)
    given = tmp_path / "run.json"
    for rate, n in ((1e9, 512), (2e9, 1024), (3e9, 512)):
        given.write_text(run_of(rate, n), encoding="utf-8")
        rates._add(given)
    page = tmp_path / "some-cpu-2-cores" / "bench.md"
    written = rates.blocks()[page]
    assert "| solve, float32 | 3 G/s | 2 G/s |" in written["result"]
    assert "    python -m tri_apsp bench\n" in written["details"] + "\n"


@pytest.mark.parametrize("text", ["", "[]", "{}", "none"])
def test_another_file_is_refused(text: str, tmp_path: Path) -> None:
    given = tmp_path / "run.json"
    given.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="--add must name a file of python -m tri_apsp bench"):
        rates._add(given)
    assert main(["rates", "--add", str(tmp_path / "absent")]) == 2
