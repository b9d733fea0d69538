import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cases
import pytest
import torch
from engines.contract import EngineContract

import tri_apsp
from tri_apsp.semirings import no_edge


class TestCpuEngine(EngineContract):
    name, device = "cpu", "cpu"


def test_a_diagonal_block_may_be_deeper_than_a_slice_of_the_product() -> None:
    weights = cases.random_graph(150)
    config = tri_apsp.Config(block_size=70, product=tri_apsp.CpuTiles(100, 64, 16))
    for method in ("floyd_warshall", "kleene"):
        result = tri_apsp.shortest_paths(
            cases.tensor(weights, torch.float32), method=method, config=config
        )
        cases.assert_distances(result.distances, weights)


@pytest.mark.parametrize("threads", [1, 3])
def test_torch_threads_are_obeyed_and_change_no_bit(threads: int) -> None:
    weights = torch.rand(300, 300, generator=torch.Generator().manual_seed(1))
    expected = tri_apsp.shortest_paths(weights).distances
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert torch.equal(tri_apsp.shortest_paths(weights).distances, expected)
    finally:
        torch.set_num_threads(before)


def printed(script: str, *arguments: str, **variables: str) -> str:
    """What a script prints in a process of its own, with these variables of the environment."""
    others = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
    found = subprocess.run(
        command, env=others | variables, capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


# Prints the number of threads that a solve asks for; a solve on one thread asks for none.
POOLS = """
import os, sys
if sys.argv[1] == "pinned":
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
import torch, tri_apsp
from tri_apsp.engines import cpu_tasks
found, submit = [], cpu_tasks._Threads.submit
cpu_tasks._Threads.submit = lambda own, work, times: found.append(times) or submit(own, work, times)
tri_apsp.shortest_paths(torch.rand(128, 128))
assert not found
tri_apsp.shortest_paths(torch.rand(512, 512))
print(*{*found} or {1})
print(torch.get_num_threads())
"""


@pytest.mark.parametrize(
    ("argument", "variables", "threads"),
    [
        ("", {"OMP_NUM_THREADS": "1"}, "1"),
        ("", {"NUMBA_NUM_THREADS": "1"}, ""),
        pytest.param(
            "pinned",
            {},
            "1",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="needs an affinity mask"),
        ),
    ],
)
@pytest.mark.slow
def test_the_environment_sets_the_threads(
    argument: str, variables: dict[str, str], threads: str
) -> None:
    """As README says."""
    used, of_torch = printed(POOLS, argument, **variables).split()
    assert used == (threads or of_torch)


# Prints the length of the machine code of the Boolean product.
BOOLEAN_PRODUCT = """
from tri_apsp.kernels.cpu.boolean import product_kernel
kernel = product_kernel()
print(len(kernel.inspect_asm(kernel.signatures[0])))
"""


@pytest.mark.compiled
def test_the_boolean_product_compiles_to_little_code(tmp_path: Path) -> None:
    """A loop of unknown length in the tables was unrolled 64 times, to 350,000 characters, which
    took 8 s instead of 1.5 s.
    """
    # Code from a cache cannot be inspected.
    assert 10_000 < int(printed(BOOLEAN_PRODUCT, NUMBA_CACHE_DIR=str(tmp_path))) < 150_000


# Prints how often the kernel stores a masked vector.
MASKED_STORE = r"vmaskmov\w+\s.*, -?(?:0x)?[0-9a-f]*\(|vmov(?:up|ap)[sd]\s.*\{%k"
MASKED_STORES = f"""
import re
import numpy as np
from tri_apsp.kernels.cpu.small_graphs import small_graphs_kernel
codes = small_graphs_kernel(np.dtype("float32")).inspect_asm().values()
print(sum(len(re.findall({MASKED_STORE!r}, code)) for code in codes))
"""


@pytest.mark.compiled
def test_small_graphs_of_floats_are_stored_without_masks(tmp_path: Path) -> None:
    """LLVM stored each minimum through a mask, which took six times as long on a CPU with AVX2."""
    assert int(printed(MASKED_STORES, NUMBA_CACHE_DIR=str(tmp_path))) == 0


