"""Measuring a list of whole calls, as a user would time them: of methods, engines and other
programs, each checked before it is timed; and the tables and plots of their columns.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from reports.studies.markdown import section, table
from reports.studies.plots import Line
from reports.studies.study import Measurer, Point, StudyRow, grouped
from tri_apsp.api import direct_products, shortest_paths
from tri_apsp.bench.cases import Case
from tri_apsp.bench.measure import check_sources
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.console.output import duration
from tri_apsp.device import free_memory
from tri_apsp.graphs import erdos_renyi
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.reference import floyd_warshall
from tri_apsp.semirings import no_edge
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError
from tri_apsp.tuned.records import Choice, Values

SolveCall = Callable[[], tuple[torch.Tensor, float | None]]
"""Returns distances (n, n), on any device; and its seconds, if it measures them itself."""

# Sizes that are no multiple of any tile. A GPU pads them to multiples of 16, so that the same
# kernels are compiled as for the timed graph.
_SMALL = (100, 130)
_DEGREE = 6
# A call that takes longer is not repeated. Other calls run this often, until they took this time.
_LONG_SECONDS = 2.0
_MIN_RUNS, _MAX_RUNS, _MILLISECONDS = 3, 11, 300.0
_IDLE_SECONDS = 0.2  # a GPU that was idle for less keeps its clock
# The copied buffer: far larger than any cache, and long enough beside the start of a copy.
_COPIED_BYTES = 4 << 30


class CallMeasurer(Measurer):
    """Measures calls in this process: on small sparse graphs first, whose distances are compared
    with those of the definition.

    The distances of the timed graph are compared with those that `expected` returns.

    Args:
        device: the device to measure on.
        weights_of: returns the graph of a task by the value "graph" of a point, or by "" if it has
            none: weights (n, n), unless a subclass checks another kind.
        call_of: returns the call of a point on a graph, which it leaves as it is.
        direct: whether no call computes products by exponents, which have another limit than direct
            ones.
    """

    def __init__(
        self,
        device: torch.device,
        weights_of: Callable[[TuningTask, str, torch.device], Any],
        call_of: Callable[[TuningTask, Values, Any], SolveCall],
        *,
        direct: bool = True,
    ) -> None:
        super().__init__(device)
        self._weights_of, self._call_of = weights_of, call_of
        self._products = direct_products if direct else nullcontext
        self._graph: tuple[tuple[TuningTask, str], Any, torch.Tensor] | None = None
        self._checked = set[tuple[Choice, ...]]()
        self._busy = 0.0  # when the device has finished its last run

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        with self._products():
            self.check(task, point)
            weights, distances = self.graph_of(task, point)
            call = self._call_of(task, point.values, weights)
            return Outcome(OutcomeKind.correct, self._times(call, distances))

    def close(self) -> None:
        self._graph = None

    def check(self, task: TuningTask, point: Point) -> None:
        """Compare the distances of small sparse graphs with those of the definition, once."""
        key = task.dtype, *point.values.values()
        for n in _SMALL if key not in self._checked else ():
            graph = erdos_renyi(n, min(1.0, _DEGREE / n), seed=n)
            weights = graph.to_weights(task.torch_dtype, self.device)
            found, _ = self._call_of(task, point.values, weights)()
            wrong = int((to_float64(found) != floyd_warshall(to_float64(weights))).sum())
            if wrong:
                raise WrongResultError(
                    f"{wrong} of {n * n} distances of a sparse graph of {n} vertices are wrong"
                )
        self._checked.add(key)

    def expected(self, weights: Any) -> torch.Tensor:
        """Return the distances by this project's own call, of which two rows are checked."""
        distances = shortest_paths(weights).distances
        check_sources(distances, weights, "auto")
        return distances

    def graph_of(self, task: TuningTask, point: Point) -> tuple[Any, torch.Tensor]:
        """Return the graph of a point and its distances."""
        kind = str(point.values.get("graph", ""))
        if self._graph is None or self._graph[0] != (task, kind):
            self._graph = None  # first, so that its memory is free
            weights = self._weights_of(task, kind, self.device)
            self._graph = (task, kind), weights, self.expected(weights)
        return self._graph[1:]

    def _times(self, call: SolveCall, distances: torch.Tensor) -> Times:
        (found, own), first = timed(call, self.device)
        if not torch.equal(found.to(distances), distances):
            raise WrongResultError("distances differ from those that were expected")
        del found  # the next runs need its memory
        samples = [1000 * (first if own is None else own)]
        if own is None and first <= _LONG_SECONDS:
            if time.monotonic() - self._busy > _IDLE_SECONDS:
                warm_up(call, self.device)
            samples = runs_of(call, self.device)
            self._busy = time.monotonic()
        return Times.of(samples)


