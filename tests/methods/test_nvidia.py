"""Every method on the nvidia engine."""

from __future__ import annotations

import cases
import pytest
import torch
from methods.contract import MethodContract

import tri_apsp
from tri_apsp.engines import Engine, triton_base
from tri_apsp.engines.base import WORKSPACE
from tri_apsp.methods import METHODS

pytest.importorskip("triton", reason="the nvidia engine needs Triton")


def _only_stripes(engine: Engine, like: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    if rows * columns > WORKSPACE / 2 * engine.spec.n**2:
        raise torch.OutOfMemoryError("CUDA out of memory")
    return like.new_empty((like.shape[0], rows, columns))


@pytest.mark.gpu
class TestMethodsOnNvidia(MethodContract):
    engine, device = "nvidia", "cuda"
    config = tri_apsp.Config(cutoff=100, block_size=64)
    sizes = (0, 1, 2, 65, 131, 257)

    @pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
    def test_with_the_default_blocks(self, dtype: torch.dtype) -> None:
        for n in (100, 1000, 3353):
            weights = cases.random_graph(n, degree=5)
            expected = tri_apsp.shortest_paths(cases.tensor(weights, torch.float32)).distances
            for method in ("floyd_warshall", "kleene"):
                found = tri_apsp.shortest_paths(cases.tensor(weights, dtype, "cuda"), method=method)
                assert found.engine == "nvidia"
                assert torch.equal(
                    found.distances.cpu().float().clamp(max=tri_apsp.no_edge(dtype)),
                    expected.clamp(max=tri_apsp.no_edge(dtype)),
                ), (method, n)

    @pytest.mark.parametrize("n", [1, 63, 257, 1000, 3353, 4097])
    def test_bit_for_bit_with_the_cpu_and_the_portable_engine(self, n: int) -> None:
        for weights in (cases.random_graph(n, degree=5), cases.negative_graph(n, degree=5)):
            for dtype in (
                (torch.float32, torch.int16) if n > 63 else self.dtypes
            ):  # each is a minute of compiling
                on_gpu = cases.tensor(weights, dtype, "cuda")
                expected = tri_apsp.shortest_paths(cases.tensor(weights, dtype)).distances
                portable = tri_apsp.shortest_paths(
                    on_gpu, config=tri_apsp.Config(engine="portable")
                ).distances
                assert torch.equal(portable.cpu(), expected), dtype
                for method in METHODS if n == 63 else ("floyd_warshall", "kleene"):
                    assert torch.equal(self.solve(on_gpu, method).distances.cpu(), expected), (
                        method,
                        dtype,
                    )

    def test_addresses_past_two_to_the_31(self) -> None:
        """Chains of every 11th vertex, in int16: distances follow from the indices."""
        n = 46400
        weights = torch.full(
            (n, n), tri_apsp.no_edge(torch.int16), dtype=torch.int16, device="cuda"
        )
        step = 11
        starts = torch.arange(0, n - step, device="cuda")
        weights[starts, starts + step] = 1
        distances = tri_apsp.shortest_paths(weights, overwrite=True).distances
        for source in (0, 1, n // 2, n - 2 * step - 1, n - 1):
            away = torch.arange(n, device="cuda") - source
            expected = torch.where(
                (away >= 0) & (away % step == 0), away // step, tri_apsp.no_edge(torch.int16)
            )
            assert torch.equal(distances[source], expected.to(torch.int16)), source

    @pytest.mark.parametrize(("batch", "n"), [(300, 10), (150, 64), (140, 130), (3, 700)])
    def test_batches_with_sizes(self, batch: int, n: int) -> None:
        """One launch for many small graphs, several programs a graph for few larger ones."""
        sizes = torch.randint(0, n + 1, (batch,), generator=torch.Generator().manual_seed(1))
        sizes[:2] = torch.tensor([0, n])
        for dtype in (torch.float32, torch.int16):
            graphs = torch.stack(
                [cases.tensor(cases.random_graph(n, seed=seed), dtype) for seed in range(batch)]
            )
            found = tri_apsp.shortest_paths(graphs.cuda(), sizes=sizes.cuda())
            assert found.engine == "nvidia"
            expected = tri_apsp.shortest_paths(graphs, sizes=sizes).distances
            assert torch.equal(found.distances.cpu(), expected), dtype

    def test_spare_memory_changes_no_bit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for n in (2500, 4097):
            weights = torch.rand(
                (n, n), generator=torch.Generator("cuda").manual_seed(n), device="cuda"
            )
            found = self.solve(weights, "kleene").distances
            with monkeypatch.context() as patch:
                patch.setattr(triton_base, "EXTRA_WORKSPACE", 0.0)
                assert torch.equal(self.solve(weights, "kleene").distances, found), n
            with monkeypatch.context() as patch:
                patch.setattr(Engine, "scratch", _only_stripes)
                assert torch.equal(self.solve(weights, "kleene").distances, found), n

    @pytest.mark.parametrize("share", [0.0, 6e-5, 0.01])
    def test_workspace_is_bounded(self, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
        """The second share is enough for lower levels of the larger graphs."""
        monkeypatch.setattr(triton_base, "EXTRA_WORKSPACE", share)
        for n, fits in (
            (1008, True),
            (4112, True),
            (1000, False),
            (4097, False),
            (1000, True),
            (4097, True),
        ):
            monkeypatch.setattr(
                "tri_apsp.gpu.padding.fits_memory", lambda size, device, fits=fits: fits
            )
            workspace, matrix = self.workspace(
                cases.tensor(cases.random_graph(n), torch.float32, "cuda"), "kleene"
            )
            most = max(0.05 * matrix, share * torch.cuda.get_device_properties(0).total_memory)
            if fits and n % 16:
                most += 4 * (n + 15) ** 2
            assert workspace <= most + 65536, n  # counters, and what the checks add up

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16], ids=str)
    @pytest.mark.parametrize(
        ("n", "name"),
        [
            (100, "floyd_warshall"),
            (1000, "floyd_warshall"),
            (1003, "kleene"),
            (2500, "kleene"),
            (2049, "squaring"),
        ],
    )
    def test_padding_changes_no_bit(
        self, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, n: int, name: str
    ) -> None:
        """In a solve in one launch, in the recursion, and in a product; with and without a negative
        edge.
        """
        rng = torch.Generator("cuda").manual_seed(n)
        weights = (torch.rand((n, n), generator=rng, device="cuda") * 50 + 2).to(dtype)
        weights[torch.rand((n, n), generator=rng, device="cuda") > 8 / n] = tri_apsp.no_edge(dtype)
        for lowest in (0, -1):
            weights[0, n - 1] = lowest
            before = weights.clone()
            found = (
                self.solve(weights, name).distances,
                tri_apsp.min_plus(weights[1:, 1:], weights[1:, 1:]),
            )
            assert all(tensor.is_contiguous() for tensor in found)
            assert torch.equal(weights, before)
            with monkeypatch.context() as patch:
                patch.setattr("tri_apsp.gpu.padding.fits_memory", lambda size, device: False)
                expected = (
                    self.solve(weights, name).distances,
                    tri_apsp.min_plus(weights[1:, 1:], weights[1:, 1:]),
                )
            assert all(map(torch.equal, found, expected)), lowest
