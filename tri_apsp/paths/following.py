"""Paths from a matrix of predecessors, on its device: whole paths in bulk, and the first vertex of
each.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs.sparse import EdgeLists

# Values of a matrix that find_next_hops() looks up at a time; for each it keeps two vertices of
# int64, 16 bytes.
_VALUES_PER_BLOCK = 1 << 24
# On a CPU, up to this many paths are followed one after another.
_FEW_PATHS = 64


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths of different lengths, one after another. `Result.paths` returns them; len(paths) is
    their number, and paths[p] the vertices of one.

    Attributes:
        vertices: 1-D of int32, the vertices of all paths, each from its source to its target.
        offsets: (paths + 1,) of int64; path p is vertices[offsets[p] : offsets[p + 1]], empty where
            there is none.
        lists: the edges of the graph by source; None: it is dense weights.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> found = tri_apsp.shortest_paths(weights, predecessors=True).paths([1, 2], [0, 1])
        >>> found.vertices.tolist(), found.offsets.tolist()
        ([1, 2, 0, 2, 0, 1], [0, 3, 6])
        >>> len(found), found[1].tolist()
        (2, [2, 0, 1])
    """

    vertices: torch.Tensor
    offsets: torch.Tensor
    lists: EdgeLists | None = field(default=None, repr=False)

    @cached_property
    def edges(self) -> torch.Tensor:
        """1-D of int64: the edges of all paths, one path after another, by their numbers in the
        order of `by_source`; those of path p are edges[edge_offsets[p] : edge_offsets[p + 1]].

        Raises:
            InputError: the graph is dense weights, whose edges have no numbers.
        """
        if self.lists is None:
            raise InputError(
                "`edges` need a graph whose edges have numbers, but it is dense weights; give "
                "prepare(weights)."
            )
        is_last = torch.zeros(len(self.vertices), dtype=torch.bool, device=self.vertices.device)
        is_last[self.offsets[1:][self.offsets.diff() > 0] - 1] = True
        before = (~is_last).nonzero().flatten()
        ends = (self.vertices[x].to(self.lists.offsets.device) for x in (before, before + 1))
        return self.lists.numbers_of(*ends).to(self.vertices.device)

    @property
    def edge_offsets(self) -> torch.Tensor:
        """(paths + 1,) of int64, where the edges of each path begin, and those of the last end."""
        counts = (self.offsets.diff() - 1).clamp(min=0)
        return torch.cat((self.offsets[:1], counts.cumsum(0)))

    @property
    def rows(self) -> torch.Tensor:
        """1-D of int64: which of the edges that were given each of `edges` is, such as the row of
        a table; see EdgeLists.rows.

        Raises:
            InputError: the edges were not given as a list.
        """
        edges = self.edges
        if self.lists is None or self.lists.rows is None:
            raise InputError(
                "`rows` need a graph of a table, a file or another list of edges, but it is none; "
                "make one with from_pandas."
            )
        return self.lists.rows[edges.cpu()].to(edges.device)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, path: int) -> torch.Tensor:
        """Return the vertices of a path as a view."""
        try:
            path = range(len(self))[path]
        except IndexError:
            raise IndexError(f"path {path} is out of range: there are {len(self)}") from None
        return self.vertices[int(self.offsets[path]) : int(self.offsets[path + 1])]


def in_order(
    numbers: list[torch.Tensor], vertices: list[torch.Tensor], lengths: list[torch.Tensor]
) -> Paths:
    """Return the paths of parts in the order of their numbers.

    Args:
        numbers: of the paths of each part; together 0, 1, ... in any order.
        vertices: of the paths of each part, one after another.
        lengths: of the paths of each part.
    """
    length, place, given = torch.cat(lengths), torch.cat(numbers), torch.cat(vertices)
    sizes = torch.empty_like(length)
    sizes[place] = length
    offsets = torch.cat((sizes.new_zeros(1), sizes.cumsum(0)))
    # Each vertex moves as far as the first of its path does.
    moved = (offsets[:-1][place] - (length.cumsum(0) - length)).repeat_interleave(length)
    result = torch.empty_like(given)
    result[moved + torch.arange(len(given), device=given.device)] = given
    return Paths(result, offsets)


