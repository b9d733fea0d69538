"""The study of scaling: processes of Gloo that are measured, and a model that agrees with them."""

import dataclasses
import math
from collections.abc import Iterator
from itertools import product

import pytest
import torch
import torch.distributed as dist

pytest.importorskip("matplotlib")

from fake_study import CPU

import tri_apsp
from reports.studies.scaling_model import Fitted, Solve, fit, forecast, simulate
from reports.studies.scaling_ranks import Problem, ProblemKind, RankProcesses, _Rank
from tri_apsp.distributed.model import Rates
from tri_apsp.errors import EngineError
from tri_apsp.tune.workloads import WrongResultError

N = 200


def test_two_processes_are_measured() -> None:
    ranks = RankProcesses((1, 2), "cpu")
    try:
        for count, kind in (
            (1, ProblemKind.DIRECT),
            (2, ProblemKind.DIRECT),
            (2, ProblemKind.STREAMED),
        ):
            seconds, metrics = ranks.measure(Problem(N, "float32", count, kind))
            assert 1 <= len(seconds) <= 3
            assert (metrics["block"] < 64) == (kind == ProblemKind.STREAMED)
            known = {"product", "closure"}
            known |= {"host"} if kind == ProblemKind.STREAMED else set()
            known |= {"broadcast", "latency"} if count > 1 else set()
            assert metrics.keys() - {"block", "waiting"} == known
            assert 0 <= metrics.pop("waiting") < 1
            assert all(value > 0 for value in [*seconds, *metrics.values()])
        seconds, metrics = ranks.measure(Problem(3000, "float32", 2, ProblemKind.CLOSENESS))
        assert metrics.keys() == {"ops_per_second"}
        assert len(seconds) > 0
        ranks._processes[0].kill()
        with pytest.raises(EngineError, match="one ended or is stuck"):
            ranks.measure(Problem(N, "float32", 1))
    finally:
        ranks.close()


@pytest.fixture
def group() -> Iterator[dist.ProcessGroup]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    assert dist.group.WORLD is not None
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize(
    ("kind", "n"),
    [
        *((ProblemKind.DIRECT, n) for n in (1, 60, 5000)),
        *((ProblemKind.EXPONENTS, n) for n in (1, 1000, 5000)),
    ],
)
def test_the_distances_of_a_graph_are_known(
    kind: ProblemKind, n: int, dtype: str, group: dist.ProcessGroup
) -> None:
    threads = torch.get_num_threads()
    rank = _Rank(group, CPU, Problem(n, dtype, 1, kind))
    torch.set_num_threads(threads)
    rows = torch.empty((min(n, 1000), n), dtype=getattr(torch, dtype))
    for part, weights, distances in rank._parts(rows):
        assert (weights >= distances).all()
        part.copy_(distances)
        if 1 < n <= 1000:
            found = tri_apsp.shortest_paths(weights.to(part.dtype)).distances
            assert torch.equal(found, part)
            least = n**2 / 3 if kind == ProblemKind.EXPONENTS else 3000
            assert (weights > distances).sum() > least
    rank._check(rows)
    rows[-1, -1] += 1
    with pytest.raises(WrongResultError, match="1 distances of a rank are wrong"):
        rank._check(rows)


RATES_GIVEN = Rates(16e12, 8e12, 50e9, 30e9, 300e9, latency=2e-5)
FITTED = Fitted(16e12, 0.1, 0.01)


def _solve(n: int, ranks: int, block: int = 1024, rates: Rates = RATES_GIVEN) -> Solve:
    return Solve(n, 4, ranks, block, False, rates)


def test_the_simulation_agrees_with_the_equations() -> None:
    for n, ranks, block in product((32768, 65536), (1, 2, 4, 8), (1024, 2048)):
        solve = _solve(n, ranks, block)
        found = FITTED.predict(solve)
        if found.bound == "products" and ranks * block * 3 < n:
            expected = pytest.approx(found.seconds, rel=0.03)
            assert simulate(solve, FITTED.rates(solve)) == expected


def test_ranks_wait_for_rows_that_come_late() -> None:
    solve = _solve(32768, 8, rates=dataclasses.replace(RATES_GIVEN, broadcast=1e9))
    found = forecast(FITTED, solve)
    assert (found.bound, found.share < 0.3) == ("critical path", True)
    assert simulate(solve, FITTED.rates(solve)) == pytest.approx(found.seconds, rel=0.1)


def test_a_network_of_the_forecast_bandwidth_hides_broadcasts() -> None:
    needed = forecast(FITTED, _solve(65536, 8)).network
    for factor, bound in ((1.1, "products"), (0.9, "critical path")):
        rates = dataclasses.replace(RATES_GIVEN, broadcast=factor * needed)
        found = forecast(FITTED._replace(held=0.0), _solve(65536, 8, rates=rates))
        assert found.bound == bound
        assert (found.most_ranks > 8) == (bound == "products")
    assert math.isinf(forecast(FITTED, _solve(65536, 64)).network)


@pytest.mark.parametrize("cores", [math.inf, 2])
def test_rates_are_found_from_times(cores: float) -> None:
    known = Fitted(16e12, 0.12, 0.02, cores)
    solves = [_solve(n, ranks) for n in (16384, 32768) for ranks in (1, 2)]
    found = fit([(solve, known.predict(solve).seconds) for solve in solves], cores)
    assert found.product == pytest.approx(16e12, rel=1e-3)
    assert (found.held, found.setup) == pytest.approx((0.12, 0.02), rel=0.02)
