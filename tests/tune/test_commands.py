"""The command line of the tuner: what it prints, what it refuses, and that it goes on after it was
killed.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import pytest
import torch
from command_line import Outcome, in_this_process
from tune.synthetic import FASTEST, SyntheticPool

import tri_apsp
from tri_apsp import tuned
from tri_apsp.configs import Config, default_config, to_fields
from tri_apsp.console.exit_status import BAD_INPUT, FAILED, INTERRUPTED
from tri_apsp.device import describe
from tri_apsp.semirings import DTYPES, dtype_name
from tri_apsp.tune import commands, stored, tune
from tri_apsp.tune.__main__ import main
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.search.studies import journal_path
from tri_apsp.tuned import paths, store
from tri_apsp.tuned.schema import Entry

CPU = torch.device("cpu")
FEW = ("--device", "cpu", "--kernel", "product", "--n", "256", "--trials", "12")
FASTEST_SPELLED = "product.block_m 384, product.block_n 256, product.block_k 256"


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> SyntheticPool:
    """A fake pool in place of Workers."""
    made = SyntheticPool()
    for module in (commands, stored):
        monkeypatch.setattr(module, "Workers", lambda devices: made)
    return made


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], home: Path, pool: SyntheticPool
) -> Callable[..., Outcome]:
    """Run a command line in this process."""
    return in_this_process(main, capsys)


def field(output: Outcome, name: str) -> str:
    """Return the value of a field of the summary."""
    found = re.search(rf"^{name} +(.+)$", output.out, re.MULTILINE)
    assert found, output.out
    return found[1]


class TestSummary:
    WORDS = ("--device", "cpu", "--kernel", "product", "--trials", 200)

    def test_what_was_replaced_and_where_it_was_written(
        self, cli: Callable[..., Outcome], home: Path, pool: SyntheticPool
    ) -> None:
        pool.fails = lambda task, config: Kind.timeout if config.product.block_m == 96 else None
        output = cli(*self.WORDS)
        assert output.status == 0
        path = home / "tuned" / describe(CPU).slug / "cpu-product-float32.json"
        assert field(output, "written") == str(path)
        assert "where later solves on this machine look first\n" in output.out
        assert output.out.startswith(
            "cpu product, float32 nonnegative, n = 1024:\n  before  1.92 ms, product.block_m "
        )
        assert f"\n  now     1 ms, {FASTEST_SPELLED}\n" in output.out
        assert field(output, "changed") == "1 of 1 task: 1.92 times as fast as before"
        assert re.fullmatch(r"failed: \d+ timeout", field(output, "failures"))
        assert re.fullmatch(r"\d+ s", field(output, "time"))
        assert re.match(r".*: 1 task\n\[1/1\] cpu product, .*, failed: \d+ timeout\n$", output.err)

    def test_defaults_that_stay(
        self, cli: Callable[..., Outcome], home: Path, pool: SyntheticPool
    ) -> None:
        pool.flat = True
        output = cli(*self.WORDS)
        assert re.fullmatch(
            r"nothing: the defaults are already within 0\.0% of the best of \d+ tried",
            field(output, "changed"),
        )
        assert "times" not in output.out
        assert field(output, "written").startswith(str(home / "tuned")), (
            "the next solve finds an entry of its own"
        )
        again = cli(*self.WORDS)
        assert field(again, "written") == "nothing"

    def test_tuned_configurations_that_stay(
        self, cli: Callable[..., Outcome], pool: SyntheticPool
    ) -> None:
        cli(*self.WORDS)
        pool.flat = True
        assert field(cli(*self.WORDS), "changed").startswith(
            "nothing: the configurations in use are already within 0.0%"
        )

    def test_noise(self, cli: Callable[..., Outcome], pool: SyntheticPool) -> None:
        pool.spread = 0.9
        output = cli(*self.WORDS)
        assert field(output, "changed") == (
            "nothing; inconclusive for 1 task: another configuration was up to 91.7% faster, but within the noise; repeat it "
            "on an idle machine"
        )
        assert (
            "inconclusive: the default stays at 1.92 ms, since 1 ms of another is within the noise"
            in output.err
        )

    def test_a_directory_that_no_solve_searches(
        self, cli: Callable[..., Outcome], home: Path
    ) -> None:
        output = cli(*self.WORDS, "--save-dir", home / "elsewhere")
        assert (
            field(output, "to use")
            == f"set TRI_APSP_CONFIG_DIR={home / 'elsewhere'} for later solves"
        )

    def test_a_maintainer_writes_to_the_checkout(
        self, cli: Callable[..., Outcome], home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (home / "tuning").mkdir()
        monkeypatch.setattr(paths, "_CHECKOUT", home / "tuning")
        output = cli(*self.WORDS, "--ship")
        assert field(output, "written").startswith(str(home / "tuning"))
        assert not (home / "tuned").exists()


def test_json_of_a_sweep(cli: Callable[..., Outcome]) -> None:
    found = cli(*FEW, "--json").json
    (result,) = found["results"]
    assert (result["kernel"], result["n"], result["evaluated"], result["complete"]) == (
        "product",
        256,
        12,
        True,
    )
    assert found["files"] == [result["path"]]


def test_report_of_a_sweep(
    cli: Callable[..., Outcome], home: Path, pool: SyntheticPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    pool.fails = lambda task, config: Kind.timeout if config.product.block_m == 96 else None
    for resume in ((), ("--resume",)):
        folder = home / f"report{len(resume)}"
        assert (
            cli(
                "--device",
                "cpu",
                "--kernel",
                "product",
                "--trials",
                200,
                "--report",
                folder,
                *resume,
            ).status
            == 0
        )
        with (folder / "trials.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == len(pool.screened)
        assert {row["kind"] for row in rows} == {"correct", "timeout"}
        best = min((row for row in rows if row["p50_ms"]), key=lambda row: float(row["p50_ms"]))
        assert [best[f"product.{edge}"] for edge in ("block_m", "block_n", "block_k")] == [
            "384",
            "256",
            "256",
        ]
        (result,) = json.loads((folder / "sweep.json").read_text())["results"]
        assert result["failures"] == {"timeout": sum(row["kind"] == "timeout" for row in rows)}
        assert result["evaluated"] == len(rows)
        assert all(row["p50_ms"] in ("", f"{float(row['p50_ms'] or 0):.6g}") for row in rows)
        written = json.loads((folder / "sweep.json").read_text())["files"]
        assert written == (
            [] if resume else [f"tuned/{describe(CPU).slug}/cpu-product-float32.json"]
        )
        assert json.loads((folder / "sweep.json").read_text())["results"][0]["resumed"] == bool(
            resume
        )
    assert (
        cli(
            *FEW, "--report", home / "tuned" / describe(CPU).slug / "cpu-product-float32.json"
        ).status
        == BAD_INPUT
    )


def test_an_error_of_a_task_is_the_status(cli: Callable[..., Outcome], pool: SyntheticPool) -> None:
    pool.fails = lambda task, config: Kind.timeout if task.n == 256 else None
    output = cli("--device", "cpu", "--kernel", "product", "--n", 256, 512, "--trials", 9)
    assert output.status == FAILED
    assert "all of cpu product, float32 nonnegative, n = 256 failed (9 timeout" in output.out
    assert "tuned     1 of 2 tasks" in output.out


def test_an_interrupt_keeps_the_results_so_far(
    cli: Callable[..., Outcome], pool: SyntheticPool
) -> None:
    def press() -> None:
        raise KeyboardInterrupt

    pool.before_final = press
    output = cli(*FEW)
    assert output.status == INTERRUPTED
    assert "interrupted; --resume continues" in output.out


def test_dry_run_measures_nothing(
    cli: Callable[..., Outcome], home: Path, pool: SyntheticPool
) -> None:
    output = cli("--device", "cpu", "--dry-run", "--save-dir", home / "there")
    assert output.status == 0
    assert re.search(
        rf"n = 1024: \d+ configurations, \d+ pass the filter; {home}/there/.*/cpu-product-float32\.json\n",
        output.out,
    )
    found = cli(
        "--device", "cpu", "--dry-run", "--json", "--time-budget", 7, "--sign", "any", "nonnegative"
    ).json
    assert [row["candidates"] <= row["space"] for row in found["tasks"]] == [True] * 4
    assert found["seconds"] == 7
    assert pool.screened == []
    assert list(home.iterdir()) == []


class TestStored:
    NOTHING = "no tuned file for this device has an entry that matches the arguments; `python -m tri_apsp.tune` writes one\n"

    def test_list_show_and_verify(
        self, cli: Callable[..., Outcome], home: Path, pool: SyntheticPool
    ) -> None:
        cli("--device", "cpu", "--kernel", "product", "--n", 1024, "--trials", 200)
        folder = home / "tuned" / describe(CPU).slug
        (folder / "cpu-solve-float32.json").write_text("{")
        output = cli("--list")
        assert f"{folder / 'cpu-product-float32.json'}: n = 1024\n" in output.out
        assert re.search(
            r"cpu-solve-float32\.json: not used: tuned file .* must hold JSON", output.out
        )
        assert [row["used"] for row in cli("--list", "--json").json["files"]] == [True, False]

        assert (
            cli("--show").out
            == f"cpu product, float32 nonnegative, n = 1024: 1 ms, 1.92 x the default, {FASTEST_SPELLED}\n"
        )
        assert cli("--show", "--json").json["entries"][0]["config"]["product"]["block_m"] == 384
        assert cli("--show", "--n", 512).out == self.NOTHING

        pool.finals.clear()
        output = cli("--verify")
        assert output.out == (
            "cpu product, float32 nonnegative, n = 1024: holds: 1.92 x the default now, 1.92 x when it was tuned\n"
        )
        assert output.status == 0
        ((_, configs, _),) = pool.finals
        assert configs[1].product == FASTEST
        assert cli("--verify", "--json").json["entries"][0]["speedup"] == pytest.approx(
            1.9166, rel=1e-3
        )

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
                        Kind.wrong_result if config.product == FASTEST else None
                    )
                },
                "failed",
                FAILED,
            ),
        ],
    )
    def test_states(
        self,
        cli: Callable[..., Outcome],
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

    def test_a_saved_default_holds(self, cli: Callable[..., Outcome], pool: SyntheticPool) -> None:
        pool.flat = True
        cli("--device", "cpu", "--kernel", "product", "--n", 1024, "--trials", 200)
        assert "holds: 1.00 x the default now" in cli("--verify").out

    def test_the_files_of_a_gpu_that_is_named_are_used(
        self, cli: Callable[..., Outcome], home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cli(*FEW)
        (own,) = (home / "tuned").glob("*/*.json")
        named = home / "tuned" / "b-cpu" / own.name
        named.parent.mkdir()
        named.write_text(own.read_text().replace(describe(CPU).slug, "b-cpu"))
        for variable, used in ((None, own), ("b-cpu", named)):
            if variable is not None:
                monkeypatch.setenv("TRI_APSP_TUNED_FOR", variable)
            found = cli("--device", "cpu", "--list", "--json").json["files"]
            assert {row["file"]: row["used"] for row in found} == {
                str(path): path == used for path in (own, named)
            }
            (shown,) = cli("--device", "cpu", "--show", "--json").json["entries"]
            assert shown["file"] == str(used)

    def test_an_export_is_imported_elsewhere(self, cli: Callable[..., Outcome], home: Path) -> None:
        cli(*FEW)
        (file,) = (home / "tuned").glob("*/*.json")
        output = cli("--device", "cpu", "--export", home / "mine.json")
        assert output.out == f"written  {home / 'mine.json'}: 1 tuned file\n"
        there = home / "there" / file.parent.name / file.name
        assert (
            cli("--import", home / "mine.json", "--save-dir", home / "there").out
            == f"written  {there}\n"
        )
        assert tuned.load(there) == tuned.load(file)
        assert cli("--import", home / "mine.json", "--save-dir", home / "there", "--json").json == {
            "files": [str(there)]
        }

    def test_the_files_of_another_directory_are_exported(
        self, cli: Callable[..., Outcome], home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (home / "tuning").mkdir()
        monkeypatch.setattr(paths, "_CHECKOUT", home / "tuning")
        for name, words in (("there", ("--save-dir", home / "there")), ("tuning", ("--ship",))):
            cli(*FEW, *words)
            (file,) = (home / name).glob("*/*.json")
            output = cli("--device", "cpu", "--export", home / "mine.json", *words, "--json")
            assert output.json == {"file": str(home / "mine.json"), "holds": [str(file)]}

    @pytest.mark.parametrize("action", ["--export", "--import"])
    def test_entries_cannot_be_chosen(
        self, cli: Callable[..., Outcome], home: Path, action: str
    ) -> None:
        cli(*FEW)
        output = cli(
            "--device",
            "cpu",
            action,
            home / "mine.json",
            "--kernel",
            "product",
            "--dtype",
            "float32",
            "--n",
            9,
        )
        assert (output.status, output.out) == (BAD_INPUT, "")
        assert (
            f"error: {action} must be given without --kernel, --n, --dtype, since it takes every entry; leave them out.\n"
            in output.err
        )
        assert not (home / "mine.json").exists()

    @pytest.mark.parametrize("name", ["", "."])
    def test_an_export_needs_the_name_of_a_file(
        self, cli: Callable[..., Outcome], name: str
    ) -> None:
        cli(*FEW)
        output = cli("--device", "cpu", "--export", name)
        assert (output.status, output.out) == (BAD_INPUT, "")
        assert (
            output.err
            == "error: an export must be written to a file, but . is a folder; name a file in it.\n"
        )

    def test_an_export_without_files_is_refused(
        self, cli: Callable[..., Outcome], home: Path
    ) -> None:
        output = cli("--device", "cpu", "--export", home / "mine.json")
        assert (output.status, output.out) == (BAD_INPUT, "")
        assert not (home / "mine.json").exists()

    def test_show_finds_entries_of_the_largest_size_of_a_kernel(
        self, cli: Callable[..., Outcome], home: Path
    ) -> None:
        fields = to_fields(
            Config(small_product=default_config("nvidia", torch.float32).small_product)
        )
        times = dict.fromkeys(
            ("p20_ms", "p50_ms", "p80_ms", "default_ms", "speedup", "evaluated"), 1
        )
        entry = Entry(sign="any", n=1024, batch=1, config=fields, **times)
        run = {
            "space_hash": "0" * 16,
            "protocol": "",
            "seed": 0,
            "budget_seconds": None,
            "complete": True,
        }
        tuned.save(
            tuned.new_file("nvidia", "small_product", "float32", describe(CPU), [entry], **run)
        )
        assert "n = 1024" in cli("--device", "cpu", "--show", "--n", 4096).out
        assert cli("--device", "cpu", "--show", "--n", 512).out == self.NOTHING

    def test_without_files_nothing_is_shown(self, cli: Callable[..., Outcome]) -> None:
        assert "no tuned files" in cli("--list", "--save-dir", "none").out
        for wish in ("--show", "--verify"):
            assert cli(wish, "--save-dir", "none").out == self.NOTHING
            assert cli(wish, "--json", "--save-dir", "none").json == {"entries": []}


BAD = {
    "kernel": (["--kernel", "matmul"], BAD_INPUT, ["matmul", "product", "solve", "closure"]),
    "kernel of another engine": (
        ["--kernel", "batch"],
        BAD_INPUT,
        ["'batch'", "product, solve", "cpu engine"],
    ),
    "dtype": (["--dtype", "int8"], BAD_INPUT, ["int8", *map(dtype_name, DTYPES)]),
    "sign": (["--sign", "minus"], BAD_INPUT, ["minus", "nonnegative", "any"]),
    "n": (["--n", "0"], BAD_INPUT, ["n must be a whole number from 1, but is 0"]),
    "n too large": (["--n", "10000000"], FAILED, ["10000000 vertices", "GiB", "which fits"]),
    "no trials": (["--trials", "0"], BAD_INPUT, ["trials must be a whole number from 1, but is 0"]),
    "no time": (
        ["--time-budget", "0"],
        BAD_INPUT,
        ["time budget must be a finite number of seconds above 0, but is 0"],
    ),
    "less time": (["--time-budget", "-3"], BAD_INPUT, ["but is -3"]),
    "no number": (["--time-budget", "nan"], BAD_INPUT, ["but is nan"]),
    "seed": (["--seed", "-1"], BAD_INPUT, ["seed must be a whole number from 0, but is -1"]),
    "sampler": (["--sampler", "genetic"], BAD_INPUT, ["genetic", "tpe", "random", "grid"]),
    "gpus": (["--gpus", "0"], BAD_INPUT, ["gpus must be a whole number from 1, but is 0"]),
    "gpus of a CPU": (["--gpus", "2"], BAD_INPUT, ["gpus must be 1 on a CPU, but is 2"]),
    "no GPU": (["--device", "cuda:99"], BAD_INPUT, ["device cuda:99 must exist"]),
    "engine": (
        ["--engine", "nvidia"],
        FAILED,
        [
            "the nvidia engine needs a GPU, but the device is cpu; choose a GPU, or leave the engine out."
        ],
    ),
    "storage": (["--storage", "studies"], BAD_INPUT, ["must be the URL of a database"]),
    "storage that is none": (
        ["--storage", "sqlite:////no/such/x.db"],
        BAD_INPUT,
        ["answers", "unable to open"],
    ),
    "two wishes": (["--list", "--show"], BAD_INPUT, ["not allowed with"]),
    "word": (["product"], BAD_INPUT, ["product"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(cli: Callable[..., Outcome], home: Path, pool: SyntheticPool, case: str) -> None:
    words, status, parts = BAD[case]
    output = cli(*([] if "--device" in words else ["--device", "cpu"]), *words)
    assert (output.status, output.out) == (status, "")
    assert re.search(r"^error: [^\n]*\.\n\Z", output.err, re.MULTILINE)
    for part in parts:
        assert part in output.err
    assert pool.screened == []
    assert not (home / "tuned").exists()


class TestLockedStore:
    @pytest.fixture
    def lock(self, home: Path) -> filelock.FileLock:
        """The lock of another process."""
        folder = tuned.save_directory() / describe(CPU).slug
        folder.mkdir(parents=True)
        return filelock.FileLock(folder / ".lock", timeout=0, thread_local=False)

    def test_a_locked_folder_is_refused_before_anything_is_measured(
        self,
        cli: Callable[..., Outcome],
        pool: SyntheticPool,
        lock: filelock.FileLock,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(store, "LOCK_SECONDS", 0.01)
        with lock:
            output = cli(*FEW)
        assert output.status == BAD_INPUT
        assert "must not be locked" in output.err
        assert pool.screened == []

    def test_a_sweep_waits_for_the_lock_before_anything_is_measured(
        self, cli: Callable[..., Outcome], pool: SyntheticPool, lock: filelock.FileLock
    ) -> None:
        pool.before = lambda _: None if not lock.is_locked else pytest.fail("it is locked still")
        lock.acquire()
        ended = threading.Timer(0.2, lock.release)
        ended.start()
        assert cli(*FEW).status == 0
        assert not ended.is_alive()
        assert len(pool.screened) > 1

    def test_the_lock_is_free_while_a_sweep_measures(
        self, cli: Callable[..., Outcome], pool: SyntheticPool, lock: filelock.FileLock
    ) -> None:
        def take(_: int) -> None:
            with lock:
                pass

        pool.before = take
        assert cli(*FEW).status == 0


IMPORTS = """
import sys
from tri_apsp.tune.__main__ import main
try:
    main(["--help"])