def find_paths(
    predecessors: torch.Tensor, rows: torch.Tensor, targets: torch.Tensor, exists: torch.Tensor
) -> Paths:
    """Return the paths to targets[p] from the source of row rows[p].

    Args:
        predecessors: (rows, n) of int32, each row with the predecessors of one source.
        rows, targets: (paths,) of int64.
        exists: (paths,) of bool, whether there is a path; others are empty.

    Cost: two lookups for each vertex of each path, one to count and one to write; the host blocks
    after each vertex of the longest path.
    """
    if predecessors.device.type == "cpu" and len(rows) <= _FEW_PATHS:
        return _few_paths(predecessors, rows, targets, exists)
    lengths = torch.zeros_like(targets)
    for active, _ in _steps(predecessors, rows, targets, exists):
        lengths[active] += 1
    offsets = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
    vertices = torch.empty(int(offsets[-1]), dtype=torch.int32, device=predecessors.device)
    place = offsets[1:] - 1  # of the last vertex; paths are written backwards
    for step, (active, reached) in enumerate(_steps(predecessors, rows, targets, exists)):
        vertices[place[active] - step] = reached.to(torch.int32)
    return Paths(vertices, offsets)


def _few_paths(
    predecessors: torch.Tensor, rows: torch.Tensor, targets: torch.Tensor, exists: torch.Tensor
) -> Paths:
    """As find_paths(), one path after another: a step of a torch operation takes longer than one of
    Python.
    """
    vertices, offsets = list[int](), [0]
    for row, target, wanted in zip(rows.tolist(), targets.tolist(), exists.tolist(), strict=True):
        before, path, vertex = predecessors[row].numpy(), list[int](), target if wanted else -1
        while vertex >= 0:
            path.append(vertex)
            vertex = before[vertex].item()
        vertices += reversed(path)
        offsets.append(len(vertices))
    return Paths(torch.tensor(vertices, dtype=torch.int32), torch.tensor(offsets))


def _steps(
    predecessors: torch.Tensor, rows: torch.Tensor, targets: torch.Tensor, exists: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield, from the targets backwards, which paths have a further vertex, and that vertex of
    each.
    """
    active = exists.nonzero().flatten()
    rows, vertices = rows[active], targets[active]
    while len(active):
        yield active, vertices
        before = predecessors[rows, vertices]
        further = (before >= 0).nonzero().flatten()
        active, rows, vertices = active[further], rows[further], before[further].long()


def find_next_hops(predecessors: torch.Tensor) -> torch.Tensor:
    """Return the first vertex after the source of each path, -1 where there is none.

    Args:
        predecessors: (batch, n, n) of int32; unchanged.

    Returns:
        A new tensor of the same shape and dtype.

    Cost: n^2 lookups for each graph in each of about log2 l rounds, l being the edges of the
    longest path; the host blocks after each round.
    """
    batch, n, _ = predecessors.shape
    hops = torch.empty_like(predecessors)
    step = max(1, _VALUES_PER_BLOCK // max(1, n))
    rows = predecessors.view(batch * n, n)
    for start in range(0, batch * n, step):
        before = rows[start : start + step]
        source = torch.arange(start, start + len(before), device=rows.device)[:, None] % n
        vertex = torch.arange(n, device=rows.device)
        # A vertex whose predecessor is the source is a first hop, and stays; the others go to their
        # predecessor, and twice as far in each round.
        back = torch.where((before == source) | (before < 0), vertex, before)
        while True:
            further = back.gather(1, back)
            if torch.equal(further, back):
                break
            back = further
        hops.view(batch * n, n)[start : start + step] = back.masked_fill_(before < 0, -1)
    return hops
