"""solve: its JSON and text, every method, dtype and format, and how often it solves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cli.five import FIVE, FIVE_DISTANCES, FIVE_FACTS
from distributed.checkpoints import interrupted
from tuned_files import entry_of, file_of
from written_files import load

from tri_apsp import tuned
from tri_apsp.cli import solve as module
from tri_apsp.device import describe
from tri_apsp.errors import TooLargeError
from tri_apsp.graphs import DISTANCE_FORMATS
from tri_apsp.methods import METHODS
from tri_apsp.semirings import DTYPES_BY_NAME, no_edge

KEYS = [
    *("n", "edges", "method", "engine", "source", "exponents", "device", "dtype", "seconds"),
    *("ops_per_second", "resumed", "reachable_pairs", "max_distance", "sum_distances"),
    *("unbounded_pairs", "negative_cycle"),
]


@pytest.mark.parametrize(
    ("method", "dtype"),
    [*((name, "float32") for name in METHODS), *(("kleene", name) for name in DTYPES_BY_NAME)],
)
def test_json(cli, five, method, dtype):
    words = ["--method", method, "--dtype", dtype, "--device", "cpu"]
    found = cli("solve", five, *words, "--json").json
    assert list(found) == KEYS
    expected = FIVE_FACTS | {"method": method, "engine": "cpu", "device": "cpu", "dtype": dtype}
    assert found | expected == found
    assert isinstance(found["max_distance"], int)
    assert isinstance(found["sum_distances"], int)
    assert found["ops_per_second"] == pytest.approx(5**3 / found["seconds"])


@pytest.mark.parametrize(
    ("extension", "dtype"), [*zip(DISTANCE_FORMATS, ["float32", "int16"] * 3, strict=True)]
)
def test_output(cli, five, tmp_path, extension, dtype):
    path, before = tmp_path / f"d{extension}", tmp_path / f"p{extension}"
    words = ["--dtype", dtype, "-o", path, "--predecessors", before]
    assert cli("solve", five, *words).out.split()[-3:] == ["written", f"{path},", str(before)]
    absent = float("inf") if extension.startswith(".csv") else no_edge(DTYPES_BY_NAME[dtype])
    expected = [[absent if d is None else d for d in row] for row in FIVE_DISTANCES]
    assert load(path).tolist() == expected
    expected = [
        [-1, 0, 1, -1, -1],
        [2, -1, 1, -1, -1],
        [2, 0, -1, -1, -1],
        [2, 0, 3, -1, -1],
        [-1, -1, -1, -1, -1],
    ]
    if extension.startswith(".csv"):  # as the file numbers them
        expected = [[vertex + (vertex >= 0) for vertex in row] for row in expected]
    assert load(before).tolist() == expected


def test_several_devices(cli, five, tmp_path):
    """The same distances and predecessors, and a time that counts all."""
    outputs = [[tmp_path / f"{name}{run}.npy" for name in "dp"] for run in range(2)]
    for options, (out, before) in zip(([], ["--device", "cpu, cpu"]), outputs, strict=True):
        shown = cli("solve", five, *options, "-o", out, "--predecessors", before).out
        assert shown.endswith(f"{out}, {before}\n")
    for plain, shared in zip(*outputs, strict=True):
        assert np.array_equal(np.load(plain), np.load(shared))
    assert "the only run, with compilation" in shown


def test_a_sparse_graph_that_is_too_large_to_be_dense(cli, five, monkeypatch):
    monkeypatch.setattr("tri_apsp.memory.is_small", lambda size, device: False)
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 99)
    error = cli("solve", five, "--device", "cpu,cpu").err
    assert "the dense matrix of 5 vertices must fit" in error
    assert "name one device, without --memory and --checkpoint: then rows go to --out" in error


def test_an_error_of_weights_beside_blocks_of_rows(refused, five, tmp_path, monkeypatch):
    monkeypatch.setattr("tri_apsp.cli.solve.fits_memory", lambda size, device: False)
    words = ["solve", five, "-o", tmp_path / "d.npy", "--device", "cpu", "--weight-error"]
    refused(["--weight-error needs distances in memory", "name sources with sssp"], *words, 0.5)


def test_goes_on_from_a_checkpoint(cli, tmp_path):
    graph, state = tmp_path / "g.npy", tmp_path / "state"
    np.save(graph, np.random.default_rng(1).integers(1, 100, (300, 300), np.int32))
    with interrupted(1):
        cli("solve", graph, "--checkpoint", state, "--every", 0)
    shown = cli("solve", graph, "--checkpoint", state).out
    assert "resumed    from a checkpoint at 21%" in shown
    assert "operations/s" not in shown
    assert "resumed" not in cli("solve", graph, "--checkpoint", state).out


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_negative_cycles_are_marked(cli, save, tmp_path, dtype):
    graph = save("g.gr", "p sp 4 4\na 1 2 3\na 2 3 1\na 3 2 -2\na 4 1 1\n")
    words = ("solve", graph, "--negative-cycles", "mark", "--dtype", dtype)
    found = cli(*words, "-o", tmp_path / "d.csv", "--json").json
    assert (found["unbounded_pairs"], sorted(found["negative_cycle"])) == (8, [2, 3])
    assert (found["reachable_pairs"], found["max_distance"], found["sum_distances"]) == (3, 1, 1)
    rows = (tmp_path / "d.csv").read_text().splitlines()
    assert rows == ["0,-inf,-inf,inf", "inf,-inf,-inf,inf", "inf,-inf,-inf,inf", "1,-inf,-inf,0"]
    marked = "8 pairs through a negative cycle, such as that of weight -1 through "
    assert f"\nmarked     {marked}" in cli(*words).out
    error = cli("solve", graph, "--dtype", dtype).err
    assert error.endswith(", or mark such pairs: --negative-cycles mark.\n")


class TestInputs:
    @pytest.mark.parametrize("base", [0, 1])
    def test_edge_list_with_base_and_vertices(self, cli, save, base):
        edges = (line.split() for line in FIVE.splitlines() if line[0] == "a")
        rows = (f"{int(u) - 1 + base} {int(v) - 1 + base} {w}\n" for _, u, v, w in edges)
        words = ["--base", base, "--vertices", 5, "--json"]
        found = cli("solve", save("g.txt.gz", "".join(rows)), *words).json
        assert found.items() >= FIVE_FACTS.items()

    def test_undirected(self, cli, save):
        path = save("g.csv", "0,1,2\n1,2,3\n")
        found = cli("solve", path, "--undirected", "--json").json
        expected = {"edges": 4, "reachable_pairs": 9, "max_distance": 5, "sum_distances": 20}
        assert found.items() >= expected.items()

    @pytest.mark.parametrize(("asked", "dtype"), [([], "float64"), (["--dtype", "int32"], "int32")])
    def test_dense_file_keeps_its_dtype(self, cli, tmp_path, asked, dtype):
        np.save(tmp_path / "w.npy", np.array([[0, 2.0], [np.inf, 0]]))
        found = cli("solve", tmp_path / "w.npy", *asked, "--json").json
        assert (found["dtype"], found["edges"], found["sum_distances"]) == (dtype, 1, 2)

    @pytest.mark.parametrize(
        "words",
        [
            "solve",
            "solve --method kleene",
            "solve --dtype int16",
            "hops",
            "sssp --sources 0 --method dijkstra",
        ],
    )
    def test_edges_are_those_that_count(self, cli, save, words):
        """Not the heavier of parallel edges, and a loop only if it is negative."""
        command, *options = words.split()
        path = save("g.txt", "# base 0\n0 1 3\n0 1 2\n1 1 4\n1 2 1\n2 0 5\n")
        assert cli(command, path, *options, "--json").json["edges"] == 3
        assert "3 vertices, 3 edges\n" in cli(command, path, *options).out
        np.save(dense := path.with_suffix(".npy"), [[0, 2, np.inf], [np.inf, 4, 1], [5, np.inf, 0]])
        assert cli(command, dense, *options, "--json").json["edges"] == 3

    @pytest.mark.parametrize("n", [0, 1])
    def test_the_smallest_graphs(self, cli, save, n):
        path = save("small.gr", f"p sp {n} 0\n")
        found = cli("solve", path, "--device", "cpu", "--json").json
        assert (found["n"], found["reachable_pairs"]) == (n, n)
        assert found["sum_distances"] == (0 if n else None)
        assert f"{n} of {n} pair" in cli("solve", path, "--device", "cpu").out


class TestText:
    def test_shows_what_ran(self, cli, five):
        outcome = cli("solve", five, "--method", "kleene", "--device", "cpu")
        assert (outcome.status, outcome.err) == (0, "")
        parts = (
            "5 vertices, 5 edges",
            "kleene",
            "float32",
            "(median of ",
            "14 of 25 pairs",
            "sum 34",
        )
        for part in parts:
            assert part in outcome.out
        lines = [line.split(None, 1) for line in outcome.out.splitlines()]
        columns = {outcome.out.splitlines()[i].index(value) for i, (_, value) in enumerate(lines)}
        assert len(columns) == 1

    def test_names_the_tuned_files(self, cli, five, monkeypatch, tmp_path):
        assert "\ntuned" not in cli("solve", five, "--device", "cpu").out
        tile, device = entry_of(5, {"cutoff": 32}), describe(torch.device("cpu"))
        file = file_of("cpu", "solve", "float32", device, tile)
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(tmp_path))
        path = tuned.save(file)
        assert f"\ntuned      {path}\n" in cli("solve", five, "--device", "cpu").out

    @pytest.mark.parametrize(
        ("weights", "warning"),
        [
            ((2**24 - 1, 0), ""),
            ((2**24 - 1, 3), f"the longest distance is {2**24 + 2}"),
            ((2**24 + 1, 0), f"a weight is {2**24 + 1}"),
        ],
    )
    def test_float32_rounds(self, cli, save, weights, warning):
        """One warning, not another one for the longest distance."""
        path = save("long.gr", "p sp 3 2\na 1 2 {}\na 2 3 {}\n".format(*weights))
        start, _, end = cli("solve", path, "--json").err.partition(", but ")
        assert end.partition(";")[0] == warning
        assert start == (
            "warning: float32 is exact for integers below 16777216 only" * bool(warning)
        )
        longest = cli("solve", path, "--dtype", "float64", "--json").json["max_distance"]
        assert longest == sum(weights)

    def test_float64_rounds(self, cli, save):
        path = save("long.gr", f"p sp 3 2\na 1 2 {2**53 - 1}\na 2 3 2\n")
        found = cli("solve", path, "--dtype", "float64").err
        assert f"the longest distance is {2**53}; use int64" in found
        assert cli("solve", path, "--dtype", "int64").err == ""


class TestMemory:
    def test_rows_go_to_a_file_where_all_do_not_fit(self, cli, five, tmp_path, monkeypatch):
        monkeypatch.setattr(module, "fits_memory", lambda size, device: False)
        path = tmp_path / "d.npy"
        found = cli("solve", five, "-o", path, "--json").json
        assert found.items() >= {k: v for k, v in FIVE_FACTS.items() if k != "method"}.items()
        expected = [[np.inf if d is None else d for d in row] for row in FIVE_DISTANCES]
        assert np.load(path).tolist() == expected
        again = cli("solve", five, "-o", path)
        assert "has all 5 rows of this graph already" in again.err
        assert "14 of 25 pairs" in again.out

    def test_short_memory_solves_in_place_and_once(self, cli, five, monkeypatch):
        def scarce(request, plan, progress=None):
            overwrites.append(request.options.overwrite)
            if not request.options.overwrite:
                raise TooLargeError("there is no memory for a copy.")
            return solve(request, plan, progress=progress)

        solve, overwrites = module.solve, []
        monkeypatch.setattr(module, "solve", scarce)
        assert cli("solve", five, "--json").json.items() >= FIVE_FACTS.items()
        assert overwrites == [False, True]
