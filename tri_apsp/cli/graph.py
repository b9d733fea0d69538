"""What the commands on a graph share: reading it, naming its vertices, and writing and summarising
its distances.
"""

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch

from tri_apsp.api import PreparedGraph, RestrictedGraph, Result, prepare
from tri_apsp.cli.files import (
    check_outputs,
    named,
    opened,
    read_texts,
    turns_in,
    vertices_in,
)
from tri_apsp.cli.options import STDIN
from tri_apsp.console.output import print_lines, print_result
from tri_apsp.device import describe, resolve
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.graphs import (
    DISTANCE_FORMATS,
    SPARSE_DTYPES,
    DenseGraph,
    EdgeList,
    Graph,
    ReadOptions,
    SparseGraph,
    load_graph,
    sparse_graph,
    write_distances,
    write_predecessors,
    write_rows_of_sources,
)
from tri_apsp.graphs.arrays import PreparedFileError
from tri_apsp.graphs.files import columns_of
from tri_apsp.graphs.labels import Label, vertex_of
from tri_apsp.graphs.write import write_values
from tri_apsp.messages import counted
from tri_apsp.semirings import DTYPES_BY_NAME, dtype_name, no_edge
from tri_apsp.sparse.plan import JOHNSON, ROW_METHODS

AnyGraph: TypeAlias = Graph | SparseGraph
"""What a command reads; a prepared graph is a SparseGraph."""

T = TypeVar("T")

# Values per block, which limits temporaries to a few times 8 MiB for a matrix of any size.
_BLOCK = 1 << 20

# Below these, a float64 and a float32 hold every integer exactly.
_EXACT_END = 2.0**53
_FLOAT32_EXACT_END = 2.0**24


Solvable: TypeAlias = torch.Tensor | SparseGraph | RestrictedGraph


