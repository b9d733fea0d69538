"""The configuration of sweeps over an elimination tree: which entry they take, and the programs
that they launch by it.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tuned.conftest import CUDA, GPU

from tri_apsp import Config, device, graphs, prepare, tuned
from tri_apsp.configs import default_config
from tri_apsp.device import Device
from tri_apsp.elimination.gpu import GpuSweeps
from tri_apsp.elimination.weights import Elimination
from tri_apsp.tuned.schema import Entry, TunedFile

DEFAULT = default_config("nvidia", torch.float32)
META = torch.device("meta")


@pytest.fixture(scope="module")
def roads() -> Callable[[torch.dtype], Elimination]:
    graph = prepare(graphs.generate("roads", 600, seed=0))

    def of(dtype: torch.dtype) -> Elimination:
        sweeps = graph.with_weights(graph.by_source.weights.to(dtype)).sweeps
        return sweeps.elimination

    return of


def found(n: int = 600) -> tuple[int | None, int | None, int | None]:
    config = tuned.find("nvidia", CUDA, torch.float32, n=n, sweep=True)
    return config.sweep_lanes, config.sweep_warps, config.sweep_unroll


class TestLookup:
    def test_only_sweeps_take_entries_of_sweeps(
        self, gpu: Device, entry: Callable[..., Entry], made: Callable[..., TunedFile]
    ) -> None:
        assert found() == (2, 4, 8)
        tuned.save(made(entry(600, "sweep"), kernel="sweep"))
        tuned.save(made(entry(600, "solve"), kernel="solve"))
        assert found() == (1, 2, 16)
        sweep = tuned.find("nvidia", CUDA, torch.float32, n=600, sweep=True)
        assert (sweep.block_size, sweep.method) == (DEFAULT.block_size, None)
        solve = tuned.find("nvidia", CUDA, torch.float32, n=600)
        assert (solve.sweep_warps, solve.block_size) == (4, 2048)

    def test_large_graphs_take_the_largest_entry(
        self, gpu: Device, entry: Callable[..., Entry], made: Callable[..., TunedFile]
    ) -> None:
        entries = entry(8192, "sweep"), entry(32768, "sweep", sweep_unroll=4)
        tuned.save(made(*entries, kernel="sweep"))
        unrolls = [found(n)[2] for n in (4095, 4096, 16384, 17000, 32768, 10**7)]
        assert unrolls == [8, 16, 16, 4, 4, 4]

    def test_using_forces_fields_of_sweeps_alone(self, gpu: Device) -> None:
        with tuned.using(Config(engine="cpu", block_size=64, sweep_unroll=4)):
            assert found() == (2, 4, 4)


def shape_of(sweeps: GpuSweeps, lanes: int) -> Any:
    return sweeps._shape(lanes, sweeps._config())


class TestPrograms:
    """A program is (lanes of a thread, warps)."""

    def test_programs_have_no_more_lanes_than_there_are(
        self, gpu: Device, roads: Callable[[torch.dtype], Elimination]
    ) -> None:
        sweeps = GpuSweeps(roads(torch.float32), META)
        shapes = [shape_of(sweeps, lanes) for lanes in (600, 256, 255, 100, 63, 1)]
        assert shapes == [(2, 4), (2, 4), (2, 2), (2, 1), (1, 1), (1, 1)]
        sweeps = GpuSweeps(roads(torch.int64), META)
        assert [shape_of(sweeps, lanes) for lanes in (600, 127, 1)] == [(1, 4), (1, 2), (1, 1)]

    def test_programs_fit_the_shared_memory(
        self,
        gpu: Device,
        roads: Callable[[torch.dtype], Elimination],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        sweeps = GpuSweeps(roads(torch.float32), META)
        config = sweeps._config()
        sizes = [sweeps._shared_bytes(sweeps._shape(lanes, config)) for lanes in (256, 128, 64, 32)]
        assert sizes == sorted(sizes, reverse=True)
        for size, shape in [*zip(sizes, [(2, 4), (2, 2), (2, 1), (1, 1)], strict=True), (0, None)]:
            small = dataclasses.replace(GPU, shared_memory=size)
            monkeypatch.setattr(device, "_describe", lambda *_, small=small: small)
            assert sweeps._shape(600, config) == shape

    def test_programs_and_schedules_are_those_of_the_tuned_file(
        self,
        gpu: Device,
        entry: Callable[..., Entry],
        made: Callable[..., TunedFile],
        roads: Callable[[torch.dtype], Elimination],
    ) -> None:
        sweeps = GpuSweeps(roads(torch.float32), META)
        assert shape_of(sweeps, 600) == (2, 4)
        tuned.save(made(entry(600, "sweep"), kernel="sweep"))  # which a graph follows
        assert [shape_of(sweeps, lanes) for lanes in (600, 64, 63)] == [(1, 2), (1, 2), (1, 1)]
        schedule, _ = sweeps._records((), True, sweeps._config().sweep_unroll)
        assert schedule.edges.shape[1] % 16 == 0
        given = dataclasses.replace(DEFAULT, sweep_warps=1)
        assert shape_of(GpuSweeps(roads(torch.float32), META, config=given), 600) == (2, 1)
        assert shape_of(GpuSweeps(roads(torch.int32), META), 600) == (2, 4)  # no file of int32
