"""Starting the tuner's processes: forked from a server that has imported torch, since a new process
needs seconds for that.

Measured on two cores: four compiling processes are ready after 0.5 instead of 8 s, four workers
after 1.5 instead of 4.7 s, and a worker that replaces one that crashed after 0.7 instead of 2.2 s.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing import forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

__all__ = ["start_process", "start_server"]

# Modules that take long to import, and start nothing that a fork would break: no CUDA, no thread of
# OpenMP. This package is imported quickly, and the server, whose search path may differ, might find
# another version of it.
_PRELOAD = ["torch", "triton"]
# Prefixes of environment variables that these modules, or Python itself, may read at import or
# before.
_READ_AT_IMPORT = (
    "CUDA_",
    "GOMP_",
    "HIP_",
    "KMP_",
    "LD_",
    "MKL_",
    "OMP_",
    "OPENBLAS_",
    "PYTHON",
    "PYTORCH_",
    "TORCH_",
    "TRITON_INTERPRET",
)
# Such variables that torch sets when it initializes CUDA, and scikit-learn when it is imported.
_SET_BY_LIBRARIES = {"CUDA_MODULE_LOADING", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}


def start_server() -> None:
    """Start the server, if this system has one, before the first process; returns at once, while
    the server imports torch.
    """
    server = _server()
    if server is not None:
        with _interrupts_blocked():
            forkserver.ensure_running()


def start_process(
    target: Callable[..., object], arguments: tuple[Any, ...], name: str
) -> BaseProcess:
    """Start a daemon that calls target(*arguments) in the environment of this process, and return
    it.

    It shares nothing else with this process, no thread and no CUDA. Ctrl-C, which reaches the
    group, does not interrupt it.

    Args:
        target: a function of a module, since it is pickled by name.
        arguments: the arguments of `target`, which must allow pickling.
        name: the name of the process.

    Raises:
        RuntimeError: this process was itself started by this function, and is still importing the
            main file of its parent.
        OSError: no process can be started.

    Cost: the first call blocks until the server has imported torch, for seconds; others take
    milliseconds. Without a server every call returns at once, and every process imports torch.
    """
    environment = dict(os.environ)
    server, spawn = _server(), multiprocessing.get_context("spawn")
    for context in (spawn,) if server is None else (server, spawn):
        process = context.Process(
            target=_call, args=(environment, target, arguments), name=name, daemon=True
        )
        try:
            with _interrupts_blocked():
                process.start()
            break
        except (
            EOFError,
            OSError,
        ):  # the server cannot import torch, or the path of its socket is too long
            if context is spawn:
                raise
    return process


def _server() -> ForkServerContext | None:
    """Return the context of the fork server; None if each process must be a new Python."""
    # Other systems have no fork server, or libraries of the system do not survive a fork.
    if sys.platform != "linux" or _at_import() != _at_first():
        return None
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    return context


def _at_import() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_READ_AT_IMPORT) and name not in _SET_BY_LIBRARIES
    }


@cache
def _at_first() -> dict[str, str]:
    """Return the variables that the server was started with; it runs as long as this process."""
    return _at_import()


def _call(
    environment: dict[str, str], target: Callable[..., object], arguments: tuple[Any, ...]
) -> None:
    os.environ.clear()  # the environment in which the server was started
    os.environ.update(environment)
    target(*arguments)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C for this thread inside the `with`, and permanently for a process that starts
    there.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else it starts with the process, and unblocks Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
