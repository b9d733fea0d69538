"""Every mistake of a caller: one sentence on stderr, an exit status, no output and no file."""

from __future__ import annotations

import numpy as np
import pytest
from cli.five import FIVE

from tri_apsp.console.exit_status import BAD_INPUT, FAILED, in_options
from tri_apsp.graphs import GENERATORS
from tri_apsp.methods import METHODS

HEADER = "p sp 3 2\n"
ARRAY = "%%MatrixMarket matrix array real general\n2 2\n0\n1\n-5\n0\n"


@pytest.mark.parametrize(
    ("name", "content", "options", "status", "parts"),
    [
        ("g.gr", "", "", BAD_INPUT, ["must not be empty"]),
        ("g.gr", HEADER + "a 1 2 3\na 2 x 1\n", "", BAD_INPUT, ["line 3", "'x'"]),
        ("g.gr", HEADER + "a 1 2 3\na 2 1 nan\n", "", BAD_INPUT, ["NaN", "line 3"]),
        ("g.gr", HEADER + "a 1 2 3\n", "", BAD_INPUT, ["the 2 edges", "but lists 1"]),
        ("g.txt", "0 1 2\n", "--vertices 3", BAD_INPUT, ["give --base, or write"]),
        ("g.txt", "4 2 2\n1 2 3\n2 3 4\n", "", BAD_INPUT, ["--header", "--no-header"]),
        ("g.csv", "0,3\n3,0\n", "", BAD_INPUT, ["--matrix", "--columns 1,2."]),
        ("g.csv", "Oslo,Rome,1\nRome,Oslo,-2\n", "", FAILED, ["through vertices Rome, Oslo;"]),
        ("g.gr", "0 1 2\n", "--format mtx", BAD_INPUT, ["MatrixMarket"]),
        ("g.gr", HEADER, "--format npy", BAD_INPUT, ["as NumPy writes it); write", "in --format"]),
        ("g.gr", HEADER, "--format pt", BAD_INPUT, ["cannot be read", "write it again"]),
        ("g.gr", FIVE, "--base 1", BAD_INPUT, ["--base is for .txt, .csv, .tsv"]),
        ("g.gr", FIVE, "--header", BAD_INPUT, ["--header is for .txt", "but is given for"]),
        ("g.csv", "a,b,c,d\n1,2,5,3\n", "", BAD_INPUT, ["give --columns 1,2,3 and --header, or"]),
        ("g.dat", FIVE, "", BAD_INPUT, [".gr", "ends in .dat", "give --format"]),
        ("g.mtx", ARRAY, "--undirected", BAD_INPUT, ["--undirected must not", "leave it out"]),
        ("g.gr", FIVE, "--method a_star", BAD_INPUT, ["a_star", "auto", *METHODS]),
        ("g.gr", FIVE, "--dtype int8", BAD_INPUT, ["int8", "float32", "int16"]),
        ("g.gr", FIVE, "--engine fpga", BAD_INPUT, ["fpga", "cpu", "portable"]),
        ("g.gr", FIVE, "--device tpu", BAD_INPUT, ["--device must be auto, all, cpu,", "tpu"]),
        ("g.gr", FIVE, "--device cpu,tpu", BAD_INPUT, ["--device must be auto, all, cpu,", "tpu"]),
        ("g.gr", FIVE, "--every 3", BAD_INPUT, ["--every needs --checkpoint"]),
        ("g.gr", FIVE, "--checkpoint state --every -3", BAD_INPUT, ["--every must be a number"]),
        ("g.gr", FIVE, "--memory 1x", BAD_INPUT, ["--memory must be a number of bytes", "'1x'"]),
        ("g.gr", FIVE, "--memory 1", FAILED, ["may take 1 byte; raise --memory"]),
        ("g.gr", HEADER + "a 1 2 3\na 2 3 0.5\n", "--dtype int32", BAD_INPUT, ["integers", "0.5"]),
        ("g.gr", "p sp 10000000 0\n", "--method kleene", FAILED, ["10000000 vertices", "GiB"]),
        ("g.gr", "p sp 10000000 0\n", "", BAD_INPUT, ["--out needs", "GiB on its disk"]),
        ("g.gr", HEADER + "a 1 2 9000\na 2 3 9000\n", "--dtype int16", FAILED, ["int16", "int32"]),
        ("g.gr", HEADER + "a 1 2 9\na 2 3 20000\n", "--dtype int16", FAILED, ["20000"]),
        ("g.gr", HEADER + "a 1 2 3\na 2 1 -4\n", "", FAILED, ["through vertices 2, 1;"]),
        ("g.mtx", ARRAY, "", FAILED, ["through vertices 2, 1;"]),
        ("g.txt", "# base 0\n0 1 3\n1 0 -4\n", "", FAILED, ["through vertices 1, 0;"]),
    ],
)
def test_solve(refused, save, tmp_path, name, content, options, status, parts):
    words = ["solve", save(name, content), *options.split(), "-o", tmp_path / "d.npy"]
    for last in ([], ["--json"]):
        refused(parts, *words, *last, status=status)


