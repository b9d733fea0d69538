"""What the tests of tuned files share: a machine without any, and files to put there."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tuned_files import entry_of, file_of

from tri_apsp import Config, GpuTiles, device, tuned
from tri_apsp.configs import CompleteConfig, to_fields
from tri_apsp.device import Device, describe
from tri_apsp.tuned import lookup, store
from tri_apsp.tuned.schema import Entry, TunedFile

GPU = Device("cuda", "A GPU", "a-gpu", 100, 1 << 34, 227 << 10, (9, 0))
CUDA = torch.device("cuda", 0)
_EXPONENTS = GpuTiles(128, 128, 128, num_warps=8, num_stages=5)
CONFIGS: dict[str, dict[str, Any]] = {
    "product": to_fields(Config(product=GpuTiles(64, 128, 8, num_stages=2))),
    "small_product": to_fields(Config(small_product=GpuTiles(64, 64, 8, num_stages=2))),
    "exponents": to_fields(Config(exponents=_EXPONENTS)),
    "closure": {"closure_tile": 32, "closure_warps": 2, "closure_programs": 1},
    "batch": {"closure_tile": 32, "closure_warps": 1, "batch_programs": 1},
    "sweep": {"sweep_lanes": 1, "sweep_warps": 2, "sweep_unroll": 16},
    "solve": {"method": "kleene", "block_size": 2048, "cutoff": 512},
}


def choose(
    n: int = 1024,
    given: Config | None = None,
    *,
    engine: str = "nvidia",
    device: torch.device = CUDA,
    **arguments: Any,
) -> CompleteConfig:
    """Return the configuration of a call in float32, and issue the warnings of its lookup."""
    call = tuned.call_of(engine, device, torch.float32, n=n, **arguments)
    return tuned.config_for_call(call, given)


@pytest.fixture(autouse=True)
def directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Path]]:
    """The directory of each kind of file, on a machine on which nothing was tuned or looked up."""
    for name in ("TRI_APSP_CONFIG_DIR", "TRI_APSP_TUNE"):
        monkeypatch.delenv(name, raising=False)
    found = {name: tmp_path / name for name in ("named", "user", "shipped")}
    found["shipped"].mkdir()
    monkeypatch.setattr(store.platformdirs, "user_config_path", lambda *_, **__: found["user"])
    monkeypatch.setattr(store, "_CHECKOUT", found["shipped"])
    monkeypatch.setattr(lookup, "WARNED", set())
    tuned.reload()
    yield found
    tuned.reload()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Device:
    """Every device is this GPU."""
    monkeypatch.setattr(device, "_describe", lambda kind, index: GPU)
    return GPU


@pytest.fixture
def entry() -> Callable[..., Entry]:
    """Make an entry for n vertices with the fields `config`, by default those of a kernel of the
    nvidia engine; `values` replace some of them, or of its tiles.
    """

    def make(
        n: int,
        kernel: str = "product",
        *,
        sign: str = "any",
        batch: int = 1,
        config: dict[str, Any] | None = None,
        **values: Any,
    ) -> Entry:
        fields = {
            name: value | values if isinstance(value, dict) else values.get(name, value)
            for name, value in (config or CONFIGS[kernel]).items()
        }
        return entry_of(n, fields, sign, batch)

    return make


@pytest.fixture
def made() -> Callable[..., TunedFile]:
    """Make a file for float32 with these entries, as the tuner does."""

    def make(
        *entries: Entry,
        engine: str = "nvidia",
        kernel: str = "product",
        device: Device = GPU,
        **header: Any,
    ) -> TunedFile:
        return file_of(engine, kernel, "float32", device, *entries, **header)

    return make


@pytest.fixture
def cpu_file(made: Callable[..., TunedFile], entry: Callable[..., Entry]) -> TunedFile:
    """A file of solves of 200 vertices on this machine's CPU."""
    config = {"method": "floyd_warshall", "block_size": 32, "cutoff": 64}
    here = describe(torch.device("cpu"))
    return made(entry(200, config=config), engine="cpu", kernel="solve", device=here)
