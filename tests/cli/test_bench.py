"""bench: its arguments, its table, its JSON, and the file of rows."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex

import pytest
import torch

from tri_apsp.bench import measure
from tri_apsp.bench.bounds import bound
from tri_apsp.bench.cases import Case
from tri_apsp.cli import bench
from tri_apsp.device import Device
from tri_apsp.semirings import SIGNS

ROW = [
    *(
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
    ),
    *("bound_fraction", "scipy_seconds", "ratio"),
]
H200 = Device(
    kind="cuda",
    name="NVIDIA H200",
    slug="nvidia-h200",
    units=132,
    memory=141 << 30,
    capability=(9, 0),
)


def test_rows_are_appended_as_they_come(cli, tmp_path, monkeypatch):
    """The file keeps the rows of an earlier run, and those measured before an interruption."""
    file = tmp_path / "rows.jsonl"
    words = (
        "bench",
        "--device",
        "cpu",
        "--n",
        8,
        "--method",
        "kleene",
        "--repeat",
        3,
        "--scipy-up-to",
        0,
        "--rows",
        file,
    )
    assert cli(*words, "--json").json["rows"] == [
        json.loads(line) for line in file.read_text().splitlines()
    ]

    def interrupted(*args, **kwargs):
        yield from list(rows(*args, **kwargs))[:1]
        raise KeyboardInterrupt

    rows = bench.measure
    monkeypatch.setattr(bench, "measure", interrupted)
    assert cli(*words).status == 130
    assert [json.loads(line)["operation"] for line in file.read_text().splitlines()] == [
        "min_plus",
        "kleene",
        "min_plus",
    ]


def test_a_file_of_rows_that_cannot_be_written(cli, tmp_path):
    outcome = cli("bench", "--device", "cpu", "--n", 8, "--rows", tmp_path / "none" / "rows.jsonl")
    assert outcome.status == 2
    assert outcome.err.startswith("error: --rows must name a file that can be written, but ")


def test_json(cli):
    words = [
        "bench",
        "--device",
        "cpu",
        "--n",
        64,
        80,
        "--dtype",
        "float32",
        "int16",
        "--repeat",
        3,
        "--scipy-up-to",
        64,
    ]
    found = cli(*words, "--json").json
    assert list(found) == ["machine", "versions", "command", "rows"]
    assert list(found["machine"]) == ["cpu"]
    assert found["command"].startswith(
        f"python -m tri_apsp {shlex.join(map(str, ['bench', *words[3:6]]))} --batch 1 "
    )
    operations = ("min_plus", "auto", "kleene", "floyd_warshall")
    expected = [
        (name, dtype, n) for dtype in ("float32", "int16") for n in (64, 80) for name in operations
    ]
    assert [(row["operation"], row["dtype"], row["n"]) for row in found["rows"]] == expected
    for row in found["rows"]:
        assert list(row) == ROW
        assert (row["engine"], row["sign"], row["batch"], row["bound_fraction"]) == (
            "cpu",
            "nonnegative",
            1,
            None,
        )
        assert 0 < row["p20_seconds"] <= row["p50_seconds"] <= row["p80_seconds"]
        assert math.isclose(row["ops_per_second"], row["n"] ** 3 / row["p50_seconds"])
        if row["n"] == 64:
            assert math.isclose(row["ratio"], row["scipy_seconds"] / row["p50_seconds"])
        else:
            assert (row["ratio"], row["scipy_seconds"]) == (None, None)


def test_the_command_repeats_the_run(cli):
    found = cli(
        "bench", "--device", "cpu", "--n", 8, "--repeat", 3, "--scipy-up-to", 0, "--json"
    ).json
    again = cli(*shlex.split(found["command"])[3:], "--json").json
    assert again["command"] == found["command"]
    assert len(again["rows"]) == len(found["rows"])


def test_table(cli):
    words = ("--n", 32, 9, "--batch", 1, 40, "--sign", *SIGNS)
    outcome = cli(
        "bench", "--device", "cpu", *words, "--method", "squaring", "iterative", "--repeat", 3
    )
    assert (outcome.status, outcome.err) == (0, "")
    header, table = outcome.out.split("\n\n")
    for part in (
        "cpu ",
        "versions ",
        "torch",
        "command ",
        "bound ",
        "scipy.sparse.csgraph.floyd_warshall",
    ):
        assert part in header
    lines = table.splitlines()
    assert [line.split()[0] for line in lines] == [
        "operation",
        *(["min_plus", "squaring", "iterative"] * 4),
    ]
    assert [line.split()[3:5] for line in lines[1::3]] == [["32", "1"], ["9", "40"]] * 2
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 140


@pytest.mark.parametrize("scipy_up_to", [0, 64])
def test_batches_and_signs(cli, scipy_up_to):
    words = ("--n", 5, 33, "--batch", 70, 2, "--sign", *SIGNS, "--dtype", "int16", "float64")
    rows = cli(
        "bench", "--device", "cpu", *words, "--repeat", 3, "--scipy-up-to", scipy_up_to, "--json"
    ).json["rows"]
    found = [(row["dtype"], row["sign"], row["n"], row["batch"]) for row in rows[::4]]
    assert found == [
        (d, s, n, b) for d in ("int16", "float64") for s in SIGNS for n, b in ((5, 70), (33, 2))
    ]
    for row in rows:
        assert math.isclose(
            row["ops_per_second"], row["batch"] * row["n"] ** 3 / row["p50_seconds"]
        )
        assert (row["scipy_seconds"] is None) == (scipy_up_to == 0)


@pytest.mark.slow
def test_batches_of_small_graphs(cli, tmp_path):
    file = tmp_path / "rows.jsonl"
    words = (
        "bench",
        "--batches",
        "--device",
        "cpu",
        "--n",
        3,
        8,
        "--batch",
        2,
        40,
        "--repeat",
        3,
        "--rows",
        file,
    )
    found = cli(*words, "--dtype", "float32", "int16", "--json").json
    rows = found["rows"]
    assert [json.loads(line) for line in file.read_text().splitlines()] == rows
    cases = [(row["dtype"], row["n"], row["batch"]) for row in rows]
    assert cases == [
        (dtype, n, batch) for dtype in ("float32", "int16") for n in (3, 8) for batch in (2, 40)
    ]
    assert found["command"].startswith(
        "python -m tri_apsp bench --batches --n 3 8 --batch 2 40 --device cpu --dtype float32"
    )
    again = cli(*shlex.split(found["command"])[3:])
    assert (again.status, again.err) == (0, "")
    header, table = again.out.split("\n\n")
    for part in (
        "cpu ",
        "versions ",
        "command ",
        "sizes % ",
        "scipy.sparse.csgraph.floyd_warshall",
    ):
        assert part in header
    assert len(table.splitlines()) == 1 + len(rows)
    assert len({len(line) for line in table.splitlines()}) == 1


def test_reachability_alone(cli):
    """One row for each size and batch, whatever the dtypes and signs; neither the product nor SciPy
    runs.
    """
    words = (
        "--n",
        5,
        150,
        "--batch",
        3,
        1,
        "--dtype",
        "float32",
        "int16",
        "--sign",
        *SIGNS,
        "--method",
        "reachability",
    )
    rows = cli("bench", "--device", "cpu", *words, "--repeat", 3, "--json").json["rows"]
    found = [
        (row["operation"], row["dtype"], row["n"], row["batch"], row["engine"]) for row in rows
    ]
    assert found == [("reachability", "bool", 5, 3, "cpu"), ("reachability", "bool", 150, 1, "cpu")]
    for row in rows:
        assert math.isclose(
            row["ops_per_second"], row["batch"] * row["n"] ** 3 / row["p50_seconds"]
        )
        assert {row[name] for name in ("scipy_seconds", "ratio")} == {None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--batch", 2], "--batch must come with --n"),
        (
            ["--n", 4, 5, "--batch", 2, 3, 4],
            "--batch must give one count, or one for each of the 2 sizes of --n, but gives 3",
        ),
        (["--n", 4, 1, "--sign", "any"], "--n must be at least 2 for --sign any"),
        (["--batches", "--method", "kleene"], "--method must not be given with --batches"),
        (["--batches", "--scipy-up-to", 5], "--scipy-up-to must not be given with --batches"),
        (["--batches", "--n", 1, "--sign", "any"], "--n must be at least 2 for --sign any"),
        (
            ["--n", 4, "--clock-mhz", 1980],
            "--clock-mhz must come with a GPU of compute capability 9",
        ),
    ],
)
def test_arguments_that_do_not_fit(cli, words, message):
    outcome = cli("bench", "--device", "cpu", *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {message}")
    assert outcome.err.count("\n") == 1


def test_scipy_must_fit_the_memory_too(cli, monkeypatch):
    """A matrix of int16 takes 8 bytes per value in all, but SciPy's matrices take 38."""
    monkeypatch.setattr("tri_apsp.device.free_memory", lambda device: 20 * 1000**2)
    monkeypatch.setattr("tri_apsp.cli.bench.measure", lambda *args, **kwargs: iter(()))
    words = ["bench", "--device", "cpu", "--n", 1000, "--dtype", "int16"]
    outcome = cli(*words)
    message = (
        "SciPy's solve of int16 nonnegative, n = 1000 must fit the memory of its device, but "
        "needs 36.2 MiB and cpu has 19.1"
    )
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith(f"error: {message} MiB free; lower --scipy-up-to")
    assert cli(*words, "--scipy-up-to", 999).status == 0


