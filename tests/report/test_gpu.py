"""Studies on a GPU, from end to end on a small graph and within a small budget."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("triton")

from tri_apsp.report import exponents, roofline
from tri_apsp.report.__main__ import main
from tri_apsp.report.counters import NotCountedError

pytestmark = pytest.mark.gpu


def run(name: str, folder: Path, budget: int = 60) -> tuple[str, list[dict[str, str]]]:
    """Run a study, and return its page and its rows."""
    words = [
        "--device",
        "cuda",
        "--n",
        "256",
        "--dtype",
        "float32",
        "--budget",
        str(budget),
        "--commit",
        "abc",
    ]
    assert main([name, *words, "--out", str(folder)]) == 0
    (page,) = folder.glob(f"*/{name}.md")
    with page.with_suffix(".csv").open(encoding="utf-8") as rows:
        return page.read_text(encoding="utf-8"), list(csv.DictReader(rows))


@pytest.mark.parametrize("name", ["concurrency", "squaring", "implementations"])
def test_calls(name, tmp_path):
    page, rows = run(name, tmp_path)
    assert {row["outcome"] for row in rows} == {"correct"}
    assert page.index(f"![{name}]") < page.index("## Times")
    assert len(run(name, tmp_path)[1]) >= len(rows)


def test_roofline(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise NotCountedError("this is a test")

    monkeypatch.setattr(roofline, "counted_traffic", refuse)
    monkeypatch.setattr(roofline, "_COPIED_BYTES", 1 << 28)
    page, rows = run("roofline", tmp_path)
    assert {row["outcome"] for row in rows} == {"correct"}
    assert {"copy", "arithmetic", "auto"} <= {row["implementation"] for row in rows}
    assert "are computed, not counted, because this is a test" in " ".join(page.split())


def test_energy(tmp_path):
    pytest.importorskip("pynvml")
    page, rows = run("energy", tmp_path, budget=15)
    assert rows
    assert all(float(row["joules"]) > 0 for row in rows if row["outcome"] == "correct")
    assert page.startswith("# How much energy does it take? ")


def test_exponents(tmp_path, monkeypatch):
    """Solves of 2048 vertices take the place of larger ones, so that products by exponents are
    tried in them.
    """
    graphs = (
        "50% of the edges, weights 1 to 4",
        "64 edges per vertex, weights 1",
        "grid, weights 1 to 16",
    )
    monkeypatch.setattr(exponents, "_GRAPHS", {name: exponents._GRAPHS[name] for name in graphs})
    monkeypatch.setattr(exponents, "_SOLVED", 2048)
    monkeypatch.setattr("tri_apsp.dense.exponents._FEWEST_VERTICES", 2048)
    monkeypatch.setattr("tri_apsp.dense.exponents._LEAST", 256)
    words = [
        "--device",
        "cuda",
        "--n",
        "2048",
        "--dtype",
        "int16",
        "--budget",
        "60",
        "--commit",
        "abc",
        "--out",
        str(tmp_path),
    ]
    assert main(["exponents", *words]) == 0
    (page,) = tmp_path.glob("*/exponents.md")
    with page.with_suffix(".csv").open(encoding="utf-8") as rows:
        found = list(csv.DictReader(rows))
    assert {row["outcome"] for row in found} == {"correct"}
    shares = {row["graph"]: row["uncertain"] for row in found if row["uncertain"]}
    assert float(shares["50% of the edges, weights 1 to 4"]) == 0
    assert set(shares) == set(graphs[:2])
    assert page.read_text(encoding="utf-8").count("| 50% of the edges") == 2  # and the methods
