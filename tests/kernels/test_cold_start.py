"""The functions that Numba compiles in the first call of a process with an empty cache: each takes
some 50 ms, most of which no compiler option saves. A change that adds one must say so here.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tri_apsp.python_process import module_command

# Of the first calls of bench --latency, the kernels with their inner functions, and the most
# functions of Numba itself, whose number depends on its version.
COUNTS = {
    "prepare, row": (35, 11),
    "hops": (10, 9),
    "dense": (3, 4),
    "dijkstra": (6, 5),
    "prepare, closeness": (36, 12),
    "betweenness": (11, 11),
    "weighted betweenness": (7, 6),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_functions_compiled_by_the_first(name: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [*module_command("tri_apsp.bench.first_call"), name, "cpu"],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    compiled = sorted(json.loads(result.stdout)["functions"])
    kernels = [x for x in compiled if x[0].startswith("tri_apsp.")]
    expected, most = COUNTS[name]
    lines = [f"{name}: {len(kernels)} kernels, and {len(compiled) - len(kernels)} others:"]
    lines += [f"    {seconds:.2f} s {function}({types})" for function, types, seconds in compiled]
    assert len(kernels) == expected, "\n".join(lines)
    assert len(compiled) - len(kernels) <= most, "\n".join(lines)
