"""The interface between sparse methods and hardware."""

from abc import ABC, abstractmethod

import torch

from tri_apsp.graphs.sparse import SparseGraph


class SparseEngine(ABC):
    """Solves one graph without negative weights, on its device. The distances of all methods are
    the same bits. "elimination" is none of them: see tri_apsp.elimination.
    """

    def __init__(self, graph: SparseGraph) -> None:
        assert graph.lowest >= 0
        self.graph = graph

    @abstractmethod
    def distances(
        self,
        method: str,
        sources: torch.Tensor,
        limit: float,
        *,
        targets: torch.Tensor | None = None,
        early_stop: bool = True,
    ) -> torch.Tensor:
        """Return the distances (len(sources), n); no_edge beyond `limit`.

        Args:
            method: one of ROW_METHODS but "elimination"; "dijkstra" on a CPU only.
            sources: 1-D of int64 on the CPU.
            limit: finite distances beyond it are not kept.
            targets: 1-D of int64 on the CPU, the only vertices whose distances must be right; None:
                all.
            early_stop: "output_parallel" ends with the first round that changes nothing; else after
                n - 1 rounds.
        """

    @abstractmethod
    def predecessors(self, sources: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
        """Return the predecessors, (len(sources), n) of int32, of what distances() returned, or of
        exact distances by another method; -1 at sources and without path.
        """
