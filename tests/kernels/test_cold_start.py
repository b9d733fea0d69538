"""The functions that Numba compiles in the first call of a process with an empty cache: each takes
some 50 ms, most of which no compiler option saves. A change that adds one must say so here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = {
    "prepare and one row": "shortest_paths(prepare(roads), sources=[1])",
    "hops": "hops(roads)",
    "dense": "shortest_paths(torch.rand(300, 300))",
    "dijkstra": 'shortest_paths(roads, sources=[1], method="dijkstra")',
    "closeness": "closeness(prepare(roads), weighted=True)",
    "betweenness": 'networkx.betweenness_centrality(graph, backend="tri_apsp")',
    "weighted betweenness": (
        'networkx.betweenness_centrality(graph, weight="weight", backend="tri_apsp")'
    ),
}
# Of each call the kernels with their inner functions, and the most functions of Numba itself, whose
# number depends on its version.
COUNTS = {
    "prepare and one row": (35, 11),
    "hops": (10, 9),
    "dense": (3, 4),
    "dijkstra": (6, 5),
    "closeness": (36, 12),
    "betweenness": (12, 11),
    "weighted betweenness": (7, 6),
}
SCRIPT = """
import json, networkx, torch
from tri_apsp import closeness, hops, prepare, shortest_paths
from tri_apsp.graphs import generate
from tri_apsp.kernels.cpu.compilation import compilations

roads, graph = generate("roads", 2000, seed=1), networkx.gnm_random_graph(300, 900, seed=1)
for i, edge in enumerate(graph.edges):
    graph.edges[edge]["weight"] = 1 + i % 7
with compilations() as compiled:
    CALL
print(json.dumps(sorted(compiled)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_functions_compiled_by_the_first(name: str, tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    script = SCRIPT.replace("CALL", CALLS[name])
    result = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    compiled = json.loads(result.stdout)
    kernels = [x for x in compiled if x[0].startswith("tri_apsp.")]
    expected, most = COUNTS[name]
    lines = [f"{name}: {len(kernels)} kernels, and {len(compiled) - len(kernels)} others:"]
    lines += [f"    {seconds:.2f} s {function}({types})" for function, types, seconds in compiled]
    assert len(kernels) == expected, "\n".join(lines)
    assert len(compiled) - len(kernels) <= most, "\n".join(lines)
