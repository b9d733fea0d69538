"""Early looks for negative cycles, as a GPU takes them: each reads what the one before found."""

from __future__ import annotations

import pytest
import torch

import tri_apsp
from tri_apsp.errors import NegativeCycleError
from tri_apsp.gpu.value_range import Scan
from tri_apsp.solver import verification as audit
from tri_apsp.solver.value_range import scan
from tri_apsp.solver.verification import EarlyLook

LOG = list[tuple[str, int]]


class Findings:
    """What tri_apsp.findings.Findings does, noted in `log` under the turn of the look."""

    log: LOG

    def __init__(self, like: torch.Tensor) -> None:
        self._turn = sum(what == "queue" for what, _ in self.log)

    def scan(self, tensor: torch.Tensor, below: object) -> None:
        self._lowest = tensor.amin().item()
        self.log.append(("queue", self._turn))

    def mark(self) -> None:
        self.log.append(("mark", self._turn))

    def read(self) -> list[Scan]:
        self.log.append(("read", self._turn))
        return [Scan(self._lowest, 0)]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> LOG:
    monkeypatch.setattr(Findings, "log", [], raising=False)
    monkeypatch.setattr(audit, "Findings", Findings)
    monkeypatch.setattr(audit, "has_kernels", lambda tensor: True)
    return Findings.log


def test_a_look_reads_what_the_one_before_found(log: LOG) -> None:
    distances = torch.zeros(1, 4, 4)
    look = EarlyLook(distances, None)
    for _ in range(3):
        look(distances)
    assert log == [
        ("queue", 0), ("mark", 0),
        ("queue", 1), ("mark", 1), ("read", 0),
        ("queue", 2), ("mark", 2), ("read", 1),
    ]  # fmt: skip
    look.finish()
    assert log[8:] == [("read", 2)]
    look.finish()
    assert len(log) == 9


def test_a_negative_cycle_is_raised_a_look_later_and_nothing_stays_unread(log: LOG) -> None:
    distances = torch.zeros(2, 4, 4)
    look = EarlyLook(distances, None)
    distances[1, 2, 2] = -1
    look(distances)
    with pytest.raises(NegativeCycleError) as caught:
        look(distances)
    assert (caught.value.batch, caught.value.vertices) == (1, (2,))
    assert {turn for what, turn in log if what == "read"} == {0, 1}


def test_the_last_look_is_read_in_the_end(log: LOG) -> None:
    distances = torch.zeros(1, 4, 4)
    look = EarlyLook(distances, None)
    look.finish()
    distances[0, 0, 0] = -1
    look(distances)
    with pytest.raises(NegativeCycleError):
        look.finish()


def test_only_the_diagonal_counts(log: LOG) -> None:
    distances = torch.full((1, 4, 4), -1.0)
    distances[0].fill_diagonal_(0)
    look = EarlyLook(distances, None)
    look(distances)
    look.finish()


def test_a_solve_never_looks_at_what_it_ends_with(log: LOG, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit after it does."""
    monkeypatch.setattr("tri_apsp.api.LOOK_EVERY", 1)
    weights = torch.ones(40, 40)
    weights[0, 1] = -0.5
    tri_apsp.shortest_paths(weights, method="floyd_warshall", config=tri_apsp.Config(block_size=10))
    assert [what for what, _ in log].count("queue") == 3
    assert [what for what, _ in log].count("read") == 3


@pytest.mark.parametrize(("highest", "scans"), [(9, 0), (tri_apsp.no_edge(torch.int32), 1)])
def test_negative_integers_are_read_again_only_where_some_may_be_no_edge(
    monkeypatch: pytest.MonkeyPatch, highest: int, scans: int
) -> None:
    distances = torch.tensor([[[0, highest], [-3, 0]]], dtype=torch.int32)
    known = distances.clone()
    seen = []
    monkeypatch.setattr(audit, "scan", lambda *args, **options: seen.append(args) or scan(*args, **options))
    found = Scan(-3, highest, 0 if scans else highest, 0)
    audit.audit(distances, known, True, 9, lambda matrix: None, found=found)
    assert len(seen) == scans
    assert torch.equal(distances, known)