class Problem:
    """A graph that a command solves, and where its results go.

    Args:
        args: of the command line.
        outputs: options that name files to write.
        formats: the extensions that these may have.
        inputs: options that name files of vertices.
        devices: that the graph is solved on; (): the one of --device.

    Attributes:
        args: of the command line.
        devices: that the graph is solved on.
        device: the first of them.
        given: the graph as it was read.
        labels: of its vertices.
        texts: the contents of the inputs, by option.
        written: the files of the outputs, for the last line of text.

    Raises:
        InputError: for a file that cannot be written or read, is named twice, or breaks a rule.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        *outputs: str,
        formats: Sequence[str] = DISTANCE_FORMATS,
        inputs: Sequence[str] = (),
        devices: Sequence[torch.device] = (),
    ) -> None:
        self.args = args
        self.devices = devices or (resolve(args.device),)
        self.device = self.devices[0]
        inputs = [*inputs, *(x for x in ("--zones", "--turns") if hasattr(args, x[2:]))]
        self.written = check_outputs(args, outputs, formats, inputs)
        self.texts = read_texts(args, inputs)
        self.given = read(args)
        self.labels = self.given.labels

    @cached_property
    def graph(self) -> SparseGraph:
        """The sparse graph in the dtype that the arguments ask for, else in its own; int32 for
        int16.
        """
        return sparse_graph(
            self.given, dtype=DTYPES_BY_NAME.get(self.args.dtype), device=self.device
        )

    @cached_property
    def network(self) -> SparseGraph | RestrictedGraph:
        """The graph, with its zones or turns."""
        if not self.restrictions:
            return self.graph
        dtype = DTYPES_BY_NAME.get(self.args.dtype)
        found: RestrictedGraph = prepare(
            self.given, dtype=dtype, device=self.device, **self.restrictions
        )
        return found

    @cached_property
    def restrictions(self) -> dict[str, Any]:
        """What `prepare` takes of the zones and turns that options or the file of the graph name.

        Raises:
            InputError: for a line that breaks a rule.
        """
        found = dict[str, Any]()
        if getattr(self.args, "no_u_turns", False):
            found["u_turns"] = False
        if "--turns" in self.texts:
            found["turns"] = turns_in(self.texts["--turns"], self.labels, "--turns")
        if "--zones" in self.texts:
            found["through"] = torch.ones(self.given.n, dtype=torch.bool)
            found["through"][self.vertices("--zones")] = False
        elif getattr(self.given, "through", None) is not None:
            found["through"] = self.given.through  # type: ignore[union-attr]
        return found

    def refuse_restrictions(self, option: str) -> None:
        """Refuse an option that does not go with zones and turns.

        Raises:
            InputError: the graph has some.
        """
        if self.restrictions:
            raise InputError(
                f"{option} must not be given for a graph with zones or turns, which --zones, "
                "--turns, --no-u-turns and <FIRST THRU NODE> restrict; leave it out."
            )

    def weights(self) -> Solvable:
        """Return what the solver takes: the sparse graph if a sparse method may be chosen, else
        dense weights.
        """
        may_be_sparse = self.args.method in ("auto", JOHNSON, *ROW_METHODS)
        given = self.given
        natural = given.dtype if isinstance(given, SparseGraph) else given.natural_dtype
        dtype = DTYPES_BY_NAME.get(self.args.dtype) or natural
        is_sparse = not isinstance(given, DenseGraph) and dtype in SPARSE_DTYPES and may_be_sparse
        if self.restrictions or is_sparse:
            return self.network
        dense = DenseGraph(given.dense()) if isinstance(given, SparseGraph) else given
        return dense.to_weights(dtype, self.device)

    def vertices(self, option: str) -> Any:
        """Return the vertices that an option names, as words or in a file, as a list of int; None:
        it is not given.

        Raises:
            InputError: for a name that no vertex has.
        """
        if option in self.texts:
            return vertices_in(self.texts[option], self.labels, option)
        words = named(self.args, [option]).get(option)
        return words and [vertex_of(self.labels, word, option) for word in words]

    def columns(self, names: Sequence[str]) -> Any:
        """Return columns of the file of GRAPH, (columns, edges), in the order of by_source."""
        if str(self.args.graph) == STDIN:
            raise InputError(
                "--costs need GRAPH as a file, which is read once for each, but it is standard "
                "input; save it."
            )
        ends = columns_of(self.args.columns or "")[:2]
        found = list[Any]()
        for name in names:
            try:
                edges = read(self.args, columns=[*(ends if len(ends) == 2 else ()), name])
            except InputError as error:
                of_text = "--columns of source and target, with one of --costs, must be"
                message = str(error).replace("`columns` must be", of_text)
                raise InputError(message.replace("`columns`", "--costs")) from None
            assert isinstance(edges, EdgeList)  # as of every format with columns
            found.append(edges.weights)
        rows = self.network.by_source.rows
        assert rows is not None
        return np.stack(found)[:, rows.numpy()]  # NumPy takes a tensor of one row as a number

    def names(self, vertices: Sequence[int] | None) -> Sequence[Label]:
        """Return the labels of vertices; None: of all."""
        return self.labels if vertices is None else [self.labels[vertex] for vertex in vertices]

    @contextmanager
    def labelled(self, mark: str = "") -> Iterator[None]:
        """Raise the error of a negative cycle with the labels of the file, and with `mark`, the
        option that marks such pairs.
        """
        try:
            yield
        except NegativeCycleError as error:
            raise error.reworded(mark, self.labels) from None

    def timed(
        self, solve: Callable[[], T], mark: str = "", first: Callable[[], T] | None = None
    ) -> tuple[T, float]:
        """Return the result of `solve` and its seconds, as bench.timing.timed_warm does; `mark` as
        for labelled().
        """
        from tri_apsp.bench.timing import timed_warm  # which imports Numba

        with self.labelled(mark):
            return timed_warm(solve, self.device, self.network.n, first=first)[:2]

    def write(
        self,
        distances: torch.Tensor,
        columns: Sequence[Label] | None = None,
        targets: Sequence[int] | None = None,
    ) -> None:
        """Write distances to the file of --out, if it is given.

        Args:
            distances: (sources, targets).
            columns: what the rows are called in a .csv, which then has a line for each target;
                None: all vertices are sources, and it has a line for each.
            targets: the vertices of the columns; None: all.
        """
        for out in named(self.args, ["--out"]).values():
            if columns is None:
                write_distances(distances, out, self.labels)
            else:
                write_rows_of_sources(distances, out, columns, self.names(targets))

    def summary(
        self, result: Result, columns: Sequence[Label] | None = None
    ) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Write the file of --predecessors, and summarise a result of `solve` or `sssp`.

        Args:
            columns: as for `write`.

        Returns:
            What --json prints, and the lines of text; those that say nothing are empty.
        """
        place = self.args.predecessors
        if result.predecessors is not None:
            columns, labels = columns if result.nearest is None else ["predecessor"], self.labels
            if not self.restrictions.keys() <= {"through"}:  # edges by their ends
                columns = self.labels if columns is None else columns
                lists = self.network.by_source
                ends = zip(lists.owners().tolist(), lists.vertices.tolist(), strict=True)
                labels = [*labels, *(f"{self.labels[v]} {self.labels[w]}" for v, w in ends)]
            write_predecessors(result.predecessors, place, labels, columns)
        figures, cycle, marked = summarise(result.distances), None, ""
        if result.negative_cycle is not None:
            cycle = self.names(result.negative_cycle.vertices)
            shown = ", ".join(map(str, cycle[:8])) + (", ..." if len(cycle) > 8 else "")
            marked = (
                f"{counted(figures['unbounded_pairs'], 'pair')} through a negative cycle, such as "
                f"that of weight {result.negative_cycle.weight:g} through {shown}"
            )
        is_array = place is not None and ".csv" not in place.suffixes
        fields = [
            *describe_distances(figures, result.distances.numel()),
            ("marked", marked),
            ("numbers", f"{place} counts vertices from 0" if is_array else ""),
        ]
        return figures | {"negative_cycle": cycle}, fields

    def show_lines(
        self,
        distances: torch.Tensor,
        lines: Callable[[], Iterator[str]],
        facts: Mapping[str, object],
        fields: Sequence[tuple[str, str]],
        nouns: tuple[str, str] = ("pair", "pairs"),
        values: torch.Tensor | None = None,
    ) -> None:
        """Write distances to the file of --out and print a summary; without --out and --json, print
        the lines instead.

        Args:
            distances: (sources, targets), or (pairs,).
            lines: returns those of a .csv.
            facts: for JSON, before the figures of the distances.
            fields: the lines of text before these.
            nouns: what is reachable, one and several.
            values: what another file than a .csv holds; None: the distances.
        """
        values = distances if values is None else values
        if not self.write_or_print(values, "distances", lines):
            return
        figures = summarise(distances.view(len(distances), -1))
        shown = {f"reachable_{nouns[1]}": figures["reachable_pairs"]}
        shown |= {name: figures[name] for name in ("max_distance", "sum_distances")}
        reachable = describe_distances(figures, distances.numel(), *nouns)
        self.show({**facts, **shown}, [*fields, *reachable])

    def write_or_print(
        self, values: torch.Tensor, name: str, lines: Callable[[], Iterator[str]]
    ) -> bool:
        """Write values, called `name` in a .npz, to the file of --out; without --out and --json,
        print the lines of a .csv instead. Return whether a summary follows: not after these lines.
        """
        if self.args.out is not None:
            write_values(values, self.args.out, name, lines())
        elif not self.args.json:
            print_lines(lines())
            return False
        return True

    def show(self, facts: Mapping[str, object], fields: Iterable[tuple[str, str]]) -> None:
        """Print the facts as JSON, or the fields between the graph, the device and the files that
        were written.
        """
        graph, device = self.network, f"{describe(self.device).name} ({self.device_names})"
        head = [
            ("graph", self.describe(graph.n, graph.edges)),
            ("device", f"{device}, {facts['dtype']}" if "dtype" in facts else device),
        ]
        print_result(
            self.args.json,
            {"n": graph.n, "edges": graph.edges, **facts},
            [*head, *fields, ("written", self.written)],
        )

    @property
    def device_names(self) -> str:
        """The devices, as --device names them."""
        return ",".join(map(str, self.devices))

    @property
    def place(self) -> dict[str, str]:
        """The devices and the dtype, for JSON."""
        return {"device": self.device_names, "dtype": dtype_name(self.network.dtype)}

    def describe(self, n: int, edges: int) -> str:
        """Return the line that names the graph."""
        name = "standard input" if self.args.graph == STDIN else self.args.graph
        return f"{name}: {counted(n, 'vertex', 'vertices')}, {counted(edges, 'edge')}"


