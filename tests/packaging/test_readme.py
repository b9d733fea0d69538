"""README.md: its commands can be extracted, its example runs, and it names every method, engine,
format and error.

Its figures, and those of reports/README.md, are figures of rows in reports/.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from tri_apsp import errors
from tri_apsp.console.tables import read_csv
from tri_apsp.engines import ENGINES
from tri_apsp.graphs import DISTANCE_FORMATS, READ_FORMATS, grid_of, write_graph
from tri_apsp.interop.networkx_info import FUNCTIONS
from tri_apsp.methods import METHODS
from tri_apsp.papers import SYSTEMS
from tri_apsp.sparse.choice import JOHNSON
from tri_apsp.sparse.single_source import SourceMethod

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_commands_of_one_line():
    marked = re.findall(r"^<!-- command: (.+) -->\n```bash\n(.+)\n```$", README, re.MULTILINE)
    assert [name for name, _ in marked] == ["main job", "cpu install", "sparse", "tests"]
    assert [f"{command}\n" for _, command in marked] == blocks("bash")


def test_the_cpu_build_is_the_one_that_is_pinned():
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    (version,) = re.findall(r"^torch==(\S+)$", constraints, re.MULTILINE)
    assert (
        f"pip install torch=={version} --index-url https://download.pytorch.org/whl/cpu && pip install -c "
        in README
    )


def test_the_first_screen():
    """What it is, one command, one picture, one table, the contents; all other sections come later."""
    first, *sections = README.split("\n## ")
    order = [
        "<!-- command: main job -->",
        "](reports/rate.svg)",
        "\n| machine |",
        "[Install](#install) ·",
    ]
    places = [first.index(part) for part in order]
    assert places == sorted(places)
    assert (
        first.count("```bash"),
        first.count("!["),
        len(re.findall(r"^\|---", first, re.MULTILINE)),
    ) == (1, 1, 1)
    names = [section.partition("\n")[0] for section in sections]
    assert names[:3] == ["Install", "Use", "When not to use this"]
    assert re.findall(r"\]\(#([\w-]+)\)", first.rpartition("\n\n")[2]) == [
        name.lower().replace(" ", "-") for name in names
    ]


MACHINES = {
    "NVIDIA H200": "nvidia-h200",
    "AMD EPYC 9004, two cores": "amd-epyc-2-cores",
    "AMD EPYC 9004, one core": "scipy",
}
KINDS = {
    "no negative weight": {},
    "weights of any sign": {"sign": "any"},
    "int16": {"dtype": "int16"},
    "": {},
}


RESULTS = (ROOT / "reports" / "README.md").read_text(encoding="utf-8")


def figures():
    """Yield (machine, engine, kind, operation, n, figure) of each figure in a table of README or of
    the list of reports.
    """
    for table in re.findall(r"^\| machine .*\n(?:\|.*\n)+", README + RESULTS, re.MULTILINE):
        head, _, *rows = (
            [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()
        )
        for label, *cells in rows:
            machine = next(name for name in MACHINES if label.startswith(name))
            engine, _, kind = label.removeprefix(f"{machine}, ").partition(" engine")
            for column, cell in zip(head[1:], cells, strict=True):
                if cell:
                    operation, n = re.fullmatch(r"(product|solve) n = (\d+)", column).groups()
                    yield pytest.param(
                        MACHINES[machine],
                        engine,
                        kind.lstrip(", "),
                        operation,
                        n,
                        cell,
                        id=f"{label} {column}",
                    )


@pytest.mark.parametrize(("machine", "engine", "kind", "operation", "n", "figure"), [*figures()])
def test_every_figure_names_its_machine_and_is_measured(
    machine, engine, kind, operation, n, figure
):
    """The figure is that of a row in reports/, of any of the machines of that kind."""
    wanted = {
        "dtype": "float32",
        "sign": "nonnegative",
        "n": n,
        "batch": "1",
        "engine": engine,
    } | KINDS[kind]
    if machine == "scipy":
        machine, wanted["engine"] = "amd-epyc-2-cores", "cpu"
    rates = set()
    for path in (ROOT / "reports" / machine).glob("*.csv"):
        for row in read_csv(path):
            if (
                all(row.get(name, value) == value for name, value in wanted.items())
                and "operation" in row
            ):
                seconds = row["scipy_seconds"] if "scipy" in engine else row["p50_seconds"]
                if seconds and (operation == "product") == (row["operation"] == "min_plus"):
                    rates.add(int(n) ** 3 / float(seconds))
    for row in read_csv(ROOT / "reports" / "peers.csv"):
        if row["project"].partition(" (")[0] in engine and row["n"] == n:
            rates.add(float(row["ops_per_second"]))
    value, prefix = figure.split()
    digits, unit = len(value.partition(".")[2]), {"T": 1e12, "G": 1e9}[prefix]
    assert float(value) in {round(rate / unit, digits) for rate in rates}


def test_the_examples_print_what_is_shown(capsys, monkeypatch, tmp_path):
    """They run in their order, as in one script; the text after an example is its output."""
    monkeypatch.chdir(tmp_path)
    write_graph(grid_of(1024), "grid.gr")
    names: dict[str, Any] = {}
    examples = re.findall(
        r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", README, re.MULTILINE | re.DOTALL
    )
    assert len(examples) >= 3
    for example, output in examples:
        if "networkx" in example:
            continue
        exec(example, names)
        assert capsys.readouterr().out == output
        if "write_distances(" in example:
            assert np.load("distances.npy").tolist() == names["distances"].tolist()


def test_the_example_of_networkx_runs(capsys):
    nx = pytest.importorskip("networkx")
    if "tri_apsp" not in nx.utils.backends.backends:
        pytest.skip("the entry points of this clone are not installed")
    (example,) = (block for block in blocks("python") if "networkx" in block)
    with nx.config(backend_priority=[]):
        exec(example, {})
    assert capsys.readouterr().out == "4\n"


def test_every_function_of_the_backend_is_named():
    assert f"{len(FUNCTIONS)} functions run on it" in README
    assert all(
        f"`{name}`" in README or f"`{name.removesuffix('_length').removesuffix('_path')}`" in README
        for name in FUNCTIONS
    )


NAMES = """
import sys, tri_apsp
for statement in sys.argv[1:]:
    exec(statement)
