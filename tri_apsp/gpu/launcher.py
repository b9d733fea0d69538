"""Launching compiled Triton kernels in 15 us of host time, instead of the 40 us that Triton takes
to look a kernel up again.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import cache, lru_cache
from threading import Lock, Thread
from typing import Any

import torch

from tri_apsp.cache_folder import cache_folder
from tri_apsp.device import current, current_gpu, only_compiles, raw_stream

# Kernels that are compiled at the same time.
_THREADS = 8
# Called with each kernel whose compilation was started, if any.
_STARTED: ContextVar[Callable[[Any], None] | None] = ContextVar("_STARTED", default=None)
OWN = ContextVar("OWN", default=False)
"""Whether this thread compiles or loads kernels of this package, not those of others."""


@cache
def has_triton() -> bool:
    """Return whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None


@cache
def start_triton() -> Thread:
    """Load Triton, and build its calls of the driver, in a thread, while the first call prepares
    its first launch. Compiling their C code takes half a second; a folder of machine code has it.
    """
    thread = Thread(target=_load_driver, name="tri_apsp-start-triton")
    if cache_folder() is None:
        with suppress(RuntimeError):  # the interpreter ends
            thread.start()
    return thread


def _load_driver() -> None:
    with suppress(Exception):  # the first launch raises it again
        from triton.runtime import driver

        _load_launchers_apart()
        _ = driver.active.utils


class Launcher:
    """A kernel with its constants; a call launches it on the current stream of the current device.

    Triton compiles a kernel separately for the dtypes of its arguments, and for which of them are
    1, multiples of 16, or wider than 32 bits. The launcher caches the compiled kernel by that key;
    Triton itself would bind and hash all arguments again.

    Args:
        kernel: a kernel whose last arguments are its constexprs.
        constants: those constexprs by name, and options such as num_warps.
    """

    def __init__(self, kernel: Any, constants: dict[str, Any]) -> None:
        from triton import knobs

        from tri_apsp.gpu.cache import use_folder

        if start_triton.cache_info().currsize and start_triton().ident is not None:
            start_triton().join()
        use_folder()
        _load_launchers_apart()
        self._runtime = knobs.runtime
        self._kernel = kernel
        self._constants = constants
        self._constexprs = [constants[name] for name in kernel.arg_names if name in constants]
        self._compiled: dict[tuple[object, ...], tuple[Any, Any, Any]] = {}
        # On an AMD GPU the compiled code also depends on the size of a tensor's memory.
        self._caches = torch.version.hip is None

    def __call__(self, grid: tuple[int, int, int], *args: torch.Tensor | int) -> None:
        """Launch `grid` programs; the first of `args` is a tensor on the current device.

        If that tensor is one of the device "meta", the kernel is only compiled, for the current
        device; in a process that only compiles also if it is on the CPU.
        """
        first = args[0]
        assert isinstance(first, torch.Tensor)
        index = first.get_device()
        if index < 0 and (first.is_meta or only_compiles()):
            with _own_kernels():
                kernel = self._kernel.warmup(*args, grid=grid, **self._constants)
            started = _STARTED.get()
            if started is not None:
                started(kernel)
            return
        kinds: list[object] = [index]
        values: list[int] = []
        for arg in args:
            if isinstance(arg, int):
                kinds.append(1 if arg == 1 else (arg & 15 == 0, -(1 << 31) <= arg < 1 << 31))
                values.append(arg)
            else:  # passed as an address, so that Triton need not ask the driver whether it is one
                address = arg.data_ptr()
                kinds.append((arg.dtype, address & 15 == 0))
                values.append(address)
        key = tuple(kinds)
        known = self._compiled.get(key)
        # Of a profiler or another tool, which Triton calls at each launch.
        hooks = self._runtime.launch_enter_hook.calls or self._runtime.launch_exit_hook.calls
        if known is not None and not hooks:
            run, function, metadata = known
            run(
                *grid,
                raw_stream(index),
                function,
                metadata,
                None,
                None,
                None,
                *values,
                *self._constexprs,
            )
            return
        with _own_kernels():
            compiled = self._kernel[grid](*args, **self._constants)
        if compiled is not None and self._caches:  # Triton's interpreter compiles nothing
            self._compiled[key] = compiled.run, compiled.function, compiled.packed_metadata


@lru_cache(maxsize=None, typed=True)  # 1, 1.0 and True are different constants
def cached_launcher(kernel: Any, **constants: Any) -> Launcher:
    """Return the launcher of a kernel with these constants, always the same one: a launcher keeps
    the compiled code.
    """
    return Launcher(kernel, constants)


@contextmanager
def _own_kernels() -> Iterator[None]:
    token = OWN.set(True)
    try:
        yield
    finally:
        OWN.reset(token)


@contextmanager
def compiling_side_by_side() -> Iterator[None]:
    """Compile and load the kernels of launches inside a `with` side by side; leaving it blocks
    until all are loaded.

    Triton compiles mostly without holding the interpreter's lock; another process compiles the C
    code that launches a kernel.
    """
    from triton import AsyncCompileMode

    has_gpu, loading = not only_compiles(), list[Future[None]]()
    device = current_gpu() if has_gpu else torch.device("meta")

    def load(kernel: Any) -> None:
        with current(device):
            _ = (kernel.result() if hasattr(kernel, "result") else kernel).run

    with ExitStack() as stack:
        compilers, loaders = (
            stack.enter_context(ThreadPoolExecutor(_THREADS, initializer=OWN.set, initargs=(True,)))
            for _ in range(2)
        )
        with suppress(RuntimeError):  # where the caller compiles like this already
            stack.enter_context(AsyncCompileMode(compilers))
        start = (lambda kernel: loading.append(loaders.submit(load, kernel))) if has_gpu else None
        token = _STARTED.set(start)
        try:
            yield
        finally:
            _STARTED.reset(token)
        for loaded in loading:
            loaded.result()


@cache
def _load_launchers_apart() -> None:
    """Make Triton 3.6 load the C code of each kernel as a module of its own.

    It loads all under one name. Python then hands the module of that name to each thread that
    loads known code, and puts the code of the last into it: a kernel may be launched as another.
    """
    from triton.runtime import build

    original = getattr(build, "_load_module_from_path", None)
    if original is None:
        return
    lock = Lock()

    def load(name: str, path: str) -> Any:
        with lock:
            sys.modules.pop(name, None)
            try:
                return original(name, path)
            finally:
                sys.modules.pop(name, None)

    build._load_module_from_path = load
