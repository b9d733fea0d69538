"""A call for which nothing was tuned: whether and where it warns, and what TRI_APSP_TUNE makes of
it.
"""

from __future__ import annotations

import dataclasses
import re
import warnings

import pytest
import torch

import tri_apsp
from tri_apsp import InputError, TuningWarning, tuned
from tri_apsp.configs import default_config
from tri_apsp.tuned import misses, sources

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
DEFAULT = default_config("nvidia", torch.float32)
MISS = (
    "nothing was tuned for float32, n = {}; to tune: python -m tri_apsp.tune --device cuda:0 "
    "--engine nvidia --dtype float32 "
)

pytestmark = pytest.mark.filterwarnings("error::tri_apsp.TuningWarning")


def choose(n, engine="nvidia", device=CUDA, **arguments):
    return tuned.config_for_call(tuned.call_of(engine, device, torch.float32, n=n, **arguments))


def issued(n, config=DEFAULT, device=CUDA, dtype=torch.float32, **arguments):
    """Return the warnings of a call that ran with `config`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tuned.issue_warnings(
            tuned.call_of(config.engine, device, dtype, n=n, nonnegative=True, **arguments), config
        )
    return [str(warning.message) for warning in caught]


class TestWhereTuningGains:
    @pytest.fixture
    def covered(self, gpu, entry, made):
        """A file of another GPU of the same architecture, for another size."""
        tuned.save(
            made(
                entry(1024, "batch"),
                kernel="batch",
                device=dataclasses.replace(gpu, name="B", slug="b-gpu"),
            )
        )

    def test_a_gpu_of_another_architecture_warns_once(self, gpu):
        (message,) = issued(512)
        assert message == MISS.format(512) + "--n 512"
        assert len(message) < 150
        assert issued(4096) == []

    @pytest.mark.parametrize(
        ("n", "arguments"),
        [
            (16, {"batch": 300_000}),
            (31, {"batch": 4095}),
            (16, {}),
            (20_000, {}),
            (8, {"product": True, "batch": 10_000}),
        ],
    )
    def test_a_call_that_gains_little_is_silent(self, covered, n, arguments):
        assert issued(n, **arguments) == []

    def test_a_small_call_is_silent_on_every_gpu(self, gpu):
        assert (
            issued(511)
            == issued(64, batch=100)
            == issued(31, batch=4095)
            == issued(4096, batch=0)
            == []
        )

    def test_the_cpu_and_the_interpreter_are_silent(self):
        assert issued(4096, default_config("cpu", torch.float32), CPU) == []
        assert issued(16, default_config("portable", torch.float32), CPU, batch=30_000) == []

    def test_files_of_another_engine_do_not_cover_an_architecture(self, covered):
        assert sources.covers_architecture("nvidia", (9, 0))
        assert not sources.covers_architecture("portable", (9, 0))
        assert not sources.covers_architecture("nvidia", (10, 0))

    @pytest.mark.parametrize("value", ["off", "auto", "require"])
    def test_only_one_policy_warns(self, gpu, monkeypatch, value):
        monkeypatch.setenv("TRI_APSP_TUNE", value)
        assert issued(4096) == []
        monkeypatch.setenv("TRI_APSP_TUNE", "warn")
        assert len(issued(4096)) == 1


class TestWhen:
    """Warnings point at the line of the caller, and are issued only after success."""

    @pytest.fixture
    def gains(self, monkeypatch):
        """Tuning gains on every device."""
        monkeypatch.setattr(misses, "_is_worth_tuning", lambda call: True)

    @pytest.mark.parametrize(
        "call",
        [tri_apsp.shortest_paths, lambda x: tri_apsp.min_plus(x, x)],
        ids=["shortest_paths", "min_plus"],
    )
    def test_a_warning_points_at_the_callers_line(self, gains, call):
        with pytest.warns(TuningWarning, match="nothing was tuned") as caught:
            call(torch.zeros(3, 3))
        assert [warning.filename for warning in caught] == [__file__]

    def test_what_a_failed_call_found_wrong_is_reported_by_the_next(self, monkeypatch, tmp_path):
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(tmp_path / "none"))
        with pytest.raises(tri_apsp.NegativeCycleError):
            tri_apsp.shortest_paths(torch.tensor([[0.0, -1.0], [-1.0, 0.0]]))
        with pytest.warns(TuningWarning, match="must name a folder"):
            tri_apsp.shortest_paths(torch.zeros(2, 2))


class TestRequire:
    @pytest.mark.parametrize(
        ("name", "value", "shown"),
        [
            ("TRI_APSP_TUNE", "require", "TRI_APSP_TUNE=require"),
            ("TRI_APSP_REQUIRE_TUNED", "1", "TRI_APSP_REQUIRE_TUNED"),
            ("TRI_APSP_REQUIRE_TUNED", "yes", "TRI_APSP_REQUIRE_TUNED"),
        ],
    )
    def test_a_miss_can_be_an_error(self, gpu, entry, made, monkeypatch, name, value, shown):
        choose(1024)  # what was remembered before does not count
        monkeypatch.setenv(name, value)
        for _ in range(2):
            with pytest.raises(InputError) as caught:
                choose(1024, nonnegative=True)
            assert re.fullmatch(
                rf"{shown} requires a tuned configuration, but there is none for float32 near "
                r"n = 1024 [^\n]*a-gpu; "
                r"tune it with python -m tri_apsp\.tune [^\n]* --n 1024, or unset the variable\.",
                str(caught.value),
            )
        assert tuned.find("nvidia", CUDA, torch.float32, n=1024) == DEFAULT
        tuned.save(made(entry(1024)))
        assert choose(1024).source != "default"

    def test_an_entry_of_another_gpu_is_a_miss(self, gpu, entry, made, monkeypatch):
        tuned.save(made(entry(1024), device=dataclasses.replace(gpu, name="B", slug="b-gpu")))
        assert choose(1024).source.endswith("tuned for B")
        monkeypatch.setenv("TRI_APSP_TUNE", "require")
        with pytest.raises(InputError, match="requires a tuned configuration"):
            choose(1024)

    @pytest.mark.parametrize(
        ("engine", "device", "arguments"),
        [
            ("nvidia", CUDA, {"n": 127}),
            ("nvidia", CUDA, {"n": 0}),
            ("nvidia", CUDA, {"n": 4096, "batch": 0}),
            ("nvidia", CUDA, {"n": 10, "batch": 1000}),
            ("portable", CPU, {"n": 999}),
        ],
    )
    def test_small_calls_and_the_interpreter_need_nothing(
        self, gpu, monkeypatch, engine, device, arguments
    ):
        monkeypatch.setenv("TRI_APSP_TUNE", "require")
        assert choose(engine=engine, device=device, **arguments).source == "default"

    @pytest.mark.parametrize(
        ("name", "value"),
        [("TRI_APSP_REQUIRE_TUNED", "0"), ("TRI_APSP_REQUIRE_TUNED", ""), ("TRI_APSP_TUNE", "")],
    )
    def test_a_miss_is_no_error_by_default(self, gpu, monkeypatch, name, value):
        monkeypatch.setenv(name, value)
        assert choose(1024) == DEFAULT

    def test_another_value_is_refused(self, monkeypatch):
        weights = torch.zeros(3, 3)
        tri_apsp.shortest_paths(weights)
        monkeypatch.setenv("TRI_APSP_TUNE", "yes")
        for call in (tri_apsp.shortest_paths, tri_apsp.select, lambda x: tri_apsp.min_plus(x, x)):
            with pytest.raises(
                InputError,
                match=r"^TRI_APSP_TUNE must be one of warn, auto, off, require, but is 'yes'; ",
            ):
                call(weights)

    def test_an_entry_of_any_kernel_is_no_miss(self, gpu, entry, made, monkeypatch):
        monkeypatch.setenv("TRI_APSP_TUNE", "require")
        path = tuned.save(made(entry(1024, "solve"), kernel="solve"))
        assert choose(1024).source == str(path)
