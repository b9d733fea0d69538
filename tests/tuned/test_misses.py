"""A call for which nothing was tuned: whether and where it warns, and what TRI_APSP_TUNE makes of
it.
"""

import dataclasses
import warnings

import pytest
import torch
from tuned.conftest import CUDA, choose

import tri_apsp
from tri_apsp import InputError, TuningWarning, tuned
from tri_apsp.configs import default_config

CPU = torch.device("cpu")
DEFAULT = default_config("nvidia", torch.float32)


def issued(n, **arguments):
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        choose(n, nonnegative=True, **arguments)
    return [str(warning.message) for warning in caught]


@pytest.fixture
def other(gpu):
    """Another GPU of the same architecture."""
    return dataclasses.replace(gpu, name="B", slug="b-gpu")


class TestWarning:
    def test_a_gpu_of_another_architecture_warns_once(self, gpu):
        assert issued(512) == [
            "nothing was tuned for float32, n = 512; to tune: python -m tri_apsp.tune "
            "--device cuda:0 --engine nvidia --dtype float32 --n 512 --sign nonnegative"
        ]
        assert issued(4096) == []

    def test_only_an_architecture_without_files_of_the_engine_warns(self, entry, made, other):
        tuned.save(made(entry(1024, "batch"), kernel="batch", device=other))
        assert issued(20_000) == issued(16, batch=300_000) == []
        assert len(issued(20_000, engine="portable")) == 1

    @pytest.mark.parametrize(
        "arguments",
        [
            {"n": 511},
            {"n": 64, "batch": 100},
            {"n": 4096, "batch": 0},
            {"n": 4096, "engine": "cpu", "device": CPU},
            {"n": 16, "batch": 30_000, "engine": "portable", "device": CPU},
        ],
    )
    def test_small_calls_the_cpu_and_the_interpreter_are_silent(self, gpu, arguments):
        assert issued(**arguments) == []

    def test_only_one_policy_warns(self, gpu, monkeypatch):
        monkeypatch.setenv("TRI_APSP_TUNE", "off")
        assert issued(4096) == []
        monkeypatch.setenv("TRI_APSP_TUNE", "warn")
        assert len(issued(4096)) == 1

    @pytest.mark.filterwarnings("error::tri_apsp.TuningWarning")
    @pytest.mark.parametrize(
        "call",
        [tri_apsp.shortest_paths, tri_apsp.select, lambda x: tri_apsp.min_plus(x, x)],
        ids=["shortest_paths", "select", "min_plus"],
    )
    def test_a_warning_points_at_the_callers_line(self, monkeypatch, tmp_path, call):
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(tmp_path / "none"))
        with pytest.warns(TuningWarning, match="must name a folder") as caught:
            call(torch.zeros(3, 3))
        assert [warning.filename for warning in caught] == [__file__]
        call(torch.zeros(3, 3))


class TestRequire:
    @pytest.fixture(autouse=True)
    def _required(self, monkeypatch):
        monkeypatch.setenv("TRI_APSP_TUNE", "require")

    def test_a_miss_is_an_error(self, gpu, entry, made):
        for _ in range(2):
            with pytest.raises(
                InputError, match=r"float32 near n = 1024 .* tri_apsp\.tune .* --n 1024 "
            ):
                choose(1024, nonnegative=True)
        assert tuned.find("nvidia", CUDA, torch.float32, n=1024) == DEFAULT
        path = tuned.save(made(entry(1024, "solve"), kernel="solve"))
        assert choose(1024).source == str(path), "an entry of any kernel is no miss"

    def test_an_entry_of_another_gpu_is_a_miss(self, entry, made, other):
        tuned.save(made(entry(1024), device=other))
        with pytest.raises(InputError, match="requires a tuned configuration"):
            choose(1024)

    @pytest.mark.parametrize(
        "arguments",
        [
            {"n": 127},
            {"n": 0},
            {"n": 4096, "batch": 0},
            {"n": 10, "batch": 1000},
            {"n": 999, "engine": "portable", "device": CPU},
        ],
    )
    def test_small_calls_and_the_interpreter_need_nothing(self, gpu, arguments):
        assert choose(**arguments).source == "default"


def test_another_policy_is_refused(monkeypatch):
    weights = torch.zeros(3, 3)
    tri_apsp.shortest_paths(weights)
    monkeypatch.setenv("TRI_APSP_TUNE", "yes")
    for call in (tri_apsp.shortest_paths, tri_apsp.select, lambda x: tri_apsp.min_plus(x, x)):
        with pytest.raises(
            InputError,
            match=r"^TRI_APSP_TUNE must be one of warn, off, require, but is 'yes'; ",
        ):
            call(weights)
