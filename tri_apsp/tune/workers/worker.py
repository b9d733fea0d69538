"""Processes that run configurations, so that one that crashes or hangs does not keep the next from
being measured.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch

from tri_apsp.configs import CompleteConfig
from tri_apsp.device import current
from tri_apsp.errors import ApspError, EngineError
from tri_apsp.tune.measure.measurement import Measurement, outcome_of
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers.processes import start_process

__all__ = ["Prepare", "Worker"]

Prepare = Callable[[Task, torch.device], Any]
"""Factory of the object that a worker measures with, such as Measurement: a function or class of a
module, pickled by name.
"""

# Time limits for starting Python, torch and CUDA; for making operands and checking the default; and
# for ending.
_START_SECONDS = 180.0
_PREPARE_SECONDS = 600.0
_END_SECONDS = 10.0


class Worker:
    """One process that measures configurations on one device, and is replaced when it crashes,
    hangs or may be corrupt.

    Args:
        device: the device to measure on.
        prepare: factory of the object that holds the operands of a task and measures its
            configurations.

    Attributes:
        processes: the number of processes started so far.
    """

    def __init__(self, device: torch.device, prepare: Prepare = Measurement) -> None:
        self._device = device
        self._prepare = prepare
        self._process: multiprocessing.process.BaseProcess | None = None
        self._ready = self._closed = False
        self._lock = threading.Lock()
        self.processes = 0

    def start(self) -> None:
        """Start the process before the first request, so that this need not wait; takes as long as
        start_process.
        """
        with self._lock:
            if self._process is None and not self._closed:
                self._start()

    def compile(
        self, task: Task, config: CompleteConfig, odd: bool, limit_s: float = 120.0
    ) -> Outcome:
        """Return whether one configuration compiles; see Compilers.submit(). `prepare` must make a
        Compilation.
        """
        outcome: Outcome = self._request(task, "compile", config, odd, limit_s=limit_s)
        return outcome

    def screen(
        self,
        task: Task,
        config: CompleteConfig,
        give_up_ms: float | None = None,
        limit_s: float = 120.0,
    ) -> Outcome:
        """Return the outcome of one configuration, whose results are compared and which is then
        timed in a few runs.

        Args:
            task: the task of the configuration; its operands stay in the process until the next
                task.
            config: the configuration to measure.
            give_up_ms: stop after the first run if it takes longer than this; None: never.
            limit_s: time limit for compiling, comparing and timing, in seconds; the process is then
                replaced.

        Raises:
            ApspError: no configuration can be measured: the worker cannot start, the task does not
                fit the memory, or its default configuration fails.
        """
        outcome: Outcome = self._request(task, "screen", config, give_up_ms, limit_s=limit_s)
        return outcome

    def final(
        self, task: Task, configs: Sequence[CompleteConfig], rounds: int = 5, limit_s: float = 600.0
    ) -> list[Outcome]:
        """Return the outcomes of configurations, verified once more and timed in interleaved
        rounds, so that times compare.

        Arguments and errors are those of screen(); each of the `rounds` times every configuration
        twice, and `limit_s` limits the whole final.
        """
        deadline = time.monotonic() + limit_s
        outcomes: list[Outcome] = []
        for config in configs:
            outcomes.append(
                self._request(task, "verify", config, limit_s=max(1.0, deadline - time.monotonic()))
            )
        right = [index for index, outcome in enumerate(outcomes) if outcome.kind is Kind.correct]
        if right:
            left = max(1.0, deadline - time.monotonic())
            timed = self._request(
                task, "final", [configs[index] for index in right], rounds, limit_s=left
            )
            for position, index in enumerate(right):
                outcomes[index] = timed if isinstance(timed, Outcome) else timed[position]
        return outcomes

    def close(self) -> None:
        """End the process, from any thread; a request in progress then raises CancelledError."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()  # it has nothing to save
        with self._lock:
            self._discard()

    def _start(self) -> None:
        self._pipe, child_end = multiprocessing.Pipe()
        handle, self._log = tempfile.mkstemp(prefix="tri_apsp-", suffix=".log")
        os.close(handle)
        arguments = (child_end, self._log, self._device, self._prepare)
        try:
            self._process = start_process(_serve, arguments, f"tri_apsp tuner {self._device}")
        except BaseException:
            Path(self._log).unlink()
            raise
        child_end.close()
        self._ready = False
        self.processes += 1

    def _discard(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.join(_END_SECONDS)  # in a driver call it may take longer, without any harm
        self._pipe.close()
        Path(self._log).unlink(missing_ok=True)
        self._process = None

    def _request(self, task: Task, action: str, *arguments: Any, limit_s: float) -> Any:
        """Return the result of the method `action` of the prepared object; an Outcome if the
        process crashes or hangs.
        """
        with self._lock:
            try:
                result = self._result(task, action, arguments, limit_s)
            except ApspError:
                raise
            except BaseException:
                self._discard()  # else its late result would be taken for that of the next request
                raise
            if not all(
                outcome.kind.deterministic
                for outcome in ([result] if isinstance(result, Outcome) else result)
            ):
                self._discard()
            return result

    def _result(self, task: Task, action: str, arguments: tuple[Any, ...], limit_s: float) -> Any:
        if self._process is not None and not self._process.is_alive():
            self._discard()  # it ended between two requests
        if self._process is None and not self._closed:
            self._start()
        try:
            if not self._ready:
                self._receive(_START_SECONDS)
                self._ready = True
            with contextlib.suppress(
                OSError
            ):  # of a process that has ended, which _receive reports
                self._pipe.send((task, action, arguments))
            failure = self._receive(_PREPARE_SECONDS)
        except _LostError as lost:
            failure = str(lost)
        if isinstance(failure, ApspError):
            raise failure
        if failure is not None:
            self._discard()
            raise EngineError(
                _unmeasurable(task, failure) if self._ready else _not_started(failure)
            )
        try:
            return self._receive(limit_s)
        except _LostError as lost:
            return Outcome(lost.kind, message=str(lost))

    def _receive(self, limit_s: float) -> Any:
        """Return the next object that the process sends.

        Raises:
            CancelledError: close() was called.
            _LostError: the process crashed or hangs.
        """
        if self._process is None or self._closed:
            raise CancelledError
        with contextlib.suppress(EOFError, OSError):
            if not wait([self._pipe, self._process.sentinel], limit_s):
                raise _LostError(Kind.timeout, f"took more than {limit_s:.3g} s")
            if self._pipe.poll():
                return self._pipe.recv()
        if self._closed:
            raise CancelledError
        self._process.join(_END_SECONDS)
        raise _LostError(
            Kind.runtime_error,
            f"the process ended {_ending(self._process.exitcode)}{_last_line(self._log)}",
        )


class _LostError(Exception):
    """The process crashed or hangs."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def _serve(pipe: Connection, log: str, device: torch.device, prepare: Prepare) -> None:
    """Serve requests until the other end of the pipe is closed; runs in the process of a worker."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole process group; the sweep decides what ends
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):  # compilers print, and would break the progress display
        os.dup2(output, stream)
    prepared: Any = None
    prepared_for: Task | None = None
    with contextlib.suppress(EOFError, OSError), current(device):
        pipe.send(None)
        while True:
            task, action, arguments = pipe.recv()
            try:
                if task != prepared_for:
                    prepared = prepared_for = (
                        None  # frees its memory before the next operands are made
                    )
                    prepared = prepare(task, device)
                    prepared_for = task
            except Exception as error:
                pipe.send(error if isinstance(error, ApspError) else outcome_of(error).message)
                continue
            pipe.send(None)
            try:
                result = getattr(prepared, action)(*arguments)
            except Exception as error:
                result = outcome_of(error)
            pipe.send(result)


def _ending(code: int | None) -> str:
    if code is None:
        return "its connection"
    return f"with {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def _last_line(log: str) -> str:
    lines = Path(log).read_text(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last[:200]}" if last else ""


def _unmeasurable(task: Task, failure: str) -> str:
    return f"a default configuration must be correct before others are timed, but for {task}: {failure}; leave this task out."


def _not_started(failure: str) -> str:
    return (
        f"a process of the tuner must start, but {failure}; keep a script that calls the tuner in a file, and the call under "
        "`if __name__ == '__main__':`, since each process reads that file."
    )
