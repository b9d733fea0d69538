"""bench: the rows it promises, and none for a wrong result."""

from __future__ import annotations

import json
import math
import shlex

import pytest
import torch

from tri_apsp.cli import measure

ROW = [
    *("operation", "dtype", "n", "engine", "p20_seconds", "p50_seconds", "p80_seconds", "ops_per_second"),
    *("scipy_seconds", "ratio"),
]


def test_json(cli):
    words = ["bench", "--device", "cpu", "--n", 64, 80, "--dtype", "float32", "int16", "--repeat", 3, "--scipy-up-to", 64]
    found = cli(*words, "--json").json
    assert list(found) == ["machine", "versions", "command", "rows"]
    assert list(found["machine"]) == ["cpu"]
    assert found["command"].startswith(f"python -m tri_apsp {shlex.join(map(str, ['bench', *words[3:6]]))}")
    operations = ("min_plus", "kleene", "floyd_warshall")
    expected = [(name, dtype, n) for dtype in ("float32", "int16") for n in (64, 80) for name in operations]
    assert [(row["operation"], row["dtype"], row["n"]) for row in found["rows"]] == expected
    for row in found["rows"]:
        assert list(row) == ROW
        assert row["engine"] == "cpu"
        assert 0 < row["p20_seconds"] <= row["p50_seconds"] <= row["p80_seconds"]
        assert math.isclose(row["ops_per_second"], row["n"] ** 3 / row["p50_seconds"])
        if row["n"] == 64:
            assert math.isclose(row["ratio"], row["scipy_seconds"] / row["p50_seconds"])
        else:
            assert (row["ratio"], row["scipy_seconds"]) == (None, None)


def test_table(cli):
    outcome = cli("bench", "--device", "cpu", "--n", 32, "--method", "squaring", "iterative", "--repeat", 3)
    assert (outcome.status, outcome.err) == (0, "")
    header, table = outcome.out.split("\n\n")
    for part in ("cpu ", "versions ", "torch", "command ", "scipy.sparse.csgraph.floyd_warshall"):
        assert part in header
    lines = table.splitlines()
    assert [line.split()[0] for line in lines] == ["operation", "min_plus", "squaring", "iterative"]
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize("name", ["min_plus", "shortest_paths"])
def test_a_wrong_result_has_no_time(cli, monkeypatch, name):
    def wrong(weights, *args, **named):
        return right(torch.zeros_like(weights), *args, **named)

    right = getattr(measure, name)
    monkeypatch.setattr(measure, name, wrong)
    with pytest.raises(AssertionError, match="wrong"):
        cli("bench", "--device", "cpu", "--n", 16, "--json")


def test_methods_must_agree_without_scipy(cli):
    outcome = cli("bench", "--device", "cpu", "--n", 40, "--repeat", 3, "--scipy-up-to", 0, "--json")
    assert [row["ratio"] for row in json.loads(outcome.out)["rows"]] == [None] * 3
