"""The processes of a tuning run: one per device that measures, and on GPUs others that compile for
them. A configuration that crashes or hangs does not keep the next from being measured.
"""

import contextlib
import dataclasses
import itertools
import math
import multiprocessing
import os
import platform
import queue
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.device import cpu_count, current, describe
from tri_apsp.errors import ApspError, EngineError
from tri_apsp.gpu.ahead import META
from tri_apsp.tune.measurement import Compilation, Measurement, outcome_of
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.tasks import TuningTask

Prepare = Callable[[TuningTask, torch.device], Any]
"""Factory of the object that a worker measures with, such as Measurement: a function or class of a
module, pickled by name.
"""

# Time limits: for making operands and checking the default, in a process that may have to import
# torch first; for one configuration; and for ending.
_PREPARE_SECONDS = 600.0
_LIMIT_SECONDS = 120.0
_END_SECONDS = 10.0
# Compiling takes about ten times as long as measuring, so that more processes would be idle.
_MAX_COMPILERS = 16


class Worker:
    """One process that measures configurations on one device, and is replaced when it crashes,
    hangs or may be corrupt. It starts with the first request.

    Every request raises ApspError if no configuration can be measured: the process cannot start,
    the task does not fit the memory, or its default configuration fails; and CancelledError if
    close() ends it.

    Args:
        device: the device to measure on.
        prepare: factory of the object that holds the operands of a task and measures its
            configurations.

    Attributes:
        processes: the number of processes started so far.
    """

    def __init__(self, device: torch.device, prepare: Prepare = Measurement) -> None:
        self._device, self._prepare = device, prepare
        self._process: BaseProcess | None = None
        self._closed = False
        self._lock = threading.Lock()
        self.processes = 0

    def compile(self, task: TuningTask, config: CompleteConfig, odd: bool) -> Outcome:
        """Return whether a configuration compiles; `prepare` must make a Compilation."""
        outcome: Outcome = self._request(task, "compile", config, odd)
        return outcome

    def screen(
        self,
        task: TuningTask,
        config: CompleteConfig,
        is_slow: Callable[[float], bool] = lambda ms: False,
        limit_s: float = _LIMIT_SECONDS,
    ) -> Outcome:
        """Return the outcome of one configuration, whose results are compared and which is then
        timed in a few runs.

        Args:
            task: the task of the configuration; its operands stay in the process until the next
                task.
            config: the configuration to measure.
            is_slow: called with the time of the first run; returns whether that is the only one.
            limit_s: time limit for compiling and comparing, and for timing, in seconds.
        """
        outcome: Outcome = self._request(task, "check", config, limit_s=limit_s)
        if outcome.times is not None and not is_slow(outcome.median_ms):
            outcome = self._request(task, "time", config, limit_s=limit_s)
        return outcome

    def final(
        self,
        task: TuningTask,
        configs: Sequence[CompleteConfig],
        rounds: int = 5,
        seconds: float = 600.0,
    ) -> list[Outcome]:
        """Return the outcomes of configurations, verified once more and timed in interleaved
        rounds, so that their times can be compared.

        Args:
            task: the task of the configurations.
            configs: the configurations to measure.
            rounds: the largest number of rounds, each of which times every configuration twice.
            seconds: the time after which no further round begins, beyond the second.
        """
        end = time.monotonic() + seconds
        outcomes: list[Outcome] = [self._request(task, "verify", config) for config in configs]
        right = [index for index, found in enumerate(outcomes) if found.kind is OutcomeKind.correct]
        if right:
            chosen, left = [configs[index] for index in right], end - time.monotonic()
            limit_s = max(0.0, left) + _PREPARE_SECONDS
            timed = self._request(task, "final", chosen, rounds, left, limit_s=limit_s)
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

    def _discard(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join(_END_SECONDS)  # in a driver call it may take longer
            self._pipe.close()
            self._process = None

    def _request(
        self, task: TuningTask, action: str, *arguments: Any, limit_s: float = _LIMIT_SECONDS
    ) -> Any:
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
            outcomes = [result] if isinstance(result, Outcome) else result
            if not all(outcome.kind.deterministic for outcome in outcomes):
                self._discard()
            return result

    def _result(
        self, task: TuningTask, action: str, arguments: tuple[Any, ...], limit_s: float
    ) -> Any:
        if self._closed:
            raise CancelledError
        if self._process is not None and not self._process.is_alive():
            self._discard()  # it ended between two requests
        if self._process is None:
            self._start()
        with contextlib.suppress(OSError):  # of a process that has ended: _receive reports it
            self._pipe.send((task, action, arguments))
        failure = self._receive(_PREPARE_SECONDS)
        if isinstance(failure, ApspError):
            raise failure
        if failure is not None:
            self._discard()
            remedy = "leave this task out"
            if failure.message.endswith("exit code 1"):  # of Python, as in a script without a guard
                remedy = (
                    f"call the tuner in a file, under `if __name__ == '__main__':`, or {remedy}"
                )
            raise EngineError(
                "a default configuration must be correct before others are timed, but for "
                f"{task}: {failure.message}; {remedy}."
            )
        return self._receive(limit_s)

    def _start(self) -> None:
        # On Linux a process is forked from a server that has imported what takes seconds, and
        # starts nothing that a fork would break: no CUDA, no thread.
        multiprocessing.set_forkserver_preload(["torch", "triton"])
        context: Any = multiprocessing.get_context(
            "forkserver" if sys.platform == "linux" else "spawn"
        )
        self._pipe, child_end = multiprocessing.Pipe()
        arguments = dict(os.environ), child_end, self._device, self._prepare
        process = context.Process(target=_serve, args=arguments, daemon=True)
        with _interrupts_blocked():
            process.start()
        self._process = process  # not before, since close() may end it from another thread
        child_end.close()
        self.processes += 1

    def _receive(self, limit_s: float) -> Any:
        """Return the next object that the process sends; an Outcome if it crashes or hangs.

        Raises:
            CancelledError: close() was called.
        """
        if self._process is None or self._closed:
            raise CancelledError
        with contextlib.suppress(EOFError, OSError):
            if not wait([self._pipe, self._process.sentinel], limit_s):
                return Outcome(OutcomeKind.timeout, message=f"took more than {limit_s:.3g} s")
            if self._pipe.poll():
                return self._pipe.recv()
        if self._closed:
            raise CancelledError
        self._process.join(_END_SECONDS)
        code = self._process.exitcode
        ending = f"exit code {code}"
        if code is not None and code < 0:
            ending = signal.Signals(-code).name
        return Outcome(OutcomeKind.runtime_error, message=f"the process ended with {ending}")


class Workers:
    """The workers of devices of one model, called cards. On GPUs several configurations are
    evaluated at once: each card measures one, others are compiled, into Triton's cache on disk.

    A card on which a task cannot be prepared is left out from then on, and its configuration is
    measured on another; if all fail, the task is at fault, and no card is left out.

    Args:
        devices: the devices to measure on; finals run on the first that is not left out.
        prepare: as for Worker.

    Attributes:
        parallel: the number of configurations that may be evaluated at the same time.
        left_out: why cards are left out, by their names.
    """

    def __init__(self, devices: Sequence[torch.device], prepare: Prepare = Measurement) -> None:
        # Hosts that share a storage tell their cards apart by this name.
        self._cards = {f"{platform.node()}:{each}": Worker(each, prepare) for each in devices}
        self.left_out = dict[str, str]()
        self._leaving = threading.Lock()
        self._free: queue.SimpleQueue[str] = queue.SimpleQueue()
        for card in self._cards:
            self._free.put(card)
        first, cards = devices[0], len(devices)
        # The main process and the workers need a core each too.
        most = min(_MAX_COMPILERS * cards, cpu_count() - 1 - cards)
        count = 0 if first.type == "cpu" else max(1, most)
        self._facts = describe(first)
        compile_only = partial(Compilation, gpu=first, facts=self._facts)
        self._compilers = [Worker(META, compile_only) for _ in range(count)]
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for compiler in self._compilers:
            self._idle.put(compiler)
        self.parallel = cards + count
        # How many configurations of each task were begun.
        self._begun = defaultdict[TuningTask, Iterator[int]](itertools.count)

    def compile_defaults(self, tasks: Sequence[TuningTask]) -> None:
        """Start to compile the defaults of later tasks, which would wait for them otherwise, and
        return. One compiler does this during the search, and then joins the others.
        """
        if len(self._compilers) < 2:
            return
        compiler = self._idle.get()

        def compile_each() -> None:
            try:
                for task in tasks:
                    with contextlib.suppress(ApspError):  # raised again when the task begins
                        config = default_config(task.engine, task.torch_dtype, self._facts)
                        compiler.compile(task, config, odd=False)
            except CancelledError:  # by close()
                pass
            finally:
                self._idle.put(compiler)

        threading.Thread(target=compile_each, daemon=True).start()

    def evaluate(
        self,
        task: TuningTask,
        config: CompleteConfig,
        is_slow: Callable[[float], bool] = lambda ms: False,
        is_late: Callable[[], bool] = lambda: False,
    ) -> Outcome | None:
        """Return the outcome of one configuration, verified and then timed on any card.

        Args:
            task: the task of the configuration.
            config: the configuration to measure.
            is_slow: called with the time of the first run; returns whether that is the only one.
            is_late: returns whether there is no time left to measure; the outcome is None then.
        """
        # A card first compiles the default of a task itself. So its first configuration, often the
        # default, does not wait for a compiler.
        if next(self._begun[task]) >= len(self._cards):
            compiled = self._compile(task, config, odd=False)
            if compiled.kind is not OutcomeKind.correct:
                return compiled
        while True:
            card, is_kept = self._free.get(), True
            try:
                if is_late():
                    return None
                outcome = self._cards[card].screen(task, config, is_slow)
                return dataclasses.replace(outcome, card=card)
            except ApspError as error:
                is_kept = False
                self._leave_out(card, error)
            finally:
                if is_kept:
                    self._free.put(card)

    def _leave_out(self, card: str, error: ApspError) -> None:
        """Leave out a card; if it is the last, free all again, and raise `error`."""
        with self._leaving:
            self.left_out[card] = str(error)
            if len(self.left_out) < len(self._cards):
                return
            for each in self.left_out:
                self._free.put(each)
            self.left_out.clear()
        raise error

    def compare(self, task: TuningTask, config: CompleteConfig) -> dict[str, float]:
        """Return the median time of a configuration on each card, in ms, timed on all at once; a
        card on which it fails has none.
        """

        def median(card: str) -> float:
            with contextlib.suppress(ApspError):
                return self._cards[card].screen(task, config).median_ms
            return math.inf

        with ThreadPoolExecutor(len(self._cards)) as threads:
            used = [card for card in self._cards if card not in self.left_out]
            times = zip(used, threads.map(median, used), strict=True)
            return {card: ms for card, ms in times if ms < math.inf}

    def final(
        self,
        task: TuningTask,
        configs: Sequence[CompleteConfig],
        rounds: int,
        seconds: float = 600.0,
    ) -> list[Outcome]:
        """Return the outcomes of configurations, timed on one card so that their times can be
        compared; see Worker.final.
        """
        with ThreadPoolExecutor(self.parallel) as threads:
            # A configuration that does not compile fails in the worker too.
            list(threads.map(lambda config: self._compile(task, config, odd=True), configs))
        card = next(card for card in self._cards if card not in self.left_out)
        outcomes = self._cards[card].final(task, configs, rounds, seconds)
        return [dataclasses.replace(outcome, card=card) for outcome in outcomes]

    def close(self) -> None:
        """End at once, with all evaluations in progress."""
        with contextlib.ExitStack() as stack:  # each, even if one before it fails
            for worker in (*self._cards.values(), *self._compilers):
                stack.callback(worker.close)

    def _compile(self, task: TuningTask, config: CompleteConfig, odd: bool) -> Outcome:
        """Compile for the sizes of screening, or with `odd` for the other one of a final."""
        if not self._compilers:
            return Outcome(OutcomeKind.correct)
        compiler = self._idle.get()
        try:
            return compiler.compile(task, config, odd)
        finally:
            self._idle.put(compiler)


def _serve(
    environment: dict[str, str], pipe: Connection, device: torch.device, prepare: Prepare
) -> None:
    """Serve requests until the other end of the pipe is closed; runs in the process of a worker.

    For each request it sends two objects: None, or why the task cannot be prepared; and the result.
    """
    os.environ.clear()  # the environment in which the server was started
    os.environ.update(environment)
    # Ctrl-C reaches the whole process group; the main process decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # compilers print, and would break the progress display
        os.dup2(nowhere, stream)
    prepared: Any = None
    prepared_for: TuningTask | None = None
    with contextlib.suppress(EOFError, OSError), current(device):
        while True:
            task, action, arguments = pipe.recv()
            try:
                if task != prepared_for:
                    prepared = prepared_for = None  # frees its memory before the next is made
                    prepared = prepare(task, device)
                    prepared_for = task
            except Exception as error:
                pipe.send(error if isinstance(error, ApspError) else outcome_of(error))
                continue
            pipe.send(None)
            try:
                result = getattr(prepared, action)(*arguments)
            except Exception as error:
                result = outcome_of(error)
            pipe.send(result)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C for this thread inside the `with`, and permanently for a process that starts
    there.
    """
    if sys.platform == "win32":  # where a process has no such mask
        yield
        return
    resource_tracker.ensure_running()  # else it starts with the process, and unblocks Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
