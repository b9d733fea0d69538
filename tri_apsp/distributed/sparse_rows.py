"""Rows of the distances of a sparse graph, and its measures, by several ranks. Each has the whole
graph, and solves a share of the sources.
"""

import hashlib
import os
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from tri_apsp.arguments import Vertices
from tri_apsp.distributed.process_group import Group, group_of
from tri_apsp.elimination.base import Totals
from tri_apsp.elimination.prepared import PreparedGraph
from tri_apsp.graphs.files import to_path
from tri_apsp.graphs.sparse import GraphLike, SparseGraph, sparse_graph
from tri_apsp.plan import NegativeCycles
from tri_apsp.ranks.communicator import Communicator
from tri_apsp.sparse import measures
from tri_apsp.sparse.betweenness import shared_betweenness, shared_edge_betweenness
from tri_apsp.sparse.blocks import BlockSolve, solved_blocks
from tri_apsp.sparse.flows import EdgeFlows, as_values, shared_edge_flows
from tri_apsp.sparse.hops import shared_hops
from tri_apsp.sparse.plan import RowMethod
from tri_apsp.sparse.row_file import Header, RowFile
from tri_apsp.sparse.share import Share


def distance_blocks(
    graph: GraphLike,
    out: str | os.PathLike[str],
    group: Group = None,
    *,
    rows_per_block: int | None = None,
    method: Literal["auto"] | RowMethod = "auto",
    negative_cycles: NegativeCycles = "raise",
    dtype: torch.dtype | None = None,
    progress: bool = False,
) -> Path:
    """Write all distances of a sparse graph to a file. The ranks share the blocks of rows: each
    solves one that no other has taken, and writes it, until none is left.

    All ranks call it with the same graph and arguments. They share only the file, so that any
    backend of torch.distributed will do.

    A block counts once its rows are on the disk. If a rank fails or ends, all others end, and what
    they have written stays; the same call then solves the other blocks, with any number of ranks.
    `tri_apsp.distance_blocks` with `out` continues with the same file.

    Args:
        graph: as for `tri_apsp.distance_blocks`.
        out: a `.npy` file or a `.zarr` folder that all ranks can write; see
            `tri_apsp.distance_blocks`.
        group: the ranks, a process group or a DeviceMesh of one dimension; None: the default group.
        rows_per_block: rows of a block; None: as many as hold about 33 million distances, or fewer,
            so that each rank has 8 blocks. In a file with rows, those of its blocks count instead.
        method: as for `tri_apsp.distance_blocks`.
        negative_cycles: as for `tri_apsp.distance_blocks`.
        dtype: as for `tri_apsp.distance_blocks`.
        progress: show a bar on stderr, by rank 0, of the rows of all ranks.

    Returns:
        The path of the file, once it has all rows, on every rank.

    Raises:
        InputError: as `tri_apsp.distance_blocks`; the ranks differ in the graph, the kind of its
            device, or an argument. Every rank raises the same error.
        NegativeCycleError: there is a negative cycle. Every rank raises the same error.
        DistanceRangeError: a distance does not fit the dtype. The rank that finds it raises this,
            and the others RankError.
        RankError: another rank ended or failed.

    Cost:
        That of `tri_apsp.distance_blocks`, divided by the ranks; its memory on each. What all rows
        need, such as potentials and an order of elimination, each rank finds by itself, unless the
        graph is prepared.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> distributed.distance_blocks(graph, "distances.npy").name
        'distances.npy'
        >>> dist.destroy_process_group()
    """
    with group_of(group, "distance_blocks") as ranks:
        path = ranks.together(lambda: to_path(out, "out"))
        given = _agreed(
            ranks,
            graph,
            dtype,
            rows_per_block=rows_per_block,
            method=method,
            negative_cycles=negative_cycles,
            out=str(path),
        )
        solve = ranks.together(
            lambda: BlockSolve.of(
                given,
                rows_per_block=rows_per_block,
                method=method,
                negative_cycles=negative_cycles,
                progress=progress,
                processes=ranks.size,
            )
        )
        write_blocks(ranks, solve, path)
        return path