def read(args: argparse.Namespace, **changes: Any) -> AnyGraph:
    """Return the graph that the arguments name, with some options changed; one that was prepared
    has its order.
    """
    try:
        options: Any = {name: getattr(args, name, None) for name in ReadOptions.__annotations__}
        options |= {"directed": not args.undirected} | changes
        return load_graph(opened(args.graph), **options)
    except PreparedFileError:
        if Path(args.graph).suffix.lower() != ".npz":  # which load() takes alone
            raise
    graph = PreparedGraph.load(args.graph)
    dtype = DTYPES_BY_NAME.get(args.dtype)
    may_be_rounded = max(graph.heaviest, -graph.lowest) >= _FLOAT32_EXACT_END
    if graph.dtype == torch.float32 and (
        dtype == torch.float64 or (dtype in (torch.int32, torch.int64) and may_be_rounded)
    ):
        raise InputError(
            f"--dtype must be float32, to which the weights of {args.graph} were rounded, but is "
            f"{args.dtype}; give --dtype to prepare."
        )
    return graph.both_ways() if args.undirected else graph


def describe_distances(
    summary: Mapping[str, Any], count: int, noun: str = "pair", plural: str = ""
) -> list[tuple[str, str]]:
    """Return the lines of text for what summarise() returned of `count` distances."""
    longest = f"longest {summary['max_distance']}, sum {summary['sum_distances']}"
    reachable = summary["reachable_pairs"]
    return [
        ("reachable", f"{reachable} of {counted(count, noun, plural)}"),
        ("distances", longest if reachable else ""),
    ]


