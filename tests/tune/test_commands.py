"""The command line of the tuner: what it prints, what it refuses, and that it goes on after it was
killed.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch
from command_line import Ended, in_this_process
from optuna.trial import TrialState
from tune.synthetic import FASTEST, SyntheticPool

import tri_apsp
from tri_apsp import tuned
from tri_apsp.console.exit_status import BAD_INPUT, FAILED, INTERRUPTED
from tri_apsp.device import describe
from tri_apsp.semirings import DTYPES, dtype_name
from tri_apsp.tune import commands, tune
from tri_apsp.tune.__main__ import main
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.search import journal_path, open_storage
from tri_apsp.tune.tasks import studies_directory

CPU = torch.device("cpu")
FEW = ("--device", "cpu", "--kernel", "product", "--n", "256", "--trials", "12")
FASTEST_SPELLED = "product.block_m 384, product.block_n 256, product.block_k 256"


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> SyntheticPool:
    """A fake pool in place of Workers."""
    made = SyntheticPool()
    monkeypatch.setattr(commands, "Workers", lambda devices: made)
    return made


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], home: Path, memory: None, pool: SyntheticPool
) -> Callable[..., Ended]:
    """Run a command line in this process."""
    return in_this_process(main, capsys)


WORDS = ("--device", "cpu", "--kernel", "product", "--trials", 200)


def test_a_tuning_run_prints_what_was_replaced_and_where_it_was_written(
    cli: Callable[..., Ended], home: Path, pool: SyntheticPool
) -> None:
    pool.fails = lambda task, config: OutcomeKind.timeout if config.product.block_m == 96 else None
    output = cli(*WORDS)
    assert output.status == 0
    path = home / "tuned" / describe(CPU).slug / "cpu-product-float32.json"
    page = home / "data" / "tri_apsp" / "studies" / f"{describe(CPU).slug}.html"
    said = f"tuned    1 of 1 task\nchanged  1\nwritten  {path}\npage     {page}\n"
    assert output.out == said
    drawn = page.read_text(encoding="utf-8")
    assert "cpu product, float32 nonnegative, n = 1024" in drawn
    assert ">default<" in drawn
    assert ">winner<" in drawn
    decision = "1.92 ms before, now 1 ms, 1.92 times as fast"
    line = (
        rf"\[1/1\] cpu product, float32 nonnegative, n = 1024: {decision}, .* failed: \d+ timeout"
    )
    assert re.match(rf".*: 1 task\n{line}\n$", output.err)


def test_a_tuning_run_says_what_stays(cli: Callable[..., Ended], pool: SyntheticPool) -> None:
    pool.flat = True
    output = cli(*WORDS)
    assert "the default stays at 1 ms" in output.err
    assert "cpu-product-float32.json" in output.out, "the next solve finds an entry of its own"
    assert "changed  0\nwritten  nothing\n" in cli(*WORDS).out


def test_json_of_a_tuning_run(cli: Callable[..., Ended], pool: SyntheticPool) -> None:
    pool.fails = lambda task, config: OutcomeKind.timeout if config.product.block_m == 96 else None
    found = cli(*WORDS, "--json").json
    (result,) = found["results"]
    assert (result["n"], result["evaluated"]) == (1024, len(pool.screened))
    assert result["config"]["product"]["block_m"] == 384
    assert found["files"] == [result["path"]]
    failed = sum(config.product.block_m == 96 for _, config in pool.screened)
    assert result["failures"] == {"timeout": failed}
    (again,) = cli(*WORDS, "--json", "--resume").json["results"]
    assert (again["resumed"], again["evaluated"]) == (True, 0)


def test_an_error_of_a_task_is_the_status(cli: Callable[..., Ended], pool: SyntheticPool) -> None:
    pool.fails = lambda task, config: OutcomeKind.timeout if task.n == 256 else None
    output = cli("--device", "cpu", "--kernel", "product", "--n", 256, 512, "--trials", 9)
    assert output.status == FAILED
    assert (
        "all of cpu product, float32 nonnegative, n = 256 failed (the last: timeout" in output.err
    )
    assert "tuned    1 of 2 tasks" in output.out


def test_dry_run_measures_nothing(
    cli: Callable[..., Ended], home: Path, pool: SyntheticPool
) -> None:
    output = cli("--device", "cpu", "--dry-run", "--save-dir", home / "there")
    assert output.status == 0
    assert re.search(
        rf"n = 1024: \d+ configurations; {home}/there/.*-float32\.json\n",
        output.out,
    )
    found = cli(
        "--device", "cpu", "--dry-run", "--json", "--time-budget", 7, "--sign", "any", "nonnegative"
    ).json
    assert [row["candidates"] > 3 for row in found["tasks"]] == [True] * 4
    assert found["seconds"] == 7
    assert pool.screened == []
    assert list(home.iterdir()) == []


class TestStored:
    def test_show_and_verify(self, cli: Callable[..., Ended], pool: SyntheticPool) -> None:
        nothing = "no tuned file for this device has an entry that matches the arguments; "
        assert cli("--show").out.startswith(nothing)
        cli("--device", "cpu", "--kernel", "product", "--n", 1024, "--trials", 200)
        task = "cpu product, float32 nonnegative, n = 1024"
        assert cli("--show").out == f"{task}: 1 ms, 1.92 x the default, {FASTEST_SPELLED}\n"
        assert cli("--show", "--json").json["entries"][0]["config"]["product"]["block_m"] == 384
        assert cli("--show", "--n", 512).out.startswith(nothing)
        pool.finals.clear()
        output = cli("--verify")
        holds = "holds: 1.92 x the default now, 1.92 x when it was tuned"
        assert (output.status, output.out) == (0, f"{task}: {holds}\n")
        ((_, configs),) = pool.finals
        assert configs[1].product == FASTEST

    def test_verify_takes_all_other_fields_from_the_same_directory(
        self, cli: Callable[..., Ended], home: Path, pool: SyntheticPool
    ) -> None:
        """As the tuning run did: the solve was tuned with the tiles of the product."""
        there = ("--device", "cpu", "--save-dir", home / "there")
        cli(*there, "--n", 1024, "--trials", 200)
        pool.finals.clear()
        cli(*there, "--verify")
        assert [configs[1].product for _, configs in pool.finals] == [FASTEST] * 2

    @pytest.mark.parametrize(
        ("change", "state", "status"),
        [
            ({"flat": True}, "within noise", 0),
            ({"spread": 0.9}, "within noise", 0),
            (
                {"time_ms": lambda task, config: 1.1 if config.product == FASTEST else 1.0},
                "stale",
                FAILED,
            ),
            (
                {
                    "fails": lambda task, config: (
                        OutcomeKind.wrong_result if config.product == FASTEST else None
                    )
                },
                "failed",
                FAILED,
            ),
        ],
    )
    def test_states(
        self,
        cli: Callable[..., Ended],
        pool: SyntheticPool,
        change: dict[str, Any],
        state: str,
        status: int,
    ) -> None:
        cli("--device", "cpu", "--kernel", "product", "--n", 1024, "--trials", 200)
        for name, value in change.items():
            setattr(pool, name, value)
        output = cli("--verify")
        assert f"n = 1024: {state}: " in output.out
        assert output.status == status
        (row,) = json.loads(cli("--verify", "--json").out)["entries"]
        assert row["state"] == state


BAD = {
    "kernel": (["--kernel", "matmul"], BAD_INPUT, ["matmul", "product", "solve", "closure"]),
    "kernel of another engine": (
        ["--kernel", "batch"],
        BAD_INPUT,
        ["'batch'", "product, solve", "'cpu'"],
    ),
    "dtype": (["--dtype", "int8"], BAD_INPUT, ["int8", *map(dtype_name, DTYPES)]),
    "sign": (["--sign", "minus"], BAD_INPUT, ["minus", "nonnegative", "any"]),
    "n": (["--n", "0"], BAD_INPUT, ["--n must be at least 1, but is 0"]),
    "n too large": (["--n", "10000000"], FAILED, ["10000000 vertices", "GiB", "which fits"]),
    "no trials": (["--trials", "0"], BAD_INPUT, ["`trials` must be at least 1, but is 0"]),
    "no time": (
        ["--time-budget", "0"],
        BAD_INPUT,
        ["time budget must be a finite number of seconds above 0, but is 0"],
    ),
    "no number": (["--time-budget", "nan"], BAD_INPUT, ["but is nan"]),
    "no GPU": (["--device", "cuda:99"], BAD_INPUT, ["device cuda:99 must exist"]),
    "engine": (
        ["--engine", "nvidia"],
        FAILED,
        ["the nvidia engine needs a GPU, but the device is cpu; choose a GPU, or leave the"],
    ),
    "two wishes": (["--verify", "--show"], BAD_INPUT, ["not allowed with"]),
    "word": (["product"], BAD_INPUT, ["product"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(cli: Callable[..., Ended], home: Path, pool: SyntheticPool, case: str) -> None:
    words, status, parts = BAD[case]
    output = cli(*([] if "--device" in words else ["--device", "cpu"]), *words)
    assert (output.status, output.out) == (status, "")
    assert re.search(r"^error: [^\n]*\.\n\Z", output.err, re.MULTILINE)
    for part in parts:
        assert part in output.err
    assert pool.screened == []
    assert not (home / "tuned").exists()


IMPORTS = """
import sys
from tri_apsp.tune.__main__ import main
try:
    main(["--help"])