def test_dense_file(refused, tmp_path):
    np.save(tmp_path / "w.npy", np.array([[0, np.nan], [1, 0]]))
    refused(["NaN", "(0, 1)"], "solve", tmp_path / "w.npy")


def test_engine_that_cannot_run(refused, five, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    words = ["solve", five, "--engine", "portable", "--device", "cpu"]
    refused(["portable engine needs"], *words, status=FAILED)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("solve {0}/none.gr -o {0}/none/d.npy", "none is not; create it"),
        ("solve {0}/none.gr -o {0}/d.txt", ".npy, .npz"),
        ("solve {0}/none.gr --predecessors {0}/none/p.npy", "none is not; create it"),
        ("sssp {0}/none.gr --sources 1 -o {0}/rows.xyz", ".npy"),
        ("hops {0}/none.gr --closeness {0}/c.mtx", ".csv"),
        ("generate chain --n 5 -o {0}/none/g.gr", "none is not; create it"),
        ("prepare {0}/none.gr -o {0}/p.gr", ".npz"),
        ("sssp {0}/g.csv --sources 0 -o {0}/g.csv", "the graph and --out must be two files"),
        ("hops {0}/g.csv --closeness {0}/g.csv", "the graph and --closeness must be two files"),
        (
            "hops {0}/g.csv --closeness {0}/c.csv --eccentricities {0}/c.csv",
            "--eccentricities and --closeness must be two files",
        ),
    ],
)
def test_outputs_are_checked_before_the_work(refused, save, tmp_path, words, part):
    graph = save("g.csv", "# base 0\n0,1,3\n")
    refused([part], *words.format(tmp_path).split())
    assert graph.read_text() == "# base 0\n0,1,3\n"


