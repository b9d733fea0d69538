"""solve: every key of its JSON, every method, dtype and format, its text, and how often it solves."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import torch
from cli.five import FIVE, FIVE_DISTANCES, FIVE_FACTS

from tri_apsp import tuned
from tri_apsp.cli import solve as module
from tri_apsp.device import describe
from tri_apsp.errors import TooLargeError
from tri_apsp.graphs import DISTANCE_FORMATS
from tri_apsp.methods import METHODS
from tri_apsp.semirings import DTYPES_BY_NAME, no_edge
from tri_apsp.tuned.schema import Entry

KEYS = [
    *(
        "n",
        "edges",
        "method",
        "engine",
        "source",
        "exponents",
        "device",
        "dtype",
        "seconds",
        "ops_per_second",
    ),
    *("reachable_pairs", "max_distance", "sum_distances", "unbounded_pairs", "negative_cycle"),
]


@pytest.mark.parametrize("dtype", DTYPES_BY_NAME)
@pytest.mark.parametrize("method", METHODS)
def test_json(cli, five, method, dtype):
    found = cli(
        "solve", five, "--method", method, "--dtype", dtype, "--device", "cpu", "--json"
    ).json
    assert list(found) == KEYS
    assert (
        found | FIVE_FACTS | {"method": method, "engine": "cpu", "device": "cpu", "dtype": dtype}
        == found
    )
    assert isinstance(found["max_distance"], int)
    assert isinstance(found["sum_distances"], int)
    assert found["seconds"] > 0
    assert found["ops_per_second"] == pytest.approx(5**3 / found["seconds"])


def test_the_defaults_are_auto_and_float32(cli, five):
    found = cli("solve", five, "--json").json
    assert found["method"] in METHODS
    assert found["dtype"] == "float32"


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("extension", DISTANCE_FORMATS)
def test_output(cli, five, tmp_path, extension, dtype):
    path = tmp_path / f"d{extension}"
    assert cli("solve", five, "--dtype", dtype, "-o", path).status == 0
    absent = float("inf") if extension.startswith(".csv") else no_edge(DTYPES_BY_NAME[dtype])
    assert load(path).tolist() == [
        [absent if d is None else d for d in row] for row in FIVE_DISTANCES
    ]


def load(path):
    extension = "".join(path.suffixes)
    if extension == ".pt":
        return torch.load(path, weights_only=True)
    if extension == ".npz":
        return np.load(path)["distances"]
    with gzip.open(path) if extension.endswith(".gz") else path.open("rb") as stream:
        return (
            np.loadtxt(stream, delimiter=",") if extension.startswith(".csv") else np.load(stream)
        )


class TestInputs:
    def test_compressed(self, cli, save):
        assert cli("solve", save("five.gr.gz", FIVE), "--json").json.items() >= FIVE_FACTS.items()

    @pytest.mark.parametrize("base", [0, 1])
    def test_edge_list_with_base_and_vertices(self, cli, save, base):
        path = save("five.txt", "".join(f"{u + base} {v + base} {w}\n" for u, v, w in edges()))
        found = cli("solve", path, "--base", base, "--vertices", 5, "--json").json
        assert found.items() >= FIVE_FACTS.items()

    def test_undirected(self, cli, save):
        found = cli(
            "solve", save("g.csv", "0,1,2\n1,2,3\n"), "--base", 0, "--undirected", "--json"
        ).json
        expected = {"edges": 4, "reachable_pairs": 9, "max_distance": 5, "sum_distances": 20}
        assert found.items() >= expected.items()

    @pytest.mark.parametrize(("asked", "dtype"), [([], "float64"), (["--dtype", "int32"], "int32")])
    def test_dense_file_keeps_its_dtype(self, cli, tmp_path, asked, dtype):
        np.save(tmp_path / "w.npy", np.array([[0, 2.0], [np.inf, 0]]))
        found = cli("solve", tmp_path / "w.npy", *asked, "--json").json
        expected = {
            "dtype": dtype,
            "edges": 1,
            "reachable_pairs": 3,
            "max_distance": 2,
            "sum_distances": 2,
        }
        assert found.items() >= expected.items()

    @pytest.mark.parametrize(
        "words",
        [
            ["solve"],
            ["solve", "--method", "kleene"],
            ["solve", "--dtype", "int16"],
            ["hops"],
            ["sssp", "--source", 0],
        ],
    )
    def test_edges_are_those_that_count(self, cli, save, words):
        """Not the heavier of parallel edges, and no loop unless it is negative; in a dense file as
        in an edge list.
        """
        path = save("g.txt", "# base 0\n0 1 3\n0 1 2\n1 1 4\n1 2 1\n2 0 5\n")
        assert cli(words[0], path, *words[1:], "--json").json["edges"] == 3
        assert "3 vertices, 3 edges\n" in cli(words[0], path, *words[1:]).out
        dense = path.with_suffix(".npy")
        np.save(dense, np.array([[0, 2, np.inf], [np.inf, 4, 1], [5, np.inf, 0]]))
        assert cli(words[0], dense, *words[1:], "--json").json["edges"] == 3

    def test_a_negative_loop_is_an_edge(self, cli, save):
        path = save("l.txt", "# base 0\n0 0 -1\n1 1 1\n0 1 1\n")
        for words in (["solve"], ["solve", "--method", "johnson"], ["sssp", "--source", 1]):
            assert (
                cli(words[0], path, *words[1:], "--negative-cycles", "mark", "--json").json["edges"]
                == 2
            )

    def test_no_vertices(self, cli, save):
        found = cli("solve", save("none.gr", "p sp 0 0\n"), "--json").json
        expected = {
            "n": 0,
            "edges": 0,
            "reachable_pairs": 0,
            "max_distance": None,
            "sum_distances": None,
        }
        assert found.items() >= expected.items()
        assert found["ops_per_second"] == 0

    def test_generated(self, cli, tmp_path):
        path = tmp_path / "chain.mtx.gz"
        assert cli("generate", "chain", "--n", 70, "-o", path).status == 0
        found = cli("solve", path, "--dtype", "int64", "--json").json
        assert (found["n"], found["edges"], found["reachable_pairs"]) == (70, 69, 70 * 71 // 2)


def edges():
    lines = (line.split() for line in FIVE.splitlines())
    return [
        (int(u) - 1, int(v) - 1, w)
        for marker, u, v, w in (line for line in lines if line[0] == "a")
        if marker
    ]


class TestText:
    def test_shows_what_ran(self, cli, five, tmp_path):
        outcome = cli(
            "solve", five, "--method", "kleene", "--device", "cpu", "-o", tmp_path / "d.npy"
        )
        assert (outcome.status, outcome.err) == (0, "")
        for part in (
            "5 vertices, 5 edges",
            "kleene",
            "float32",
            "14 of 25 pairs",
            "longest 7, sum 34",
            "d.npy",
        ):
            assert part in outcome.out
        starts = {
            line.split()[0]: len(line) - len(line.split(None, 1)[1])
            for line in outcome.out.splitlines()
        }
        assert len(set(starts.values())) == 1

    @pytest.mark.parametrize(("seconds", "shown"), [(0.9, False), (7.25, True)])
    def test_preparation_of_more_than_a_second_is_shown(
        self, cli, five, monkeypatch, seconds, shown
    ):
        monkeypatch.setattr(module, "compile_kernels", lambda *_, **__: seconds)
        assert ("7.2 s to compile" in cli("solve", five).out) == shown

    def test_names_the_tuned_files(self, cli, five, monkeypatch, tmp_path):
        assert "\ntuned" not in cli("solve", five, "--device", "cpu").out
        tile = Entry(
            sign="nonnegative",
            n=5,
            config={"cutoff": 32},
            p20_ms=1.0,
            p50_ms=1.0,
            p80_ms=1.0,
            default_ms=1.0,
            speedup=1.0,
            evaluated=1,
        )
        header = {
            "space_hash": "",
            "protocol": "",
            "seed": 0,
            "budget_seconds": None,
            "complete": True,
        }
        device = describe(torch.device("cpu"))
        file = tuned.new_file("cpu", "solve", "float32", device, [tile], **header)
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(tmp_path))
        path = tuned.save(file)
        assert f"\ntuned      {path}\n" in cli("solve", five, "--device", "cpu").out

    @pytest.mark.parametrize(("last", "warned"), [(0, False), (2, True), (4, True)])
    def test_warns_where_float32_rounds(self, cli, save, last, warned):
        path = save("long.gr", f"p sp 3 2\na 1 2 {2**24 - 1}\na 2 3 {last}\n")
        outcome = cli("solve", path, "--json")
        assert outcome.status == 0
        assert (
            outcome.err.startswith(
                "warning: float32 is exact for integers below 16777216 only"
            )
            == warned
        )
        assert (
            cli("solve", path, "--dtype", "float64", "--json").json["max_distance"]
            == 2**24 - 1 + last
        )

    def test_a_weight_that_float32_rounds_is_one_warning(self, cli, save):
        """Not another one for the longest distance."""
        outcome = cli("solve", save("large.gr", f"p sp 2 1\na 1 2 {2**24 + 1}\n"))
        assert outcome.status == 0
        assert outcome.err == (
            "warning: float32 is exact for integers below 16777216 only, but a weight is 16777217; use float64 or int64 "
            "for exact distances.\n"
        )


class TestRuns:
    """How often a graph is solved for its time, and that it is solved once where that takes long."""

    @pytest.fixture
    def calls(self, monkeypatch):
        """Count solves, all of which take `calls.seconds`."""

        class Calls(list):
            seconds = 0.0

        def counted(weights, **named):
            calls.append((tuple(weights.shape), named))
            return solve(weights, **named)

        def timed(call, device):
            return call(), calls.seconds

        calls, solve = Calls(), module.solve
        monkeypatch.setattr(module, "solve", counted)
        monkeypatch.setattr(module, "timed", timed)
        monkeypatch.setattr("tri_apsp.bench.timing.timed", timed)
        return calls

    @pytest.fixture
    def large(self, cli, tmp_path):
        path = tmp_path / "large.npy"
        assert cli("generate", "complete", "--n", 600, "-o", path).status == 0
        return path

    @pytest.mark.parametrize(("seconds", "runs"), [(0.01, 5), (0.2, 3), (0.9, 1)])
    def test_a_short_solve_is_repeated_for_its_median(self, cli, large, calls, seconds, runs):
        calls.seconds = seconds
        outcome = cli("solve", large, "--device", "cpu")
        assert [shape for shape, _ in calls] == [(600, 600)] * (1 + runs)
        assert (
            f"{seconds} s ({f'median of {runs} runs' if runs > 1 else 'one run after a first'}), "
            in outcome.out
        )
        assert ["report" in named for _, named in calls] == [True] + [False] * runs

    def test_a_long_solve_runs_once(self, cli, large, calls):
        calls.seconds = 1.5
        assert (
            "1.5 s (first run, with its allocations), "
            in cli("solve", large, "--device", "cpu").out
        )
        assert len(calls) == 1

    def test_a_small_graph_is_repeated_after_a_long_first_run(self, cli, five, calls):
        """Its time is that of compiling what the small solve before it left out."""
        calls.seconds = 1.5
        assert cli("solve", five, "--device", "cpu", "--json").json["seconds"] == 1.5
        assert len(calls) == 2

    def test_short_memory_solves_in_place_and_once(self, cli, five, monkeypatch):
        def scarce(*args, overwrite=False, **named):
            overwrites.append(overwrite)
            if not overwrite:
                raise TooLargeError("there is no memory for a copy.")
            return solve(*args, overwrite=overwrite, **named)

        solve, overwrites = module.solve, []
        monkeypatch.setattr(module, "solve", scarce)
        assert cli("solve", five, "--json").json.items() >= FIVE_FACTS.items()
        assert overwrites == [False, True]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("crlf.gr", "p sp 2 1\r\na 1 2 3\r\n"),
        ("bom.gr", "\ufeffp sp 2 1\na 1 2 3\n"),
        ("header.csv", "# base 0\nsource,target,weight\n0,1,3\n"),
        ("blanks.csv", "# base 0\n0, 1, 3\n"),
        ("with a blank.gr", "p sp 2 1\na 1 2 3\n"),
    ],
)
def test_unusual_files(cli, save, name, content):
    path = save(name, content)
    outcome = cli("solve", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith(f"graph      {path}: 2 vertices, 1 edge\n")
    assert "distances  longest 3, sum 3" in outcome.out


@pytest.mark.parametrize("n", [0, 1])
def test_the_smallest_graphs(cli, save, n):
    outcome = cli("solve", save("small.gr", f"p sp {n} 0\n"), "--device", "cpu")
    assert (outcome.status, outcome.err) == (0, "")
    assert "one run" not in outcome.out  # whose time would include compilation
    assert f"{n} of {n} pair" in outcome.out
