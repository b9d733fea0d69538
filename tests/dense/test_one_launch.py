"""Solves in one launch whose kernel is for one sign of the weights: which kernels run, and that the
result is always right.
"""

from typing import ClassVar

import pytest
import torch

from tri_apsp import InputError, NegativeCycleError, engines, planning, select, shortest_paths
from tri_apsp.dense import one_launch
from tri_apsp.engines import Block
from tri_apsp.engines.base import QueueSolve
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.value_range import PendingRanges

NONNEGATIVE = torch.tensor([[0.0, 4, 1], [9, 0, 9], [9, 2, 0]])
NEGATIVE = torch.tensor([[0.0, 4, 1], [9, 0, 9], [9, -2, 0]])
EXPECTED = [[0, 3, 1], [9, 0, 9], [9, 2, 0]]
EXPECTED_OF_NEGATIVE = [[0, -1, 1], [9, 0, 9], [7, -2, 0]]


class BySign(CpuEngine):
    """Solves graphs without negative weights by other code, which is of no use for others."""

    solved: ClassVar[list[bool]] = []
    """Whether each solve was for weights of which none is negative."""

    @classmethod
    def solves_by_sign(cls, weights: torch.Tensor) -> bool:
        return True

    def queue_solve_of(self, weights: torch.Tensor, *, check: bool = True) -> QueueSolve:
        solve = super().queue_solve_of(weights, check=check)

        def queue(
            weights: torch.Tensor, sizes: torch.Tensor | None
        ) -> tuple[Block, PendingRanges | None]:
            self.solved.append(self.spec.nonnegative)
            distances, found = solve(weights, sizes)
            if self.spec.nonnegative and bool((weights < 0).any()):
                distances.fill_(-7)
            return distances, found

        return queue


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    monkeypatch.setattr(engines, "type_of", lambda name: BySign)
    one_launch._NEGATIVE.clear()
    planning._PLANS.clear()
    BySign.solved.clear()
    return BySign.solved


def solve(weights: torch.Tensor) -> None:
    distances = shortest_paths(weights).distances
    assert distances.tolist() == (EXPECTED if weights[2, 1] > 0 else EXPECTED_OF_NEGATIVE)


def test_the_next_weights_are_expected_to_be_like_the_last(solved: list[bool]) -> None:
    for weights in (NONNEGATIVE, NEGATIVE, NEGATIVE, NONNEGATIVE, NONNEGATIVE):
        solve(weights)
        solved.append(weights is NONNEGATIVE)
    assert solved == [
        *(True, True),
        *(True, False, False),  # solved again
        *(False, False),
        *(False, True),
        *(True, True),
    ]


@pytest.mark.parametrize("weights", [NONNEGATIVE, NEGATIVE])
def test_the_plan_has_the_sign_of_the_weights(weights: torch.Tensor) -> None:
    plan = shortest_paths(weights).plan
    assert plan == select(weights, read_values=True)
    assert plan.nonnegative == (weights is NONNEGATIVE)


def test_the_first_weights_are_read(solved: list[bool]) -> None:
    solve(NEGATIVE)
    solve(NONNEGATIVE.double())
    assert solved == [False, True]


@pytest.mark.parametrize(
    ("value", "error", "signs"),
    [(torch.nan, InputError, [True]), (-20, NegativeCycleError, [True, False])],
)
def test_weights_that_are_refused(
    solved: list[bool], value: float, error: type[Exception], signs: list[bool]
) -> None:
    """Only where no weight was expected to be negative, they are solved again."""
    solve(NONNEGATIVE)
    with pytest.raises(error):
        shortest_paths(torch.where(NEGATIVE < 0, value, NEGATIVE))
    assert solved == [True, *signs]