def complete_weights(task: TuningTask, graph: str, device: torch.device) -> torch.Tensor:
    """Return a complete graph of integer weights, as `bench` measures."""
    return Case(task.n, task.torch_dtype).weights(device)


def runs_of(call: Callable[[], object], device: torch.device) -> list[float]:
    """Return the milliseconds of a few runs."""
    samples: list[float] = []
    while len(samples) < _MIN_RUNS or (len(samples) < _MAX_RUNS and sum(samples) < _MILLISECONDS):
        samples.append(1000 * timed(call, device)[1])
    return samples


def copied(device: torch.device) -> Outcome:
    """Measure a copy from memory to memory: its bytes are read once and written once."""
    count = min(_COPIED_BYTES, free_memory(device) // 16)
    source = torch.zeros(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copy = partial(target.copy_, source)
    warm_up(copy, device)
    times = Times.of(runs_of(copy, device))
    return Outcome(
        OutcomeKind.correct, times, metrics={"dram_bytes": 2.0 * count, "ops_per_second": 0.0}
    )


def scipy_matrix(graph: SparseGraph) -> csr_array:
    """Return a graph on the CPU as SciPy takes it, in float64."""
    offsets, vertices, weights = graph.by_source.arrays()
    return csr_array((weights.astype(np.float64), vertices, offsets), (graph.n, graph.n))


def networkit_graph(matrix: csr_array) -> Any:
    """Return a graph as NetworKit takes it."""
    edges = matrix.tocoo()
    entries, n = (edges.data, (edges.row, edges.col)), matrix.shape[0]
    return import_module("networkit").GraphFromCoo(entries, n, weighted=True, directed=True)


def to_float64(matrix: torch.Tensor) -> np.ndarray:
    """Return a matrix in float64, with inf for no edge."""
    found = matrix.cpu().to(torch.float64)
    return found.masked_fill(matrix.cpu() == no_edge(matrix.dtype), float("inf")).numpy()


Columns = dict[str, dict[Any, float]]
"""Values by label, and by n or what else the columns of a table are."""


def seconds_of(row: StudyRow) -> float:
    """Return the median time of a row."""
    return float(row["p50_ms"]) / 1000


def by_label(
    rows: Sequence[StudyRow],
    label: Callable[[StudyRow], str],
    over: Callable[[StudyRow], Hashable] = lambda row: int(row["n"]),
    value: Callable[[StudyRow], float] = seconds_of,
) -> Columns:
    """Return the value of each row, by default its seconds, by label and what it is shown over."""
    found: Columns = {}
    for row in rows:
        found.setdefault(label(row), {})[over(row)] = value(row)
    return found


def table_of(
    values: Columns,
    cell: Callable[[float], str] = duration,
    column: str = "n = {}",
) -> str:
    """Return a table with a row for each label and a column for each n; by default of seconds."""
    columns = list(dict.fromkeys(place for known in values.values() for place in known))
    if all(isinstance(place, (int, float)) for place in columns):
        columns.sort()
    rows = [
        [label, *(cell(known[place]) if place in known else "" for place in columns)]
        for label, known in values.items()
    ]
    return table(["", *(column.format(place) for place in columns)], rows)


def ratios(seconds: Columns, base: Mapping[Any, float]) -> Columns:
    """Return how many times as fast as the base each call is, where both are known."""
    found = {
        label: {place: base[place] / one for place, one in known.items() if place in base}
        for label, known in seconds.items()
    }
    return {label: known for label, known in found.items() if known}


def times_section(
    rows: Sequence[StudyRow], label: Callable[[StudyRow], str], title: str = "Times"
) -> str:
    """Return the section of the times of each dtype by n; "" if there are no rows."""
    parts = []
    for (dtype,), found in grouped(rows, "dtype").items():
        parts += [f"### {dtype}", table_of(by_label(found, label))]
    return section(title, *parts)


def lines_of(values: Columns, *, reference: bool = False) -> list[Line]:
    """Return a line for each label."""
    return [Line(label, [*known], [*known.values()], reference) for label, known in values.items()]


def rate_lines(seconds: Columns, unit: float, *, reference: bool = False) -> list[Line]:
    """Return lines of operations per second against n, in a unit such as 1e12."""
    rates: Columns = {
        label: {n: n**3 / one / unit for n, one in known.items()}
        for label, known in seconds.items()
    }
    return lines_of(rates, reference=reference)