except SystemExit:
    print("loaded", [name for name in ("optuna", "sqlalchemy", "pydantic", "numba") if name in sys.modules])
import tri_apsp.tune.commands
print("loaded", [name for name in ("optuna", "optuna.importance") if name in sys.modules])
"""


def test_slow_imports_are_made_when_they_are_needed() -> None:
    """The help imports neither Optuna nor a database; only reports import optuna.importance, which
    loads scikit-learn.
    """
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.endswith("loaded []\nloaded ['optuna']\n")
    assert "--resume" in done.stdout


def test_sigterm_keeps_the_results_so_far(
    cli: Callable[..., Outcome], home: Path, pool: SyntheticPool
) -> None:
    """A batch system ends a process by SIGTERM: the results so far are saved and printed."""

    def terminate(count: int) -> None:
        if count == 5:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)

    pool.before = terminate
    before = signal.getsignal(signal.SIGTERM)
    output = cli(*FEW, "--report", home / "rows")
    assert output.status == INTERRUPTED, output.err
    assert "interrupted; --resume continues" in output.out
    assert len((home / "rows" / "trials.csv").read_text().splitlines()) == 1 + 4
    assert signal.getsignal(signal.SIGTERM) is before


class TestProcess:
    """The tuner in a process of its own, with real timing on the cpu engine."""

    WORDS = (
        "--device",
        "cpu",
        "--kernel",
        "product",
        "--n",
        "512",
        "--sign",
        "any",
        "--sampler",
        "random",
        "--resume",
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

    def known(self) -> int:
        """Return how many configurations the journal knows."""
        path = journal_path(describe(CPU).slug)
        return path.read_bytes().count(b'"outcome":') if path.exists() else 0

    def wait_for(self, running: subprocess.Popen[str], known: int) -> None:
        deadline = time.monotonic() + 120
        while self.known() < known:
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def test_a_sweep_is_killed_interrupted_and_resumed(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(
            "OMP_NUM_THREADS", "1"
        )  # on a busy machine more threads take ten times as long
        with self.start("--trials", "30") as running:
            self.wait_for(running, 3)
            running.kill()
        first = self.known()

        with self.start("--trials", "30", "--json") as running:
            self.wait_for(running, first + 4)
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does, to the workers too
            out, err = running.communicate(timeout=60)
        assert (running.returncode, err) == (INTERRUPTED, "")
        found = json.loads(out)
        assert found["interrupted"]
        assert [result["complete"] for result in found["results"]] == [False]
        known = self.known()
        assert first + 3 <= known - 1 <= found["results"][0]["evaluated"] <= known < 30

        (result,) = tune(
            ["product"],
            [512],
            signs=["any"],
            device="cpu",
            sampler="random",
            trials=known + 2,
            resume=True,
        ).results
        assert result.complete
        assert len(result.search.evaluated) == known + 2
        (entry,) = tuned.load(result.path).entries
        assert entry.evaluated == known + 2
        used = tri_apsp.shortest_paths(torch.rand(512, 512)).config
        assert used.source == "this process" or used.source == str(result.path)
