"""Write distances and graphs; the extension names the format, and a file appears complete or not
at all.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path

import torch

from tri_apsp.arguments import check_dtype, check_tensor
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs.arrays import write_array
from tri_apsp.graphs.files import file_format, open_output, to_path
from tri_apsp.graphs.formats import FILE_FORMATS, GRAPH_FORMATS
from tri_apsp.graphs.graph import Graph
from tri_apsp.graphs.labels import Label, Labels
from tri_apsp.graphs.sparse import EdgeLists
from tri_apsp.messages import shown
from tri_apsp.semirings import DTYPES, no_edge
from tri_apsp.value_checks import filled

# Not .npz.gz and .pt.gz: both formats are archives, which cannot be written as a stream.
DISTANCE_FORMATS: tuple[str, ...] = (".npy", ".npz", ".pt", ".csv", ".npy.gz", ".csv.gz")
"""The file name extensions of distances, predecessors and values of vertices."""


def check_output(
    path: str | os.PathLike[str], formats: Sequence[str] = DISTANCE_FORMATS
) -> tuple[Path, str]:
    """Check that a path can be written to, before the hours of work whose result is written there.

    Args:
        path: the file to write; it may exist.
        formats: the extensions allowed: `DISTANCE_FORMATS` or `GRAPH_FORMATS`.

    Returns:
        The path, and its extension without ".gz".

    Raises:
        InputError: for another extension, a folder that does not exist or is not writable, a name
            that no file can have, or a path that is a folder, a device or a pipe.
    """
    target = to_path(path, "path")
    try:
        # Unlike is_file(), stat() refuses names that no file can have.
        is_other = not stat.S_ISREG(target.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):  # the folder is checked below
        is_other = False
    except (OSError, ValueError) as error:  # a name that is too long, a null byte, a link to itself
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"an output must be writable, but {target} is not ({reason}); choose another."
        ) from None
    if is_other:
        raise InputError(
            f"an output must be a file, but {target} is a folder, a device or a pipe; name a file."
        )
    extension = file_format(target, formats)
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InputError(
            f"the folder of an output must exist and be writable, but {target.parent} is not; "
            "create it, or choose another."
        )
    return target, extension


def write_distances(
    distances: torch.Tensor,
    path: str | os.PathLike[str],
    labels: Labels | None = None,
    *,
    no_path: float | None = None,
) -> None:
    """Write a distance matrix to a file, which appears complete or not at all.

    Args:
        distances: (n, n), or also (batch, n, n) for the formats of NumPy and torch; float32,
            float64, int16, int32 or int64; on any device.
        path: ends in one of `DISTANCE_FORMATS`. `.npy`, `.npz` (key `distances`) and `.pt` hold the
            tensor as it is, so an unreachable pair is inf or, in integers, `no_edge(dtype)`. `.csv`
            holds one line per row, as numpy.loadtxt(path, delimiter=",") reads it, and an
            unreachable pair is `inf` in every dtype, and one through a negative cycle `-inf`.
        labels: of the vertices; those that are not just a range of numbers stand in the first row
            and the first column of a `.csv`, which read_graph reads.
        no_path: what stands for an unreachable pair, such as -1; None: as above.

    Raises:
        InputError: another extension, dtype or shape; a `no_path` that is a distance; a folder that
            does not exist or is not writable; a batch in `.csv`; the disk is full.

    Cost:
        O(n^2).

    Examples:
        >>> from pathlib import Path
        >>> import torch
        >>> from tri_apsp import shortest_paths, write_distances
        >>> weights = torch.tensor([[0, 3, 16383], [2, 0, 1], [16383, 16383, 0]], dtype=torch.int16)
        >>> write_distances(shortest_paths(weights).distances, "distances.csv")
        >>> print(Path("distances.csv").read_text())
        0,3,4
        2,0,1
        inf,inf,0
    """
    distances = check_tensor(distances, "distances")
    check_dtype(distances, "distances", DTYPES)
    if distances.ndim not in (2, 3):
        raise InputError(
            "`distances` must have shape (n, n) or (batch, n, n), but have "
            f"{tuple(distances.shape)}; reshape them."
        )
    if no_path is not None:
        distances = filled(distances, no_path, "no_path")
    write_values(distances, path, "distances", _matrix_rows(csv_fields(distances), labels))


def write_rows_of_sources(
    distances: torch.Tensor,
    path: str | os.PathLike[str],
    sources: Sequence[Label],
    labels: Labels,
) -> None:
    """Write distances from some sources, as `write_distances` does, but in `.csv` a line for each
    vertex, with its label and its distance from each source.

    Args:
        distances: (sources, n).
        path: ends in one of `DISTANCE_FORMATS`.
        sources: what the columns are called.
        labels: of the vertices.

    Raises:
        InputError: as for `write_distances`.

    Cost:
        O(sources n).

    Examples:
        >>> from pathlib import Path
        >>> import torch
        >>> from tri_apsp import shortest_paths
        >>> from tri_apsp.graphs import write_rows_of_sources
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> rows = shortest_paths(weights, sources=[1]).distances
        >>> write_rows_of_sources(rows, "from_b.csv", ["b"], ["a", "b", "c"])
        >>> Path("from_b.csv").read_text().split()
        ['vertex,b', 'a,3', 'b,0', 'c,1']
    """
    write_values(distances, path, "distances", vertex_lines(distances, sources, labels))


def vertex_lines(values: torch.Tensor, names: Sequence[Label], labels: Labels) -> Iterator[str]:
    """Yield the lines of a .csv of values, (columns, n): a line for each vertex, below the names of
    the columns.
    """
    return _columns(["vertex", *names], map(quoted, labels), *csv_fields(values))


def write_predecessors(
    predecessors: torch.Tensor,
    path: str | os.PathLike[str],
    labels: Labels | None = None,
    sources: Sequence[Label] | None = None,
) -> None:
    """Write the predecessors of one graph, as write_distances writes distances.

    Args:
        predecessors: (n, n) of int32 on any device, -1 for none.
        path: ends in one of `DISTANCE_FORMATS`; the key in `.npz` is `predecessors`.
        labels: of the vertices in `.csv`, for none -1, or an empty field beside ids of a file;
            None: their numbers from 0.
        sources: those of the rows, if a `.csv` is to have a line for each vertex.

    Raises:
        InputError: another extension; a folder that does not exist or is not writable; the disk is
            full.

    Cost:
        O(n^2).

    Examples:
        >>> from pathlib import Path
        >>> import torch
        >>> from tri_apsp import shortest_paths
        >>> from tri_apsp.graphs import write_predecessors
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> result = shortest_paths(weights, predecessors=True)
        >>> write_predecessors(result.predecessors, "predecessors.csv")
        >>> Path("predecessors.csv").read_text().split()
        ['-1,0,1', '2,-1,1', '2,0,-1']
    """
    labels = range(predecessors.shape[-1]) if labels is None else labels
    names = _names(labels)
    fields = ([names[vertex] for vertex in row.tolist()] for row in predecessors)
    rows = _matrix_rows(fields, labels)
    if sources is not None:
        rows = _columns(["vertex", *sources], names[:-1], *fields)
    write_values(predecessors, path, "predecessors", rows)


def _names(labels: Labels) -> list[str]:
    """Return labels as fields, and at the end what stands for none: -1, or an empty field beside
    ids of a file.
    """
    return [*map(quoted, labels), "-1" if isinstance(labels, range) else ""]


def _table(
    corner: str, columns: Sequence[Label], rows: Sequence[Label], fields: Iterator[list[str]]
) -> Iterator[str]:
    """Yield the lines of a table with labels in its first row and column."""
    lines = (",".join((quoted(row), *values)) for row, values in zip(rows, fields, strict=True))
    return chain([",".join((corner, *map(quoted, columns)))], lines)


def _columns(names: Sequence[Label], *columns: Iterable[str]) -> Iterator[str]:
    """Yield the lines of columns below their names."""
    return map(",".join, chain([map(quoted, names)], zip(*columns, strict=True)))


def _matrix_rows(fields: Iterator[list[str]], labels: Labels | None) -> Iterator[str]:
    """Yield the lines of a matrix by the fields of its rows, with labels that are not just a range
    of numbers.
    """
    if labels is None or isinstance(labels, range):
        return map(",".join, fields)
    return _table("", labels, labels, fields)


def write_vertex_values(
    values: torch.Tensor,
    path: str | os.PathLike[str],
    name: str,
    labels: Labels | None = None,
) -> None:
    """Write a number for each vertex.

    Args:
        values: (n,) of float64 on the CPU.
        path: ends in one of `DISTANCE_FORMATS`; a `.csv` has the columns `vertex` and `name`, the
            other formats hold the tensor.
        name: what the values are; the key in `.npz`.
        labels: of the vertices in `.csv`; None: their numbers from 0.

    Raises:
        InputError: another extension; a folder that does not exist or is not writable; the disk is
            full.

    Cost:
        O(n).

    Examples:
        >>> from pathlib import Path
        >>> import torch
        >>> from tri_apsp import closeness
        >>> from tri_apsp.graphs import write_vertex_values
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> write_vertex_values(closeness(weights, weighted=True), "closeness.csv", "closeness")
        >>> Path("closeness.csv").read_text().splitlines()[0]
        'vertex,closeness'
    """
    labels = range(len(values)) if labels is None else labels
    rows = _columns(["vertex", name], map(quoted, labels), map(repr, values.tolist()))
    write_values(values, path, name, rows)


def quoted(label: Label) -> str:
    """Return a label in quotes if it has a comma, a quote or a blank in it."""
    text = str(label)
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",\s]', text) else text


def write_values(
    values: torch.Tensor, path: str | os.PathLike[str], name: str, csv_rows: Iterator[str]
) -> None:
    """Write a tensor, called `name` in a .npz, or its rows of text to a .csv."""
    target, extension = check_output(path)
    if extension == ".csv" and values.ndim > 2:
        raise InputError(
            f"a .csv file must hold one matrix, but `{name}` have shape {tuple(values.shape)}; "
            "write .npy, or one file per graph."
        )
    with open_output(target) as stream:
        if extension == ".csv":
            stream.writelines(f"{row}\n".encode() for row in csv_rows)
        else:
            write_array(values, stream, extension, name)


def table_lines(
    distances: torch.Tensor, sources: Sequence[Label], targets: Labels
) -> Iterator[str]:
    """Yield the lines of a .csv of distances, (sources, targets), from each source to each target:
    a first line with the targets, then one for each source.
    """
    return _table("source", targets, sources, csv_fields(distances))


def skim_lines(
    distances: torch.Tensor,
    costs: torch.Tensor,
    names: Sequence[str],
    sources: Sequence[Label],
    targets: Labels,
) -> Iterator[str]:
    """Yield the lines of a .csv of distances (sources, targets) and costs (costs, sources, targets)
    of some names: a line for each pair.
    """
    ends = [*map(quoted, targets)]
    columns = (
        (repeat(quoted(source), len(ends)), ends, *csv_fields(row[None]), *csv_fields(of_row))
        for source, row, of_row in zip(sources, distances, costs.unbind(1), strict=True)
    )
    pairs = (map(",".join, zip(*each, strict=True)) for each in columns)
    return chain(_columns(["source", "target", "distance", *names]), *pairs)


def pair_lines(
    distances: torch.Tensor, sources: Sequence[Label], targets: Sequence[Label]
) -> Iterator[str]:
    """Yield the lines of a .csv of distances of pairs, (pairs,)."""
    ends = map(quoted, sources), map(quoted, targets)
    return _columns(["source", "target", "distance"], *ends, *csv_fields(distances[None]))


def edge_lines(values: torch.Tensor, name: str, edges: EdgeLists, labels: Labels) -> Iterator[str]:
    """Yield the lines of a .csv of values of the edges by source, (edges,)."""
    names = _names(labels)
    sources, targets = edges.owners().tolist(), edges.vertices.tolist()
    ends = ((names[vertex] for vertex in vertices) for vertices in (sources, targets))
    return _columns(["source", "target", name], *ends, *csv_fields(values[None]))


def nearest_lines(nearest: torch.Tensor, distances: torch.Tensor, labels: Labels) -> Iterator[str]:
    """Yield the lines of a .csv of the nearest source and its distance for each vertex, (n,), or of
    the k nearest with their ranks from 1 on, (k, n); for no source -1, or an empty field beside ids
    of a file.
    """
    names = _names(labels)
    found = (names[vertex] for vertex in nearest.t().flatten().tolist())
    columns = found, *csv_fields(distances.t().reshape(1, -1))
    if nearest.dim() == 1:
        return _columns(["vertex", "nearest", "distance"], names[:-1], *columns)
    k = len(nearest)
    vertices = (name for name in names[:-1] for _ in range(k))
    ranks = [*map(str, range(1, k + 1))] * (len(names) - 1)
    return _columns(["vertex", "rank", "nearest", "distance"], vertices, ranks, *columns)


def csv_fields(distances: torch.Tensor) -> Iterator[list[str]]:
    """Yield the fields of each row, with inf for no_edge, and as many digits as distinguish any two
    values.
    """
    missing = no_edge(distances.dtype)
    spec = {torch.float32: ".9g", torch.float64: ".17g"}.get(distances.dtype, "d")
    words = {missing: "inf", -missing: "-inf"}
    for row in distances:
        yield [words.get(value) or format(value, spec) for value in row.tolist()]


def write_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph; `load_graph` returns the same edges in the same order.

    Args:
        graph: an `EdgeList` or a `DenseGraph`. Formats that list edges leave out those of weight
            inf, and the loops of a dense graph that are not negative, which change no distance.
        path: ends in one of `GRAPH_FORMATS`. Edge lists count from 0 and declare that in their
            first line. `.npz` holds an `EdgeList` as a sparse matrix of SciPy; else `.npy`, `.npz`
            (key `weights`) and `.pt` hold dense weights: those of a `DenseGraph`, or of an
            `EdgeList` in float32.

    Raises:
        InputError: a path that cannot be written to; the disk is full.
        TooLargeError: for an `EdgeList` in a dense format, if its matrix does not fit the memory.

    Cost:
        O(edges), in a dense format O(n^2).

    Examples:
        >>> from pathlib import Path
        >>> from tri_apsp.graphs import chain, write_graph
        >>> write_graph(chain(3), "chain.txt")
        >>> Path("chain.txt").read_text().splitlines()
        ['# base 0 vertices 3', 'source target weight', '0 1 14', '1 2 11']
    """
    if not isinstance(graph, Graph):
        raise InputTypeError(
            f"`graph` must be an EdgeList or a DenseGraph, but is {shown(graph)}; give what "
            "load_graph or generate returns, or DenseGraph(weights) of a tensor."
        )
    target, extension = check_output(path, GRAPH_FORMATS)
    write = next(kind.write for name, kind in FILE_FORMATS.items() if f".{name}" == extension)
    assert write is not None  # as for all of GRAPH_FORMATS
    with open_output(target) as stream:
        write(graph, stream)
