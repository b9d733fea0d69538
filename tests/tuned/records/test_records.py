"""The records of tunable kernels: each is complete, and a new kernel needs no more."""

import dataclasses
import json

import pytest
import torch
from tuned_files import entry_of, file_of

from tri_apsp import Config, InputError, tuned
from tri_apsp.configs import SWEEP_FIELDS, CpuConfig, CpuTiles, default_config
from tri_apsp.device import describe
from tri_apsp.tune.__main__ import build_parser
from tri_apsp.tune.candidates import candidates
from tri_apsp.tune.tasks import Settings, TuningTask, plans, tasks_of
from tri_apsp.tuned import hashes
from tri_apsp.tuned.records import RECORDS, TunableKernel, allowed_fields, record_of
from tri_apsp.tuned.records.base import CALLS, make_space

CPU = torch.device("cpu")
FAKE = TunableKernel[CpuConfig](
    engine="cpu",
    name="fake",
    fields=("block_size",),
    sources=("cpu/min_plus.py", "portable/tiles.py"),
    workload="product",
    calls=("product",),
    space=make_space(block_size=(1, 2, 4, 8, 16)),
    quick_sizes=(64,),
    full_sizes=(32, 64),
    signed_dtypes=("float32",),
    fits=lambda config, dtype, device: (config.block_size or 0) * dtype.itemsize <= 32,
    repeats=lambda config, base, dtype, n: (config.block_size or 0) > n,
    lookup_size=lambda n, config: min(n, config.cutoff),
    batch=lambda n: 3,
)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> TunableKernel[CpuConfig]:
    monkeypatch.setitem(RECORDS, ("cpu", "fake"), FAKE)
    return FAKE


class TestANewKernel:
    """One record is enough to plan, search, hash and look up a new kernel."""

    def test_a_new_kernel_is_planned(self, fake: TunableKernel[CpuConfig]) -> None:
        (planned,) = plans(Settings(kernels=["fake"], device="cpu"))
        assert planned.tasks == (TuningTask("cpu", "fake", "float32", "nonnegative", 64, 3),)
        settings = Settings(["fake"], dtypes=["float32", "int16"], effort="full")
        tasks = tasks_of("cpu", describe(CPU), settings)
        found = [(task.dtype, task.sign, task.n) for task in tasks]
        assert found == [
            ("float32", sign, n) for sign in ("nonnegative", "any") for n in (32, 64)
        ] + [("int16", "any", n) for n in (32, 64)]
        (large,) = tasks_of("cpu", describe(CPU), Settings(["fake"], [4096]))
        assert large.n == default_config("cpu", torch.float32).cutoff
        assert build_parser().parse_args(["--kernel", "fake"]).kernels == ["fake"]

    def test_a_new_kernel_has_candidates(self, fake: TunableKernel[CpuConfig]) -> None:
        base = dataclasses.replace(default_config("cpu", torch.float32), block_size=1)
        for dtype, n, expected in (
            ("float32", 64, [1, 2, 4, 8]),
            ("int64", 64, [1, 2, 4]),
            ("float32", 3, [1, 2]),
        ):
            task = TuningTask("cpu", "fake", dtype, "any", n)
            assert [
                values["block_size"]
                for values in candidates(task.record.space, task, describe(CPU), base)
            ] == expected

    def test_a_new_kernel_has_a_file_that_calls_look_up(
        self, fake: TunableKernel[CpuConfig], directories: object, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        header = "cpu", "fake", "float32", describe(CPU)
        with pytest.raises(
            ValueError, match="a config must have fields of block_size, but has cutoff"
        ):
            file_of(*header, entry_of(64, {"cutoff": 4}))
        path = tuned.save(file_of(*header, entry_of(64, {"block_size": 4})))
        assert json.loads(path.read_text())["kernel"] == "fake"
        found = tuned.find("cpu", CPU, torch.float32, Config(cutoff=64), n=4096, product=True)
        assert (found.block_size, found.source) == (4, f"given, {path}")
        assert tuned.find("cpu", CPU, torch.float32, n=64).block_size == 128, (
            "a solve does not look for it"
        )
        assert "block_size" in allowed_fields("cpu", "solve")


@pytest.mark.parametrize(("engine", "kernel"), RECORDS)
def test_a_record_is_complete(engine: str, kernel: str) -> None:
    record = record_of(engine, kernel)
    assert (record.engine, record.name) == (engine, kernel)
    assert set(record.calls) <= set(CALLS)
    assert record.calls
    assert len(set(record.quick_sizes)) <= 1
    assert list(record.full_sizes) == sorted(set(record.full_sizes))
    assert all((hashes._FOLDER / source).is_file() for source in record.sources)
    fields = [parameter.name.partition(".")[0] for parameter in record.space.parameters]
    assert set(fields) == set(record.fields)


def test_an_entry_of_a_solve_has_no_fields_of_sweeps() -> None:
    fields = allowed_fields("nvidia", "solve")
    assert {"batch_programs", "small_product", "exponents"} <= set(fields)
    assert not set(SWEEP_FIELDS) & set(fields)


def test_values_of_a_space_and_back() -> None:
    base = default_config("cpu", torch.float32)
    space = record_of("cpu", "product").space
    values = space.values(base) | {"product.block_m": 96}
    assert space.config(values, base) == dataclasses.replace(base, product=CpuTiles(96, 512, 512))
    nvidia = default_config("nvidia", torch.float32)
    whole = record_of("nvidia", "solve").space
    for name in whole.parameters[-1].choices:
        assert whole.values(whole.config({"small_product": name}, nvidia))["small_product"] == name


@pytest.mark.parametrize(("engine", "kernel"), [("tpu", "product"), ("cpu", "panels")])
def test_unknown_names_are_refused(engine: str, kernel: str) -> None:
    message = f"kernel '{kernel}' must exist for engine '{engine}'.* portable: product, closure"
    with pytest.raises(InputError, match=message):
        record_of(engine, kernel)
