"""What a solve returns."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tri_apsp.arguments import as_index, as_indices
from tri_apsp.configs import CompleteConfig
from tri_apsp.cycles.search import NegativeCycle
from tri_apsp.errors import InputError
from tri_apsp.graphs.labels import Labels
from tri_apsp.graphs.sparse import EdgeLists
from tri_apsp.messages import shown
from tri_apsp.paths.following import Paths, find_next_hops, find_paths
from tri_apsp.plan import Plan
from tri_apsp.semirings import SEMIRINGS, SemiringName, minus_infinity, no_edge
from tri_apsp.value_checks import filled

__all__ = ["NegativeCycle", "Result"]


@dataclass(frozen=True, eq=False)
class Result:
    """Shortest distances, and how they were computed. Two results are equal only if they are the
    same object.

    Attributes:
        distances: of the dtype and on the device of the weights, and in their unit; where there is
            no path `no_edge` (inf), or the zero of another semiring, see `filled`. (n, n), or of a
            batch (batch, n, n), from every vertex; (len(sources), n) from chosen sources; (1, n) or
            (k, n) of `nearest`; with `targets`, len(targets) columns.
        plan: what ran: method, engine, configuration.
        predecessors: int32 of the shape and on the device of the distances, but with a column for
            every vertex also where `targets` are given; None if they were not asked for. [i, j] is
            the vertex before j on a shortest path from i: following them from j leads to i, along
            edges whose weights add up to the distance (of floats, within rounding). -1 where there
            is no path, on the diagonal, and beyond a `limit` unless a path within it leads through
            j. Of several shortest paths, the edge (i, j) itself is taken first, else the path whose
            vertex before j is the smallest. For a source whose predecessors could otherwise form a
            loop along a cycle of weight 0, paths of the fewest edges come first. In a sparse graph
            with negative weights another of several shortest paths may be taken.

            Of a graph with turns, whose shortest paths may pass a vertex twice, (rows, n + edges),
            with edges by their numbers in `edge_lists`: [i, j] is n + the number of the last edge
            of a shortest path from i to j, and [i, n + e] n + that of the edge before e on one
            that ends with e; -1 where there is none. Of several, the smallest. 4 bytes for each,
            and in the solve 4 more for each source and each vertex of the larger graph.
        negative_cycle: a cycle of negative weight; None if there is none, without
            negative_cycles="mark", and for dense weights, other than packed ones, that require a
            gradient or that torch.compile or torch.func transforms. Pairs with a walk through any
            negative cycle then have the distance minus infinity, `-no_edge(dtype)` for integers,
            and no predecessor.
        sources: (len(sources),) of int64 on the CPU; None: every vertex is a source.
        nearest: (n,) of int64 of `tri_apsp.nearest`, with its `k` (k, n), else None: the sources
            nearest to each vertex, -1 without a path; of several as near, any.
        targets: (len(targets),) of int64 on the CPU, the vertices of the columns; None: every one.
        labels: what the graph calls each vertex, if it was read from a file; None: it is dense
            weights, or packed.
        edge_lists: the edges of a sparse graph by source, for `Paths.edges`; None: dense weights.
        semiring: the name of that over which the distances are best; "min_plus" of shortest ones.
        directed: False: of `directed=False`, in which each edge of the graph counts both ways.
        blocks: of several devices without `out`, the results of the rows on each, whose `sources`
            are its vertices, or of the graphs on each; `distances` then raises. Else ().

    Source:
        Predecessors: Malison, Graph Algorithms on Graphical Processing Units, section 5.2.2.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> result = tri_apsp.shortest_paths(weights, sources=[1], predecessors=True)
        >>> result.distances, result.predecessors, result.path(1, 0)
        (tensor([[3, 0, 1]]), tensor([[ 2, -1,  1]], dtype=torch.int32), [1, 2, 0])
        >>> result.method, result.engine
        ('floyd_warshall', 'cpu')
    """

    distances: torch.Tensor
    plan: Plan
    predecessors: torch.Tensor | None = None
    negative_cycle: NegativeCycle | None = None
    sources: torch.Tensor | None = None
    nearest: torch.Tensor | None = None
    targets: torch.Tensor | None = None
    labels: Labels | None = None
    edge_lists: EdgeLists | None = field(default=None, repr=False)
    semiring: SemiringName = "min_plus"
    directed: bool = True
    blocks: tuple["Result", ...] = ()

    @classmethod
    def in_blocks(cls, blocks: Sequence["Result"], **changes: Any) -> "Result":
        """Return the result of the rows or graphs of several devices, which keep them; `changes`
        are to the first of `blocks`.
        """
        changes = {"predecessors": None, "sources": None, "blocks": tuple(blocks)} | changes
        first = dataclasses.replace(blocks[0], **changes)
        object.__delattr__(first, "distances")
        return first

    def __getattr__(self, name: str) -> Any:
        """Say where distances in blocks are."""
        if name == "distances":
            raise AttributeError(
                "the distances are in blocks, on several devices; read those of each of `blocks`, "
                "or give `out`."
            )
        if name == "no_path":
            raise AttributeError(
                "distances hold no_edge where there is no path; call .filled(value)."
            )
        raise AttributeError(f"a result has no attribute {name!r}")

    def __repr__(self) -> str:
        """Show the plan and the shape, not the values."""
        what = f"{len(self.blocks)} blocks" if self.blocks else shown(self.distances)
        return f"Result({what}, {self.plan!r})"

    @property
    def method(self) -> str:
        """The method that ran, never "auto"."""
        return self.plan.method

    @property
    def engine(self) -> str:
        """The engine that ran."""
        return self.plan.engine

    @property
    def config(self) -> CompleteConfig | None:
        """Its tile sizes and cutoffs, with their source; None for a method of sparse graphs."""
        return self.plan.config

    @property
    def exponents(self) -> bool:
        """Whether large products were tried by exponents, on the tensor cores of an NVIDIA GPU,
        because distances seemed to lie close together; a sample decides for each. The distances are
        the same.

        False for dense weights, other than packed ones, that require a gradient or that
        torch.compile or torch.func transforms, whether or not products were tried.
        """
        return self.plan.exponents

    def filled(self, value: float) -> torch.Tensor:
        """Return the distances with a value where there is no path, and in the padding of `sizes`.

        Args:
            value: a number of their dtype that no distance is, such as -1.

        Returns:
            A new tensor.

        Raises:
            InputError: a value that the dtype does not hold, or that is a distance.

        Examples:
            >>> import torch
            >>> import tri_apsp
            >>> weights = torch.tensor([[0, 3], [torch.inf, 0]])
            >>> tri_apsp.shortest_paths(weights).filled(-1)
            tensor([[ 0.,  3.],
                    [-1.,  0.]])
        """
        return filled(self.distances, value, semiring=SEMIRINGS[self.semiring])

    def path(self, source: int, target: int, graph: int = 0) -> list[int]:
        """Return the vertices of a shortest path from `source` to `target`, both included.

        Args:
            source: one of the result's sources; of `nearest` the one nearest to the target.
            target: a vertex; with `targets`, one of them.
            graph: of a batch.

        Returns:
            The vertices; [source] if it is the target. [] if there is no path, if the distance is
            minus infinity, and for vertices beyond the size of a graph.

        Raises:
            InputError: the result has no predecessors, or does not have this source or target; a
                vertex or a graph is out of range.

        Cost:
            A step for each edge. For many paths, `paths` is faster, above all on a GPU.

        Examples:
            >>> import torch
            >>> import tri_apsp
            >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
            >>> tri_apsp.shortest_paths(weights, predecessors=True).path(1, 0)
            [1, 2, 0]
        """
        for block in self.blocks:
            if block.sources is not None and source in block.sources.tolist():
                return block.path(source, target, graph)
        batch, n = len(self._predecessors("paths")), self._n
        i, j = as_index(source, "source", n), as_index(target, "target", n)
        vertices: list[int] = self.paths(
            [i], [j], as_index(graph, "graph", batch)
        ).vertices.tolist()
        return vertices

    def paths(
        self,
        sources: torch.Tensor | Sequence[int],
        targets: torch.Tensor | Sequence[int],
        graph: torch.Tensor | Sequence[int] | int = 0,
    ) -> Paths:
        """Return shortest paths from sources[p] to targets[p], as `path` does, on the device of the
        result.

        Args:
            sources: (paths,) of an integer dtype, on any device.
            targets: (paths,) of an integer dtype, on any device.
            graph: of a batch; one for all paths, or (paths,).

        Returns:
            The vertices of all paths, one after another, and the offset of each; a path is empty
            where there is none.

        Raises:
            InputError: the result has no predecessors; shapes or dtypes that do not fit; a vertex
                or a graph out of range.

        Cost:
            Two lookups for each vertex of each path; the host blocks after each vertex of the
            longest path.

        Examples:
            >>> import torch
            >>> import tri_apsp
            >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
            >>> found = tri_apsp.shortest_paths(weights, predecessors=True).paths([1, 2], [0, 1])
            >>> found[0].tolist(), found[1].tolist()
            ([1, 2, 0], [2, 0, 1])
        """
        predecessors = self._predecessors("paths")
        batch, row_count, columns = predecessors.shape
        device, n = predecessors.device, self._n
        from_, to = (
            as_indices(values, name, n, device)
            for values, name in ((sources, "sources"), (targets, "targets"))
        )
        several = isinstance(graph, Sequence) or getattr(graph, "ndim", 0) > 0
        graphs = as_indices(graph if several else [graph], "graph", batch, device)
        if from_.shape != to.shape or graphs.shape not in (from_.shape, (1,)):
            raise InputError(
                "`sources`, `targets` and `graph`, unless it is one number, must have one length, "
                f"but have {len(from_)}, {len(to)} and {len(graphs)}; give one of each for every "
                "path."
            )
        rows = graphs * row_count + self._rows(from_, to)
        place = rows.to(self.distances.device), self._columns(to).to(self.distances.device)
        found = self.distances.flatten(0, -2)[place].to(device)
        exists = (found > minus_infinity(found.dtype)) & (found < no_edge(found.dtype))
        if self.semiring != "min_plus":  # inf may be a width
            exists = (predecessors.flatten(0, 1)[rows, to] >= 0) | (from_ == to)
        paths = find_paths(predecessors.view(batch * row_count, columns), rows, to, exists)
        vertices, lists = paths.vertices, self.edge_lists
        if lists is not None and columns > n:  # each edge leads from its source, to the next
            begins = torch.cat((torch.arange(n, device=lists.offsets.device), lists.owners()))
            vertices = begins.to(vertices)[vertices.long()]
        return Paths(vertices, paths.offsets, lists)

    def next_hops(self) -> torch.Tensor:
        """Return the first vertex after i on the path to j, as a routing table.

        Returns:
            int32 of the shape of the distances; -1 where there is no path, and on the diagonal.

        Raises:
            InputError: the result has no predecessors, or only those from chosen sources, or is of
                a graph with turns, where the next vertex depends on the one before.

        Cost:
            n^2 lookups for each graph in each of about log2 l rounds, l being the edges of the
            longest path; the host blocks after each round.

        Examples:
            >>> import torch
            >>> import tri_apsp
            >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
            >>> tri_apsp.shortest_paths(weights, predecessors=True).next_hops().tolist()
            [[-1, 1, 1], [2, -1, 2], [0, 0, -1]]
        """
        predecessors = self._predecessors("next hops")
        if self.sources is not None:
            raise InputError(
                "next hops need the paths from every vertex, but the result has those from some; "
                "solve for all in one result."
            )
        if predecessors.shape[-1] > self._n:
            raise InputError(
                "next hops must not depend on the vertex before, but in a graph with turns they "
                "do; follow `paths`."
            )
        return find_next_hops(predecessors).view(self.distances.shape)

    @property
    def _n(self) -> int:
        """The number of vertices, of a result with predecessors."""
        if self.edge_lists is not None:
            return len(self.edge_lists.offsets) - 1
        assert self.predecessors is not None
        return self.predecessors.shape[-1]

    def _rows(self, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the row of the result that has the path from each source to its target."""
        if self.sources is None:
            return sources
        rows = self._indices_among(sources, self.sources, "source")
        if self.nearest is not None:
            rows = torch.zeros_like(rows)
            nearest = self.nearest[targets]
            wrong = (nearest >= 0) & (nearest != sources)
            if bool(wrong.any()):
                raise InputError(
                    "the source of a path must be the nearest to its target, which "
                    f"is {int(nearest[wrong][0])} for {int(targets[wrong][0])}, but is "
                    f"{int(sources[wrong][0])}; give that one."
                )
        return rows

    def _columns(self, targets: torch.Tensor) -> torch.Tensor:
        """Return the column of the distances of each target."""
        if self.targets is None:
            return targets
        return self._indices_among(targets, self.targets, "target")

    def _indices_among(self, vertices: torch.Tensor, among: torch.Tensor, end: str) -> torch.Tensor:
        """Return the index of each vertex among the sources or targets of the result."""
        assert self.predecessors is not None
        device = vertices.device
        index_of = torch.full((self.predecessors.shape[-1],), -1, device=device)
        index_of[among.to(device)] = torch.arange(len(among), device=device)
        indices = index_of[vertices]
        if bool((indices < 0).any()):
            raise InputError(
                f"the {end} of a path must be one of the result's {len(among)} {end}s, but one is "
                f"{int(vertices[indices < 0][0])}; take it from the result that has it, or solve "
                "for it."
            )
        return indices

    def _predecessors(self, wanted: str) -> torch.Tensor:
        """Return the predecessors (batch, rows, n)."""
        if self.blocks:
            raise InputError(
                f"{wanted} need distances on one device, but the result has them in blocks; take "
                "them from the one of `blocks` that has the source or the graph, or give `out` to "
                "the solve."
            )
        if self.predecessors is None:
            raise InputError(
                f"{wanted} need predecessors, but the result has none; solve with "
                "predecessors=True."
            )
        if self.predecessors.dim() == 1:
            raise InputError(
                f"{wanted} need a result of matrices, but this one is packed; give its "
                "predecessors to tri_apsp.unpack, with fill=-1, and follow these."
            )
        return self.predecessors if self.predecessors.dim() == 3 else self.predecessors[None]