def test_reachability_needs_less_memory_than_distances(cli, monkeypatch):
    """Edges and a closure of 1 byte per pair, and a bit per pair; distances take four matrices."""
    monkeypatch.setattr("tri_apsp.device.free_memory", lambda device: 4 * 1000**2)
    monkeypatch.setattr("tri_apsp.cli.bench.measure", lambda *args, **kwargs: iter(()))
    words = ["bench", "--device", "cpu", "--scipy-up-to", 0, "--method", "reachability"]
    assert cli(*words, "--n", 1000).status == 0
    outcome = cli(*words, "--n", 1500)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith(
        "error: a problem of 1500 vertices in bool (2.1 matrices) must fit"
    )
    outcome = cli(*words, "auto", "--n", 1000)
    assert outcome.err.startswith(
        "error: a problem of 1000 vertices in float32 (4 matrices) must fit the memory"
    )


@pytest.mark.parametrize("words", [("--clock-mhz", 1980), ()])
def test_fraction_of_the_bound(cli, monkeypatch, words):
    """On a CPU described as an H200, whose clock comes from `words` or from the device."""
    gpu = H200 if words else dataclasses.replace(H200, clock_hz=1.98e9)
    for module in (bench, measure):
        monkeypatch.setattr(module, "describe", lambda device: gpu)
    command = ("bench", "--device", "cpu", "--n", 20, "--repeat", 3, "--sign", *SIGNS, *words)
    found = cli(*command, "--json").json
    assert ("--clock-mhz 1980 " in found["command"]) == bool(words)
    for row in found["rows"]:
        limit = bound(H200, torch.float32, row["sign"] == "nonnegative", 1.98e9)
        assert math.isclose(row["bound_fraction"], row["ops_per_second"] / limit)
    header, table = cli(*command).out.split("\n\n")
    assert (
        "at 1.98 GHz: float32 64, float64 32, int16 128, int32 64, int64 16, bool 2048, float32 "
        "nonnegative 85.3" in header
    )
    assert all("%" in line for line in table.splitlines()[1:])


