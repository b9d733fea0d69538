"""What every method must do on every engine: inherit MethodContract, set `engine`, `device` and, if
slow, `sizes`.

Each test that has an argument `method` runs with each of `methods`.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import NegativeCycleError
from tri_apsp.engines import Engine
from tri_apsp.methods import METHODS
from tri_apsp.reference import floyd_warshall


class SolveContract:
    """What holds for every algorithm, those of the papers included: set `methods`, and define
    `solve`.
    """

    engine: ClassVar[str]
    device: ClassVar[str]
    methods: ClassVar[Sequence[str]]
    sizes: ClassVar[Sequence[int]] = (0, 1, 2, 3, 63, 64, 65, 100, 131, 257)
    dtypes: ClassVar[Sequence[torch.dtype]] = cases.DTYPES

    @staticmethod
    def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
        if "method" in metafunc.fixturenames:
            metafunc.parametrize("method", metafunc.cls.methods)

    def solve(self, weights: torch.Tensor, method: str, *, check: bool = True) -> tri_apsp.Result:
        raise NotImplementedError

    def dtypes_of(self, method: str) -> list[torch.dtype]:
        """Return those of `dtypes` that the method takes."""
        return list(self.dtypes)

    @pytest.fixture(autouse=True)
    def poison_scratch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Fresh workspace holds the smallest value there is, which a minimum never loses: nothing
        may read it.
        """
        scratch = Engine.scratch

        def poisoned(engine: Engine, like: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
            return scratch(engine, like, rows, columns).fill_(engine.floor)

        monkeypatch.setattr(Engine, "scratch", poisoned)

    @pytest.mark.parametrize("case", cases.CASES)
    def test_agrees_with_the_reference(self, method: str, case: str) -> None:
        quick = set(cases.QUICK_DTYPES).intersection(self.dtypes_of(method))
        for n in self.sizes if case == "random" else self.sizes[-2:]:
            weights = cases.CASES[case](n)
            for dtype in self.dtypes_of(method) if case == "random" else quick:
                tensor = cases.tensor(weights, dtype, self.device)
                found = self.solve(tensor, method)
                cases.assert_distances(found.distances, weights)
                assert (found.method, found.engine) == (method, self.engine)
                assert (found.distances.dtype, found.distances.device) == (dtype, tensor.device)
                assert found.distances.shape == (n, n)

    def test_textbook_graph(self, method: str) -> None:
        for dtype in self.dtypes_of(method):
            distances = self.solve(cases.tensor(cases.FIVE, dtype, self.device), method).distances
            np.testing.assert_array_equal(distances.cpu().double().numpy(), cases.FIVE_DISTANCES)

    def test_batch(self, method: str) -> None:
        n = self.sizes[-2]
        graphs = np.stack([cases.random_graph(n), cases.negative_graph(n), cases.disconnected(n)])
        for dtype in self.dtypes_of(method):
            tensor = cases.tensor(graphs, dtype, self.device)
            cases.assert_distances(self.solve(tensor, method).distances, graphs)
            assert self.solve(tensor[:0], method).distances.shape == (0, n, n)

    def test_any_strides_and_an_untouched_input(self, method: str) -> None:
        n = self.sizes[-2]
        weights = cases.random_graph(n)
        plain = cases.tensor(weights, self.dtypes_of(method)[0], self.device)
        every_other = plain.new_full((2 * n, 2 * n), -1)
        every_other[::2, ::2] = plain
        for view in (plain.T.contiguous().T, every_other[::2, ::2], plain.expand(2, n, n)):
            before = view.clone()
            distances = self.solve(view, method).distances
            cases.assert_distances(
                distances, weights if view.dim() == 2 else np.stack([weights] * 2)
            )
            assert distances.is_contiguous()
            assert torch.equal(view, before)

    def test_zeros_of_either_sign_are_alike(self, method: str) -> None:
        """An engine may order floats without negatives by their bits."""
        n = self.sizes[-1]
        weights = cases.random_graph(n)
        zeros = np.random.default_rng(3).random((n, n)) < 0.3 / max(1, n) ** 0.5
        weights[zeros] = 0
        for dtype in self.dtypes_of(method):
            if dtype.is_floating_point:
                tensor = cases.tensor(weights, dtype, self.device)
                tensor[torch.from_numpy(zeros & (np.arange(n) % 2 == 0)).to(self.device)] = -0.0
                cases.assert_distances(self.solve(tensor, method).distances, weights)

    def test_random_floats_are_close_and_reproducible(self, method: str) -> None:
        if torch.float32 not in self.dtypes_of(method):
            pytest.skip("takes no floats")
        n = self.sizes[-1]
        generator = torch.Generator().manual_seed(3)
        weights = torch.rand(n, n, generator=generator).masked_fill(
            torch.rand(n, n, generator=generator) > 0.1, cases.INF
        )
        first, *others = (self.solve(weights.to(self.device), method).distances for _ in range(4))
        np.testing.assert_allclose(first.cpu().numpy(), floyd_warshall(weights.numpy()), rtol=1e-5)
        assert all(torch.equal(found, first) for found in others)

    @pytest.mark.parametrize("length", [1, 2, 5])
    def test_negative_cycles_are_named(self, method: str, length: int) -> None:
        weights, cycle = cases.negative_cycle(self.sizes[-2], length)
        # On a GPU, each dtype is some seconds of compiling.
        every = length == 2 or self.device == "cpu"
        for dtype in self.dtypes_of(method) if every else self.dtypes_of(method)[:1]:
            tensor = cases.tensor(weights, dtype, self.device)
            before = tensor.clone()
            with pytest.raises(NegativeCycleError) as caught:
                self.solve(tensor, method)
            assert set(caught.value.vertices) == set(cycle), dtype
            assert caught.value.batch is None
            assert torch.equal(tensor, before)

    def test_a_negative_cycle_in_a_batch_says_which_graph(self, method: str) -> None:
        n = self.sizes[-2]
        weights, cycle = cases.negative_cycle(n, 3)
        graphs = np.stack([cases.negative_graph(n), weights])
        narrowest = min(self.dtypes_of(method), key=lambda dtype: dtype.itemsize)
        with pytest.raises(NegativeCycleError, match="graph 1") as caught:
            self.solve(cases.tensor(graphs, narrowest, self.device), method)
        assert caught.value.batch == 1
        assert set(caught.value.vertices) == set(cycle)

    def test_unchecked_solves_agree(self, method: str) -> None:
        weights = cases.random_graph(self.sizes[-2])
        tensor = cases.tensor(weights, self.dtypes_of(method)[0], self.device)
        cases.assert_distances(self.solve(tensor, method, check=False).distances, weights)


class MethodContract(SolveContract):
    """The methods of shortest_paths, with the fields of `config` that each of them uses."""

    methods = tuple(METHODS)
    config: ClassVar[tri_apsp.Config] = tri_apsp.Config()
    predecessor_cases: ClassVar[Sequence[str]] = tuple(cases.CASES)

    def solve(self, weights: torch.Tensor, method: str, **options: bool) -> tri_apsp.Result:
        config = dataclasses.replace(cases.config_for(method, self.config), engine=self.engine)
        return tri_apsp.shortest_paths(weights, method=method, config=config, **options)

    def test_overwrite_solves_in_the_memory_of_the_input(self, method: str) -> None:
        n = self.sizes[-2]
        weights = cases.random_graph(n)
        dtype = torch.int32 if torch.int32 in self.dtypes else self.dtypes[0]
        plain = cases.tensor(weights, dtype, self.device)
        padded = plain.new_full((n, n + 7), -9)[:, 3 : n + 3].copy_(plain)
        for tensor in (plain, plain.T.contiguous().T, padded):
            assert self.solve(tensor, method, out=tensor).distances is tensor
            cases.assert_distances(tensor, weights)
        cyclic = cases.tensor(cases.negative_cycle(n, 2)[0], dtype, self.device)
        with pytest.raises(NegativeCycleError) as caught:
            self.solve(cyclic, method, out=cyclic)
        assert caught.value.vertices

    def test_predecessors_lead_to_every_source(self, method: str) -> None:
        for case in self.predecessor_cases:
            weights = cases.CASES[case](self.sizes[-2])
            for dtype in {*self.dtypes} & {*cases.QUICK_DTYPES}:
                tensor = cases.tensor(weights, dtype, self.device)
                result = self.solve(tensor, method, predecessors=True)
                cases.assert_distances(result.distances, weights)
                cases.assert_predecessors(result, tensor)


class GpuMethodContract(MethodContract):
    """What a GPU engine must do besides."""

    device = "cuda"
    sizes = (0, 1, 2, 65, 131, 257)

    @pytest.mark.parametrize("n", [1, 63, 1000, 3353])
    def test_bit_for_bit_with_the_cpu_engine(self, n: int) -> None:
        """In small blocks and in the default ones."""
        every = n == 63
        for make in (cases.random_graph, cases.negative_graph):
            weights = make(n, degree=5)
            for dtype in self.dtypes if every else cases.QUICK_DTYPES:
                tensor = cases.tensor(weights, dtype)
                expected = tri_apsp.shortest_paths(tensor).distances
                on_gpu = tensor.to(self.device)
                config = tri_apsp.Config(engine=self.engine)
                for method in ("floyd_warshall", "kleene"):
                    default = tri_apsp.shortest_paths(on_gpu, method=method, config=config)
                    for found in (default, self.solve(on_gpu, method)):
                        assert found.engine == self.engine
                        assert torch.equal(found.distances.cpu(), expected), (method, dtype)

    @pytest.mark.parametrize("n", [1000, 4097])
    @pytest.mark.parametrize("name", ["floyd_warshall", "kleene"])
    def test_workspace_is_at_most_a_twentieth(
        self, monkeypatch: pytest.MonkeyPatch, name: str, n: int
    ) -> None:
        """Where memory suffices neither for a padded copy of the matrix nor for panel buffers."""
        monkeypatch.setattr("tri_apsp.gpu.padding.fits_memory", lambda size, device: False)
        monkeypatch.setattr("tri_apsp.engines.triton_base.EXTRA_WORKSPACE", 0.0)
        weights = cases.tensor(cases.random_graph(n), torch.float32, self.device)
        self.solve(weights, name)  # compiles, and fills torch's cache of scalars
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        # What was asked for: a cached block that is a little too large counts whole as "allocated".
        before = torch.cuda.memory_stats()["requested_bytes.all.current"]
        distances = self.solve(weights, name).distances
        workspace = torch.cuda.memory_stats()["requested_bytes.all.peak"] - before
        assert workspace <= 1.05 * distances.nbytes + 65536  # counters, and scalars for the checks