def write_blocks(ranks: Communicator, solve: BlockSolve, out: Path) -> None:
    """Write the blocks that are not in a file yet, together with the other ranks."""
    header, leads = solve.header(), ranks.rank == 0
    if ranks.from_first(lambda: solve.is_complete(out, header)):
        return
    solver = ranks.together(solve.solver)
    # Rank 0 makes the file before others look for it.
    ranks.from_first(lambda: RowFile(out, header).create())
    file = ranks.together(lambda: RowFile(out, header))
    ranks.together(file.open)
    # All ranks see the same blocks: none has written yet.
    left = file.unfinished
    most = -(-len(left) // ranks.size)
    with solve.bar(file.rows_on_disk(), shown=leads) as bar:
        for _ in solved_blocks(solver, file.rows, _taken(ranks, left), file, most):
            bar.update(file.rows_on_disk() - bar.n if leads else 0)
        ranks.gather(None)  # when all have written
        bar.update(solve.graph.n - bar.n)


def _taken(ranks: Communicator, blocks: Sequence[int]) -> Iterator[int]:
    """Yield blocks that no other rank takes, while there are any."""
    while (number := ranks.next()) < len(blocks):
        yield blocks[number]


class HopRows(NamedTuple):
    """Numbers of edges from the sources of a rank, which `hops` returns.

    Attributes:
        sources: (rows,) of int64 on the CPU.
        hops: (rows, n), as `tri_apsp.hops` returns them, on the device of the graph.
    """

    sources: torch.Tensor
    hops: torch.Tensor


def hops(
    graph: GraphLike,
    sources: Vertices | None = None,
    group: Group = None,
    *,
    dtype: torch.dtype = torch.int16,
) -> HopRows:
    """Return the smallest number of edges of a path from some sources to each vertex; weights are
    ignored. The ranks share the sources: each gets consecutive ones, and the rows of these.

    All ranks call it with the same graph and arguments.

    Args:
        graph: as for `tri_apsp.hops`.
        sources: as for `tri_apsp.hops`, those of all ranks together; None: all vertices.
        group: as for `distance_blocks`.
        dtype: as for `tri_apsp.hops`.

    Returns:
        The sources of this rank and their rows, which are those of `tri_apsp.hops`. With fewer
        sources than ranks, some have none.

    Raises:
        InputError, DistanceRangeError, TooLargeError, EngineError: as `tri_apsp.hops`; the ranks
            differ in the graph, the kind of its device, or an argument. Every rank raises the same
            error.
        RankError: another rank ended or failed.

    Cost:
        That of `tri_apsp.hops` for the sources of a rank, in operations and memory.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> distributed.hops(graph).hops
        tensor([[0, 1, 1],
                [1, 0, 1],
                [1, 2, 0]], dtype=torch.int16)
        >>> dist.destroy_process_group()
    """
    with group_of(group, "hops") as ranks:
        given = _agreed(ranks, graph, sources=sources, dtype=dtype)
        return HopRows(
            *ranks.together(lambda: shared_hops(given, sources, dtype, Share.of_rank(ranks)))
        )


def eccentricities(
    graph: GraphLike, group: Group = None, *, weighted: bool = False
) -> torch.Tensor:
    """Return the distance from each vertex to the vertex that is farthest from it. The ranks share
    the sources, and all get the result.

    All ranks call it with the same graph and arguments.

    Args:
        graph: as for `tri_apsp.eccentricities`.
        group: as for `distance_blocks`. It must join devices like that of the graph, or CPUs.
        weighted: as for `tri_apsp.eccentricities`.

    Returns:
        What `tri_apsp.eccentricities` returns, with the same bits.

    Raises:
        InputError, NegativeCycleError, DistanceRangeError: as `tri_apsp.eccentricities`; the ranks
            differ in the graph, the kind of its device, or an argument. Every rank raises the same
            error.
        RankError: another rank ended or failed.

    Cost:
        That of `tri_apsp.eccentricities` divided by the ranks, in its memory on each; 24 n bytes
        come from each rank. Potentials and orders: see `distance_blocks`.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> distributed.eccentricities(graph, weighted=True)
        tensor([3., 3., 2.], dtype=torch.float64)
        >>> dist.destroy_process_group()
    """
    with group_of(group, "eccentricities") as ranks:
        given = _agreed(ranks, graph, weighted=weighted)
        found = _totals(ranks, given, weighted=weighted, from_source=True)
        return measures.eccentricities_of(found)


def diameter(graph: GraphLike, group: Group = None, *, weighted: bool = False) -> float:
    """Return the largest of the eccentricities: inf if some vertex cannot be reached from another.
    The ranks share the sources, and all get the result.

    All ranks call it with the same graph and arguments.

    Args:
        graph: as for `tri_apsp.diameter`.
        group: as for `eccentricities`.
        weighted: as for `tri_apsp.diameter`.

    Returns:
        What `tri_apsp.diameter` returns, with the same bits.

    Raises:
        InputError: as `eccentricities`; also if the graph has no vertex.
        RankError: as `eccentricities`.

    Cost:
        As `eccentricities`. Without negative weights, an infinite diameter takes only a search for
        strong components, on each rank.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> distributed.diameter(graph, weighted=True)
        3.0
        >>> dist.destroy_process_group()
    """
    with group_of(group, "diameter") as ranks:
        given = _agreed(ranks, graph, weighted=weighted)
        if measures.has_infinite_diameter(given, weighted=weighted):
            return float("inf")
        return measures.diameter_of(_totals(ranks, given, weighted=weighted))


def closeness(
    graph: GraphLike, group: Group = None, *, weighted: bool = False, improved: bool = True
) -> torch.Tensor:
    """Return the closeness of each vertex v: of the r vertices that reach it, (r - 1) / the sum of
    their distances to v. The ranks share the sources, and all get the result.

    All ranks call it with the same graph and arguments.

    Args:
        graph: as for `tri_apsp.closeness`.
        group: as for `eccentricities`.
        weighted: as for `tri_apsp.closeness`.
        improved: as for `tri_apsp.closeness`.

    Returns:
        What `tri_apsp.closeness` returns: with the same bits for numbers of edges, by elimination,
        and where sums of distances are exact in float64, as of integers up to 2^53. Else sums
        depend on the number of ranks within their rounding, and are the same in every run.

    Raises:
        InputError, RankError: as `eccentricities`.

    Cost:
        As `eccentricities`.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> distributed.closeness(graph)
        tensor([1.0000, 0.6667, 1.0000], dtype=torch.float64)
        >>> dist.destroy_process_group()
    """
    with group_of(group, "closeness") as ranks:
        given = _agreed(ranks, graph, weighted=weighted, improved=improved)
        found = _totals(ranks, given, weighted=weighted)
        return measures.closeness_of(found, improved=improved)


def mean_distance(graph: GraphLike, group: Group = None, *, weighted: bool = False) -> float:
    """Return the mean distance over all pairs of different vertices with a path; nan if there is
    none. The ranks share the sources, and all get the result.

    All ranks call it with the same graph and arguments.

    Args:
        graph: as for `tri_apsp.mean_distance`.
        group: as for `eccentricities`.
        weighted: as for `tri_apsp.mean_distance`.

    Returns:
        What `tri_apsp.mean_distance` returns, with the same bits where `closeness` has them.

    Raises:
        InputError, RankError: as `eccentricities`.

    Cost:
        As `eccentricities`.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> distributed.mean_distance(graph, weighted=True)
        2.0
        >>> dist.destroy_process_group()
    """
    with group_of(group, "mean_distance") as ranks:
        given = _agreed(ranks, graph, weighted=weighted)
        return measures.mean_distance_of(_totals(ranks, given, weighted=weighted))


def accessibility(
    graph: GraphLike,
    limits: float | Sequence[float] | torch.Tensor,
    values: torch.Tensor | None = None,
    group: Group = None,
    *,
    to_vertex: bool = False,
) -> torch.Tensor:
    """Return how much each vertex reaches within each limit: the sum of the values of the vertices
    whose distance from it is at most that. The ranks share the sources, and all get the result.

    All ranks call it with the same graph and arguments.

    Args:
        graph: as for `tri_apsp.accessibility`.
        limits: as for `tri_apsp.accessibility`.
        values: as for `tri_apsp.accessibility`.
        group: as for `eccentricities`.
        to_vertex: as for `tri_apsp.accessibility`.

    Returns:
        What `tri_apsp.accessibility` returns: with the same bits by elimination, and where sums of
        values are exact, as of integers up to 2^53. Else sums depend on the number of ranks within
        their rounding, and are the same in every run.

    Raises:
        InputError: as `eccentricities`; also for limits and values that `tri_apsp.accessibility`
            refuses.
        RankError: as `eccentricities`.

    Cost:
        As `eccentricities` with `weighted`; the size of the result comes from each rank.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> distributed.accessibility(graph, 3)
        tensor([3., 3., 3.], dtype=torch.float64)
        >>> dist.destroy_process_group()
    """
    with group_of(group, "accessibility") as ranks:
        given = _agreed(ranks, graph, limits=limits, values=values, to_vertex=to_vertex)
        share = Share.of_rank(ranks)
        own = ranks.together(
            lambda: measures.shared_accessibility(given, limits, values, share, to_vertex=to_vertex)
        )
        return ranks.combined(own, torch.add, given.device)


def betweenness(
    graph: GraphLike,
    group: Group = None,
    *,
    weighted: bool = False,
    normalized: bool = True,
    endpoints: bool = False,
    sources: Vertices | None = None,
) -> torch.Tensor:
    """Return the betweenness of each vertex. The ranks share the sources, and all get the result.

    All ranks call it with the same graph and arguments.

    Args:
        graph: as for `tri_apsp.betweenness`.
        group: as for `eccentricities`.
        weighted: as for `tri_apsp.betweenness`.
        normalized: as for `tri_apsp.betweenness`.
        endpoints: as for `tri_apsp.betweenness`.
        sources: as for `tri_apsp.betweenness`, those of all ranks together.

    Returns:
        What `tri_apsp.betweenness` returns, within the rounding of sums of float64.

    Raises:
        InputError, DistanceRangeError: as `tri_apsp.betweenness`, and as `eccentricities`.
        RankError: as `eccentricities`.

    Cost:
        That of `tri_apsp.betweenness` divided by the ranks; 8 n bytes come from each.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> distributed.betweenness(graph, weighted=True)
        tensor([0.5000, 0.5000, 0.5000], dtype=torch.float64)
        >>> dist.destroy_process_group()
    """
    options = {"weighted": weighted, "normalized": normalized, "endpoints": endpoints}
    with group_of(group, "betweenness") as ranks:
        given = _agreed(ranks, graph, sources=sources, **options)
        own = ranks.together(
            lambda: shared_betweenness(given, Share.of_rank(ranks), sources=sources, **options)
        )
        return ranks.combined(own, torch.add, given.device)


def edge_betweenness(
    graph: GraphLike,
    group: Group = None,
    *,
    weighted: bool = False,
    normalized: bool = True,
    sources: Vertices | None = None,
) -> torch.Tensor:
    """Return the betweenness of each edge. The ranks share the sources, and all get the result.

    All ranks call it with the same graph and arguments.

    Args:
        graph: as for `tri_apsp.edge_betweenness`.
        group: as for `eccentricities`.
        weighted: as for `tri_apsp.edge_betweenness`.
        normalized: as for `tri_apsp.edge_betweenness`.
        sources: as for `tri_apsp.edge_betweenness`, those of all ranks together.

    Returns:
        What `tri_apsp.edge_betweenness` returns, within the rounding of sums of float64.

    Raises:
        InputError, DistanceRangeError, RankError: as `betweenness`.

    Cost:
        That of `tri_apsp.edge_betweenness` divided by the ranks; 8 bytes per edge come from each.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> distributed.edge_betweenness(graph, weighted=True)
        tensor([0.5000, 0.0000, 0.0000, 0.5000, 0.5000], dtype=torch.float64)
        >>> dist.destroy_process_group()
    """
    options = {"weighted": weighted, "normalized": normalized}
    with group_of(group, "edge_betweenness") as ranks:
        given = _agreed(ranks, graph, sources=sources, **options)
        own = ranks.together(
            lambda: shared_edge_betweenness(given, Share.of_rank(ranks), sources=sources, **options)
        )
        return ranks.combined(own, torch.add, given.device)


def edge_flows(
    graph: GraphLike, sources: Vertices, targets: Vertices, demand: Any, group: Group = None
) -> EdgeFlows:
    """Return the load of each edge if demand travels along shortest paths. The ranks share the
    sources, and all get the result.

    All ranks call it with the same graph and arguments.

    Args:
        graph: as for `tri_apsp.edge_flows`.
        sources: as for `tri_apsp.edge_flows`, those of all ranks together.
        targets: as for `tri_apsp.edge_flows`.
        demand: as for `tri_apsp.edge_flows`, the whole.
        group: as for `eccentricities`.

    Returns:
        What `tri_apsp.edge_flows` returns, within the rounding of sums of float64.

    Raises:
        InputError, DistanceRangeError: as `tri_apsp.edge_flows`, and as `eccentricities`.
        RankError: as `eccentricities`.

    Cost:
        That of `tri_apsp.edge_flows` divided by the ranks; the size of the result comes from each.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> distributed.edge_flows(graph, [0, 1], [2], [[5.0], [1.0]]).loads
        tensor([5., 0., 0., 6., 0.], dtype=torch.float64)
        >>> dist.destroy_process_group()
    """
    with group_of(group, "edge_flows") as ranks:
        asked = ranks.together(lambda: as_values(demand))
        given = _agreed(ranks, graph, sources=sources, targets=targets, demand=asked)
        own = ranks.together(
            lambda: shared_edge_flows(given, sources, targets, asked, Share.of_rank(ranks))
        )
        found = ranks.combined(torch.cat(own), torch.add, given.device)
        return EdgeFlows(*torch.split(found, [len(part) for part in own]))


def _totals(
    ranks: Communicator, graph: SparseGraph, *, weighted: bool, from_source: bool = False
) -> Totals:
    """Return the totals of all ranks; see measures.totals."""
    share = Share.of_rank(ranks)
    own = ranks.together(
        lambda: measures.shared_totals(graph, share, weighted=weighted, from_source=from_source)
    )

    def add(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return torch.stack(Totals(*one).plus(Totals(*other)))

    return Totals(*ranks.combined(torch.stack(own), add, graph.device))


def _agreed(
    ranks: Communicator, graph: GraphLike, dtype: torch.dtype | None = None, /, **arguments: object
) -> SparseGraph:
    """Return the graph, once it is known that all ranks have the same, on devices of one kind, and
    the same arguments.
    """
    given = ranks.together(lambda: sparse_graph(graph, dtype=dtype))
    order = given.tree.vertices if isinstance(given, PreparedGraph) and given.tree else None
    facts = {
        "graph": (Header.of(given, 1).graph, _digest(order)),
        "graph.device": given.device.type,
        **{name: _digest(value) for name, value in arguments.items()},
    }
    ranks.require_same(facts)
    return given


def _digest(value: object) -> str:
    """Return a digest that is the same for the same values on all ranks."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    return hashlib.blake2b(pickle.dumps(value), digest_size=16).hexdigest()
