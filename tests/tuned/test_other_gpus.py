"""A GPU for which nothing was tuned takes the entries of the nearest GPU of its architecture."""

import dataclasses

import pytest
import torch
from tuned.conftest import GPU, choose

from tri_apsp import tuned
from tri_apsp.configs import default_config

DEFAULT = default_config("nvidia", torch.float32)

pytestmark = pytest.mark.usefixtures("gpu")


def other(name, units=GPU.units, **changed):
    return dataclasses.replace(
        GPU, name=f"{name} GPU", slug=f"{name.lower()}-gpu", units=units, **changed
    )


def test_the_gpu_with_the_nearest_number_of_units_is_used(entry, made):
    paths = [
        tuned.save(made(entry(1024, block_m=block_m), device=other(name, units)))
        for name, units, block_m in (("C", 110, 32), ("D", 90, 64), ("E", 120, 128))
    ]
    found = choose()
    assert (found.product.block_m, found.source) == (32, f"{paths[0]}, tuned for C GPU")
    paths[0].unlink()
    tuned.reload()
    assert choose().source == f"{paths[1]}, tuned for D GPU"


def test_own_entries_near_the_size_come_first(entry, made):
    own = tuned.save(made(entry(1024, block_m=128)))
    its = tuned.save(made(entry(1024, block_m=32), entry(8192, block_m=64), device=other("C")))
    assert choose().source == str(own)
    assert choose(8192).source == f"{its}, tuned for C GPU"
    assert choose(30_000) == DEFAULT


def test_own_entries_of_other_kernels_are_kept(entry, made):
    """The other GPU's solve sets fields of other kernels only where this GPU has no entry."""
    closure = tuned.save(made(entry(1024, "closure", closure_warps=2), kernel="closure"))
    whole = entry(1024, "solve")
    fields = {"closure_tile": 32, "closure_warps": 8, "closure_programs": 1}
    its = tuned.save(
        made(
            whole.model_copy(update={"config": whole.config | fields}),
            kernel="solve",
            device=other("C"),
        )
    )
    found = choose()
    assert (found.closure_warps, found.cutoff) == (2, 512)
    assert found.source == f"{closure}, {its}, tuned for C GPU"


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: "{",
        lambda text: text.replace(tuned.kernel_hash("nvidia", "product"), "0" * 64),
        lambda text: text.replace('"c-gpu"', '"d-gpu"'),
    ],
    ids=["damaged", "other sources", "in the folder of another"],
)
def test_a_file_that_does_not_fit_is_passed_over_in_silence(entry, made, edit):
    path = tuned.save(made(entry(1024), device=other("C")))
    assert choose() != DEFAULT
    path.write_text(edit(path.read_text()))
    tuned.reload()
    assert choose() == DEFAULT


def test_a_cpu_takes_no_file_of_another(entry, made, monkeypatch):
    cpu = dataclasses.replace(GPU, kind="cpu", capability=None)
    tuned.save(made(entry(1024), device=dataclasses.replace(cpu, slug="c-cpu")))
    monkeypatch.setattr("tri_apsp.device._describe", lambda kind, index: cpu)
    assert choose() == DEFAULT


def test_how_a_file_is_used_is_told_as_lookups_do_it(entry, made):
    devices = {"own": GPU, "other": other("C"), "foreign": other("D", capability=(10, 0))}
    paths = {name: tuned.save(made(entry(1024), device=each)) for name, each in devices.items()}
    reasons = {
        name: tuned.unused_because(path, tuned.load(path), GPU) for name, path in paths.items()
    }
    assert reasons["own"] is reasons["other"] is None
    assert "must be of A GPU (a-gpu, 100 units, compute capability 9.0), but" in reasons["foreign"]
    renamed = paths["own"].rename(paths["own"].with_name("nvidia-closure-float32.json"))
    assert tuned.unused_because(renamed, tuned.load(renamed), GPU) is not None
