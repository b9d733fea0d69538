"""Measures tri_apsp by job, beside what one would take without it, and writes the rows of this
machine into `jobs.csv`. From the root of a checkout, with SciPy and NetworkX installed:

    python reports/measure_jobs.py --roads luxembourg_osm.mtx.gz

On a machine with a GPU it measures the jobs of a GPU, elsewhere those of a CPU. Each result of
tri_apsp is compared with that of the other way. `python reports/draw_jobs.py` draws the figure.
"""

from __future__ import annotations

import argparse
import csv
import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import torch
from scipy.sparse import csgraph, csr_array

import tri_apsp
from tri_apsp.bench.timing import timed, timed_again
from tri_apsp.console.machine import versions_line
from tri_apsp.console.output import read_csv
from tri_apsp.device import describe, resolve

ROWS = Path(__file__).resolve().with_name("jobs.csv")
LONG = 5.0  # seconds; a call that takes longer is timed once


class Job(NamedTuple):
    """One job: two ways to the same array."""

    name: str
    other: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]


def numbers(result: Any) -> np.ndarray[Any, Any]:
    """Return a result as float64; what counts as no path is inf."""
    if isinstance(result, torch.Tensor):
        missing = result == tri_apsp.no_edge(result.dtype)
        return result.double().masked_fill(missing, float("inf")).cpu().numpy()
    if isinstance(result, dict):
        return np.array([[row[j] for j in sorted(row)] for _, row in sorted(result.items())])
    return np.asarray(result, dtype=np.float64)


def random_weights(n: int, edges: float, heaviest: int, dtype: torch.dtype) -> torch.Tensor:
    """Return weights from 1 to `heaviest` at a share `edges` of all pairs."""
    made = torch.Generator().manual_seed(1)
    weights = torch.randint(1, heaviest + 1, (n, n), generator=made, dtype=torch.int16).to(dtype)
    weights[torch.rand(n, n, generator=made) >= edges] = tri_apsp.no_edge(dtype)
    return weights.fill_diagonal_(0)


def sparse_weights(n: int, degree: int) -> csr_array:
    made = np.random.default_rng(1)
    heads, tails = made.integers(n, size=(2, n * degree))
    return csr_array((np.ones(n * degree, np.float32), (heads, tails)), shape=(n, n))


def torch_loop(weights: torch.Tensor) -> torch.Tensor:
    """Floyd-Warshall as it is written in torch: a step per vertex."""
    distances = weights.clone()
    for k in range(len(weights)):
        torch.minimum(distances, distances[:, k, None] + distances[None, k], out=distances)
    return distances


def molecules(count: int) -> tuple[torch.Tensor, torch.Tensor, list[csr_array]]:
    """Return (adjacency, sizes, sparse matrices) of graphs of 20 to 32 vertices, like molecules: a
    tree of degree up to 4, and some rings.
    """
    made = np.random.default_rng(1)
    sizes = made.integers(20, 33, size=count)
    adjacency = np.zeros((count, 32, 32), dtype=bool)
    for graph, size in zip(adjacency, sizes, strict=True):
        for v in range(1, size):
            u = made.integers(max(0, v - 4), v)
            graph[u, v] = graph[v, u] = True
        u, v = made.choice(size, 2, replace=False)
        graph[u, v] = graph[v, u] = True
    matrices = [
        csr_array(graph[:size, :size].astype(np.float64))
        for graph, size in zip(adjacency, sizes, strict=True)
    ]
    return torch.from_numpy(adjacency), torch.from_numpy(sizes), matrices


def gpu_jobs(device: torch.device) -> Iterator[Job]:
    made = torch.Generator().manual_seed(1)
    dense = torch.rand(8192, 8192, generator=made).fill_diagonal_(0).to(device)
    yield Job(
        "all pairs of 8192 vertices, dense",
        "a loop in torch",
        lambda: tri_apsp.shortest_paths(dense).distances,
        lambda: torch_loop(dense),
    )
    light = random_weights(16384, 0.1, 4, torch.int16).to(device)
    yield Job(
        "all pairs of 16384 vertices, weights 1 to 4, int16",
        "a loop in torch",
        lambda: tri_apsp.shortest_paths(light).distances,
        lambda: torch_loop(light),
    )
    adjacency, sizes, matrices = molecules(4096)
    batch, batch_sizes = adjacency.to(device), sizes.to(device)
    yield Job(
        "4096 molecules of 20 to 32 atoms",
        "SciPy, graph by graph",
        lambda: tri_apsp.shortest_paths(batch, sizes=batch_sizes).distances,
        lambda: padded([csgraph.shortest_path(one, unweighted=True) for one in matrices]),
    )
    graph = sparse_weights(100_000, 8)
    sources = np.arange(256)
    on_gpu = tri_apsp.prepare(graph, device=device)
    yield Job(
        "hops from 256 of 100,000 vertices, 8 edges each",
        "SciPy",
        lambda: tri_apsp.hops(on_gpu, sources.tolist()),
        lambda: csgraph.dijkstra(graph, unweighted=True, indices=sources),
    )