"""


def test_every_python_name_exists_after_the_import_shown():
    imports = re.findall(r"`(from tri_apsp[\w.]* import \w+)`", README)
    names = re.findall(r"`(tri_apsp\.[\w.]+)[`(]", README)
    modules = ["tri_apsp.interop.pyg", "tri_apsp.interop.graphormer", "tri_apsp.tune"]
    assert [statement.split()[1] for statement in imports] == modules
    assert names == ["tri_apsp.csgraph", "tri_apsp.tuned"]
    # In a new process, and the names first: they must not need an import that is shown only for
    # something else.
    subprocess.run([sys.executable, "-c", NAMES, *names, *imports], timeout=120, check=True)


def test_only_one_command_has_a_short_name():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    scripts = re.findall(r'^([\w-]+) = "(\w+)\.__main__:main"$', project, re.MULTILINE)
    assert [
        f"`{name}` is short for `python -m {module}`;" in README for name, module in scripts
    ] == [True]


@pytest.mark.parametrize(
    "name", [*METHODS, *SYSTEMS, JOHNSON, *get_args(SourceMethod), *ENGINES, *errors.__all__]
)
def test_every_name_is_explained(name):
    assert f"`{name}`" in README


@pytest.mark.parametrize(
    "extension", sorted({name.removesuffix(".gz") for name in (*READ_FORMATS, *DISTANCE_FORMATS)})
)
def test_every_format_is_named(extension):
    assert f"`{extension}`" in README
