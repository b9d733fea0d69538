"""The winner of a final."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tune.synthetic import correct

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.tune.candidates import with_method
from tri_apsp.tune.decision import Baselines, beats, choose_winner
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.results import Winner
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned import allowed_fields
from tri_apsp.tuned.records import record_of

TASK = TuningTask("nvidia", "solve", "int32", "nonnegative", 2048)
UNTUNED = with_method(default_config("nvidia", torch.int32), 2048)
TUNED = dataclasses.replace(
    UNTUNED, closure_tile=128
)  # by an entry of another kernel, for another size
INCUMBENT = dataclasses.replace(TUNED, cutoff=512)
FOUND = dataclasses.replace(TUNED, cutoff=256)
FAILED = Outcome(OutcomeKind.timeout)


def final(spread: float = 0.001, **ms: float | None) -> Winner | None:
    """Return the winner of a final with these times; a time of None: that configuration failed."""
    configs: dict[str, CompleteConfig] = {
        "untuned": UNTUNED,
        "tuned": TUNED,
        "incumbent": INCUMBENT,
        "found": FOUND,
    }
    outcomes = {
        configs[name]: FAILED if time is None else correct(time, spread)
        for name, time in ms.items()
    }
    return choose_winner(
        TASK, Baselines(TUNED, UNTUNED, INCUMBENT if "incumbent" in ms else TUNED), outcomes
    )


def winner(**ms: float | None) -> Winner:
    found = final(**ms)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("new", "old", "wins"),
    [
        (correct(1.0), correct(1.03), True),
        (correct(1.0), correct(1.021), True),
        (correct(1.0), correct(1.019), False),
        (correct(1.0), correct(1.01), False),
        (correct(1.0, spread=0.05), correct(1.03), False),
        (correct(1.0), correct(1.03, spread=0.05), False),
        (correct(1.0, spread=0.05), correct(1.1), True),
        (correct(1.0), correct(1.1, spread=0.08), True),
    ],
)
def test_beats(new: Outcome, old: Outcome, wins: bool) -> None:
    assert new.times is not None
    assert old.times is not None
    assert beats(new.times, old.times) == wins


def test_a_found_configuration_beats_both() -> None:
    found = winner(untuned=1.0, tuned=1.1, found=0.9)
    assert found.config.keys() == set(record_of("nvidia", "solve").fields)
    assert found.config["cutoff"] == 256
    assert found.gained
    assert found.default_ms == 1.0
    assert found.speedup == pytest.approx(1 / 0.9)


def test_the_configuration_in_use_stays_unless_beaten() -> None:
    assert winner(untuned=1.2, tuned=1.1, incumbent=0.9, found=0.89).config["cutoff"] == 512
    assert winner(untuned=1.2, tuned=1.1, incumbent=0.9, found=0.8).config["cutoff"] == 256
    assert winner(untuned=1.2, tuned=1.1, incumbent=1.09, found=0.8).config["cutoff"] == 256


def test_the_default_must_beat_the_configuration_in_use_too() -> None:
    """A tuned entry that is as fast as the default, or faster than it within the noise, is not
    replaced by the default.
    """
    for incumbent in (0.97, 1.0, 1.01):
        kept = winner(untuned=1.0, tuned=1.0, incumbent=incumbent)
        assert (kept.config["cutoff"], kept.changed, kept.conclusive) == (512, False, True)
    back = winner(untuned=1.0, tuned=1.01, incumbent=1.1)
    assert (back.config["cutoff"], back.changed, back.gained) == (UNTUNED.cutoff, True, False)
    assert back.before is not None
    assert (back.before["cutoff"], back.before_ms, back.times.p50_ms) == (512, 1.1, 1.0)


@pytest.mark.parametrize("found", [0.9, 1.01])
def test_a_configuration_in_use_that_fails_is_replaced(found: float) -> None:
    new = winner(untuned=1.0, tuned=1.0, incumbent=None, found=found)
    assert new.config["cutoff"] == (256 if found < 1 else UNTUNED.cutoff)
    assert new.before is not None
    assert (new.before["cutoff"], new.before_ms, new.changed) == (512, None, True)


def test_a_final_is_inconclusive_if_the_noise_hides_a_gain() -> None:
    noisy = winner(untuned=1.2, tuned=1.2, incumbent=1.0, found=0.9, spread=0.2)
    assert (noisy.config["cutoff"], noisy.changed, noisy.conclusive, noisy.best_ms) == (
        512,
        False,
        False,
        0.9,
    )
    assert winner(untuned=1.2, tuned=1.2, incumbent=1.0, found=0.99, spread=0.2).conclusive, (
        "a gain of 1% is none"
    )
    assert winner(untuned=1.2, tuned=1.2, incumbent=1.0, found=0.9).conclusive


def test_a_solve_keeps_the_defaults_that_are_faster_than_all_that_is_tuned() -> None:
    """The entry stores the defaults of all fields if the tuned kernels make the solve slower."""
    found = winner(untuned=1.0, tuned=1.1, found=1.03)
    assert found.config.keys() == set(allowed_fields("nvidia", "solve"))
    assert found.config["closure_tile"] == UNTUNED.closure_tile
    assert not found.gained
    assert found.speedup == 1
    assert found.changed
    assert found.before is not None
    assert ("closure_tile" in found.before, found.before_ms) == (False, 1.1)


def test_an_incumbent_with_other_fields_of_other_kernels_keeps_them() -> None:
    other = dataclasses.replace(
        INCUMBENT, closure_tile=32
    )  # by an entry of the solve that names them
    outcomes = {UNTUNED: correct(1.0), TUNED: correct(1.0), other: correct(0.8)}
    found = choose_winner(TASK, Baselines(TUNED, UNTUNED, other), outcomes)
    assert found is not None
    assert (found.config["cutoff"], found.config["closure_tile"]) == (512, 32)


class TestFailures:
    def test_without_a_time_of_the_untuned_configuration_there_is_no_winner(self) -> None:
        assert final(untuned=None, tuned=1.0, found=0.5) is None

    def test_failure_of_the_default_leaves_the_others(self) -> None:
        assert winner(untuned=1.0, tuned=None, found=0.9).config["cutoff"] == 256
        found = winner(untuned=1.0, tuned=None, found=None)
        assert (found.config["closure_tile"], found.times.p50_ms, found.gained) == (
            UNTUNED.closure_tile,
            1.0,
            False,
        )
