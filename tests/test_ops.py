"""Gradients, operations of torch, torch.compile, torch.func, CUDA graphs and streams."""

import functools
from collections.abc import Callable

import pytest
import torch
from torch import library
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

import tri_apsp
import tri_apsp.ops  # registers the operations
from tri_apsp import Config, InputError, NegativeCycleError
from tri_apsp.configs import CpuTiles

CPU_OR_GPU = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
INF = float("inf")


def distances(weights: torch.Tensor, **options: object) -> torch.Tensor:
    return tri_apsp.shortest_paths(weights, **options).distances


def random_weights(
    *shape: int, device: str = "cpu", dtype: torch.dtype = torch.float64, density: float = 1
) -> torch.Tensor:
    """Weights without ties, and negative ones without a negative cycle."""
    random = torch.Generator().manual_seed(sum(shape))
    weights = torch.rand(shape, generator=random, dtype=torch.float64) + 0.1
    potential = torch.rand(*shape[:-1], 1, generator=random, dtype=torch.float64)
    weights += potential - potential.mT
    weights.masked_fill_(torch.rand(shape, generator=random) > density, INF)
    return weights.to(device, dtype)


class TestGradients:
    @CPU_OR_GPU
    @pytest.mark.parametrize("shape", [(1, 1), (3, 6, 6), (2, 0, 0), (0, 4, 4)])
    def test_solve(self, device: str, shape: tuple[int, ...]) -> None:
        weights = random_weights(*shape, device=device).requires_grad_()
        if weights.numel():
            assert torch.autograd.gradcheck(distances, (weights,), nondet_tol=0)
        else:
            distances(weights).sum().backward()
            assert weights.grad.shape == shape

    @CPU_OR_GPU
    def test_sizes(self, device: str) -> None:
        weights, sizes = (
            random_weights(4, 9, 9, device=device),
            torch.tensor([9, 0, 1, 5], device=device),
        )
        given = weights.clone().requires_grad_()
        distances(given, sizes=sizes)[0].sum().backward()
        distances(given, sizes=sizes)[3, :5, :5].sum().backward()
        alone = [matrix.clone().requires_grad_() for matrix in (weights[0], weights[3, :5, :5])]
        for matrix in alone:
            distances(matrix).sum().backward()
        assert torch.allclose(given.grad[0], alone[0].grad)
        assert torch.allclose(given.grad[3, :5, :5], alone[1].grad)
        assert not given.grad[1:3].any()

    @CPU_OR_GPU
    @pytest.mark.parametrize("n", [5, 70])
    def test_a_large_weight_hides_no_other(self, device: str, n: int) -> None:
        """Of graphs with `sizes` and of packed ones too, the tolerance of sums does not grow with
        the largest distance.
        """
        weights = torch.full((1, n, n), INF, device=device)
        weights[0, 0, 1], weights[0, 2, 3], weights[0, 2, 4], weights[0, 4, 3] = 1e7, 1, 0.25, 0.25
        expected = torch.zeros_like(weights)
        expected[0, 2, 4] = expected[0, 4, 3] = 1
        for options in ({}, {"sizes": torch.tensor([n], device=device)}):
            given = weights.clone().requires_grad_()
            distances(given, **options)[0, 2, 3].backward()
            assert torch.equal(given.grad, expected)
        packed = weights.flatten().requires_grad_()
        distances(packed, offsets=torch.tensor([0, n * n]))[2 * n + 3].backward()
        assert torch.equal(packed.grad, expected.flatten())

    @CPU_OR_GPU
    def test_equal_paths(self, device: str) -> None:
        """The edge itself comes first, then the path with the smallest vertex before its last."""
        weights = torch.full((5, 5), INF, device=device)
        weights[0, 1] = weights[1, 3] = weights[0, 2] = weights[2, 3] = 1
        weights[0, 4], weights[1, 4] = 2, 1
        weights.requires_grad_()
        distances(weights)[0, 3:].sum().backward()
        expected = torch.zeros(5, 5, device=device)
        expected[0, 1] = expected[1, 3] = expected[0, 4] = 1
        assert torch.equal(weights.grad, expected)

    def test_predecessors_and_marked_cycles(self) -> None:
        weights = random_weights(6, 6, density=0.6)
        weights[:2, :2] = torch.tensor([[0, -2], [1, 0]])
        weights[:, :2][2:] = INF
        given = weights.clone().requires_grad_()
        with pytest.raises(NegativeCycleError):
            distances(given)
        result = tri_apsp.shortest_paths(given, predecessors=True, negative_cycles="mark")
        plain = tri_apsp.shortest_paths(weights, predecessors=True, negative_cycles="mark")
        assert torch.equal(result.distances, plain.distances)
        assert torch.equal(result.predecessors, plain.predecessors)
        assert not result.predecessors.requires_grad
        result.distances[2:, 2:].nan_to_num(posinf=0).sum().backward()
        rest = weights[2:, 2:].clone().requires_grad_()
        distances(rest).nan_to_num(posinf=0).sum().backward()
        assert torch.allclose(given.grad[2:, 2:], rest.grad)
        assert not given.grad[:2].any()

    @CPU_OR_GPU
    @pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2)])
    @pytest.mark.parametrize("batch", [(), (3,)])
    def test_product(
        self, device: str, shape: tuple[int, int, int], batch: tuple[int, ...]
    ) -> None:
        m, k, n = shape
        random = functools.partial(
            torch.rand, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
        )
        a, b, c = random(*batch, m, k), random(*batch, k, n), random(*batch, m, n) * 0.3
        operands = [x.to(device).requires_grad_() for x in (a, b, c)]
        assert torch.autograd.gradcheck(tri_apsp.min_plus, operands[:2], nondet_tol=0)
        assert torch.autograd.gradcheck(tri_apsp.min_plus, operands, nondet_tol=0)

    @CPU_OR_GPU
    @pytest.mark.parametrize("shape", [(70, 150, 90), (65, 3, 64), (1, 200, 1)])
    def test_product_with_ties(self, device: str, shape: tuple[int, int, int]) -> None:
        """The first of equal sums; `c` before all; nothing where no sum is finite."""
        m, k, n = shape
        random = torch.Generator().manual_seed(2)
        a, b, c = (
            torch.randint(0, 9, size, generator=random).float() for size in ((m, k), (k, n), (m, n))
        )
        a[0], c[0], c[0, 0] = INF, INF, 1
        gradient = torch.randint(-9, 9, (m, n), generator=random).float()
        sums = a[:, :, None] + b[None]
        least, first = sums.min(1)
        first = (sums == least[:, None]).int().argmax(1)
        from_c, path = (c <= least) & c.isfinite(), (least < c)
        expected = torch.zeros(m, k), torch.zeros(k, n), gradient * from_c
        for i, j in path.nonzero().tolist():
            expected[0][i, first[i, j]] += gradient[i, j]
            expected[1][first[i, j], j] += gradient[i, j]
        operands = [x.to(device).requires_grad_() for x in (a, b, c)]
        tri_apsp.min_plus(*operands).backward(gradient.to(device))
        for operand, wanted in zip(operands, expected, strict=True):
            assert torch.equal(operand.grad.cpu(), wanted)

    @CPU_OR_GPU
    def test_no_second_derivatives(self, device: str) -> None:
        """Neither 0 nor another wrong value, by autograd and by torch.func, of dense and of packed
        weights.
        """
        weights = random_weights(5, 5, device=device)
        offsets = torch.tensor([0, 9, 25])
        functions: list[tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = [
            (lambda w: distances(w).square().sum(), weights),
            (lambda w: tri_apsp.min_plus(w, w).square().sum(), weights),
            (lambda w: distances(w, offsets=offsets).square().sum(), weights.abs().flatten()),
        ]
        for function, at in functions:
            given = at.clone().requires_grad_()
            (first,) = torch.autograd.grad(function(given), given, create_graph=True)
            with pytest.raises(
                InputError, match="no second derivatives; take them without create_graph=True"
            ):
                first.square().sum().backward()
        for function, at in functions[:2]:
            inner = torch.func.grad(function)
            with pytest.raises(InputError, match="no second derivatives"):
                torch.func.grad(lambda w, inner=inner: inner(w).square().sum())(at)

    @pytest.mark.parametrize(
        "function",
        [
            distances,
            lambda w: tri_apsp.min_plus(w, w),
            lambda w: distances(w, sources=[0]),
            lambda w: distances(w.flatten(), offsets=torch.tensor([0, 25])),
            lambda w: tri_apsp.pack(w[None], torch.tensor([5]))[0],
            lambda w: tri_apsp.unpack(w.flatten(), torch.tensor([0, 25]))[0],
        ],
        ids=["distances", "min_plus", "sources", "offsets", "pack", "unpack"],
    )
    def test_no_forward_mode(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Dual tensors, whose tangents would else get lost."""
        weights = random_weights(5, 5)
        with (
            forward_ad.dual_level(),
            pytest.raises(InputError, match=r"no forward mode; use backward\(\)"),
        ):
            function(forward_ad.make_dual(weights, weights))

    @pytest.mark.parametrize(
        "function", [distances, lambda w: tri_apsp.min_plus(w, w)], ids=["distances", "min_plus"]
    )
    def test_no_forward_mode_by_torch_func(
        self, function: Callable[[torch.Tensor], torch.Tensor]
    ) -> None:
        weights = random_weights(5, 5)
        by_vmap = torch.func.vmap(function)
        transforms: list[Callable[[], object]] = [
            lambda: torch.func.jvp(function, (weights,), (weights,)),
            lambda: torch.func.jacfwd(function)(weights),
            lambda: torch.func.hessian(lambda w: function(w).sum())(weights),
            lambda: torch.func.jvp(by_vmap, (weights[None],), (weights[None],)),
            lambda: torch.func.vmap(torch.func.jacfwd(function))(weights[None]),
        ]
        for transform in transforms:
            with pytest.raises(InputError, match="no forward mode"):
                transform()

    def test_torch_func_within_torch_compile(self) -> None:
        """Runs outside of the graph, where operations have gradients; with fullgraph=True it is
        refused.
        """
        weights = random_weights(5, 5)
        gradient = torch.func.grad(lambda w: distances(w).sum())
        assert torch.equal(torch.compile(gradient, backend="aot_eager")(weights), gradient(weights))
        torch.compiler.reset()
        with pytest.raises(
            Exception, match=r"must not be differentiated by torch\.func in a graph"
        ):
            torch.compile(gradient, fullgraph=True, backend="aot_eager")(weights)
        forward = torch.compile(
            lambda w: torch.func.jvp(distances, (w,), (w,)), backend="aot_eager"
        )
        with pytest.raises(InputError, match="no forward mode"):
            forward(weights)

    def test_no_forward_mode_of_gradients(self) -> None:
        offsets, weights = torch.tensor([0, 9, 25]), random_weights(5, 5).abs()
        functions: list[tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = [
            (distances, weights),
            (lambda w: tri_apsp.min_plus(w, w), weights),
            (lambda w: distances(w, offsets=offsets), weights.flatten()),
        ]
        for function, at in functions:
            given = at.clone().requires_grad_()
            found = function(given)
            one = torch.ones_like(found)
            with forward_ad.dual_level(), pytest.raises(InputError, match="no forward mode"):
                torch.autograd.grad(found, given, forward_ad.make_dual(one, one))

    def test_batched_gradients(self) -> None:
        """Of many gradients at once, which torch batches by other tensors than torch.func does."""
        weights = random_weights(5, 5).requires_grad_()
        found = torch.autograd.functional.jacobian(distances, weights, vectorize=True)
        assert torch.equal(found, torch.autograd.functional.jacobian(distances, weights))

    def test_traced_gradients(self) -> None:
        """A trace of the gradient holds operations, not values."""
        gradient = torch.func.grad(lambda w: distances(w).sum())
        first, second = (random_weights(5, 5).abs() + seed for seed in range(2))

        def plain(w: torch.Tensor) -> torch.Tensor:
            w = w.detach().requires_grad_()
            return torch.autograd.grad((distances(w) * distances(w).detach()).sum(), w)[0]

        for function in (gradient, plain):
            traced = make_fx(function, tracing_mode="real")(first)
            assert torch.equal(traced(second), function(second))

    def test_a_gradient_with_the_negative_bit(self) -> None:
        """Torch negates such a tensor when it is read; kernels would not."""
        weights = random_weights(5, 5).to(torch.float64).requires_grad_()
        factor = torch.rand(5, 5, dtype=torch.float64) + 1
        (expected,) = torch.autograd.grad((-distances(weights) * factor).sum(), weights)
        found = distances(weights)
        found.register_hook(lambda gradient: torch._neg_view(gradient))
        (gradient,) = torch.autograd.grad((found * factor).sum(), weights)
        assert torch.equal(gradient, expected)

    def test_results_are_no_views(self) -> None:
        """So that torch lets a caller change them in place where they are not needed again."""
        weights = random_weights(5, 5, density=0.3).requires_grad_()
        for found in (distances(weights), tri_apsp.min_plus(weights, weights)):
            assert found._base is None
            found.clamp_(max=1)

    def test_graphs_in_another_layout(self) -> None:
        """Gradients of what is packed and unpacked, and of what from_edge_index makes."""
        weights, sizes = random_weights(3, 6, 6), torch.tensor([2, 4, 0])
        values, offsets = tri_apsp.pack(weights, sizes)
        assert torch.autograd.gradcheck(
            lambda w: tri_apsp.pack(w, sizes)[0], weights.clone().requires_grad_()
        )
        assert torch.autograd.gradcheck(
            lambda v: tri_apsp.unpack(v, offsets, fill=0)[0], values.clone().requires_grad_()
        )
        edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 0, 4, 0]])
        batch = torch.tensor([0, 0, 0, 1, 1])

        def solve(edge_weight: torch.Tensor) -> torch.Tensor:
            weights, sizes = tri_apsp.from_edge_index(edges, edge_weight, batch)
            return distances(weights, sizes=sizes).nan_to_num(posinf=0)

        assert torch.autograd.gradcheck(
            solve, (torch.rand(5, dtype=torch.float64) + 1).requires_grad_()
        )

    def test_no_graph_without_need(self) -> None:
        weights = random_weights(5, 5)
        assert not distances(weights).requires_grad
        weights.requires_grad_()
        assert distances(weights).requires_grad
        with torch.no_grad():
            assert distances(weights).grad_fn is None
            assert tri_apsp.min_plus(weights, weights).grad_fn is None

    @CPU_OR_GPU
    def test_every_run_has_the_same_bits(self, device: str) -> None:
        weights = random_weights(130, 130, device=device, dtype=torch.float32).requires_grad_()
        gradient = torch.rand(130, 130, device=device)
        found = [torch.autograd.grad(distances(weights), weights, gradient)[0] for _ in range(3)]
        assert torch.equal(found[0], found[1])
        assert torch.equal(found[0], found[2])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sources": [0]}, "`sources` must not be given with weights that require a gradient"),
            ({"method": "johnson"}, "`method='johnson'` must not be given with weights that"),
            ({"method": "dijkstra"}, "`method='dijkstra'` must not be given with weights that"),
            ({"out": torch.empty(4, 4).double()}, "`out` must not be given with weights that"),
            (
                {"dtype": torch.float32},
                r"`dtype` must not be given .*; convert the weights with .to\(\)",
            ),
            ({"sizes": [3]}, "`sizes` must be a dense torch tensor, but is list"),
            ({"check": "no"}, "`check` must be True or False"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
    )
    def test_refused(self, options: dict[str, object], message: str) -> None:
        with pytest.raises(InputError, match=message):
            distances(random_weights(4, 4).requires_grad_(), **options)

    def test_bad_weights_are_refused(self) -> None:
        weights = random_weights(4, 4).requires_grad_()
        with pytest.raises(InputError, match="must be square"):
            distances(weights[:2])
        with pytest.raises(InputError, match="NaN"):
            distances(weights.log() * INF)
        with pytest.raises(InputError, match="`c` must be a torch tensor, but is str"):
            tri_apsp.min_plus(weights, weights, "c")

    def test_sparse_weights_have_no_gradient(self) -> None:
        with pytest.raises(InputError, match="must not require a gradient"):
            distances(random_weights(4, 4).to_sparse().requires_grad_())

    @pytest.mark.gpu
    def test_backward_takes_at_most_twice_the_forward(self) -> None:
        from torch.utils.benchmark import Timer

        weights = torch.rand(4096, 4096, device="cuda").requires_grad_()
        found = distances(weights)
        backward = Timer(
            "torch.autograd.grad(d, w, g, retain_graph=True)",
            globals={"torch": torch, "d": found, "w": weights, "g": torch.rand_like(found)},
        ).blocked_autorange(min_run_time=0.2)
        forward = Timer("f(w)", globals={"f": distances, "w": weights.detach()}).blocked_autorange(
            min_run_time=0.2
        )
        assert backward.median <= 2 * forward.median


@CPU_OR_GPU
class TestOperations:
    """What torch asks of operations: registered gradients, fake tensors, and tracing."""

    @pytest.mark.parametrize("requires_grad", [False, True])
    def test_solve(self, device: str, requires_grad: bool) -> None:
        weights = random_weights(4, 5, 5, device=device, dtype=torch.float32)
        weights.requires_grad_(requires_grad)
        sizes = torch.tensor([5, 3, 0, 4], device=device)
        arguments = (sizes, "kleene", "[]", True, requires_grad, "raise", 0.0)
        library.opcheck(torch.ops.tri_apsp.shortest_paths.default, (weights, *arguments))

    def test_others(self, device: str) -> None:
        a, b, c = (random_weights(2, 4, 4, device=device).requires_grad_() for _ in range(3))
        arguments = (a, b, c, "max_min", True, True)
        library.opcheck(torch.ops.tri_apsp.semiring_product.default, arguments)
        library.opcheck(torch.ops.tri_apsp.reachability.default, (a[0].detach() < 0.5,))

    def test_gradients(self, device: str) -> None:
        weights = random_weights(4, 4, device=device)
        result = tri_apsp.shortest_paths(weights, predecessors=True)
        for predecessors in (result.predecessors, result.predecessors.new_empty(0)):
            arguments = (weights, weights, result.distances, None, predecessors, True)
            library.opcheck(torch.ops.tri_apsp.shortest_paths_backward.default, arguments)
        product = tri_apsp.min_plus(weights, weights)
        of_product = (weights, weights, weights, None, product, "min_plus")
        library.opcheck(torch.ops.tri_apsp.semiring_product_backward.default, of_product)


@CPU_OR_GPU
class TestCompile:
    @pytest.fixture(autouse=True)
    def fresh(self) -> None:
        torch.compiler.reset()

    def compiled(
        self, function: Callable[..., torch.Tensor], device: str
    ) -> Callable[..., torch.Tensor]:
        return torch.compile(
            function, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager"
        )

    @pytest.mark.parametrize("config", [None, Config(engine="cpu", product=CpuTiles(96, 256, 64))])
    def test_whole_graph(self, device: str, config: Config | None) -> None:
        if config is not None and config.engine == "cpu" and device != "cpu":
            pytest.skip("another engine")
        solve = self.compiled(lambda w: 2 * distances(w.abs() + 1, config=config), device)
        for n in (5, 9, 5):  # constants of the trace
            weights = random_weights(n, n, device=device, dtype=torch.float32)
            assert torch.equal(solve(weights), 2 * distances(weights.abs() + 1))

    def test_gradients(self, device: str) -> None:
        def loss(weights: torch.Tensor) -> torch.Tensor:
            found = distances(weights) + tri_apsp.min_plus(weights, weights)
            return found.square().sum() + tri_apsp.reachability(weights != INF).sum()

        weights = random_weights(8, 8, device=device).requires_grad_()
        expected = torch.autograd.grad(loss(weights), weights)[0]
        found = torch.autograd.grad(self.compiled(loss, device)(weights), weights)[0]
        assert torch.allclose(found, expected)

    def test_batches_and_predecessors(self, device: str) -> None:
        def solve(weights: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
            result = tri_apsp.shortest_paths(weights, sizes=sizes, predecessors=True)
            return torch.where(result.predecessors >= 0, result.distances, 0)

        weights, sizes = (
            random_weights(3, 7, 7, device=device),
            torch.tensor([7, 2, 0], device=device),
        )
        assert torch.equal(self.compiled(solve, device)(weights, sizes), solve(weights, sizes))


@CPU_OR_GPU
class TestTransforms:
    def test_vmap(self, device: str) -> None:
        weights = random_weights(4, 6, 6, device=device)
        expected = distances(weights)
        assert torch.equal(torch.func.vmap(distances)(weights), expected)
        assert torch.equal(
            torch.func.vmap(distances, in_dims=2, out_dims=2)(weights.movedim(0, 2)),
            expected.movedim(0, 2),
        )
        assert torch.func.vmap(distances)(weights[:, :0, :0]).shape == (4, 0, 0)
        batches = weights[None].expand(3, 4, 6, 6)
        assert torch.equal(torch.func.vmap(distances)(batches), expected.expand(3, 4, 6, 6))
        sizes = torch.tensor([[6, 2, 0, 5], [1, 6, 6, 6]], device=device)
        found = torch.func.vmap(lambda s: distances(weights, sizes=s))(sizes)
        assert torch.equal(found, torch.stack([distances(weights, sizes=s) for s in sizes]))

        def total(w: torch.Tensor) -> torch.Tensor:
            return distances(w, sizes=sizes[0]).nan_to_num(posinf=0).sum()

        gradients = torch.func.vmap(torch.func.grad(total))(batches)
        alone = weights.clone().requires_grad_()
        total(alone).backward()
        assert torch.equal(gradients, alone.grad.expand(3, 4, 6, 6))
        both = torch.func.vmap(
            lambda w: tri_apsp.shortest_paths(w, predecessors=True).predecessors
        )(weights)
        assert torch.equal(both, tri_apsp.shortest_paths(weights, predecessors=True).predecessors)
        edges = weights < 0.6
        reached = torch.func.vmap(tri_apsp.reachability)(edges)
        assert torch.equal(reached, tri_apsp.reachability(edges))

    def test_vmap_of_a_product(self, device: str) -> None:
        a, b = random_weights(4, 5, 5, device=device), random_weights(5, 5, device=device)
        found = torch.func.vmap(tri_apsp.min_plus, in_dims=(0, None))(a, b)
        assert torch.equal(found, tri_apsp.min_plus(a, b.expand(4, 5, 5)))
        batches = torch.func.vmap(tri_apsp.min_plus)(
            a[None].expand(2, 4, 5, 5), b.expand(2, 4, 5, 5), a.expand(2, 4, 5, 5)
        )
        assert torch.equal(batches[1], tri_apsp.min_plus(a, b.expand(4, 5, 5), a))

    def test_gradients_of_each_sample(self, device: str) -> None:
        weights = random_weights(4, 6, 6, device=device)

        def loss(weights: torch.Tensor) -> torch.Tensor:
            return distances(weights).sum() + tri_apsp.min_plus(weights, weights).square().sum()

        found = torch.func.vmap(torch.func.grad(loss))(weights)
        given = weights.clone().requires_grad_()
        (distances(given).sum() + tri_apsp.min_plus(given, given).square().sum()).backward()
        assert torch.allclose(found, given.grad)

    def test_inference_mode(self, device: str) -> None:
        with torch.inference_mode():
            weights = random_weights(3, 50, 50, device=device, dtype=torch.float32)
            found = tri_apsp.shortest_paths(
                weights, predecessors=True, sizes=torch.tensor([50, 3, 0], device=device)
            )
            one = distances(weights[0])
            assert tri_apsp.min_plus(weights, weights).is_inference()
        assert torch.equal(found.distances[0], one)
        assert torch.equal(one, distances(weights[0].clone()))


@pytest.mark.gpu
class TestStreams:
    @pytest.mark.parametrize(
        ("shape", "dtype"),
        [
            ((1000, 20, 20), torch.float32),
            ((50, 60, 60), torch.int16),
            ((300, 300), torch.float32),
            pytest.param((3000, 3000), torch.int16, marks=pytest.mark.slow),
        ],
    )
    def test_capture(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """A CUDA graph solves what lies in its input at each replay."""
        weights = torch.randint(1, 50, shape, device="cuda").to(dtype)
        other = torch.randint(1, 50, shape, device="cuda").to(dtype)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            distances(weights, check=False)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = distances(weights, check=False)
        for given in (weights.clone(), other, weights.clone()):
            weights.copy_(given)
            graph.replay()
            assert torch.equal(found, distances(given))

    def test_the_current_stream(self) -> None:
        """What a stream queued before a call is waited for by the kernels, without a
        synchronization.
        """
        weights = torch.rand(500, 500, device="cuda")
        expected = distances(weights)
        late, side = torch.zeros_like(weights), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            late.copy_(weights)
            found = distances(late, check=False)
        side.synchronize()
        assert torch.equal(found, expected)
