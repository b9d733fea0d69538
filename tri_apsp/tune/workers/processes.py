"""How the tuner starts processes: forked from a server that has imported torch, for which a new Python takes seconds."""

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

__all__ = ["begin", "start"]

# What takes long to import, and does nothing then that a fork would break: no CUDA, no thread of OpenMP. Ours takes no time,
# and the server, which need not search where the caller does, might find another version of it.
_PRELOAD = ["torch", "triton"]
# How variables begin that may be read while that is imported, or before.
_READ_AT_IMPORT = (
    "CUDA_", "GOMP_", "HIP_", "KMP_", "LD_", "MKL_", "OMP_", "OPENBLAS_", "PYTHON", "PYTORCH_", "TORCH_", "TRITON_INTERPRET",
)  # fmt: skip
# Which of them torch, when it initializes CUDA, and scikit-learn, when it is imported, set themselves.
_SET_BY_LIBRARIES = {"CUDA_MODULE_LOADING", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}


def begin() -> None:
    """Start the server, if there will be one, ahead of the first process; returns at once, while it imports torch."""
    server = _server()
    if server is not None:
        with _interrupts_blocked():
            forkserver.ensure_running()


def start(target: Callable[..., object], arguments: tuple[Any, ...], name: str) -> BaseProcess:
    """Start a daemon that calls target(*arguments) in the environment of this process, and return it.

    It holds nothing else of this process, no thread and no CUDA. Ctrl-C, which reaches the whole group, is held back from it.

    Args:
        target: a function of a module, since its name travels.
        arguments: that can be pickled.
        name: of the process.

    Raises:
        RuntimeError: this process is one that starts itself, and so far imports the file of whoever starts it.
        OSError: no process can be started.

    Cost: the first call waits for the server, which imports torch, for seconds; the others take some milliseconds. Without a
    server every call returns at once, and every process imports torch.
    """
    environment = dict(os.environ)
    server, spawn = _server(), multiprocessing.get_context("spawn")
    for context in (spawn,) if server is None else (server, spawn):
        process = context.Process(target=_call, args=(environment, target, arguments), name=name, daemon=True)
        try:
            with _interrupts_blocked():
                process.start()
            break
        except (EOFError, OSError):  # as where the server cannot import torch, or the name of its socket is too long
            if context is spawn:
                raise
    return process


def _server() -> ForkServerContext | None:
    """Return the context of the fork server; None where only a new Python will do."""
    # Elsewhere there is none, or libraries of the system do not survive a fork.
    if sys.platform != "linux" or _at_import() != _at_first():
        return None
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    return context


def _at_import() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name.startswith(_READ_AT_IMPORT) and name not in _SET_BY_LIBRARIES
    }


@cache
def _at_first() -> dict[str, str]:
    """Return what the server was started with; it lives as long as this process."""
    return _at_import()


def _call(environment: dict[str, str], target: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    os.environ.clear()  # a server's is that of its start
    os.environ.update(environment)
    target(*arguments)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Hold back Ctrl-C from this thread, and for good from a process that starts meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else it starts with the process, and lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