def cpu_jobs(roads: Path) -> Iterator[Job]:
    dense = random_weights(2048, 1.0, 1000, torch.float32)
    as_array = dense.double().numpy()
    yield Job(
        "all pairs of 2048 vertices, dense",
        "SciPy's floyd_warshall",
        lambda: tri_apsp.shortest_paths(dense).distances,
        lambda: csgraph.floyd_warshall(as_array),
    )
    yield Job(
        "the same, with predecessors",
        "SciPy's floyd_warshall",
        lambda: tri_apsp.shortest_paths(dense, predecessors=True).distances,
        lambda: csgraph.floyd_warshall(as_array, return_predecessors=True)[0],
    )
    network = tri_apsp.read_sparse_graph(roads)
    weights = road_weights(network)
    sources = np.linspace(0, network.n - 1, 128).astype(int)
    yield Job(
        f"128 rows of a road network, {network.n:,} vertices",
        "SciPy's dijkstra",
        lambda: tri_apsp.shortest_paths(weights, sources=sources.tolist()).distances,
        lambda: csgraph.dijkstra(weights, indices=sources),
    )
    nx.config.cache_converted_graphs = False
    graph = nx.gnm_random_graph(500, 5000, seed=1)
    yield Job(
        "floyd_warshall of NetworkX, 500 nodes",
        "NetworkX",
        lambda: nx.floyd_warshall(graph, backend="tri_apsp"),  # with the conversion
        lambda: nx.floyd_warshall(graph, backend="networkx"),
    )


def road_weights(network: tri_apsp.SparseGraph) -> csr_array:
    """Return the edges of a road network with weights from 1 to 1000, the same both ways."""
    offsets, heads = network.by_source.offsets.numpy(), network.by_source.vertices.numpy()
    tails = np.repeat(np.arange(network.n), np.diff(offsets))
    pairs = np.minimum(heads, tails) * np.int64(network.n) + np.maximum(heads, tails)
    _, edge = np.unique(pairs, return_inverse=True)
    weights = np.random.default_rng(1).integers(1, 1001, size=edge.max() + 1)[edge]
    return csr_array((weights.astype(np.float64), (tails, heads)), shape=(network.n, network.n))


def padded(results: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    whole = np.full((len(results), 32, 32), np.inf)
    for into, one in zip(whole, results, strict=True):
        into[: len(one), : len(one)] = one
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--roads", type=Path, help="a road network, for the jobs of a CPU")
    args = parser.parse_args()
    device = resolve("auto")
    if device.type == "cpu" and args.roads is None:
        parser.error("the jobs of a CPU need --roads FILE")
    jobs = gpu_jobs(device) if device.type == "cuda" else cpu_jobs(args.roads)
    rows = []
    for job in jobs:
        job.ours()  # compiles
        ours, ours_seconds, _ = timed_again(job.ours, device)
        theirs, theirs_seconds = timed(job.theirs, device)
        if theirs_seconds < LONG:
            theirs, theirs_seconds, _ = timed_again(job.theirs, device)
        # Sums of floats in another order may differ in the last bits.
        np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=1e-6, err_msg=job.name)
        print(f"{job.name}: {ours_seconds:.4g} s; {job.other}: {theirs_seconds:.4g} s", flush=True)
        rows.append(
            {
                "job": job.name,
                "seconds": f"{ours_seconds:.4g}",
                "other": job.other,
                "other_seconds": f"{theirs_seconds:.4g}",
                "device": describe(device).name,
                "versions": versions_line(),
                "date": datetime.date.today().isoformat(),
            }
        )
        del ours, theirs
    earlier = read_csv(ROWS) if ROWS.exists() else []
    kept = [row for row in earlier if row["device"] != rows[0]["device"]]
    with ROWS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *rows])


if __name__ == "__main__":
    main()
