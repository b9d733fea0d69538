"""The winner of a final."""

import dataclasses

import pytest
import torch
from tune.synthetic import correct

from tri_apsp.configs import default_config
from tri_apsp.tune.candidates import Baselines, beats, choose_winner, with_method
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Winner
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


def final(baselines: Baselines, **ms: float | None) -> Winner | None:
    """Return the winner of a final with these times; a time of None: that configuration failed."""
    configs = {"found": FOUND, "incumbent": baselines.incumbent, "untuned": UNTUNED, "tuned": TUNED}
    outcomes = {
        configs[name]: FAILED if time is None else correct(time) for name, time in ms.items()
    }
    return choose_winner(TASK, baselines, outcomes)


@pytest.mark.parametrize(
    ("new", "old", "wins"),
    [
        (correct(1.0), correct(1.021), True),
        (correct(1.0), correct(1.019), False),
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


@pytest.mark.parametrize(
    ("ms", "cutoff", "changed"),
    [
        ({"untuned": 1.0, "tuned": 1.1, "found": 0.9}, 256, True),
        # The configuration in use stays unless another beats it, also the default.
        ({"untuned": 1.2, "tuned": 1.1, "incumbent": 0.9, "found": 0.89}, 512, False),
        ({"untuned": 1.2, "tuned": 1.1, "incumbent": 0.9, "found": 0.8}, 256, True),
        ({"untuned": 1.2, "tuned": 1.1, "incumbent": 1.09, "found": 0.8}, 256, True),
        ({"untuned": 1.0, "tuned": 1.0, "incumbent": 1.01}, 512, False),
        ({"untuned": 1.0, "tuned": 1.01, "incumbent": 1.1}, UNTUNED.cutoff, True),
        # One that fails is replaced.
        ({"untuned": 1.0, "tuned": 1.0, "incumbent": None, "found": 0.9}, 256, True),
        ({"untuned": 1.0, "tuned": 1.0, "incumbent": None, "found": 1.01}, UNTUNED.cutoff, True),
        ({"untuned": 1.0, "tuned": None, "found": 0.9}, 256, True),
    ],
)
def test_the_winner_of_a_final(ms: dict[str, float | None], cutoff: int, changed: bool) -> None:
    incumbent = INCUMBENT if "incumbent" in ms else TUNED
    found = final(Baselines(TUNED, UNTUNED, incumbent), **ms)
    assert (found.config["cutoff"], found.changed) == (cutoff, changed)
    assert found.is_tuned == (cutoff != UNTUNED.cutoff)
    assert (found.default_ms, found.before_ms) == (
        ms["untuned"],
        ms["incumbent" if "incumbent" in ms else "tuned"],
    )
    assert found.speedup == found.default_ms / found.times.p50_ms


def test_an_untuned_configuration_that_fails_leaves_no_winner() -> None:
    assert final(Baselines(TUNED, UNTUNED, TUNED), untuned=None, tuned=1.0, found=0.5) is None


def test_a_solve_keeps_the_defaults_that_are_faster_than_all_that_is_tuned() -> None:
    """The entry stores the defaults of all fields if the tuned kernels make the solve slower."""
    found = final(Baselines(TUNED, UNTUNED, TUNED), untuned=1.0, tuned=1.1, found=1.03)
    assert found.config.keys() == set(allowed_fields("nvidia", "solve"))
    assert found.config["closure_tile"] == UNTUNED.closure_tile
    assert found.before.keys() == set(record_of("nvidia", "solve").fields)


def test_an_incumbent_with_other_fields_of_other_kernels_keeps_them() -> None:
    other = dataclasses.replace(INCUMBENT, closure_tile=32)  # by an entry of the solve
    found = final(Baselines(TUNED, UNTUNED, other), untuned=1.0, tuned=1.0, incumbent=0.8)
    assert (found.config["cutoff"], found.config["closure_tile"]) == (512, 32)
