"""bench: the rows it promises, and none for a wrong result."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
import time
from types import SimpleNamespace

import pytest
import torch

from tri_apsp import engines, reference, tuned
from tri_apsp.bench import measure
from tri_apsp.bench.bounds import bound, operations_per_clock
from tri_apsp.bench.cases import SIGNS, Case, scipy_distances
from tri_apsp.bench.products import seconds_in_products
from tri_apsp.cli import bench
from tri_apsp.configs import Config
from tri_apsp.device import Device
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.engines.stripes import multiply_in_stripes
from tri_apsp.semirings import no_edge

ROW = [
    *("operation", "dtype", "sign", "n", "batch", "engine", "p20_seconds", "p50_seconds", "p80_seconds", "ops_per_second"),
    *("bound_fraction", "outside_seconds", "scipy_seconds", "ratio"),
]
H200 = Device(kind="cuda", name="NVIDIA H200", slug="nvidia-h200", units=132, memory=141 << 30, capability=(9, 0))
CPU = torch.device("cpu")


def test_rows_are_kept_as_they_come(cli, tmp_path, monkeypatch):
    """Those before the run was cut short, and those of an earlier run."""
    file = tmp_path / "rows.jsonl"
    words = ("bench", "--device", "cpu", "--n", 8, "--method", "kleene", "--repeat", 3, "--scipy-up-to", 0, "--rows", file)
    assert cli(*words, "--json").json["rows"] == [json.loads(line) for line in file.read_text().splitlines()]

    def cut_short(*args, **kwargs):
        yield from list(rows(*args, **kwargs))[:1]
        raise KeyboardInterrupt

    rows = bench.measure
    monkeypatch.setattr(bench, "measure", cut_short)
    assert cli(*words).status == 130
    assert [json.loads(line)["operation"] for line in file.read_text().splitlines()] == ["min_plus", "kleene", "min_plus"]


def test_rows_that_cannot_be_kept(cli, tmp_path):
    outcome = cli("bench", "--device", "cpu", "--n", 8, "--rows", tmp_path / "none" / "rows.jsonl")
    assert outcome.status == 2
    assert outcome.err.startswith("error: --rows must name a file that can be written, but ")


def test_json(cli):
    words = ["bench", "--device", "cpu", "--n", 64, 80, "--dtype", "float32", "int16", "--repeat", 3, "--scipy-up-to", 64]
    found = cli(*words, "--json").json
    assert list(found) == ["machine", "versions", "command", "rows"]
    assert list(found["machine"]) == ["cpu"]
    assert found["command"].startswith(f"python -m tri_apsp {shlex.join(map(str, ['bench', *words[3:6]]))} --batch 1 ")
    operations = ("min_plus", "auto", "kleene", "floyd_warshall")
    expected = [(name, dtype, n) for dtype in ("float32", "int16") for n in (64, 80) for name in operations]
    assert [(row["operation"], row["dtype"], row["n"]) for row in found["rows"]] == expected
    for row in found["rows"]:
        assert list(row) == ROW
        assert (row["engine"], row["sign"], row["batch"], row["bound_fraction"]) == ("cpu", "nonnegative", 1, None)
        assert 0 < row["p20_seconds"] <= row["p50_seconds"] <= row["p80_seconds"]
        assert math.isclose(row["ops_per_second"], row["n"] ** 3 / row["p50_seconds"])
        if row["operation"] == "min_plus":
            assert row["outside_seconds"] is None
        else:
            assert 0 <= row["outside_seconds"] <= row["p50_seconds"]
        if row["n"] == 64:
            assert math.isclose(row["ratio"], row["scipy_seconds"] / row["p50_seconds"])
        else:
            assert (row["ratio"], row["scipy_seconds"]) == (None, None)


def test_table(cli):
    words = ("--n", 32, 9, "--batch", 1, 40, "--sign", *SIGNS)
    outcome = cli("bench", "--device", "cpu", *words, "--method", "squaring", "iterative", "--repeat", 3)
    assert (outcome.status, outcome.err) == (0, "")
    header, table = outcome.out.split("\n\n")
    for part in ("cpu ", "versions ", "torch", "command ", "bound ", "outside ", "scipy.sparse.csgraph.floyd_warshall"):
        assert part in header
    lines = table.splitlines()
    assert [line.split()[0] for line in lines] == ["operation", *(["min_plus", "squaring", "iterative"] * 4)]
    assert [line.split()[3:5] for line in lines[1::3]] == [["32", "1"], ["9", "40"]] * 2
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 140


@pytest.mark.parametrize("scipy_up_to", [0, 64])
def test_batches_and_signs(cli, scipy_up_to):
    words = ("--n", 5, 33, "--batch", 70, 2, "--sign", *SIGNS, "--dtype", "int16", "float64")
    rows = cli("bench", "--device", "cpu", *words, "--repeat", 3, "--scipy-up-to", scipy_up_to, "--json").json["rows"]
    found = [(row["dtype"], row["sign"], row["n"], row["batch"]) for row in rows[::4]]
    assert found == [(d, s, n, b) for d in ("int16", "float64") for s in SIGNS for n, b in ((5, 70), (33, 2))]
    for row in rows:
        assert math.isclose(row["ops_per_second"], row["batch"] * row["n"] ** 3 / row["p50_seconds"])
        assert row["outside_seconds"] is None or 0 <= row["outside_seconds"] <= row["p50_seconds"]
        assert (row["scipy_seconds"] is None) == (scipy_up_to == 0)


def test_one_batch_for_all_sizes(cli):
    outcome = cli("bench", "--device", "cpu", "--n", 4, 6, "--batch", 3, "--method", "kleene", "--repeat", 3, "--json")
    assert [row["batch"] for row in outcome.json["rows"]] == [3] * 4
    assert "--n 4 6 --batch 3 " in outcome.json["command"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--batch", 2], "--batch must come with --n"),
        (["--n", 4, 5, "--batch", 2, 3, 4], "--batch must give one count, or one for each of the 2 sizes of --n, but gives 3"),
        (["--n", 4, 1, "--sign", "any"], "--n must be at least 2 for --sign any"),
        (["--n", 4, "--clock-mhz", 1980], "--clock-mhz must come with a GPU of compute capability 9"),
    ],
)
def test_arguments_that_do_not_fit(cli, words, message):
    outcome = cli("bench", "--device", "cpu", *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {message}")
    assert outcome.err.count("\n") == 1


def test_graphs():
    for n in (2, 3, 50):
        for batch in (1, 3):
            plain, signed = (Case(n, batch, sign).weights().to(torch.int16) for sign in SIGNS)
            assert plain.shape == signed.shape == ((batch, n, n) if batch > 1 else (n, n))
            assert plain.amin() == 0
            assert (signed < 0).flatten(-2).any(dim=-1).all()
            assert (signed != 0).sum() == batch * n * (n - 1)  # SciPy would take a 0 for a missing edge
            # Potentials change no cycle.
            assert torch.equal(plain + plain.mT, signed + signed.mT)
    assert not torch.equal(*Case(9, 2).weights())


@pytest.mark.parametrize("sign", SIGNS)
def test_scipy_agrees_with_the_reference(sign):
    case = Case(12, 2, sign)
    distances, seconds = scipy_distances(case)
    assert seconds > 0
    for found, weights in zip(distances, case.weights(), strict=True):
        expected = reference.floyd_warshall(weights.double().numpy())
        assert torch.equal(found.double(), torch.as_tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("scipy_up_to", [0, 2048])
@pytest.mark.parametrize("words", [(), ("--batch", 2), ("--sign", "any")])
@pytest.mark.parametrize("name", ["min_plus", "shortest_paths"])
def test_a_wrong_result_has_no_time(cli, monkeypatch, name, words, scipy_up_to):
    def wrong(weights, *args, **named):
        return right(torch.zeros_like(weights), *args, **named)

    right = getattr(measure, name)
    monkeypatch.setattr(measure, name, wrong)
    with pytest.raises(AssertionError, match="wrong"):
        cli("bench", "--device", "cpu", "--n", 16, *words, "--scipy-up-to", scipy_up_to, "--json")


def test_methods_must_agree_without_scipy(cli, monkeypatch):
    words = ("bench", "--device", "cpu", "--n", 40, "--repeat", 3, "--scipy-up-to", 0, "--json")
    assert [row["ratio"] for row in json.loads(cli(*words).out)["rows"]] == [None] * 4

    def wrong_inside(weights, *, method, **named):
        result = right(weights, method=method, **named)
        result.distances[1, 2] += method == "floyd_warshall"  # neither the first nor the last row
        return result

    right = measure.shortest_paths
    monkeypatch.setattr(measure, "shortest_paths", wrong_inside)
    with pytest.raises(AssertionError, match="floyd_warshall is wrong"):
        cli(*words)


def test_bounds_of_an_h200():
    clock_hz = 1.98e9
    tera = {
        (torch.float32, False): 16.7,
        (torch.float32, True): 22.3,
        (torch.int32, False): 16.7,
        (torch.int16, False): 33.5,
        (torch.float64, False): 8.4,
        (torch.int64, False): 4.2,
    }
    for (dtype, nonnegative), rate in tera.items():
        assert round(bound(H200, dtype, nonnegative, clock_hz) / 1e12, 1) == rate
        if dtype != torch.float32:
            assert operations_per_clock(dtype, True) == operations_per_clock(dtype, False)
    assert bound(H200, torch.int32, True, None) is None
    for capability in (None, (8, 0), (10, 0)):
        other = Device(kind="cuda", name="", slug="", units=1, memory=0, capability=capability)
        assert bound(other, torch.int32, True, clock_hz) is None


@pytest.mark.parametrize("words", [("--clock-mhz", 1980), ()])
def test_fraction_of_the_bound(cli, monkeypatch, words):
    """On a CPU that says it is an H200 whose clock is known or, without `words`, told by the device."""
    gpu = SimpleNamespace(**vars(H200)) if words else SimpleNamespace(**vars(H200) | {"clock_hz": 1.98e9})
    for module in (bench, measure):
        monkeypatch.setattr(module, "describe", lambda device: gpu)
    command = ("bench", "--device", "cpu", "--n", 20, "--repeat", 3, "--sign", *SIGNS, *words)
    found = cli(*command, "--json").json
    assert ("--clock-mhz 1980 " in found["command"]) == bool(words)
    for row in found["rows"]:
        limit = bound(H200, torch.float32, row["sign"] == "nonnegative", 1.98e9)
        assert math.isclose(row["bound_fraction"], row["ops_per_second"] / limit)
    header, table = cli(*command).out.split("\n\n")
    assert "at 1.98 GHz: float32 64, float64 32, int16 128, int32 64, int64 16, float32 nonnegative 85.3" in header
    assert all("%" in line for line in table.splitlines()[1:])


def test_no_fraction_without_a_clock(cli, monkeypatch):
    gpu = SimpleNamespace(**vars(H200) | {"clock_hz": None})
    for module in (bench, measure):
        monkeypatch.setattr(module, "describe", lambda device: gpu)
    command = ("bench", "--device", "cpu", "--n", 20, "--repeat", 3)
    assert [row["bound_fraction"] for row in cli(*command, "--json").json["rows"]] == [None] * 4
    assert "its clock is unknown" in cli(*command).out


@pytest.mark.parametrize("batch", [1, 2])
def test_products_of_panels_count(batch):
    """Every product sleeps a while, so the seconds tell how many of them were seen."""

    class Slow(CpuEngine):
        calls = 0

        def product(self, *updates):
            Slow.calls += 1
            time.sleep(0.002)
            super().product(*updates)

        def panels(self, d, row, column, skip=(0, 0)):
            multiply_in_stripes(self, d, row, column)

    case = Case(96, batch)
    matrix = case.weights().to(torch.float32).reshape(batch, 96, 96)
    config = tuned.find("cpu", CPU, matrix.dtype, Config(cutoff=64))
    engine = Slow(engines.Weights(96, matrix.dtype, CPU, True), config)
    start = time.perf_counter()
    inside = seconds_in_products("kleene", matrix, engine)
    total = time.perf_counter() - start
    assert Slow.calls > 2, "the panels made no product"
    assert 0.002 * Slow.calls <= inside <= total
    assert torch.equal(matrix.to(torch.int16), scipy_distances(case)[0].reshape(matrix.shape))


def test_products_are_timed_on_what_a_gpu_stores(monkeypatch):
    monkeypatch.setattr("tri_apsp.gpu.padding.has_room", lambda size, device: True)
    for n, stored in ((100, 112), (2048, 2048)):
        assert measure._stored(torch.empty((2, n, n), device="meta"), "kleene") == stored
    assert measure._stored(torch.rand(2, 100, 100), "kleene") == 100
    solved = []
    monkeypatch.setattr(measure, "_stored", lambda graphs, method: 48)
    monkeypatch.setattr(measure, "seconds_in_products", lambda method, matrix, engine: solved.append(matrix.clone()) or 0.5)
    weights = Case(40).weights().to(torch.int32)
    config = tuned.find("cpu", CPU, torch.int32, Config(engine="cpu"))
    assert measure._in_products(weights, True, "kleene", dataclasses.replace(config, engine="cpu")) == 0.5
    for matrix in solved:
        assert matrix.shape == (1, 48, 48)
        assert torch.equal(matrix[0, :40, :40], weights)
        assert (matrix[0, 40:] == no_edge(torch.int32)).all()
        assert (matrix[0, :, 40:] == no_edge(torch.int32)).all()


def test_without_products_all_is_outside(cli):
    rows = cli("bench", "--device", "cpu", "--n", 30, "--method", "floyd_warshall", "--repeat", 3, "--json").json["rows"]
    assert rows[1]["outside_seconds"] == rows[1]["p50_seconds"]


@pytest.mark.gpu
def test_gpu(cli):
    words = ("--n", 300, 40, "--batch", 1, 5, "--sign", *SIGNS, "--dtype", "float32", "int64")
    rows = cli("bench", "--device", "cuda", *words, "--repeat", 3, "--json").json["rows"]
    assert len(rows) == 32
    for row in rows:
        assert row["outside_seconds"] is None or 0 <= row["outside_seconds"] <= row["p50_seconds"]
        assert row["bound_fraction"] is None or 0 < row["bound_fraction"] < 1
