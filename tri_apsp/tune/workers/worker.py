"""Processes that run configurations for us: whatever a configuration does to its process, the next one is measured."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from tri_apsp.configs import Config
from tri_apsp.device import current
from tri_apsp.errors import ApspError, EngineError
from tri_apsp.tune.measure.measurement import Measurement, outcome_of
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.workers.processes import start

__all__ = ["Prepare", "Worker"]

Prepare = Callable[[Task, torch.device], Any]
"""Makes what a worker measures with, as Measurement: a function or class of a module, since its name travels.

Before the first question, its `check_default` must return without an error.
"""

# Starting Python, torch and CUDA; then operands, and later the default configuration's result.
_START_SECONDS = 180.0
_PREPARE_SECONDS = 600.0
_END_SECONDS = 10.0


class Worker:
    """One process that measures configurations on one device, and is replaced when it crashes, hangs or cannot be trusted.

    Args:
        device: where to measure.
        prepare: makes the operands of a task and measures its configurations.

    Attributes:
        processes: how many were started so far.
    """

    def __init__(self, device: torch.device, prepare: Prepare = Measurement) -> None:
        self._device = device
        self._prepare = prepare
        self._process: multiprocessing.process.BaseProcess | None = None
        self._ready = self._closed = False
        self._asking = threading.Lock()
        self.processes = 0

    def begin(self) -> None:
        """Start the process ahead of the first question, which need not wait for it then; takes as long as processes.start."""
        with self._asking:
            if self._process is None and not self._closed:
                self._start()

    def prepare(self, task: Task) -> None:
        """Make the operands of a task ahead of its first question, who is told if that fails; the default is checked then."""
        with contextlib.suppress(ApspError, CancelledError):
            self._ask(task, None, limit_s=0)

    def compile(self, task: Task, config: Config, odd: bool, limit_s: float = 120.0) -> Outcome:
        """Return whether one configuration compiles, of a worker that prepares with Compilation.

        Args:
            task: what it is for.
            config: complete.
            odd: for the size that only the final compares, instead of those that screening does.
            limit_s: seconds, after which the worker is replaced.

        Raises:
            ApspError: the worker cannot start.
        """
        outcome = self._ask(task, "compile", config, odd, limit_s=limit_s)
        assert isinstance(outcome, Outcome)
        # Even what a process took that was lost over it.
        spent = outcome.compile_seconds + outcome.measure_seconds
        return dataclasses.replace(outcome, compile_seconds=spent, measure_seconds=0.0)

    def screen(self, task: Task, config: Config, give_up_ms: float | None = None, limit_s: float = 120.0) -> Outcome:
        """Return what became of one configuration: compared, then timed in a few runs.

        Args:
            task: what it is for; its operands stay in the worker until another task comes.
            config: complete.
            give_up_ms: take the first run's time if it is longer than this; None: never.
            limit_s: seconds for compiling, comparing and timing, after which the worker is replaced.

        Raises:
            ApspError: if no configuration can be measured: the worker cannot start, the task does not fit the memory, or its
                default configuration fails.
        """
        answer = self._ask(task, "screen", config, give_up_ms, limit_s=limit_s)
        assert isinstance(answer, Outcome)
        return answer

    def final(self, task: Task, configs: Sequence[Config], rounds: int = 5, limit_s: float = 600.0) -> list[Outcome]:
        """Return what became of a few configurations, compared once more and timed in turns: the times can be compared.

        Args:
            task: as for screen().
            configs: complete.
            rounds: each times every configuration twice, in forward and in reverse order.
            limit_s: seconds for all.

        Raises:
            ApspError: as screen().
        """
        deadline = time.monotonic() + limit_s
        outcomes: list[Outcome] = []
        for config in configs:
            outcomes.append(self._ask(task, "verify", config, limit_s=max(1.0, deadline - time.monotonic())))
        right = [index for index, outcome in enumerate(outcomes) if outcome.kind is Kind.correct]
        if right:
            left = max(1.0, deadline - time.monotonic())
            timed = self._ask(task, "final", [configs[index] for index in right], rounds, limit_s=left)
            for place, index in enumerate(right):
                verified, found = outcomes[index], timed if isinstance(timed, Outcome) else timed[place]
                outcomes[index] = dataclasses.replace(
                    found,
                    compile_seconds=verified.compile_seconds + found.compile_seconds,
                    measure_seconds=verified.measure_seconds + found.measure_seconds,
                )
        return outcomes

    def close(self) -> None:
        """End the process, from any thread; a question that is under way then raises CancelledError."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()  # it has nothing to save
        with self._asking:
            self._discard()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _start(self) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        handle, self._log = tempfile.mkstemp(prefix="tri_apsp-", suffix=".log")
        os.close(handle)
        arguments = (theirs, self._log, self._device, self._prepare)
        try:
            self._process = start(_serve, arguments, f"tri_apsp tuner {self._device}")
        except BaseException:
            Path(self._log).unlink()
            raise
        theirs.close()
        self._ready = False
        self.processes += 1

    def _discard(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.join(_END_SECONDS)  # one that sits in a driver call may take longer: it is not waited for
        self._pipe.close()
        Path(self._log).unlink(missing_ok=True)
        self._process = None

    def _ask(self, task: Task, action: str | None, *arguments: Any, limit_s: float) -> Any:
        """Return the worker's answer; an Outcome where there is none because it crashed, or took more than `limit_s`.

        No action: it only prepares, and the answer is empty.
        """
        with self._asking:
            try:
                answer = self._answer(task, action, arguments, limit_s)
            except ApspError:
                raise
            except BaseException:
                self._discard()  # else its late answer would be taken for that of the next question
                raise
            if any(outcome.kind.spoils for outcome in ([answer] if isinstance(answer, Outcome) else answer)):
                self._discard()
            return answer

    def _answer(self, task: Task, action: str | None, arguments: tuple[Any, ...], limit_s: float) -> Any:
        if self._process is not None and not self._process.is_alive():
            self._discard()  # it ended while nobody asked
        if self._process is None and not self._closed:
            self._start()
        started = time.monotonic()
        try:
            if not self._ready:
                self._receive(_START_SECONDS, _unstarted)
                self._ready = True
            with contextlib.suppress(OSError):  # where nobody reads any more, nobody answers either
                self._pipe.send((task, action, arguments))
            failure = self._receive(_PREPARE_SECONDS, partial(_unmeasurable, task))
            if isinstance(failure, ApspError):
                raise failure
            if failure is not None:
                self._discard()
                raise EngineError(_unmeasurable(task, failure))
            if action is None:
                return []
            started = time.monotonic()
            return self._receive(limit_s)
        except _LostError as lost:
            if self._closed:
                raise CancelledError from None
            if lost.fatal is not None:
                self._discard()
                raise EngineError(lost.fatal(lost.message)) from None
            return Outcome(lost.kind, message=lost.message, measure_seconds=time.monotonic() - started)

    def _receive(self, limit_s: float, fatal: Callable[[str], str] | None = None) -> Any:
        """Return what the process says; `fatal` makes the sentence for a user to whom it must not fall silent now."""
        if self._process is None or self._closed:
            raise _LostError(Kind.runtime_error, "it is closed", fatal)
        with contextlib.suppress(EOFError, OSError):
            if not wait([self._pipe, self._process.sentinel], limit_s):
                raise _LostError(Kind.timeout, f"took more than {limit_s:.3g} s", fatal)
            if self._pipe.poll():
                return self._pipe.recv()
        self._process.join(_END_SECONDS)
        raise _LostError(Kind.runtime_error, f"the process ended {_how(self._process.exitcode)}{_last_line(self._log)}", fatal)


class _LostError(Exception):
    """The process cannot answer any more."""

    def __init__(self, kind: Kind, message: str, fatal: Callable[[str], str] | None) -> None:
        super().__init__(message)
        self.kind, self.message, self.fatal = kind, message, fatal


def _serve(pipe: Connection, log: str, device: torch.device, prepare: Prepare) -> None:
    """Answer questions until the other end is closed; runs in the process of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: who asked decides
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):  # compilers print, and would break the progress display
        os.dup2(output, stream)
    measuring: Any = None
    prepared: Task | None = None
    checked = False
    with contextlib.suppress(EOFError, OSError), current(device):
        pipe.send(None)
        while True:
            task, action, arguments = pipe.recv()
            try:
                if task != prepared:
                    measuring, prepared, checked = None, None, False  # its memory goes before the next operands come
                    measuring = prepare(task, device)
                    prepared = task
                if action is not None and not checked:
                    measuring.check_default()
                    checked = True
            except Exception as error:
                measuring = prepared = None
                pipe.send(error if isinstance(error, ApspError) else outcome_of(error).message)
                continue
            pipe.send(None)
            if action is None:
                continue
            started = time.perf_counter()
            try:
                answer = getattr(measuring, action)(*arguments)
            except Exception as error:
                answer = outcome_of(error, time.perf_counter() - started)
            pipe.send(answer)


def _how(code: int | None) -> str:
    if code is None:
        return "its connection"
    return f"with {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def _last_line(log: str) -> str:
    lines = Path(log).read_text(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last[:200]}" if last else ""


def _unmeasurable(task: Task, failure: str) -> str:
    return f"a default configuration must be right before others are timed, but for {task}: {failure}; leave this task out."


def _unstarted(failure: str) -> str:
    return (
        f"a process of the tuner must start, but {failure}; keep a script that calls the tuner in a file, and the call under "
        "`if __name__ == '__main__':`, since each process reads that file."
    )