def summarise(distances: torch.Tensor) -> dict[str, Any]:
    """Return figures of distances (rows, n) of any supported dtype, on any device, over all
    reachable pairs, the diagonal included.

    Returns:
        reachable_pairs: pairs whose distance is not no_edge.
        max_distance: the largest of these distances, an int if it is an integer below 2**53; None
            if no pair is reachable.
        sum_distances: their sum, exact for integers, else rounded as a float64; None if no pair is
            reachable, or if the sum exceeds float64.
        unbounded_pairs: marked pairs, which have a walk through a negative cycle; the other
            figures leave them out.

    Cost: a few passes over the matrix; workspace of a few blocks of 2**20 values.
    """
    missing = no_edge(distances.dtype)
    lowest = -missing if distances.is_floating_point() else torch.iinfo(distances.dtype).min
    pairs, unbounded, largest = 0, 0, list[int | float]()
    total: int | float = 0
    step = max(1, _BLOCK // max(1, distances.shape[-1]))
    for rows in torch.split(distances, step):
        marked = rows == -missing
        unbounded += int(marked.sum())
        absent = marked.logical_or_(rows == missing)
        present = rows.numel() - int(absent.sum())
        pairs += present
        if present:
            largest.append(rows.masked_fill(absent, lowest).amax().item())
            total += _sum(rows.masked_fill(absent, 0))
    return {
        "reachable_pairs": pairs,
        "max_distance": as_number(max(largest), distances.dtype) if pairs else None,
        "sum_distances": (
            as_number(total, distances.dtype) if pairs and math.isfinite(total) else None
        ),
        "unbounded_pairs": unbounded,
    }


def _sum(values: torch.Tensor) -> Any:
    if values.is_floating_point():
        return values.sum(dtype=torch.float64).item()
    # The upper and lower 32 bits are summed apart, since the sum of a block of int64 may not fit
    # int64.
    values = values.to(torch.int64)
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def as_number(value: int | float, dtype: torch.dtype) -> int | float:
    """Return a distance for people: an int if it is an integer that no other was rounded to; a
    float with the fewest digits that tell it from others of its dtype.
    """
    if value % 1 == 0 and abs(value) < _EXACT_END:
        return int(value)
    return float(str(np.float32(value))) if dtype == torch.float32 else value