@pytest.mark.gpu
def test_gpu(cli):
    words = ("--n", 300, 40, "--batch", 1, 5, "--sign", *SIGNS, "--dtype", "float32", "int64")
    rows = cli("bench", "--device", "cuda", *words, "--repeat", 3, "--json").json["rows"]
    assert len(rows) == 32
    for row in rows:
        assert row["bound_fraction"] is None or 0 < row["bound_fraction"] < 1


def test_solve_and_bench_time_the_same(cli, tmp_path):
    """Compilation, or reading the file, would take a hundred times as long as this solve."""
    path = tmp_path / "graph.pt"
    torch.save(Case(512).weights(torch.device("cpu")), path)
    found = cli(
        "bench", "--n", 512, "--method", "auto", "--device", "cpu", "--scipy-up-to", 0, "--json"
    ).json
    assert " --sign nonnegative --method auto " in found["command"]
    _, row = found["rows"]
    solved = cli("solve", path, "--device", "cpu", "--json").json
    assert row["operation"] == "auto"
    assert 0.1 < solved["seconds"] / row["p50_seconds"] < 10
    assert solved["ops_per_second"] == pytest.approx(512**3 / solved["seconds"])
    assert row["ops_per_second"] == pytest.approx(512**3 / row["p50_seconds"])


def test_the_systems_of_the_papers_need_a_gpu(cli):
    outcome = cli("bench", "--system", "all", "--device", "cpu", "--n", "16")
    assert outcome.status == 1
    assert outcome.err.startswith("error: system harish_narayanan needs a GPU, but the device is ")
