"""Checks for negative values on the diagonal, as a GPU runs them: each evaluates the one before."""

from typing import ClassVar

import pytest
import torch

import tri_apsp
from tri_apsp import configs
from tri_apsp.dense.verification import EarlyCheck, NegativeDiagonalError
from tri_apsp.engines import MatrixSpec
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.value_range import PendingRanges, ValueRange

Log = list[tuple[str, int]]
CPU = torch.device("cpu")


class Pending:
    def __init__(self, log: Log, number: int, lowest: float) -> None:
        self._log, self._number, self._lowest = log, number, lowest

    def read(self) -> list[ValueRange]:
        self._log.append(("read", self._number))
        return [ValueRange(self._lowest, 0)]


class ReadingEngine(CpuEngine):
    """A cpu engine that reads diagonals beside other work, and logs it under the number of the
    check.
    """

    log: ClassVar[Log] = []

    @classmethod
    def queue_value_range(cls, tensor: torch.Tensor) -> PendingRanges:
        number = sum(what == "queue" for what, _ in cls.log)
        cls.log.append(("queue", number))
        return Pending(cls.log, number, tensor.amin().item())


@pytest.fixture
def log() -> Log:
    ReadingEngine.log.clear()
    return ReadingEngine.log


@pytest.fixture
def check() -> EarlyCheck:
    spec = MatrixSpec(4, torch.float32, CPU, False)
    return EarlyCheck(ReadingEngine(spec, configs.default_config("cpu", torch.float32)))


def test_a_check_evaluates_the_one_before(log: Log, check: EarlyCheck) -> None:
    distances = torch.full((1, 4, 4), -1.0)
    distances[0].fill_diagonal_(0)
    check.finish()
    for _ in range(3):
        check(distances)
    assert log == [("queue", 0), ("queue", 1), ("read", 0), ("queue", 2), ("read", 1)]
    check.finish()
    assert log[5:] == [("read", 2)]
    check.finish()
    assert len(log) == 6


def test_a_negative_value_raises_a_check_later(log: Log, check: EarlyCheck) -> None:
    """And every check is read."""
    distances = torch.zeros(2, 4, 4)
    distances[1, 2, 2] = -1
    check(distances)
    with pytest.raises(NegativeDiagonalError):
        check.finish()
    check(distances)
    with pytest.raises(NegativeDiagonalError):
        check(distances)
    assert {number for what, number in log if what == "read"} == {0, 1, 2}


def test_the_last_step_of_a_solve_is_not_checked_early(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is verified with the result."""
    monkeypatch.setattr(CpuEngine, "check_interval", 1)
    monkeypatch.setattr("tri_apsp.engines.type_of", lambda name: ReadingEngine)
    weights = torch.ones(40, 40)
    weights[0, 1] = -0.5
    tri_apsp.shortest_paths(weights, method="floyd_warshall", config=tri_apsp.Config(block_size=10))
    assert [what for what, _ in log].count("queue") == 3
    assert [what for what, _ in log].count("read") == 3