except SystemExit:
    slow = ("optuna", "sqlalchemy", "pydantic", "numba")
    print("loaded", [name for name in slow if name in sys.modules])
"""


def test_slow_imports_are_made_when_they_are_needed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.endswith("loaded []\n")
    assert "--resume" in done.stdout


def test_sigterm_keeps_the_results_so_far(
    cli: Callable[..., Ended], home: Path, pool: SyntheticPool
) -> None:
    """A batch system ends a process by SIGTERM: the results so far are saved and printed."""

    def terminate(count: int) -> None:
        if count == 15:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)

    pool.before = terminate
    before = signal.getsignal(signal.SIGTERM)
    output = cli("--device", "cpu", "--n", 256, "--trials", 12)
    assert output.status == INTERRUPTED, output.err
    assert "tuned    1 of 2 tasks, interrupted; --resume continues" in output.out
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
class TestProcess:
    """The tuner in a process of its own, with real timing on the cpu engine."""

    WORDS = (
        "--device",
        "cpu",
        "--kernel",
        "product",
        "--sign",
        "any",
        "--time-budget",
        "600",
    )

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tri_apsp.tune", *self.WORDS, *words]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def known(self, path: Path | None = None) -> int:
        """Return the number of outcomes in a journal, by default that of this machine."""
        path = path or journal_path(describe(CPU).slug)
        return path.read_bytes().count(b'"outcome":') if path.exists() else 0

    def wait_for(
        self, running: subprocess.Popen[str], known: int, path: Path | None = None
    ) -> None:
        deadline = time.monotonic() + 120
        while self.known(path) < known:
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def test_a_tuning_run_is_killed_interrupted_and_resumed(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # On a busy machine more threads take ten times as long.
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        words = ("--n", "512", "--resume", "--trials", "30")
        with self.start(*words) as running:
            self.wait_for(running, 3)
            running.kill()
        first = self.known()

        with self.start(*words, "--json") as running:
            self.wait_for(running, first + 4)
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does, to the workers too
            out, err = running.communicate(timeout=60)
        assert (running.returncode, err) == (INTERRUPTED, "")
        found = json.loads(out)
        assert (found["interrupted"], found["results"]) == (True, [])
        known = self.known()
        assert first + 4 <= known < 30

        # The time of the default effort does not suffice on a busy machine.
        settings = {"trials": known + 2, "time_budget": 600, "resume": True}
        (result,) = tune(["product"], [512], signs=["any"], device="cpu", **settings).results
        assert len(result.trials) == known + 2
        (entry,) = tuned.load(result.path).entries
        assert entry.evaluated == known + 2
        used = tri_apsp.shortest_paths(torch.rand(512, 512)).config
        assert used.source == str(result.path)

    def test_two_processes_share_a_search_and_one_finishes_it_after_the_other_was_killed(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        journal = home / "shared" / "searches.log"
        words = ("--n", "256", "--storage", str(journal), "--save-dir")
        with (
            self.start(*words, str(home / "first")) as first,
            self.start(*words, str(home / "second"), "--json") as second,
        ):
            self.wait_for(first, 4, journal)
            os.kill(first.pid, signal.SIGKILL)
            out, err = second.communicate(timeout=120)
        assert (second.returncode, err) == (0, "")
        (result,) = json.loads(out)["results"]
        assert result["evaluated"] == result["candidates"] > 10
        assert Path(result["path"]).is_relative_to(home / "second")
        assert not (home / "first").exists()
        storage = open_storage(str(journal))
        (name,) = optuna.get_all_study_names(storage)
        study = optuna.load_study(study_name=name, storage=storage)
        assert study.user_attrs["task"] == "cpu product, float32 any, n = 256"
        assert not study.get_trials(states=(TrialState.RUNNING, TrialState.WAITING))
        measured = Counter(
            tuple(trial.params.values()) for trial in study.trials if "outcome" in trial.user_attrs
        )
        assert len(measured) == result["candidates"]
        # Both may evaluate the default first, and what one still runs when the other has finished.
        assert sum(measured.values()) <= len(measured) + 2


def test_help_names_the_page_and_the_places_of_results(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "`python -m tri_apsp.tune --page DIR` draws the trials of the last searches" in text
    assert str(studies_directory()) in text
    assert "delete the tuned files of the device" in text
