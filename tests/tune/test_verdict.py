"""Who wins a final."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tri_apsp.configs import Config, default_config
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.search.evaluated import SearchResult
from tri_apsp.tune.space.space import resolved
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Contest
from tri_apsp.tune.sweep.decision import judged
from tri_apsp.tune.sweep.result import TaskResult
from tri_apsp.tuned import FIELDS, allowed_fields

TASK = Task("nvidia", "solve", "int32", "nonnegative", 2048)
PLAIN = resolved(default_config("nvidia", torch.int32), 2048)
TUNED = dataclasses.replace(PLAIN, closure_tile=128)  # by an entry of another kernel, for another size
FOUND = dataclasses.replace(TUNED, cutoff=256)


def final(**ms: float) -> TaskResult:
    """What is said of a final in which these take so long."""
    configs: dict[str, Config] = {"plain": PLAIN, "tuned": TUNED, "found": FOUND}
    outcomes = {configs[name]: Outcome(Kind.correct, time * 0.999, time, time * 1.001) for name, time in ms.items()}
    return judged(TASK, Contest(TUNED, PLAIN, TUNED), SearchResult(), outcomes, complete=True)


def test_what_is_found_beats_both() -> None:
    result = final(plain=1.0, tuned=1.1, found=0.9)
    assert result.config is not None
    assert result.config.keys() == set(FIELDS["nvidia", "solve"])
    assert result.config["cutoff"] == 256
    assert result.gained
    assert result.speedup == pytest.approx(1 / 0.9)


def test_a_solve_keeps_the_defaults_that_are_faster_than_all_that_is_tuned() -> None:
    """Of all kernels, since those that were tuned at other sizes are what is slow."""
    result = final(plain=1.0, tuned=1.1, found=1.03)
    assert result.config is not None
    assert result.config.keys() == set(allowed_fields("nvidia", "solve"))
    assert result.config["closure_tile"] == PLAIN.closure_tile
    assert not result.gained
    assert result.speedup == 1


def test_defaults_that_are_hardly_faster_are_kept_too() -> None:
    """Within the noise as well, so that no solve was ever seen slower than before anything was tuned."""
    result = final(plain=1.0, tuned=1.0005, found=1.2)
    assert result.config is not None
    assert result.config["closure_tile"] == PLAIN.closure_tile
    assert result.p50_ms == 1.0


def test_defaults_that_are_not_faster_stay_out() -> None:
    result = final(plain=1.0, tuned=1.0, found=1.2)
    assert result.config is not None
    assert "closure_tile" not in result.config
