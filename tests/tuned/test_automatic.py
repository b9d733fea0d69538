"""TRI_APSP_TUNE=auto, with a stand-in for the tuner: a script that copies a tuned file to where the
tuner would write it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
import warnings

import pytest
import torch

import tri_apsp
from tri_apsp import TuningWarning, tuned
from tri_apsp.device import describe
from tri_apsp.tuned import call_of, misses

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
# Appends its arguments to a log, then does what the test wrote to `behaviour`.
STAND_IN = """
import json, os, pathlib, shutil, signal, sys, time
here = pathlib.Path(__file__).parent
def succeed():
    target = here / "user" / "SLUG" / "cpu-solve-float32.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(here / "result.json", target.with_suffix(".part"))
    target.with_suffix(".part").replace(target)
with (here / "log").open("a") as log:
    log.write(json.dumps([sys.argv[1:], os.environ["TRI_APSP_TUNE"], sys.stdin.read()]) + "\\n")
print("on stdout")
print("progress", file=sys.stderr)
BEHAVIOUR
"""


@pytest.fixture
def tuner(monkeypatch, tmp_path, directories, cpu_file):
    """Return a function that sets what the stand-in does, and one that returns its arguments, one
    list per run.
    """
    monkeypatch.setenv("TRI_APSP_TUNE", "auto")
    monkeypatch.setattr(misses.platformdirs, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    (tmp_path / "result.json").write_text(cpu_file.model_dump_json())
    script = tmp_path / "tuner.py"
    monkeypatch.setattr(
        misses, "module_command", lambda module: [sys.executable, "-S", str(script)]
    )

    def behave(behaviour: str) -> None:
        script.write_text(
            STAND_IN.replace("SLUG", describe(CPU).slug).replace("BEHAVIOUR", behaviour)
        )

    def runs() -> list[list[object]]:
        log = tmp_path / "log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    behave("succeed()")
    return behave, runs


def solve(n=200):
    return tri_apsp.shortest_paths(torch.rand(n, n)).config.source


def test_what_is_missing_is_tuned_on_first_use(tuner, directories, capfd):
    _, runs = tuner
    path = directories["user"] / describe(CPU).slug / "cpu-solve-float32.json"
    assert [solve(), solve(), solve(150)] == [str(path)] * 3
    ((arguments, policy, stdin),) = runs()
    assert arguments[:-1] == [
        "--device",
        "cpu",
        "--engine",
        "cpu",
        "--dtype",
        "float32",
        "--n",
        "200",
        "--sign",
        "nonnegative",
        "--kernel",
        "product",
        "solve",
        "--time-budget",
    ]
    assert 0 < float(arguments[-1]) < misses.SECONDS
    assert (policy, stdin) == ("off", "")
    assert capfd.readouterr() == ("", "progress\n")


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [("sys.exit(2)", "it ended with status 2"), ("pass", "it ended with status 0")],
    ids=["fails", "finds nothing"],
)
def test_a_failure_is_one_warning_and_not_repeated(tuner, behaviour, message):
    behave, runs = tuner
    behave(behaviour)
    with pytest.warns(TuningWarning) as caught:
        assert solve() == "default"
    (warning,) = caught
    assert str(warning.message) == (
        f"the tuner found nothing for float32, n = 200: {message}; to tune: python -m "
        "tri_apsp.tune --device cpu --engine cpu --dtype float32 --n 200 --sign nonnegative"
    )
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solve() == solve(150) == "default"
    assert len(runs()) == 1


def test_a_tuner_that_cannot_start_is_one_warning(tuner, monkeypatch):
    monkeypatch.setattr(misses, "module_command", lambda module: ["/none"])
    with pytest.warns(
        TuningWarning, match=r"it could not be started \(No such file or directory\)"
    ):
        assert solve() == "default"


def test_a_tuner_that_does_not_end_is_killed(tuner, tmp_path, monkeypatch):
    for name, seconds in (("SECONDS", 2.0), ("_STOP", 1.0), ("_OVERHEAD", 0.5)):
        monkeypatch.setattr(misses, name, seconds)
    behave, _ = tuner
    behave(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "(here / 'pid').write_text(str(os.getpid()))\ntime.sleep(60)"
    )
    begin = time.monotonic()
    with pytest.warns(TuningWarning, match="it was not done after 1 s"):
        assert solve() == "default"
    assert time.monotonic() - begin < 4
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def _choose(found):
    found.put(tuned.config_for_call(call_of("cpu", CPU, torch.float32, n=200)).source)


@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_those_that_miss_the_same_at_once_tune_it_once(tuner):
    behave, runs = tuner
    behave("time.sleep(0.5)\nsucceed()")
    context = multiprocessing.get_context("fork")
    found = context.SimpleQueue()
    tasks = [context.Process(target=_choose, args=(found,), daemon=True) for _ in range(3)]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join(10)
    sources = {found.get() for _ in tasks}
    assert len(runs()) == 1
    assert len(sources) == 1
    assert "default" not in sources


def test_what_another_process_has_tuned_is_used(tuner, directories, tmp_path):
    """The files are read again before the tuner starts."""
    assert tuned.find("cpu", CPU, torch.float32, n=200).source == "default"
    folder = directories["user"] / describe(CPU).slug
    folder.mkdir(parents=True)
    (tmp_path / "result.json").rename(folder / "cpu-solve-float32.json")
    assert solve() != "default"
    assert tuner[1]() == []


@pytest.mark.parametrize(
    ("engine", "arguments", "kernels"),
    [
        ("nvidia", {"n": 4096}, ["product", "closure", "solve"]),
        ("nvidia", {"n": 64, "batch": 1000}, ["product", "batch", "solve"]),
        ("nvidia", {"n": 4096, "batch": 2}, ["product", "solve"]),
        ("nvidia", {"n": 4096, "product": True}, ["product"]),
        ("nvidia", {"n": 512, "product": True}, ["product", "small_product"]),
        ("portable", {"n": 64, "batch": 1000}, ["product", "closure", "panels", "solve"]),
        ("portable", {"n": 64, "product": True}, ["product"]),
        ("cpu", {"n": 64, "product": True}, ["product"]),
    ],
)
def test_the_kernels_of_a_call(gpu, engine, arguments, kernels):
    arguments = {"batch": 1, "product": False, "nonnegative": True, **arguments}
    assert call_of(engine, CUDA, torch.float32, **arguments).kernels_to_tune() == kernels


@pytest.mark.slow
def test_the_tuner_is_run(tmp_path, monkeypatch, directories):
    """The real tuner, on the CPU; XDG_CONFIG_HOME names the user's directory of its process."""
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
    monkeypatch.setenv("TRI_APSP_TUNE", "auto")
    directories["named"].mkdir()
    # A busy machine takes longer to start the tuner, to try more than one configuration, and to end
    # it.
    monkeypatch.setattr(misses, "SECONDS", misses.SECONDS + 120)
    monkeypatch.setattr(misses, "_OVERHEAD", misses._OVERHEAD + 60)
    begin = time.monotonic()
    found = solve(300)
    assert time.monotonic() - begin < misses.SECONDS + 2
    assert found.startswith(str(directories["named"]))
