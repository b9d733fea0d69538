"""bench: its arguments, its table and its JSON."""

from __future__ import annotations

import dataclasses
import math
import shlex

import pytest
import torch

from tri_apsp.bench import measure
from tri_apsp.bench.measure import bound
from tri_apsp.cli import bench
from tri_apsp.device import Device
from tri_apsp.semirings import SIGNS

pytestmark = pytest.mark.tools

ROW = [
    "operation",
    "dtype",
    "sign",
    "n",
    "batch",
    "engine",
    "p20_seconds",
    "p50_seconds",
    "p80_seconds",
    "ops_per_second",
    "bound_fraction",
    "scipy_seconds",
    "ratio",
]
H200 = Device("cuda", "NVIDIA H200", "nvidia-h200", 132, 141 << 30, capability=(9, 0))
BENCH = ("bench", "--device", "cpu", "--repeat", 3)


def test_json(cli):
    words = ("--n", 16, 20, "--dtype", "float32", "int16", "--scipy-up-to", 16)
    found = cli(*BENCH, *words, "--json").json
    assert list(found) == ["machine", "versions", "command", "rows"]
    assert list(found["machine"]) == ["cpu"]
    assert found["command"].startswith("python -m tri_apsp bench --n 16 20 --batch 1 ")
    operations = ("min_plus", "auto", "kleene", "floyd_warshall")
    expected = [
        (name, dtype, n) for dtype in ("float32", "int16") for n in (16, 20) for name in operations
    ]
    assert [(row["operation"], row["dtype"], row["n"]) for row in found["rows"]] == expected
    for row in found["rows"]:
        assert list(row) == ROW
        assert (row["engine"], row["sign"], row["batch"]) == ("cpu", "nonnegative", 1)
        assert row["bound_fraction"] is None
        assert 0 < row["p20_seconds"] <= row["p50_seconds"] <= row["p80_seconds"]
        assert math.isclose(row["ops_per_second"], row["n"] ** 3 / row["p50_seconds"])
        if row["n"] == 16:
            assert math.isclose(row["ratio"], row["scipy_seconds"] / row["p50_seconds"])
        else:
            assert (row["ratio"], row["scipy_seconds"]) == (None, None)


def test_the_command_repeats_the_run(cli):
    found = cli(*BENCH, "--n", 8, "--scipy-up-to", 0, "--json").json
    again = cli(*shlex.split(found["command"])[3:], "--json").json
    assert again["command"] == found["command"]
    assert len(again["rows"]) == len(found["rows"])


@pytest.mark.slow
def test_table(cli):
    words = (
        "--n",
        32,
        9,
        "--batch",
        1,
        40,
        "--sign",
        *SIGNS,
        "--method",
        "squaring",
        "rank_one_updates",
    )
    outcome = cli(*BENCH, *words)
    assert (outcome.status, outcome.err) == (0, "")
    header, table = outcome.out.split("\n\n")
    for part in ("cpu ", "versions ", "torch", "command ", "bound ", "scipy.sparse"):
        assert part in header
    lines = table.splitlines()
    operations = ["min_plus", "squaring", "rank_one_updates"] * 4
    assert [line.split()[0] for line in lines] == ["operation", *operations]
    assert [line.split()[3:5] for line in lines[1::3]] == [["32", "1"], ["9", "40"]] * 2
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 140


def test_reachability_alone(cli):
    """One row for each size and batch, whatever the dtypes and signs; neither the product nor SciPy
    runs.
    """
    words = ("--n", 5, 150, "--batch", 3, 1, "--dtype", "float32", "int16", "--sign", *SIGNS)
    rows = cli(*BENCH, *words, "--method", "reachability", "--json").json["rows"]
    found = [[row[name] for name in ROW[:6] if name != "sign"] for row in rows]
    assert found == [["reachability", "bool", n, batch, "cpu"] for n, batch in ((5, 3), (150, 1))]
    for row in rows:
        operations = row["batch"] * row["n"] ** 3
        assert math.isclose(row["ops_per_second"], operations / row["p50_seconds"])
        assert {row[name] for name in ("scipy_seconds", "ratio")} == {None}


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (
            "--n 4 5 --batch 2 3 4",
            2,
            "--batch must give one count, or one for each of the 2 sizes of --n, but gives 3",
        ),
        ("--n 4 1 --sign any", 2, "--n must be at least 2 for --sign any"),
        ("--system all --n 16", 1, "system harish_narayanan needs a GPU, but the device is "),
    ],
)
def test_arguments_that_do_not_fit(cli, words, status, message):
    outcome = cli(*BENCH, *words.split())
    assert (outcome.status, outcome.out) == (status, "")
    assert outcome.err.startswith(f"error: {message}")
    assert outcome.err.count("\n") == 1


def test_memory_is_checked_before_the_work(cli, monkeypatch):
    """A matrix of int16 takes 8 bytes per value in all, SciPy's matrices 38, and a closure 2.4."""
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 20 * 1000**2)
    monkeypatch.setattr("tri_apsp.cli.bench.measure", lambda *args, **kwargs: iter(()))
    words = (*BENCH, "--dtype", "int16", "--n")
    assert cli(*words, 1000, "--scipy-up-to", 999).status == 0
    assert cli(*words, 2800, "--method", "reachability").status == 0
    for n, part in (
        (1000, "SciPy's solve of int16 nonnegative, n = 1000 must fit the memory of its device"),
        (2800, "a problem of 2800 vertices in int16 (4 matrices) must fit the memory"),
    ):
        outcome = cli(*words, n)
        assert (outcome.status, outcome.out) == (1, "")
        assert outcome.err.startswith(f"error: {part}")


def test_fraction_of_the_bound(cli, monkeypatch):
    """On a CPU described as an H200."""
    gpu = dataclasses.replace(H200, clock_hz=1.98e9)
    for module in (bench, measure):
        monkeypatch.setattr(module, "describe", lambda device: gpu)
    command = (*BENCH, "--n", 20, "--sign", *SIGNS, "--method", "kleene", "--scipy-up-to", 0)
    for row in cli(*command, "--json").json["rows"]:
        limit = bound(gpu, torch.float32, row["sign"] == "nonnegative")
        assert math.isclose(row["bound_fraction"], row["ops_per_second"] / limit)
    header, table = cli(*command).out.split("\n\n")
    assert "at 1.98 GHz: float32 64, float64 32, int16 128, int32 64, int64 16" in header
    assert all("%" in line for line in table.splitlines()[1:])


@pytest.mark.gpu
def test_gpu(cli):
    words = ("--n", 300, 40, "--batch", 1, 5, "--sign", *SIGNS, "--dtype", "int64")
    rows = cli("bench", "--device", "cuda", *words, "--repeat", 3, "--json").json["rows"]
    assert len(rows) == 16
    for row in rows:
        assert row["bound_fraction"] is None or 0 < row["bound_fraction"] < 1