def test_several_threads_may_solve_at_once() -> None:
    graphs = [cases.random_graph(200, seed=seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        results = list(
            pool.map(
                lambda graph: tri_apsp.shortest_paths(cases.tensor(graph, torch.float32)), graphs
            )
        )
    for graph, result in zip(graphs, results, strict=True):
        cases.assert_distances(result.distances, graph)


@pytest.mark.slow  # compiles
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16], ids=str)
def test_many_small_products_run_in_one_call(dtype: torch.dtype, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for batch, m, k, n in ((65, 7, 5, 9), (300, 16, 16, 16), (67, 64, 64, 64), (66, 1, 0, 2)):
            random = torch.Generator().manual_seed(n)
            a, b, c = (
                torch.randint(-9, 99, (batch, *shape), generator=random).to(dtype)
                for shape in ((m, k), (k, n), (m, n))
            )
            a[::3, :, :1] = no_edge(dtype)
            one_by_one = [tri_apsp.min_plus(*three) for three in zip(a, b, c, strict=True)]
            found = tri_apsp.min_plus(a, b, c)
            assert torch.equal(found, torch.stack(one_by_one))
            # Strides of another order.
            assert torch.equal(tri_apsp.min_plus(a.mT.contiguous().mT, b, c), found)
    finally:
        torch.set_num_threads(before)


class _Graphs(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, seed: int) -> torch.Tensor:
        return tri_apsp.shortest_paths(
            cases.tensor(cases.random_graph(250, degree=250, seed=seed), torch.float32)
        ).distances


def test_the_workers_of_a_data_loader_solve_too() -> None:
    expected = [
        _Graphs()[seed] for seed in range(4)
    ]  # the parent has used the engine before it forks
    loader = torch.utils.data.DataLoader(_Graphs(), batch_size=None, num_workers=2, timeout=60)
    for distances, same in zip(loader, expected, strict=True):
        assert torch.equal(distances, same)


# Prints "ended" and the number of warnings of a forked child that calls one function of each face,
# after a parent that ran on several threads.
FORK = """
import os, sys, warnings
import numpy, torch, tri_apsp
from tri_apsp import csgraph
torch.set_num_threads(2)
weights = torch.rand(300, 300)
tri_apsp.shortest_paths(weights)
child = os.fork()
if child:
    os.waitpid(child, 0)
    sys.exit()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    tri_apsp.shortest_paths(weights, predecessors=True)
    tri_apsp.min_plus(weights, weights)
    tri_apsp.hops(weights)
    tri_apsp.reachability(weights < 0.5)
    tri_apsp.shortest_paths(weights, sources=[0, 1])
    csgraph.dijkstra(weights.numpy())
print("ended", sum("survive a fork" in str(each.message) for each in caught), flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_runs_on_one_thread_and_says_so_once() -> None:
    assert printed(FORK) == "ended 1\n"


# Compiles one small kernel, and prints what it finds.
KERNEL = """
import numpy
from tri_apsp.kernels.cpu.value_range import find_extremes
found = numpy.zeros(3, int)
find_extremes(numpy.array([[[1, 7, 5]]]), 0, 6, 0, found)
print(*found)
"""


def test_machine_code_is_kept_for_the_user_and_damaged_files_are_written_again(
    tmp_path: Path,
) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path), "NUMBA_CACHE_DIR": ""}
    package = Path(tri_apsp.__file__).parent
    before = set(package.rglob("*.nb?"))
    assert printed(KERNEL, **environment) == "1 7 5\n"
    kept = sorted(tmp_path.rglob("*.nbi"))
    assert kept
    assert set(package.rglob("*.nb?")) == before
    whole = [path.read_bytes() for path in kept]
    for path, content in zip(kept, whole, strict=True):
        path.write_bytes(content[: len(content) // 2])
    for data in tmp_path.rglob("*.nbc"):
        data.write_bytes(b"")
    assert printed(KERNEL, **environment) == "1 7 5\n"
    assert [path.read_bytes() for path in kept] == whole


def test_without_a_folder_to_write_to_kernels_are_compiled_in_each_process(tmp_path: Path) -> None:
    nowhere = tmp_path / "a file"
    nowhere.touch()
    assert printed(KERNEL, NUMBA_CACHE_DIR=str(nowhere)) == "1 7 5\n"
