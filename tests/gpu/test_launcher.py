"""What was compiled is launched again for arguments that Triton would compile alike, and for no
others.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tri_apsp.gpu import launcher
from tri_apsp.gpu.launcher import Launcher

MEMORY = torch.zeros(64)


class Kernel:
    """Stands in for a Triton kernel f(x, y, n, SIZE, SIGN): notes what it compiled, and what was
    launched without it.
    """

    arg_names = ("x", "y", "n", "SIZE", "SIGN")

    def __init__(self, compiles: bool = True) -> None:
        self.compiled: list[tuple[Any, ...]] = []
        self.launched: list[tuple[Any, ...]] = []
        self._compiles = compiles

    def warmup(self, *args: Any, grid: tuple[int, int, int], **constants: Any) -> None:
        self.compiled.append((grid, args, constants))

    def __getitem__(self, grid: tuple[int, int, int]) -> Callable[..., Any]:
        def launch(*args: Any, **constants: Any) -> Any:
            self.compiled.append((grid, args, constants))
            return Compiled(self) if self._compiles else None

        return launch


class Compiled:
    """What Triton compiled, as far as it stayed the same from 3.6 to 3.9."""

    function, packed_metadata = "function", "metadata"

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def run(self, x: int, y: int, z: int, stream: int, *args: Any) -> None:
        (function, metadata, *hooks), args = args[:5], args[5:]
        assert (stream, function, metadata, hooks) == (STREAM, "function", "metadata", [None] * 3)
        self._kernel.launched.append(((x, y, z), *args))


STREAM = 17


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.gpu.launcher.raw_stream", lambda index: STREAM)


CONSTANTS = {"SIGN": "any", "num_warps": 4, "SIZE": 8}


def test_the_second_launch_bypasses_triton() -> None:
    kernel = Kernel()
    launch = Launcher(kernel, CONSTANTS)
    launch((2, 1, 1), MEMORY, MEMORY, 32)
    assert kernel.compiled == [((2, 1, 1), (MEMORY, MEMORY, 32), CONSTANTS)]
    other = torch.ones(64)
    launch((3, 1, 1), other, MEMORY, 48)
    assert len(kernel.compiled) == 1
    (grid, x, y, *rest) = kernel.launched[0]
    assert (grid, rest) == ((3, 1, 1), [48, 8, "any"]), (
        "constants stand in the order of the kernel's arguments"
    )
    assert (x, y) == (other.data_ptr(), MEMORY.data_ptr())


def test_tensors_without_memory_are_only_compiled_for() -> None:
    kernel = Kernel(compiles=False)
    launch = Launcher(kernel, CONSTANTS)
    launch((2, 1, 1), nothing := MEMORY.to("meta"), MEMORY, 32)
    assert kernel.compiled == [((2, 1, 1), (nothing, MEMORY, 32), CONSTANTS)]
    assert not kernel.launched


def test_hooks_hear_of_each_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton calls them, and so must launch."""
    knobs = pytest.importorskip("triton.knobs")
    monkeypatch.undo()
    monkeypatch.setattr("tri_apsp.gpu.launcher.raw_stream", lambda index: STREAM)
    kernel = Kernel()
    launch = Launcher(kernel, CONSTANTS)
    launch((1, 1, 1), MEMORY, MEMORY, 32)
    for chain in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        hook = lambda metadata: None  # noqa: E731
        chain.add(hook)
        try:
            launch((1, 1, 1), MEMORY, MEMORY, 32)
        finally:
            chain.remove(hook)
    assert (len(kernel.compiled), len(kernel.launched)) == (3, 0)
    launch((1, 1, 1), MEMORY, MEMORY, 32)
    assert (len(kernel.compiled), len(kernel.launched)) == (3, 1)


@pytest.mark.parametrize(
    "others",
    [
        (MEMORY[1:], MEMORY, 32),
        (MEMORY, MEMORY[1:], 32),
        (MEMORY.double(), MEMORY, 32),
        (MEMORY, MEMORY, 33),
        (MEMORY, MEMORY, 1),
        (MEMORY, MEMORY, 1 << 31),
        (MEMORY, MEMORY, -(1 << 31) - 16),
    ],
    ids=[
        "alignment",
        "alignment of the second",
        "dtype",
        "no multiple of 16",
        "one",
        "64 bits",
        "64 bits below",
    ],
)
def test_other_kinds_are_compiled(others: tuple[Any, ...]) -> None:
    kernel = Kernel()
    launch = Launcher(kernel, CONSTANTS)
    for _ in range(2):
        launch((1, 1, 1), MEMORY, MEMORY, 32)
        launch((1, 1, 1), *others)
    assert len(kernel.compiled) == len(kernel.launched) == 2


@pytest.mark.parametrize("hip", [None, "6.0"])
def test_the_interpreter_and_an_amd_gpu_are_asked_each_time(
    monkeypatch: pytest.MonkeyPatch, hip: str | None
) -> None:
    monkeypatch.setattr(torch.version, "hip", hip)
    kernel = Kernel(compiles=hip is not None)
    launch = Launcher(kernel, CONSTANTS)
    for _ in range(2):
        launch((1, 1, 1), MEMORY, MEMORY, 32)
    assert len(kernel.compiled) == 2


def test_a_driver_that_cannot_be_loaded_is_met_by_the_first_launch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        loaded.append(True)
        raise RuntimeError

    loaded = list[bool]()
    monkeypatch.setattr(launcher, "_load_launchers_apart", fail)
    launcher.start_triton.cache_clear()
    thread = launcher.start_triton()
    assert launcher.start_triton() is thread
    thread.join()
    assert loaded == [True]
    launcher.start_triton.cache_clear()
