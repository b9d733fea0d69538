"""Every method on the nvidia engine."""

import cases
import pytest
import torch
from methods.contract import GpuMethodContract

import tri_apsp
from tri_apsp.engines import Engine, triton_base
from tri_apsp.engines.base import WORKSPACE

pytest.importorskip("triton", reason="the nvidia engine needs Triton")


def _only_stripes(engine: Engine, like: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    if rows * columns > WORKSPACE / 2 * engine.spec.n**2:
        raise torch.OutOfMemoryError("CUDA out of memory")
    return like.new_empty((like.shape[0], rows, columns))


@pytest.mark.gpu
class TestMethodsOnNvidia(GpuMethodContract):
    engine = "nvidia"
    config = tri_apsp.Config(cutoff=100, block_size=64)

    def test_addresses_past_two_to_the_31(self) -> None:
        """Chains of every 11th vertex, in int16: distances follow from the indices."""
        n = 46400
        weights = torch.full(
            (n, n), tri_apsp.no_edge(torch.int16), dtype=torch.int16, device="cuda"
        )
        step = 11
        starts = torch.arange(0, n - step, device="cuda")
        weights[starts, starts + step] = 1
        distances = tri_apsp.shortest_paths(weights, out=weights).distances
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
