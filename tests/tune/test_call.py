"""What one call runs is tuned, and nothing else."""

import itertools
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import in_this_process
from tune.synthetic import FASTEST, SyntheticPool

import tri_apsp
from tri_apsp import tuned
from tri_apsp.console.exit_status import BAD_INPUT
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.tune import call as tuner
from tri_apsp.tune import tune_for
from tri_apsp.tune.__main__ import main
from tri_apsp.tune.run import run_plans

pytestmark = pytest.mark.usefixtures("memory")


@pytest.fixture(autouse=True)
def folder(home: Path) -> None:
    """The folder of tuned files, which solves look for."""
    (home / "tuned").mkdir()


def tasks(call: Any) -> list[tuple[str, str, str, int, int]]:
    with tuned.lookups() as found:
        call()
    every = tuner.tasks_of_calls(found)
    return [(each.kernel, each.dtype, each.sign, each.n, each.batch) for each in every]


def test_tasks_of_calls() -> None:
    weights = torch.rand(300, 300)
    solve = [
        ("product", "float32", "nonnegative", 300, 1),
        ("solve", "float32", "nonnegative", 300, 1),
    ]
    for _ in range(2):  # also of a plan that is kept
        assert tasks(lambda: tri_apsp.shortest_paths(weights, predecessors=True)) == solve
    potentials = 3 * torch.arange(300, dtype=torch.float64)
    negative = 1 + potentials[:, None] - potentials
    assert [each[1:3] for each in tasks(lambda: tri_apsp.shortest_paths(negative))] == [
        ("float64", "any")
    ] * 2
    batch = torch.randint(1, 9, (7, 40, 40), dtype=torch.int16)
    assert {each[1:] for each in tasks(lambda: tri_apsp.shortest_paths(batch))} == {
        ("int16", "any", 40, 7)
    }
    product = tasks(lambda: tri_apsp.semiring_product(weights, weights, semiring="max_plus"))
    assert [(each[0], each[3]) for each in product] == [("product", 300)]
    assert tasks(lambda: None) == []


def test_only_this_thread_and_context() -> None:
    with tuned.lookups() as outer:
        with tuned.lookups() as inner:
            tri_apsp.shortest_paths(torch.rand(20, 20))
        assert inner
        assert not outer
    tri_apsp.shortest_paths(torch.rand(20, 20))
    assert not outer


def test_a_call_is_tuned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = SyntheticPool()
    monkeypatch.setattr(tuner, "run_plans", partial(run_plans, make_pool=lambda devices: pool))
    weights, configs = torch.rand(300, 300), list[Any]()
    found = tune_for(
        lambda: configs.append(tri_apsp.shortest_paths(weights).plan.config), time_budget=30
    )
    assert {task.kernel for task, _ in pool.screened} == {"product", "solve"}
    assert configs[0].product != FASTEST
    assert configs[-1].product == FASTEST
    assert found.before.p50_ms > 0
    assert found.after.p50_ms > 0
    printed = capsys.readouterr().out
    assert printed.startswith("the call: ")
    assert re.search(r" ms before \(.* to .*\), .* ms now \(.* to .*\), .* times as fast", printed)
    assert {path.name for path in found.result.files} == {
        "cpu-product-float32.json",
        "cpu-solve-float32.json",
    }


def test_what_stays_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = SyntheticPool(flat=True)
    monkeypatch.setattr(tuner, "run_plans", partial(run_plans, make_pool=lambda devices: pool))
    tune_for(lambda: tri_apsp.shortest_paths(torch.ones(50, 50)))
    assert capsys.readouterr().out.endswith("; the configurations in use stay\n")


def test_the_command_takes_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pool = SyntheticPool()
    monkeypatch.setattr(tuner, "run_plans", partial(run_plans, make_pool=lambda devices: pool))
    cli = in_this_process(main, capsys)
    np.save(tmp_path / "w.npy", np.ones((50, 50), np.int32))
    ends = itertools.permutations(range(150), 2)
    (tmp_path / "edges.txt").write_text("".join(f"{u} {v} 2\n" for u, v in ends))
    for name, dtype, n in (("w.npy", "int32", 50), ("edges.txt", "float32", 150)):
        output = cli("--graph", tmp_path / name, "--device", "cpu")
        assert output.status == 0
        assert output.out.startswith("the call: ")
        assert {(task.dtype, task.n) for task, _ in pool.finals} == {(dtype, n)}
        pool.finals.clear()
    found = cli("--graph", tmp_path / "w.npy", "--device", "cpu", "--dtype", "float64", "--json")
    assert {"before", "after", "results", "pages"} <= found.json.keys()
    assert {result["dtype"] for result in found.json["results"]} == {"float64"}
    refused = cli("--graph", tmp_path / "w.npy", "--n", 30)
    assert (refused.status, refused.out) == (BAD_INPUT, "")
    assert "--graph must come without --n" in refused.err


def test_nothing_to_tune() -> None:
    with pytest.raises(InputError, match="must run a kernel that can be tuned: a dense"):
        tune_for(lambda: None)
    with pytest.raises(InputTypeError, match=r"without arguments, .* but is Tensor; give"):
        tune_for(torch.ones(2, 2))  # type: ignore[arg-type]
