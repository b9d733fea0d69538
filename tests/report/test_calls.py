"""Studies of whole calls: every call is checked before it is timed, and passed over if it would
take too long.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable

import pytest
import torch

pytest.importorskip("matplotlib")

from report.fake import ENVIRONMENT, H200, FakeMeasurer, target

from tri_apsp.api import shortest_paths
from tri_apsp.bench.cases import Case
from tri_apsp.console.exit_status import FAILED
from tri_apsp.device import describe
from tri_apsp.errors import EngineError, InputError, TooLargeError
from tri_apsp.graphs import erdos_renyi
from tri_apsp.messages import counted
from tri_apsp.methods import METHODS
from tri_apsp.papers import SYSTEMS
from tri_apsp.reference import floyd_warshall
from tri_apsp.report import calls
from tri_apsp.report.__main__ import main
from tri_apsp.report.calls import Call, CallMeasurer
from tri_apsp.report.grids import Point
from tri_apsp.report.measuring import measure
from tri_apsp.report.page import write_study
from tri_apsp.report.rows import StudyRows
from tri_apsp.report.studies import study_of
from tri_apsp.report.study import Target
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.space.task import Task

CPU = torch.device("cpu")
TASK = Task("cpu", "solve", "float32", "nonnegative", 64)
OF_CALLS = ("concurrency", "squaring", "implementations")


class Given:
    """Calls that `change` makes of right distances."""

    def __init__(
        self,
        change: Callable[[torch.Tensor], torch.Tensor] = lambda distances: distances,
        own: float | None = None,
    ):
        self.change, self.sizes = change, []
        self.seconds = lambda n: own

    def graph_kind(self, point: Point) -> str:
        return "complete"

    def weights(self, task: Task, point: Point, device: torch.device) -> torch.Tensor:
        return Case(task.n, task.torch_dtype).weights(device)

    def call(self, task: Task, point: Point, weights: torch.Tensor) -> Call:
        def run() -> tuple[torch.Tensor, float | None]:
            self.sizes.append(weights.shape[0])
            return self.change(shortest_paths(weights).distances), self.seconds(weights.shape[0])

        return run


def screen(given: Given, seconds: float = 60.0, task: Task = TASK):
    return CallMeasurer(CPU, given).screen(task, Point({"call": "some"}), seconds)


def test_a_right_call_is_timed():
    given = Given()
    outcome = screen(given)
    assert outcome.kind is Kind.correct
    assert 0 < outcome.times.p20_ms <= outcome.times.p50_ms <= outcome.times.p80_ms
    assert given.sizes[:2] == list(calls._SMALL)
    assert given.sizes.count(TASK.n) > calls._MIN_RUNS


def test_a_call_that_times_itself_runs_once():
    given = Given(own=0.25)
    outcome = screen(given)
    assert outcome.times.p20_ms == outcome.times.p80_ms == 250
    assert given.sizes.count(TASK.n) == 1


def test_a_call_that_is_wrong_on_small_graphs_is_not_timed():
    def one_too_far(distances: torch.Tensor) -> torch.Tensor:
        distances[0, 1] += 1
        return distances

    given = Given(one_too_far)
    outcome = screen(given)
    assert (outcome.kind, outcome.times) == (Kind.wrong_result, None)
    assert "1 of the 10000 distances of a sparse graph of 100 vertices are wrong" in outcome.message
    assert TASK.n not in given.sizes


def test_a_call_that_is_wrong_on_the_timed_graph_is_not_timed():
    outcome = screen(Given(lambda distances: distances + (distances.shape[0] == TASK.n)))
    assert (outcome.kind, outcome.times) == (Kind.wrong_result, None)


def test_a_call_that_fails_keeps_no_row():
    """The device may be unusable afterwards, and a row would never be measured again."""

    def fail(distances: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no")

    with pytest.raises(
        EngineError, match="a call failed, and no row was kept of it: RuntimeError: no"
    ):
        screen(Given(fail))


def test_an_error_of_the_surroundings_is_no_outcome():
    """Such as a variable of the environment: a row of it would never be measured again."""

    def refuse(distances: torch.Tensor) -> torch.Tensor:
        raise InputError("TRI_APSP_OBJECTIVE must be one of time, energy.")

    with pytest.raises(InputError, match="TRI_APSP_OBJECTIVE"):
        screen(Given(refuse))


def test_a_call_that_would_take_longer_than_its_share_is_passed_over():
    given = Given(own=1.0)
    measurer, point = CallMeasurer(CPU, given), Point({"call": "some"})
    assert measurer.screen(TASK, point, 1.0).kind is Kind.correct
    double = Task("cpu", "solve", "float32", "nonnegative", 2 * TASK.n)
    assert measurer.screen(double, point, 7.9) is None, "8 s, once: a long call is not repeated"
    assert 2 * TASK.n not in given.sizes
    assert measurer.screen(double, point, 8.1).kind is Kind.correct


@pytest.mark.parametrize(
    ("seconds", "probed"), [(60.0, [1]), (5000.0, [1, 4]), (300_000.0, [1, 4, 16])]
)
def test_a_large_call_of_unknown_speed_first_solves_smaller_graphs(monkeypatch, seconds, probed):
    """Up to one that shows that it takes too long: here the graph of n vertices takes n^3 s."""
    monkeypatch.setattr(calls, "_PROBED", TASK.n)
    given = Given(own=1.0)
    given.seconds = lambda n: float(n**3)
    screen(given, seconds)
    assert [n for n in dict.fromkeys(given.sizes) if n < calls._SMALL[0]][: len(probed)] == probed
    assert (TASK.n in given.sizes) == (seconds > TASK.n**3)


def test_the_first_run_of_a_probe_may_compile_kernels(monkeypatch):
    monkeypatch.setattr(calls, "_PROBED", TASK.n)
    given = Given()

    def timed(call: Call, device: torch.device) -> tuple[object, float]:
        found = call()
        return found, 100.0 if given.sizes.count(given.sizes[-1]) == 1 else 0.001

    monkeypatch.setattr(calls, "timed", timed)
    assert screen(given, 60.0).kind is Kind.correct


def test_a_final_times_all_calls_in_rounds():
    measurer = CallMeasurer(CPU, Given())
    outcomes = measurer.final(TASK, [Point({"call": "some"}), Point({"call": "other"})], 3)
    assert [outcome.kind for outcome in outcomes] == [Kind.correct] * 2
    assert all(outcome.times.p50_ms > 0 for outcome in outcomes)


@pytest.fixture
def study(tmp_path, capsys):
    """Return a function that runs a study on the CPU within a tiny budget, and returns its page and
    its rows.
    """

    def run(name: str, *words: str) -> tuple[str, list[str]]:
        arguments = [
            name,
            "--device",
            "cpu",
            "--n",
            "48",
            "--budget",
            "20",
            "--commit",
            "abc",
            "--out",
            str(tmp_path),
            *words,
        ]
        assert main(arguments) == 0
        (page,) = tmp_path.glob(f"*/{name}.md")
        return page.read_text(encoding="utf-8"), page.with_suffix(".csv").read_text(
            encoding="utf-8"
        ).splitlines()[1:]

    return run


@pytest.mark.parametrize("name", OF_CALLS)
def test_a_study_from_end_to_end(study, name):
    page, rows = study(name)
    assert "Incomplete" not in page
    assert page.index(f"![{name}]({name}.svg)") < page.index("## Times")
    assert "Measured with" in page
    assert study(name) == (page, rows), "nothing is measured twice"
    assert study(name, "--render-only", describe(CPU).slug) == (page, rows)


def test_a_page_shows_what_earlier_commands_measured(study):
    study("squaring")
    page, rows = study("squaring", "--n", "40", "40")
    assert "|  | n = 40 | n = 48 |" in page
    assert len(rows) == 12
    assert (
        "; now, complete graphs and n / 4 edges per row take, for n = 48 in float32, "
        in " ".join(page.split())
    )
    assert "Incomplete" not in page


def test_what_an_earlier_command_left_out_has_a_command_of_its_own(study, tmp_path):
    study("squaring")
    (rows,) = tmp_path.glob("*/squaring.csv")
    rows.write_text(
        "".join(rows.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8"
    )
    page, _ = study("squaring", "--n", "40")
    again = (
        f"python -m tri_apsp.report squaring --device cpu --n 48 --dtype float32 --out {tmp_path}"
    )
    left = "Incomplete: 1 of 12 configurations are not measured, in 1 of 2 comparisons. This command continues:"
    assert f"{left} {again} " in " ".join(page.split())
    assert (
        "* Squaring, float32, n = 48: 1 of 6 configurations: call auto, graph n / 4 edges per row."
        in page
    )


def test_a_page_shows_every_dtype(study):
    study("squaring")
    page, _ = study("squaring", "--dtype", "int32")
    assert page.index("### float32") < page.index("### int32")


def test_default_sizes_that_do_not_fit_are_left_out_by_name(tmp_path, monkeypatch, capsys):
    def check(n, *arguments, **options):
        if n > 512:
            raise TooLargeError(f"{n} vertices must fit the memory.")

    monkeypatch.setattr("tri_apsp.report.measuring.check_memory", check)
    assert main(["concurrency", "--device", "cpu", "--budget", "1", "--out", str(tmp_path)]) == 0
    output = capsys.readouterr()
    for n in (1024, 2048):
        assert (
            f"Concurrency, float32, n = {n}: left out: {n} vertices must fit the memory.\n"
            in output.err
        )
    assert "of 2 configurations" in output.err or "Incomplete" not in output.err
    assert (
        main(["concurrency", "--device", "cpu", "--n", "1024", "--out", str(tmp_path)]) == FAILED
    ), "it was asked for"


def test_a_run_that_measured_nothing_advises_a_longer_one(tmp_path, capsys):
    words = ["concurrency", "--device", "cpu", "--n", "2048", "--out", str(tmp_path)]
    assert main([*words, "--budget", "0.01"]) == 0
    assert (
        f"To continue: python -m tri_apsp.report concurrency --device cpu --n 2048 --budget 120 --out {tmp_path}"
        in (capsys.readouterr().err)
    )


@pytest.mark.parametrize("dtype", ["int16", "float64"])
def test_scipy_agrees_in_every_dtype(study, dtype):
    page, rows = study("implementations", "--dtype", dtype)
    assert f" in {dtype} on {counted(describe(CPU).units, 'core')}, and SciPy " in " ".join(
        page.split()
    )
    assert len(rows) == 6
    assert all(",correct," in row for row in rows)


@pytest.mark.parametrize("name", OF_CALLS)
def test_a_wrong_configuration_is_rejected_and_named(study, name, monkeypatch):
    method = {"concurrency": "kleene", "squaring": "squaring", "implementations": "iterative"}[name]
    solve = METHODS[method].solve

    @functools.wraps(solve)
    def wrong(d, engine, observer):
        solve(d, engine, observer)
        d[:, 0, -1] += 1

    monkeypatch.setattr(METHODS[method], "solve", wrong)
    page, rows = study(name)
    shown = {
        "concurrency": "one after another",
        "squaring": "until nothing changes",
        "implementations": "iterative",
    }[name]
    failures = page.partition("## Failures")[2].partition("## Measured")[0]
    assert shown in failures
    assert "wrong result" in failures
    assert any("wrong result" in row and shown in row for row in rows)


def test_the_two_sub_closures_may_not_run_side_by_side(study):
    page, rows = study("concurrency")
    text = " ".join(
        page.partition("## Why the two sub-closures may not run side by side")[2].split()
    )
    found = re.match(
        r"If step 9 does not wait for step 8, then (\d+) of the 10000 distances of a sparse random graph of 100 vertices are "
        r"wrong. The first is that from vertex (\d+) to vertex (\d+): (\d+) in place of (\d+)\.",
        text,
    )
    wrong, i, j, far, near = map(int, found.groups())
    assert 0 < wrong < 10000
    expected = floyd_warshall(
        erdos_renyi(100, 0.06, seed=0).to_weights(torch.float32).double().numpy()
    )
    assert expected[i, j] == near < far
    assert len(rows) == 4, "a configuration that must be wrong is not measured"


@pytest.fixture
def enough_memory(monkeypatch):
    monkeypatch.setattr(
        "tri_apsp.report.measuring.check_memory", lambda *arguments, **options: None
    )


def gpu_page(
    folder, name: str, fails: Callable[[Task, Point], Kind | None] = lambda task, point: None
) -> str:
    """Return the page of a study on an H200: n vertices take 1e-11 n^3 ms, and the k-th call of a
    grid k times as long.
    """
    one, here = study_of(name), target("nvidia")
    grids = one.grids(here, [], [])
    order = {
        (grid.task, *point.values.values()): 1 + k
        for grid in grids
        for k, point in enumerate(grid.points)
    }
    measurer = FakeMeasurer(
        lambda task, point: order[(task, *point.values.values())] * task.n**3 * 1e-11, fails
    )
    rows = StudyRows(folder / f"{name}.csv", one.parameters, ENVIRONMENT)
    results = measure(grids, rows, CPU, 100.0, lambda device: measurer)
    return " ".join(
        write_study(one, here, results, folder, name, ["again"]).read_text(encoding="utf-8").split()
    )


@pytest.mark.parametrize("name", OF_CALLS)
def test_the_page_of_a_gpu_leads_with_then_now_and_why(name, tmp_path, enough_memory):
    page = gpu_page(tmp_path, name)
    lead = page.partition("replaced by the next run --> ")[2].partition(f" ![{name}]({name}.svg)")[
        0
    ]
    assert re.fullmatch(r"Then, [^;]*; now, .*\.", lead)
    assert ". " not in lead, "one sentence"
    assert page.index(lead) < page.index("## Times")
    assert "Incomplete" not in page
    assert not re.search(r"\bnan\b|\bNone\b(?!:)", page)


def test_implementations_beside_the_papers(tmp_path, enough_memory):
    page = gpu_page(tmp_path, "implementations")
    ms = 8192**3 * 1e-11  # of this project at n = 8192; staged_load is the second of the grid
    assert (
        "Then, the papers' best took 6.88 s (Lund & Smith) and 7.87 s (Buluç, Gilbert, Budak) for n = 8192; "
        in page
    )
    times = f"{6880 / ms:.0f} and {7870 / ms:.0f} times as fast"
    factor = f"{6880 / (2 * ms):.0f} times as fast"
    assert (
        f"now, this project takes {ms:.3g} ms, {times}, because this GPU makes staged_load {factor}, and larger tiles"
        in page
    )
    assert "which use each loaded value more often, another 2.0 times. ![" in page
    assert f"| staged_load | 6.88 s, C1060 | {2 * ms:.3g} ms | {6880 / (2 * ms):.0f} |" in page
    assert f"| katz_kider / staged_load | {35.37 / 6.88:.1f} | 3.0 | |" in page
    assert "recursive_tuned is limited by" not in page, "a larger β is no faster here"
    assert "L1 cache" not in page, "nor are smaller squares"
    assert "| recursive_tuned, over 16 Opteron cores | 17.6 | 29 | 36.5 | 40 | 45.1 |" in page
    assert "over one core of an Intel i9-9900K: 570 at n = 16384 (Catinello)" in page
    assert "### staged_load, float32: m " in page
    assert "### vectorised, int16: columns per thread " in page
    assert "| this project, auto | float32 | 512 to 32768 | 3.00 | 1e-14 | |" in page
    assert "| recursive_plain | float32 | 512 to 32768 | 3.00 | 5e-14 | 2.94 |" in page
    peak = 2 * 1e14 / (128 * 132 * 1.98e9)
    assert f"| this project, auto | float32 | 512 | 200,000 | 100 T | {peak:.1%} |" in page


def test_a_gpu_without_the_size_of_the_papers_is_not_compared(tmp_path, enough_memory):
    page = gpu_page(
        tmp_path, "implementations", lambda task, point: Kind.timeout if task.n == 8192 else None
    )
    assert (
        "No system was measured beside this project at n = 8192, at which the papers state their best. !["
        in page
    )
    assert "programs for a CPU" not in page


def test_a_gpu_without_gluon_gets_the_systems_in_plain_triton():
    device = dataclasses.replace(H200, capability=None)
    (grid,) = study_of("implementations").grids(Target(CPU, "portable", device), [512], [])
    found = {str(point.values["implementation"]) for point in grid.points}
    assert found & {*SYSTEMS} == {"harish_narayanan", "simple", "vectorised", "pseudo_blocked"}
    (grid,) = study_of("implementations").grids(target("portable"), [512], [])
    assert {"katz_kider", "staged_load"} <= {
        str(point.values["implementation"]) for point in grid.points
    }


def test_concurrency_compares_with_one_after_another(tmp_path, enough_memory):
    page = gpu_page(tmp_path, "concurrency")
    lead = "two products together make a solve in float32 0.33 to 0.33 times as fast, and on two streams 0.50 to 0.50. !["
    assert lead in page, "no reason"
    assert "| on two streams | 0.50 | 0.50 |" in page


def test_the_gain_of_small_products_has_its_reason(tmp_path, enough_memory):
    """Together they take 3/4 of the time at n = 1024, and as long at n = 16384."""

    def cost(task: Task, point: Point) -> float:
        return task.n * (
            0.75 if point.values["steps"] == "together in one call" and task.n == 1024 else 1.0
        )

    one, here = study_of("concurrency"), target("nvidia")
    rows = StudyRows(tmp_path / "concurrency.csv", one.parameters, ENVIRONMENT)
    results = measure(one.grids(here, [], []), rows, CPU, 100.0, lambda device: FakeMeasurer(cost))
    page = " ".join(
        write_study(one, here, results, tmp_path, "concurrency").read_text(encoding="utf-8").split()
    )
    assert (
        "1.00 to 1.33 times as fast, and on two streams 1.00 to 1.00, because a small product leaves part of the GPU"
        in page
    )


def test_failures_of_calls_are_on_the_page(tmp_path, enough_memory):
    page = gpu_page(
        tmp_path,
        "implementations",
        lambda task, point: (
            Kind.wrong_result if point.values["implementation"] == "katz_kider" else None
        ),
    )
    assert (
        "| Implementations, float32, n = 512 | katz_kider | wrong result | fake wrong result |"
        in page
    )
