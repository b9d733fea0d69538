"""Workers on a GPU: every kernel is measured, and what a GPU can do to a process."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import torch

import tri_apsp
from tri_apsp import tuned
from tri_apsp.configs import default_config, to_fields
from tri_apsp.device import describe
from tri_apsp.gpu.ahead import META
from tri_apsp.tune import tune
from tri_apsp.tune.candidates import candidates, with_method
from tri_apsp.tune.measurement import Compilation
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.worker import Worker
from tri_apsp.tuned.records import KERNELS, record_of

pytest.importorskip("triton")
from tune import faulty_gpu

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)
ALL = [(engine, kernel) for engine in ("nvidia", "portable") for kernel in KERNELS[engine]]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with closing(Worker(GPU)) as worker:
        yield worker


@pytest.mark.parametrize(("engine", "kernel"), ALL)
@pytest.mark.parametrize(
    ("dtype", "sign"),
    [("float32", "nonnegative"), pytest.param("int16", "any", marks=pytest.mark.slow)],
)
def test_every_kernel_is_measured(
    worker: Worker, engine: str, kernel: str, dtype: str, sign: str
) -> None:
    if dtype not in record_of(engine, kernel).dtypes:
        pytest.skip("the kernel does not take this dtype")
    task = TuningTask(
        engine,
        kernel,
        dtype,
        sign,
        256 if kernel == "batch" else 1024,
        200 if kernel == "batch" else 1,
    )
    base = with_method(default_config(engine, task.torch_dtype), task.n)
    space = task.record.space
    found = candidates(space, task, describe(GPU), base)
    configs = [base, *(space.config(found[len(found) * part // 4], base) for part in (1, 3))]
    outcomes = [worker.screen(task, config) for config in configs]
    for outcome in [*outcomes, *worker.final(task, configs, rounds=3)]:
        assert outcome.kind is OutcomeKind.correct, outcome


@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        ("too large", OutcomeKind.does_not_fit, "shared memory"),
        ("no slices", OutcomeKind.compile_error, ""),
        ("assertion", OutcomeKind.runtime_error, "CUDA error"),
        ("stray access", OutcomeKind.runtime_error, "CUDA error"),
        ("hang", OutcomeKind.timeout, "took more than 5 s"),
        ("wrong result", OutcomeKind.wrong_result, "values of"),
    ],
)
def test_a_bad_configuration_costs_only_itself(act: str, kind: OutcomeKind, message: str) -> None:
    task = TuningTask("nvidia", "product", "float32", "nonnegative", 512)
    good = default_config("nvidia", torch.float32)
    # On a busy machine compiling alone takes seconds.
    limit_s = 5 if kind is OutcomeKind.timeout else 60
    with closing(Worker(GPU, faulty_gpu.prepare)) as worker:
        before = worker.screen(task, good)
        outcome = worker.screen(task, faulty_gpu.bad(act), limit_s=limit_s)
        assert outcome.kind is kind, outcome
        assert message in outcome.message
        after = worker.screen(task, good)
        assert (before.kind, after.kind) == (OutcomeKind.correct, OutcomeKind.correct)
        assert after.median_ms < 3 * before.median_ms
        assert worker.processes == (1 if kind.deterministic else 2)


def test_workers_do_not_compile_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    compile_only = partial(Compilation, gpu=GPU, facts=describe(GPU))
    for engine, kernel in ALL:
        n, batch = (256, 200) if kernel == "batch" else (2048, 1)
        task = TuningTask(engine, kernel, "float32", "nonnegative", n, batch)
        base = default_config(engine, torch.float32)
        with closing(Worker(META, compile_only)) as compiler:
            for odd in (False, True):
                assert compiler.compile(task, base, odd).kind is OutcomeKind.correct
        compiled = {path.parent.name for path in tmp_path.rglob("*.cubin")}
        with closing(Worker(GPU)) as worker:
            outcomes = [worker.screen(task, base), *worker.final(task, [base], rounds=1)]
        assert [outcome.kind for outcome in outcomes] == [OutcomeKind.correct] * 2
        assert {path.parent.name for path in tmp_path.rglob("*.cubin")} == compiled, task


def test_a_quick_run(home: Path) -> None:
    """A tuning run keeps to its time, keeps the default unless that is beaten, and saves the winner
    where the next solve looks.
    """
    # Other tests use the GPU and the cores too, so that compiling one configuration may take half a
    # minute.
    found = tune(["closure"], [512], device="cuda", trials=6, time_budget=150)
    (result,) = found.results
    assert result.error == ""
    assert found.seconds < 200
    assert 1 < len(result.trials) <= 6 < result.candidates
    assert result.path is not None
    (entry,) = tuned.load(result.path).entries
    assert (entry.n, entry.sign, entry.p50_ms) == (512, "nonnegative", result.winner.times.p50_ms)
    used = tri_apsp.shortest_paths(torch.rand(512, 512, device=GPU)).config
    assert used.source == str(result.path)
    assert entry.config.items() <= to_fields(used).items()


@pytest.mark.two_gpus
def test_two_gpus_of_one_model_share_a_search(home: Path) -> None:
    found = tune(["closure"], [512], device=["cuda:0", "cuda:1"], trials=20, time_budget=200)
    (result,) = found.results
    assert (result.error, found.left_out) == ("", {})
    assert [card.card.partition(":")[2] for card in result.cards] == ["cuda:0", "cuda:1"]
    assert all(card.measured > 0 for card in result.cards)
    assert sum(card.measured for card in result.cards) == len(result.trials)
    assert result.final_on == result.cards[0].card
    assert 1 <= result.cards_ratio < 1.2
