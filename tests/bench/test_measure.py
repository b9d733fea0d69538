"""measure(): rows for right results, and an error for a wrong one."""

import cases
import pytest
import torch

import tri_apsp
from tri_apsp.bench import measure as module
from tri_apsp.bench.cases import Case, edges_of
from tri_apsp.bench.measure import check_sources, measure
from tri_apsp.configs import Config
from tri_apsp.semirings import SIGNS

CPU = torch.device("cpu")


def measured(case, methods, repeat=3, scipy_up_to=0, **named):
    named |= {"repeat": repeat, "scipy_up_to": scipy_up_to}
    return list(measure([(case, methods)], CPU, config=Config(), **named))


@pytest.mark.parametrize("scipy_up_to", [0, 64])
@pytest.mark.parametrize(
    "case", [Case(16), Case(16, batch=2), Case(16, sign=SIGNS[1])], ids=["plain", "batch", "signed"]
)
@pytest.mark.parametrize(
    ("name", "row"),
    [("min_plus", 0), ("min_plus", -1), ("solve_by", 0), ("solve_by", 1), ("solve_by", -1)],
)
def test_a_wrong_result_is_not_timed(monkeypatch, name, case, scipy_up_to, row):
    """A row inside is checked by SciPy alone, or where methods differ."""

    def wrong(*args, **named):
        result = right(*args, **named)
        checked = result if name == "min_plus" else result.distances
        checked[..., row, 5] += name == "min_plus" or args[0] != "auto" or row != 1
        return result

    right = getattr(module, name)
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(AssertionError, match="wrong"):
        measured(case, ["auto", "kleene", "floyd_warshall"], scipy_up_to=scipy_up_to)


def test_percentiles_and_warm_up(monkeypatch):
    """Ten runs per call that take 1..10 s, on a device that is warmed up before each call."""
    events = []

    def timed(call, device):
        events.append("run")
        return call(), float((events.count("run") - 1) % 10 + 1)

    monkeypatch.setattr(module, "timed", timed)
    monkeypatch.setattr(module, "warm_up", lambda call, device: events.append("warm-up"))
    for row in measured(Case(8, batch=2), ["kleene"], repeat=10):
        assert (row.p20_seconds, row.p50_seconds, row.p80_seconds) == pytest.approx((2.8, 5.5, 8.2))
        assert row.ops_per_second == pytest.approx(2 * 8**3 / 5.5)
    assert events == (["warm-up"] + ["run"] * 10) * 2


def test_scipy_runs_up_to_a_number_of_operations(monkeypatch):
    """It runs once per graph, whatever the dtypes, and counts a batch by its operations."""
    solved = []

    def counted(case):
        solved.append(case.graphs)
        return right(case)

    right = module.scipy_distances
    monkeypatch.setattr(module, "scipy_distances", counted)
    cases = [
        Case(n, dtype, batch)
        for dtype in (torch.float32, torch.int16)
        for n, batch in ((8, 1), (9, 1), (4, 8), (4, 9))
    ]
    rows = list(
        measure(
            [(case, ["kleene"]) for case in cases],
            CPU,
            config=Config(),
            repeat=3,
            scipy_up_to=8,
        )
    )
    assert solved == [(8, 1, "nonnegative"), (4, 8, "nonnegative")]
    assert [row.scipy_seconds is not None for row in rows[::2]] == [True, False, True, False] * 2


@pytest.mark.parametrize("case", [Case(70), Case(20, batch=3)], ids=["plain", "batch"])
@pytest.mark.parametrize("fault", [True, False])
def test_a_wrong_closure_is_not_timed(monkeypatch, case, fault):
    """One bit too many, or one too few: the diagonal is always in."""

    def wrong(edges):
        result = right(edges)
        result[..., 0, :] = fault
        return result

    right = module.reachability
    monkeypatch.setattr(module, "reachability", wrong)
    assert not right(edges_of(case, CPU)).all()
    with pytest.raises(AssertionError, match="reachability is wrong"):
        measured(case, [], closures=True)


def test_integers_with_negative_weights_and_no_path_are_right():
    weights = cases.tensor(cases.negative_graph(40), torch.int16)
    weights[-1], weights[:, -1] = tri_apsp.no_edge(torch.int16), tri_apsp.no_edge(torch.int16)
    distances = tri_apsp.shortest_paths(weights).distances
    check_sources(distances, weights, "auto")
    distances[0, 1] += 1
    with pytest.raises(AssertionError, match="auto is wrong"):
        check_sources(distances, weights, "auto")


@pytest.mark.parametrize("tried", [False, True])
def test_a_product_on_tensor_cores_has_no_bound(monkeypatch, tried):
    monkeypatch.setattr(module, "bound", lambda *args: 1e9)
    monkeypatch.setattr(module, "tries_exponents", lambda a, b: tried)
    (row,) = measured(Case(40), [])
    assert row.operation == "min_plus"
    assert (row.bound_fraction is None) == tried


@pytest.mark.parametrize("counts", [False, True])
def test_a_closure_on_tensor_cores_has_no_bound(monkeypatch, counts):
    monkeypatch.setattr(module, "bound", lambda *args: 1e9)
    monkeypatch.setattr("tri_apsp.engines.boolean.cpu.CpuBooleanEngine.counts_paths", counts)
    (row,) = measured(Case(40), [], closures=True)
    assert (row.bound_fraction is None) == counts