@pytest.mark.parametrize(
    ("words", "status", "parts"),
    [
        ("generate tree --n 5 -o g.gr", BAD_INPUT, ["tree", *GENERATORS]),
        (
            "generate erdos_renyi --n 5 -o g.gr",
            BAD_INPUT,
            ["must be given for kind erdos_renyi", "pass it"],
        ),
        (
            "generate erdos_renyi --n 5 --p 1.5 -o g.gr",
            BAD_INPUT,
            ["--p must", "[0, 1], but is 1.5"],
        ),
        ("generate erdos_renyi --n 5 --p half -o g.gr", BAD_INPUT, ["'half'"]),
        ("generate chain --n 5 --p 0.5 -o g.gr", BAD_INPUT, ["leave it out"]),
        ("generate chain --n -5 -o g.gr", BAD_INPUT, ["--n: must be an integer from 1", "'-5'"]),
        ("generate chain --n 0 -o g.gr", BAD_INPUT, ["--n: must be an integer from 1", "'0'"]),
        ("generate chain --n 5 -o g.graph", BAD_INPUT, ["ends in .graph"]),
        ("generate chain --n 5", BAD_INPUT, ["-o"]),
        (f"generate grid --n {10**12} -o g.gr", FAILED, ["must fit the memory"]),
        (f"generate grid --n {10**400} -o g.gr", BAD_INPUT, ["must be at most 2**62"]),
        ("bench --n 0", BAD_INPUT, ["integer from 1", "'0'"]),
        ("bench --method dijkstra", BAD_INPUT, ["dijkstra", *METHODS]),
        ("bench --n 10000000 --device cpu", FAILED, ["10000000 vertices"]),
        ("solve", BAD_INPUT, ["GRAPH"]),
        ("solv", BAD_INPUT, ["solve", "generate", "info", "bench", "tune"]),
        ("path e.gr 1 1", BAD_INPUT, ["SOURCE needs a graph with vertices"]),
        (
            "path r.gr 0 1",
            BAD_INPUT,
            ["SOURCE must be a vertex of the graph from 1 to 4, but is 0"],
        ),
        ("path r.gr 1 5", BAD_INPUT, ["TARGET"]),
        ("hops r.gr --weighted -o h.npy", BAD_INPUT, ["--out writes numbers of edges"]),
        ("hops r.gr --sources 1", BAD_INPUT, ["--sources names rows of --out"]),
        ("hops r.gr --sources 9 -o h.npy", BAD_INPUT, ["--sources must be a vertex", "but is 9"]),
        (
            "sssp r.gr --sources 0",
            BAD_INPUT,
            ["--sources must be a vertex of the graph from 1 to 4"],
        ),
        ("sssp r.gr --sources 1,2", BAD_INPUT, ["but is 1,2; give one of these, and blanks betw"]),
        ("sssp r.gr", BAD_INPUT, ["required: --sources"]),
        ("sssp r.gr --sour 1", BAD_INPUT, ["required: --sources"]),
        ("bench --meth kleene", BAD_INPUT, ["unrecognized arguments: --meth kleene"]),
        ("tune --ker product", BAD_INPUT, ["unrecognized arguments: --ker product"]),
        *(
            (words, BAD_INPUT, [f"{option} must be given once, with all its values, but is given"])
            for words, option in (
                ("sssp r.gr --sources 1 --sources 2", "--sources"),
                ("solve r.gr -o d.npy --out e.npy", "-o/--out"),
                ("solve r.gr --format gr --format gr", "--format"),
                ("generate chain --n 5 --seed 0 --seed 1 -o g.gr", "--seed"),
                ("bench --n 3 --n 4", "--n"),
                ("tune --dtype int16 --dtype int32", "--dtype"),
            )
        ),
        ("sssp r.gr --sources 1 --dtype int16", BAD_INPUT, ["invalid choice: 'int16'"]),
        ("sssp r.gr --sources 1 --limit -1", BAD_INPUT, ["--limit must be a number"]),
        (
            "sssp r.gr --sources 1 --method frontier --all-methods",
            BAD_INPUT,
            ["--all-methods runs every method, but --method frontier"],
        ),
    ],
)
def test_arguments(refused, save, tmp_path, monkeypatch, words, status, parts):
    monkeypatch.chdir(tmp_path)
    save("e.gr", "p sp 0 0\n")
    save("r.gr", "p sp 4 4\na 1 2 3\na 2 3 1\na 3 4 7\na 4 1 2\n")
    refused(parts, *words.split(), status=status)


def test_a_warning_names_the_options_that_end_it(cli, save):
    path = save("g.csv", "follower,followed\na,b\nb,c\n")
    assert "give --header if it names the columns, or --no-header if" in cli("solve", path).err
    assert cli("solve", path, "--no-header", "--json").json["n"] == 5
    error = cli("solve", save("w.csv", ",a,b\na,0,3\nb,3,0\n"), "--base", 0).err
    assert error.endswith("leave it out, or give --no-matrix.\n")
    assert in_options("`weight_error`") == "--weight-error"
    assert in_options("give `columns=''`:") == 'give --columns "":'


def test_errors_name_the_options_of_the_command(cli, save):
    graph = save("s.gr", FIVE)
    for words, part in (
        (["solve", graph, "--foo"], "--foo; see python -m tri_apsp solve --help."),
        (["--foo"], "--foo; see python -m tri_apsp --help."),
        (["solve", graph, "--dtype", "int16", "--method", "frontier"], ": --method frontier needs"),
        (["sssp", graph, "--sources", 1, "--limit", -3], "--limit must be a number"),
    ):
        found = cli(*words)
        assert (found.status, found.out) == (BAD_INPUT, "")
        assert part in found.err
    rows = in_options("give fewer sources, or solve blocks of rows with distance_blocks.")
    assert rows == "give fewer sources, or write all rows with solve -o FILE.npy."
    kept = 'shape `(n, n)` of `graph`, where x="y", and `# base 0`'
    assert in_options(kept) == kept
