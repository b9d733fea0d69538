"""The graphs that `bench` measures, and what SciPy computes of them: complete graphs of a size,
dtype and sign, and for closures random ones of few edges.
"""

import pickle
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from tri_apsp.errors import EngineError
from tri_apsp.messages import counted
from tri_apsp.python_process import module_command
from tri_apsp.semirings import SIGNS, Sign, dtype_name

SIZES = {"cpu": [256, 512, 1024, 2048], "cuda": [1024, 2048, 4096, 8192]}
"""Default numbers of vertices by type of device."""

HEAVIEST = 100
"""Weights are integers, uniform in 1..HEAVIEST, whose distances every dtype holds exactly."""

# Added to the edges that leave an odd vertex and subtracted from those that enter one, which leaves
# the weight of every cycle as it is. It exceeds HEAVIEST so that no weight becomes 0, which SciPy
# would take for a missing edge.
_POTENTIAL = HEAVIEST + 1

# Bytes per value that a SciPy solve takes at its peak: three float64 matrices and a mask of the
# graph that is solved; and of every graph six int16 matrices, in this process and in SciPy's.
_SOLVED_BYTES, _STORED_BYTES = 26, 12

# At two edges per vertex, about 0.6 of the pairs are reachable, over paths of a few log n edges.
_EDGES_PER_VERTEX = 2
_ROWS = 64  # of a closure that are checked: to check all would take longer than the measurement


@dataclass(frozen=True)
class Case:
    """`batch` complete graphs of `n` vertices, with weights of `dtype` and of a `sign` of SIGNS.

    With "any", a graph of n >= 2 vertices has negative weights.
    """

    n: int
    dtype: torch.dtype = torch.float32
    batch: int = 1
    sign: Sign = SIGNS[0]

    def __str__(self) -> str:
        """Return the case in a few words, for messages."""
        batch = f", {counted(self.batch, 'graph')}" if self.batch > 1 else ""
        return f"{dtype_name(self.dtype)} {self.sign}, n = {self.n}{batch}"

    @property
    def nonnegative(self) -> bool:
        """Whether no weight is negative."""
        return self.sign == SIGNS[0]

    @property
    def operations(self) -> int:
        """Min-plus operations of a solve: batch * n^3."""
        return self.batch * self.n**3

    @property
    def graphs(self) -> tuple[int, int, Sign]:
        """What identifies the graphs, which are the same in every dtype."""
        return self.n, self.batch, self.sign

    def weights(self, device: torch.device) -> torch.Tensor:
        """Return (n, n), or (batch, n, n) for more than one graph, on `device`."""
        return self.narrow_weights().to(device).to(self.dtype)

    def narrow_weights(self) -> torch.Tensor:
        """Return the same on the CPU, in the narrowest integer dtype that holds the values."""
        generator = torch.Generator().manual_seed(self.n)
        shape = (self.batch, self.n, self.n)
        weights = torch.randint(1, HEAVIEST + 1, shape, generator=generator, dtype=torch.uint8)
        weights.diagonal(dim1=-2, dim2=-1).fill_(0)
        if not self.nonnegative:
            potential = _POTENTIAL * (torch.arange(self.n, dtype=torch.int16) % 2)
            weights = weights.to(torch.int16).add_(potential[:, None]).sub_(potential)
        return weights if self.batch > 1 else weights[0]


def cases_of(
    sizes: Sequence[int],
    batches: Sequence[int],
    dtypes: Sequence[torch.dtype],
    signs: Sequence[Sign],
) -> Iterator[Case]:
    """Yield a case for each dtype and sign, and each of `sizes` with its count of graphs in
    `batches`.
    """
    for dtype in dtypes:
        for sign in signs:
            for n, batch in zip(sizes, batches, strict=True):
                yield Case(n, dtype, batch, sign)


def runs_scipy(case: Case, up_to: int) -> bool:
    """Return whether SciPy solves a case: it takes no more operations than one graph of `up_to`
    vertices.
    """
    return case.operations <= up_to**3


def scipy_bytes(case: Case) -> int:
    """Return the memory of the CPU that `scipy_distances` takes at its peak."""
    return case.n**2 * (_SOLVED_BYTES + _STORED_BYTES * case.batch)


def scipy_distances(case: Case) -> tuple[torch.Tensor, float]:
    """Return the distances by SciPy's Floyd-Warshall in float64, shaped as the weights, in int16;
    and its seconds.

    Raises:
        EngineError: SciPy's process fails, such as for lack of memory.

    Cost: batch * n^3 operations on one core; the memory that `scipy_bytes` returns.
    """
    weights = case.narrow_weights().to(torch.int16)
    distances, seconds = solve_by_scipy(weights.view(-1, case.n, case.n).numpy())
    return torch.from_numpy(distances).view(weights.shape), seconds


def solve_by_scipy(weights: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], float]:
    """Return the distances of weights (graphs, n, n) by SciPy's Floyd-Warshall, in their dtype, and
    its seconds; Ctrl-C ends SciPy at once.

    Zeros and infinities count as no edge. Errors and cost as for scipy_distances.
    """
    # A session of its own, since Ctrl-C reaches every process of the terminal's.
    ended = subprocess.run(
        module_command("tri_apsp.bench.scipy_process"),
        input=pickle.dumps(weights, protocol=5),  # which copies an array once
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    if ended.returncode:
        raise EngineError(
            "SciPy's process must run to its end, but ended with exit status "
            f"{ended.returncode}, as for lack of memory; give it fewer or smaller graphs."
        )
    distances, seconds = pickle.loads(ended.stdout)
    return distances, seconds


def edges_of(case: Case, device: torch.device) -> torch.Tensor:
    """Return random directed graphs of the size of `case`, of bool, (n, n) or (batch, n, n); its
    weights do not matter.
    """
    edges = torch.zeros((case.batch, case.n, case.n), dtype=torch.bool)
    edges.scatter_(-1, _heads(case), True)
    return (edges if case.batch > 1 else edges[0]).to(device)


def _heads(case: Case) -> torch.Tensor:
    """Return the vertices that the edges of each vertex lead to, (batch, n, _EDGES_PER_VERTEX)."""
    generator = torch.Generator().manual_seed(case.n)
    return torch.randint(case.n, (case.batch, case.n, _EDGES_PER_VERTEX), generator=generator)


def check_closure(closure: torch.Tensor, case: Case) -> None:
    """Check some rows of the closure of edges_of(case), spread over all graphs, by SciPy's search.

    Raises:
        AssertionError: a row is wrong.
    """
    n, vertices = case.n, case.batch * case.n  # of all graphs as one
    heads = (_heads(case) + n * torch.arange(case.batch)[:, None, None]).flatten().numpy()
    offsets = np.arange(0, len(heads) + 1, _EDGES_PER_VERTEX)
    graph = csr_array((np.ones(len(heads)), heads, offsets), (vertices, vertices))
    rows = closure.view(vertices, n)
    for source in np.linspace(0, vertices - 1, min(vertices, _ROWS)).astype(int).tolist():
        reached = breadth_first_order(graph, source, return_predecessors=False)
        expected = torch.zeros(n, dtype=torch.bool)
        expected[reached % n] = True
        assert torch.equal(rows[source].cpu(), expected), (
            f"reachability is wrong for {tuple(closure.shape)}"
        )
