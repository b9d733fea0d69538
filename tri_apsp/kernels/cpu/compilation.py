"""Compiling kernels by Numba, and where their machine code is kept.

Numba would keep it beside the kernels, where it would remain after the package is uninstalled; so
it is kept in the folder that TRI_APSP_CACHE_DIR names, or in the user's cache directory. A file
there that cannot be read, such as one that was cut short, is written again.

The first call of a process with an empty cache waits for Numba, in proportion to the code: 10 ms
for a loop, 50 ms for each of NumPy's functions and each dtype that it is called with. So kernels
are written in loops, with np.empty alone, and each inner function has one type of arguments. With a
slice, as in a[:n] = b, Numba also compiles the message of an error for unequal lengths, which takes
seconds. tests/kernels/test_cold_start.py counts what calls compile.
"""

from __future__ import annotations

import gc
import hashlib
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import platformdirs
from llvmlite import ir
from numba import __version__ as numba_version
from numba import config, njit
from numba.core import caching, event
from numba.core.cgutils import alloca_once_value
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.pythonapi import PythonAPI
from numba.core.registry import cpu_target

from tri_apsp.cache_folder import Entry, cache_folder, contents, warn_unless_made_for
from tri_apsp.kernels.cpu.vectors import VECTOR_BYTES

_FOLDER = Path(__file__).parent


def cache_path() -> Path:
    """Return the folder in which machine code is kept."""
    folder = cache_folder()
    if folder is not None and not config.CACHE_DIR:
        # The names of Numba's files say for which Python, and their index for which processor.
        return folder / "numba" / f"{_stamp()}-{numba_version}"
    cache = Path(config.CACHE_DIR or platformdirs.user_cache_path("tri_apsp", appauthor=False))
    clone = hashlib.sha256(str(_FOLDER).encode()).hexdigest()[:12]
    return cache / f"kernels-{clone}"


def _stamp() -> str:
    """Return what the code of a kernel depends on besides the target of Numba: the sources, and the
    vectors of the host, also where NUMBA_CPU_FEATURES names those of another target.
    """
    return f"{contents('cpu')}-{8 * VECTOR_BYTES}"


