"""python -m tri_apsp.bench.first_call NAME DEVICE: the first call of a process. It prints its
seconds, and the functions that Numba compiled for it, as JSON.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter

import torch

from tri_apsp.api import closeness, hops, prepare, shortest_paths
from tri_apsp.device import synchronize
from tri_apsp.graphs.generators import roads
from tri_apsp.graphs.sparse import sparse_graph
from tri_apsp.kernels.cpu.compilation import compilations

# Vertices; of a random network also edges.
_ROADS, _NETWORK = 2000, (300, 900)
_DENSE = {"cpu": 500, "cuda": 1000}

Make = Callable[[torch.device], Callable[[], object]]
"""Makes the data of a call, and returns the call."""


def _on_roads(solve: Callable[..., object]) -> Make:
    def make(device: torch.device) -> Callable[[], object]:
        edges = roads(_ROADS, seed=1)
        return lambda: solve(sparse_graph(edges, device=device))

    return make


def _dense(device: torch.device) -> Callable[[], object]:
    n = _DENSE[device.type]
    return partial(shortest_paths, torch.rand(n, n, device=device))


def _betweenness(weight: str | None) -> Make:
    def make(device: torch.device) -> Callable[[], object]:
        import networkx as nx

        from tri_apsp.interop import networkx_backend as backend

        network = nx.gnm_random_graph(*_NETWORK, seed=1)
        for i, edge in enumerate(network.edges):
            network.edges[edge]["weight"] = 1 + i % 7
        converted = backend.convert_from_nx(network)
        return partial(backend.betweenness_centrality, converted, weight=weight)

    return make


FIRST_CALLS: dict[str, Make] = {
    "dense": _dense,
    "prepare, row": _on_roads(lambda graph: shortest_paths(prepare(graph), sources=1)),
    "prepare, all pairs": _on_roads(lambda graph: shortest_paths(prepare(graph))),
    "prepare, closeness": _on_roads(lambda graph: closeness(prepare(graph), weighted=True)),
    "dijkstra": _on_roads(partial(shortest_paths, sources=1, method="dijkstra")),
    "hops": _on_roads(hops),
}
OF_NETWORKX: dict[str, Make] = {
    "betweenness": _betweenness(None),
    "weighted betweenness": _betweenness("weight"),
}
"""Those by the backend for NetworkX, which may not be installed."""


def main(name: str, place: str) -> None:
    """Make the call `name` on a device, and print its figures."""
    device = torch.device(place)
    torch.ones(4, device=device).sum().item()  # the first operation on a GPU
    call = (FIRST_CALLS | OF_NETWORKX)[name](device)
    with compilations() as functions:
        began = perf_counter()
        call()
        synchronize(device)
        seconds = perf_counter() - began
    print(json.dumps({"seconds": seconds, "functions": functions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
