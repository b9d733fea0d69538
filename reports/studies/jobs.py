"""How fast is it, job by job? Jobs beside what one would take without tri_apsp: the rows in
`jobs.csv`, their figure, and their tables in README.md, `jobs.md` and pages of docs/how-to.

A machine with a GPU measures the jobs of a GPU, another those of a CPU. Each result of tri_apsp is
compared with that of the other way.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csgraph, csr_array, random_array
from scipy.spatial import KDTree

import tri_apsp
from reports.studies import plots
from reports.studies.calls import networkit_graph
from reports.studies.markdown import table, write_page
from reports.studies.rows import origin_of, origin_section, read_csv
from reports.studies.study import StudyRow, grouped
from tri_apsp.bench.timing import timed, timed_again
from tri_apsp.console.output import duration
from tri_apsp.device import resolve
from tri_apsp.errors import InputError
from tri_apsp.messages import remedy_of_extra
from tri_apsp.semirings import dtype_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REPORTS = Path(__file__).resolve().parents[1]
_ROWS = _REPORTS / "jobs.csv"
_LONG = 5.0  # seconds; a call that takes longer is timed once
_OURS, _OTHERS = "#0072b2", "#777777"
_PEERS = ("networkit", "networkx", "igraph")
_MACHINES = {"NVIDIA": "H200", "AMD": "two cores"}
_FIRST = 2e-5  # seconds at the left edge of the figure


def run(args: argparse.Namespace) -> None:
    """Measure the jobs of this machine, unless the present rows are shown alone; draw the figure,
    and write the tables into all pages.

    Raises:
        InputError: there is no road network for the jobs, or NetworKit or igraph is not installed.
    """
    if not args.render_only:
        _measure(args.roads)
    rows = read_csv(_ROWS)
    rows.sort(key=lambda row: not row["device"].startswith("NVIDIA"))
    shown = [row for row in rows if not row["page"]]
    plots.save(_draw(shown), _REPORTS / "jobs")
    print(write_page(_REPORTS.parent / "README.md", "", {"jobs": table_of(shown)}))
    origin = origin_section(rows, _ROWS.name)
    print(write_page(_REPORTS / "jobs.md", "", {"jobs": table_of(rows), "details": origin}))
    for (page,), found in grouped([row for row in rows if row["page"]], "page").items():
        path = _REPORTS.parent / "docs" / "how-to" / f"{page}.md"
        link = "[How it was measured](../../reports/jobs.md)."
        print(write_page(path, "", {"jobs": f"{table_of(found)}\n\n{link}"}))


class _Job(NamedTuple):
    """One job: two ways to the same array; `page` of docs/how-to shows it, "" for README."""

    name: str
    other: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    page: str = ""


def _distances(graph: Any, **options: Any) -> torch.Tensor:
    return tri_apsp.shortest_paths(graph, **options).distances


def _numbers(result: Any) -> np.ndarray[Any, Any]:
    """Return a result as float64; what counts as no path is inf."""
    if isinstance(result, torch.Tensor):
        missing = result == tri_apsp.no_edge(result.dtype)
        return result.double().masked_fill(missing, float("inf")).cpu().numpy()
    if isinstance(result, dict):
        return np.array([[row[j] for j in sorted(row)] for _, row in sorted(result.items())])
    return np.asarray(result, dtype=np.float64)


def _random_weights(n: int, edges: float, heaviest: int, dtype: torch.dtype) -> torch.Tensor:
    """Return weights from 1 to `heaviest` at a share `edges` of all pairs."""
    made = torch.Generator().manual_seed(1)
    weights = torch.randint(1, heaviest + 1, (n, n), generator=made, dtype=torch.int16).to(dtype)
    weights[torch.rand(n, n, generator=made) >= edges] = tri_apsp.no_edge(dtype)
    return weights.fill_diagonal_(0)


def _torch_loop(weights: torch.Tensor) -> torch.Tensor:
    """Floyd-Warshall as it is written in torch: a step per vertex."""
    distances = weights.clone()
    for k in range(len(weights)):
        torch.minimum(distances, distances[:, k, None] + distances[None, k], out=distances)
    return distances


def _molecules(count: int) -> tuple[torch.Tensor, torch.Tensor, list[csr_array]]:
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


def _gpu_jobs(device: torch.device, roads: csr_array) -> Iterator[_Job]:
    made = torch.Generator().manual_seed(1)
    dense = torch.rand(8192, 8192, generator=made).fill_diagonal_(0).to(device)
    yield _Job(
        "all pairs of 8192 vertices, dense, float32",
        "a loop in torch, same GPU",
        partial(_distances, dense),
        lambda: _torch_loop(dense),
    )
    light = _random_weights(16384, 0.1, 4, torch.int16).to(device)
    yield _Job(
        "all pairs of 16384 vertices, weights 1 to 4, int16",
        "a loop in torch, same GPU",
        partial(_distances, light),
        lambda: _torch_loop(light),
    )
    adjacency, sizes, matrices = _molecules(4096)
    batch, batch_sizes = adjacency.to(device), sizes.to(device)
    yield _Job(
        "4096 molecules of 20 to 32 atoms",
        "SciPy, graph by graph, one core",
        partial(_distances, batch, sizes=batch_sizes),
        lambda: _padded([csgraph.shortest_path(one, unweighted=True) for one in matrices]),
    )
    n, sources = 100_000, np.arange(256)
    ends = np.random.default_rng(1).integers(n, size=(2, 8 * n))
    graph = csr_array((np.ones(8 * n, np.float32), tuple(ends)), shape=(n, n))
    on_gpu = tri_apsp.prepare(graph, device=device)
    yield _Job(
        "hops from 256 of 100,000 vertices, 8 edges each",
        "SciPy, one core",
        lambda: tri_apsp.hops(on_gpu, sources.tolist()),
        lambda: csgraph.dijkstra(graph, unweighted=True, indices=sources),
    )
    yield _betweenness(device, roads)


def _cpu_jobs(device: torch.device, roads: csr_array) -> Iterator[_Job]:
    import networkx as nx

    dense = _random_weights(2048, 1.0, 1000, torch.float32)
    as_array = dense.double().numpy()
    by_scipy = "SciPy's floyd_warshall, float64, one core"
    for weights in (dense, dense.double()):
        yield _Job(
            f"all pairs of 2048 vertices, dense, {dtype_name(weights.dtype)}",
            by_scipy,
            partial(_distances, weights),
            lambda: csgraph.floyd_warshall(as_array),
        )
    yield _Job(
        "the same in float32, with predecessors",
        by_scipy,
        partial(_distances, dense, predecessors=True),
        lambda: csgraph.floyd_warshall(as_array, return_predecessors=True)[0],
    )
    sources = np.linspace(0, roads.shape[0] - 1, 128).astype(int)
    yield _Job(
        f"128 rows of a road network, {roads.shape[0]:,} vertices",
        "SciPy's dijkstra, one core",
        partial(_distances, roads, sources=sources.tolist()),
        lambda: csgraph.dijkstra(roads, indices=sources),
    )
    yield _betweenness(device, roads)._replace(page="flows")
    nx.config.cache_converted_graphs = False
    graph = nx.gnm_random_graph(500, 5000, seed=1)
    yield _Job(
        "floyd_warshall of NetworkX, 500 nodes",
        "NetworkX itself, one core",
        lambda: nx.floyd_warshall(graph, backend="tri_apsp"),  # with the conversion
        lambda: nx.floyd_warshall(graph, backend="networkx"),
    )
    yield from _jobs_of_pages()


def _jobs_of_pages() -> Iterator[_Job]:
    """Return the jobs of a CPU that pages of docs/how-to show."""
    import networkx as nx

    made = np.random.default_rng(1)
    edges = random_array((2000, 2000), density=0.005, rng=made)
    edges.data = made.integers(1, 100, size=edges.nnz).astype(np.float64)
    matrix, pairs = edges.tocsr(), np.column_stack(edges.coords).tolist()
    other = import_module("igraph").Graph(
        2000, pairs, directed=True, edge_attrs={"weight": edges.data}
    )
    yield _Job(
        "all distances, 2000 vertices, 20,000 edges",
        "igraph, one core",
        partial(_distances, matrix),
        lambda: np.array(other.distances(weights="weight")),
        "igraph-and-rustworkx",
    )
    angle, height = 1.5 * np.pi * (1 + 2 * made.random(5000)), 21 * made.random(5000)
    points = np.column_stack((angle * np.cos(angle), height, angle * np.sin(angle)))  # a swiss roll
    lengths, ends = KDTree(points).query(points, 11)
    starts = np.arange(0, ends.size + 1, 11)
    near = csr_array((lengths.ravel(), ends.ravel(), starts), shape=(5000, 5000))
    near = near.maximum(near.T).tocsr()
    yield _Job(
        "geodesic distances of 5000 points, 10 neighbours each",
        "SciPy's shortest_path, one core",
        partial(_distances, near),
        lambda: csgraph.shortest_path(near),
        "isomap",
    )
    streets = nx.grid_2d_graph(100, 100)
    for _, _, street in streets.edges(data=True):
        street["weight"] = int(made.integers(1, 100))
    network, nodes = tri_apsp.from_networkx(streets, sparse=True), [*streets]
    search = nx.single_source_dijkstra_path_length
    yield _Job(
        "20 rows of a street grid, 10,000 nodes",
        "NetworkX, one core",
        partial(_distances, network, sources=[*range(20)]),
        lambda: [[*map(search(streets, one).get, nodes)] for one in nodes[:20]],
        "osmnx",
    )
    adjacency, sizes, matrices = _molecules(256)
    yield _Job(
        "256 molecules of 20 to 32 atoms",
        "SciPy, graph by graph, one core",
        partial(_distances, adjacency, sizes=sizes),
        lambda: _padded([csgraph.shortest_path(one, unweighted=True) for one in matrices]),
        "pytorch-geometric",
    )
    needs = nx.gnm_random_graph(1000, 3000, seed=1, directed=True)
    as_matrix = torch.from_numpy(nx.to_numpy_array(needs, dtype=bool))
    yield _Job(
        "transitive closure, 1000 vertices, 3000 edges",
        "NetworkX, one core",
        lambda: tri_apsp.reachability(as_matrix).float(),
        lambda: nx.to_numpy_array(nx.transitive_closure(needs, reflexive=True), nodelist=[*needs]),
        "transitive-closure",
    )


def _betweenness(device: torch.device, roads: csr_array, count: int = 20_000) -> _Job:
    """Return the job of the betweenness of a connected part of a road network."""
    near = csgraph.breadth_first_order(roads, 0, return_predecessors=False)[:count]
    part = roads[near][:, near]
    graph, centrality = networkit_graph(part), import_module("networkit.centrality")
    return _Job(
        f"betweenness of a road network, {len(near):,} vertices",
        "NetworKit, all cores",
        lambda: tri_apsp.betweenness(
            tri_apsp.prepare(part, device=device), weighted=True, normalized=False
        ),
        lambda: centrality.Betweenness(graph).run().scores(),
    )


def _road_weights(network: tri_apsp.SparseGraph) -> csr_array:
    """Return the edges of a road network with weights from 1 to 1000, the same both ways."""
    offsets, heads = network.by_source.offsets.numpy(), network.by_source.vertices.numpy()
    tails = np.repeat(np.arange(network.n), np.diff(offsets))
    pairs = np.minimum(heads, tails) * np.int64(network.n) + np.maximum(heads, tails)
    _, edge = np.unique(pairs, return_inverse=True)
    weights = np.random.default_rng(1).integers(1, 1001, size=edge.max() + 1)[edge]
    return csr_array((weights.astype(np.float64), (tails, heads)), shape=(network.n, network.n))


def _padded(results: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    whole = np.full((len(results), 32, 32), np.inf)
    for into, one in zip(whole, results, strict=True):
        into[: len(one), : len(one)] = one
    return whole


def _measure(roads: Path | None) -> None:
    """Replace the rows of this machine."""
    if roads is None:
        raise InputError("--roads must name a road network, but is missing; add it.")
    for module, name in (("networkit", "NetworKit"), ("igraph", "igraph")):
        if find_spec(module) is None:
            raise InputError(
                f"jobs need {name}, but it is not installed; {remedy_of_extra('peers')}."
            )
    device, rows = resolve("auto"), []
    origin = origin_of(device, f"python -m reports jobs --roads {roads.name}", peers=_PEERS)
    jobs = _gpu_jobs if device.type == "cuda" else _cpu_jobs
    for job in jobs(device, _road_weights(tri_apsp.read_sparse_graph(roads))):
        job.ours()  # compiles
        ours, ours_seconds, _ = timed_again(job.ours, device)
        theirs, theirs_seconds = timed(job.theirs, device)
        if theirs_seconds < _LONG:
            theirs, theirs_seconds, _ = timed_again(job.theirs, device)
        # Sums of floats in another order may differ in the last bits.
        np.testing.assert_allclose(_numbers(ours), _numbers(theirs), rtol=1e-6, err_msg=job.name)
        print(f"{job.name}: {ours_seconds:.4g} s; {job.other}: {theirs_seconds:.4g} s", flush=True)
        rows.append(
            {
                "job": job.name,
                "seconds": f"{ours_seconds:.4g}",
                "other": job.other,
                "other_seconds": f"{theirs_seconds:.4g}",
                "page": job.page,
                **origin,
            }
        )
        del ours, theirs
    kept = [row for row in read_csv(_ROWS) if _machine(row) != _machine(rows[0])]
    with _ROWS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *rows])


def _machine(row: StudyRow) -> str:
    return _MACHINES[row["device"].split()[0]]


def _times_as_fast(row: StudyRow) -> str:
    ratio = float(row["other_seconds"]) / float(row["seconds"])
    return f"{ratio:.1f}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"


def _draw(rows: list[StudyRow]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    # As wide as the window of a phone, so that no letter shrinks there.
    made = Figure(figsize=(4.8, 0.66 * len(rows) + 0.9), layout="constrained")
    axes = made.subplots()
    for place, row in enumerate(rows):
        ours, others = float(row["seconds"]), float(row["other_seconds"])
        axes.plot([ours, others], [place, place], "-", color="#cccccc", zorder=1)
        axes.plot(ours, place, "o", color=_OURS, markersize=7)
        axes.plot(others, place, "o", color=_OTHERS, markersize=7)
        labels: dict[str, Any] = {"va": "center", "fontsize": 9}
        axes.text(ours / 1.5, place, duration(ours), ha="right", color=_OURS, **labels)
        axes.text(others * 1.5, place, duration(others), **labels)
        axes.text(_FIRST, place - 0.48, row["job"], va="center", fontsize=9.5)
        machines = f"{_machine(row)}; without it: {row['other']}"
        axes.text(_FIRST, place - 0.24, machines, va="center", fontsize=8, color="#555555")
    ticks = {1e-3: "1 ms", 1e-2: "10 ms", 0.1: "100 ms", 1: "1 s", 10: "10 s"}
    axes.set(xscale="log", xlim=(_FIRST, 150), ylim=(len(rows) - 0.6, -0.75))
    axes.set_xticks(list(ticks), list(ticks.values()), fontsize=9)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks([])
    made.suptitle("Time of a job by tri_apsp (blue) and without it (grey)", fontsize=11)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return made


def table_of(rows: list[StudyRow]) -> str:
    """Return the table of some rows."""
    lines = []
    for row in rows:
        ours, others = (duration(float(row[name])) for name in ("seconds", "other_seconds"))
        lines.append(
            [row["job"], _machine(row), ours, f"{others}, {row['other']}", _times_as_fast(row)]
        )
    return table(["job", "machine", "tri_apsp", "without it", "times as fast"], lines)