class _Locator(caching._CacheLocator):
    """Where the machine code of a kernel is kept, and for which source."""

    def __init__(self, kernel: Any) -> None:
        self._line = kernel.__code__.co_firstlineno
        self._py_file = kernel.__code__.co_filename  # for messages of Numba

    @classmethod
    def from_function(cls, kernel: Any, py_file: str) -> _Locator:
        return cls(kernel)

    def get_cache_path(self) -> str:
        return str(cache_path())

    def get_source_stamp(self) -> str:
        # The code of a kernel includes that of the kernels that it calls, in other files too.
        return _stamp()

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Files(caching.CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _Cache(caching.FunctionCache):
    """The machine code of a kernel on disk; without a folder to write to, it is compiled in each
    process.
    """

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        _check_folder()
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # any error that bytes raise that are no pickle
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def folder_entry() -> Entry:
    """Return what machine code is made for here."""
    _, processor, features = cpu_target.target_context.codegen().magic_tuple()
    # Features that a hypervisor hides make another processor of the same name.
    features_hash = hashlib.sha256(features.encode()).hexdigest()[:6]
    return {
        "device": "cpu",
        "processor": f"{processor} {features_hash}",
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numba": numba_version,
        "kernels": _stamp(),
    }


@cache
def _check_folder() -> None:
    if cache_folder() is not None and not config.CACHE_DIR:
        warn_unless_made_for(folder_entry())


class _PythonApi(PythonAPI):
    """Makes the arrays that a kernel returns without running Python code.

    Numba asks a function in Python for their type. An interrupt that came while the kernel ran is
    raised there, but Numba goes on, and a SystemError hides it.
    """

    def get_env_manager(self, *environment: Any) -> Any:
        self._constants = super().get_env_manager(*environment)
        return self._constants

    def nrt_adapt_ndarray_to_python(self, array: Any, value: Any, dtype: Any) -> Any:
        """Generate the call that Numba does, with the type as one of the kernel's constants."""
        array_type = self._constants.read_const(self._constants.add_const(array.box_type))
        pointer = self.builder.bitcast(alloca_once_value(self.builder, value), self.voidptr)
        numbers = map(ir.IntType(32), (array.ndim, int(array.mutable)))
        arguments = [pointer, array_type, *numbers, dtype]
        signature = ir.FunctionType(self.pyobj, [argument.type for argument in arguments])
        function = self._get_function(signature, name="NRT_adapt_ndarray_to_python_acqref")
        return self.builder.call(function, arguments)


class _Compiler(Compiler):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        context = self.state.targetctx  # a copy for this kernel
        context.get_python_api = partial(_PythonApi, context)


class _Part(JITCodeLibrary):
    """The code of an inner function, for its callers to link. It is not optimized, and no machine
    code is made of it: LLVM does both for each caller as a whole.
    """

    # Receives the constants of code that runs Python; an inner function has no such code.
    codegen = SimpleNamespace(set_env=lambda name, constants: None)

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class _InnerCompiler(Compiler):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        context = self.state.targetctx  # a copy for this function
        context.create_cpython_wrapper = lambda *arguments, **options: None
        self.state.library = _Part(context.codegen(), "inner")


# The same for kernels and inner functions, since Numba compiles its own functions anew for callers
# with other options. The error model stays the default: a product takes 4% longer with "numpy".
_OPTIONS = {"nogil": True, "no_cfunc_wrapper": True}


def kernel(function: Callable[..., Any], signature: Any = None, **options: Any) -> Any:
    """Return a function compiled by Numba, which releases the interpreter's lock. It has no wrapper
    for calls from C, which nothing makes and which would take time to compile.

    Args:
        signature: of the one type of its arguments, for which it is compiled at once; None: for
            each type of arguments when it is first called with them.
        options: further ones of numba.njit.
    """
    compiled = njit(pipeline_class=_Compiler, **_OPTIONS, **options)(function)
    compiled._cache = _Cache(function)
    compiled.compile = _without_collections(_interrupted_later(compiled.compile))
    if signature is not None:
        compiled.compile(signature)
        compiled.disable_compile()
    return compiled


def inner(function: Callable[..., Any]) -> Any:
    """Return a function that only kernels and other inner functions call. It is compiled as a part
    of them, in half of the time of a kernel, and cached as a part of them.
    """
    return njit(pipeline_class=_InnerCompiler, **_OPTIONS)(function)


def _without_collections(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compilation during which Python does not look for garbage: it would take an eighth
    of the time, since most objects of a compilation stay alive up to its end.
    """

    def run(signature: Any) -> Any:
        if not gc.isenabled():
            return compile(signature)
        gc.disable()
        try:
            return compile(signature)
        finally:
            gc.enable()

    return run


def _interrupted_later(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compilation, or loading of machine code, after which an interrupt is handled. LLVM
    calls Python: an interrupt there is lost, and leaves a kernel that fails whenever it is called.
    """

    def run(signature: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():  # where no signal arrives
            return compile(signature)
        interrupts = list[Any]()
        before = signal.signal(signal.SIGINT, lambda *interrupt: interrupts.append(interrupt))
        try:
            return compile(signature)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
            if interrupts:
                signal.raise_signal(signal.SIGINT)

    return run


class Compilation(NamedTuple):
    """A function that Numba compiled.

    Attributes:
        name: with its module, such as "tri_apsp.kernels.cpu.sweeps.climb".
        types: of its arguments.
        seconds: without those of the functions that it calls.
    """

    name: str
    types: str
    seconds: float


class _Listener(event.Listener):
    """Lists compilations, which one lock keeps from running side by side."""

    def __init__(self) -> None:
        self.found = list[Compilation]()
        self._begins, self._others = list[float](), [0.0]

    def on_start(self, compilation: Any) -> None:
        self._begins.append(time.perf_counter())
        self._others.append(0.0)

    def on_end(self, compilation: Any) -> None:
        seconds = time.perf_counter() - self._begins.pop()
        own = seconds - self._others.pop()
        self._others[-1] += seconds
        function, types = compilation.data["dispatcher"].py_func, compilation.data["args"]
        name = f"{function.__module__}.{function.__qualname__}"
        self.found.append(Compilation(name, ", ".join(map(str, types)), own))


@contextmanager
def compilations() -> Iterator[list[Compilation]]:
    """Give a list that receives each function that Numba compiles in the context; none that comes
    from its cache.
    """
    listener = _Listener()
    with event.install_listener("numba:compile", listener):
        yield listener.found
