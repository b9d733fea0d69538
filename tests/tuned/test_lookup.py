"""Which configuration a solve gets: where it is looked for, and which entry is the nearest."""

import timeit

import pytest
import torch
from tuned.conftest import CUDA, choose

import tri_apsp
from tri_apsp import Config, CpuTiles, GpuTiles, InputError, tuned
from tri_apsp.configs import default_config, to_fields
from tri_apsp.device import describe
from tri_apsp.errors import TuningWarning
from tri_apsp.tuned import lookup
from tri_apsp.tuned.records import KERNELS

CPU = torch.device("cpu")
DEFAULT = default_config("nvidia", torch.float32)


def find(n=1024, given=None, **arguments):
    return tuned.find("nvidia", CUDA, torch.float32, given, n=n, **arguments)


class TestWhere:
    def test_without_files_the_default_is_used(self, gpu):
        assert find() == DEFAULT
        assert find(None) == DEFAULT
        assert find(0) == DEFAULT

    def test_the_order_of_locations(self, gpu, entry, made, directories, monkeypatch):
        paths = {
            place: tuned.save(made(entry(1024, block_m=block_m)), directories[place])
            for place, block_m in {"shipped": 16, "user": 32, "named": 128}.items()
        }
        assert (find().product.block_m, find().source) == (32, str(paths["user"]))
        with tuned.searching(directories["shipped"]):
            assert (find().product.block_m, find().source) == (16, str(paths["shipped"]))
        monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(directories["named"]))
        assert (find().product.block_m, find().source) == (128, str(paths["named"]))
        forced = Config(product=GpuTiles(256, 64, 8, num_warps=8, num_stages=2))
        with tuned.using(forced):
            assert find().product == forced.product
            assert find(given=Config(product=DEFAULT.product)).product == DEFAULT.product
        assert find().product.block_m == 128

    def test_files_are_read_once(self, gpu, entry, made):
        path = tuned.save(made(entry(1024)))
        assert find().source == str(path)
        path.write_text("{")
        assert find(1025).source == str(path)
        tuned.reload()
        assert find(1025).source == "default"

    def test_each_kernel_is_looked_up_by_itself(self, gpu, entry, made, directories):
        user = tuned.save(made(entry(1024)), directories["user"])
        shipped = [
            tuned.save(made(entry(1024, kernel), kernel=kernel), directories["shipped"])
            for kernel in ("solve", "product", "small_product", "closure")
        ]
        found = find()
        assert found.source.split(", ") == [str(path) for path in (shipped[0], user, shipped[3])]
        assert (found.method, found.block_size, found.cutoff) == ("kleene", 2048, 512)
        assert (found.closure_tile, found.closure_warps, found.closure_programs) == (32, 2, 1)
        found = find(product=True)
        assert found.source.split(", ") == [str(path) for path in (user, shipped[2])]
        assert found.small_product == GpuTiles(64, 64, 8, num_stages=2)
        assert found.method is None

    def test_the_nearest_entry_of_all_locations_is_used(self, gpu, entry, made, directories):
        """Tuning one size leaves the entries that were shipped for others in use; of the same size,
        that of the user counts.
        """
        user = tuned.save(made(entry(1024, block_m=32)), directories["user"])
        shipped = tuned.save(
            made(entry(1024, block_m=128), entry(2048, block_m=64)), directories["shipped"]
        )
        assert [
            (find(n).product.block_m, find(n).source) for n in (600, 1024, 1448, 1449, 2048)
        ] == [
            (32, str(user)),
            (32, str(user)),
            (32, str(user)),
            (64, str(shipped)),
            (64, str(shipped)),
        ]
        tuned.save(made(entry(1024, sign="nonnegative", block_m=64)), directories["shipped"])
        assert find(nonnegative=True).source == str(shipped), (
            "the right sign counts more than the location"
        )

    def test_files_of_another_dtype_or_engine_are_not_used(self, gpu, entry, made):
        tuned.save(made(entry(1024)))
        for engine, dtype in (("nvidia", torch.int32), ("portable", torch.float32)):
            assert tuned.find(engine, CUDA, dtype, n=1024) == default_config(engine, dtype)


@pytest.mark.parametrize("name", ["none", "file", "file/below"])
def test_a_variable_that_names_no_folder_warns_once(gpu, entry, made, tmp_path, monkeypatch, name):
    path = tuned.save(made(entry(1024)))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(tmp_path / name))
    with pytest.warns(
        TuningWarning, match=f"must name a folder .*, but {tmp_path / name} "
    ) as caught:
        assert choose(1000).source == choose(1001).source == str(path)
    assert len(caught) == 1


class TestNearest:
    @pytest.mark.parametrize(
        ("n", "block_m"),
        [
            (511, None),
            (512, 32),
            (1024, 32),
            (1448, 32),
            (1449, 64),
            (2048, 64),
            (2896, 64),
            (2897, 128),
            (8192, 128),
            (8193, None),
        ],
    )
    def test_the_nearest_n_within_a_factor_of_two_is_used(self, gpu, entry, made, n, block_m):
        tuned.save(made(entry(1024, block_m=32), entry(2048, block_m=64), entry(4096, block_m=128)))
        found = find(n)
        assert found.product == (
            DEFAULT.product if block_m is None else GpuTiles(block_m, 128, 8, num_stages=2)
        )
        assert (found.source == "default") == (block_m is None)

    def test_the_order_of_sign_kind_size_and_graphs(self, gpu, entry, made):
        order = [
            entry(1024, sign="nonnegative", batch=4),
            entry(1024, sign="nonnegative", batch=8),
            entry(1500, sign="nonnegative", batch=4),
            entry(1024, sign="nonnegative", batch=1),
            entry(1024, sign="any", batch=4),
            entry(1500, sign="any", batch=4),
            entry(1024, sign="any", batch=1),
        ]
        call = tuned.call_of("nvidia", CUDA, torch.float32, n=1024, batch=4, nonnegative=True)
        found = lookup.nearest([("a path", made(*reversed(order)))], call, 1024)
        assert [each for *_, each in found] == order

    def test_a_batch_takes_the_kernel_of_batches(self, gpu, entry, made):
        tuned.save(made(entry(256, "closure", closure_warps=2), kernel="closure"))
        tuned.save(
            made(
                entry(256, "batch", batch=64, closure_warps=1),
                entry(256, "batch", batch=4, closure_warps=4),
                kernel="batch",
            )
        )
        assert find(256).closure_warps == 2
        assert find(256, batch=3).closure_warps == 4
        assert find(256, batch=1000).closure_warps == 1

    def test_entries_of_small_products_are_not_used_by_solves(self, gpu, entry, made):
        """Small products inside a solve are mostly not square, but these entries are for square
        products.
        """
        tuned.save(made(entry(512, "small_product"), kernel="small_product"))
        assert find(255, product=True).small_product == DEFAULT.small_product
        for n in (256, 512, 1024, 30_000):
            assert find(n, product=True).small_product.block_k == 8
            assert find(n).small_product == DEFAULT.small_product

    def test_a_solve_may_set_fields_of_other_kernels(self, gpu, entry, made):
        path = tuned.save(made(entry(1024, "closure", closure_warps=2), kernel="closure"))
        assert find(1500).closure_warps == 2
        fields = {"closure_tile": 32, "closure_warps": 8, "closure_programs": 1}
        whole = entry(2048, "solve")
        solve = tuned.save(
            made(whole.model_copy(update={"config": whole.config | fields}), kernel="solve")
        )
        found = find(1500)
        assert {name: getattr(found, name) for name in fields} == fields
        assert str(solve) in found.source
        assert str(path) not in found.source

    @pytest.mark.parametrize(
        ("n", "method", "block_size", "cutoff", "closed"),
        [
            (1000, "kleene", 4096, 512, 1000),
            (9000, "kleene", 4096, 512, 512),
            (9000, "kleene", 256, 1024, 256),
            (9000, "floyd_warshall", 4096, 512, 4096),
            (9000, None, 4096, 1024, 1024),
        ],
    )
    def test_closures_are_looked_up_at_the_size_of_the_largest_one(
        self, gpu, entry, made, n, method, block_size, cutoff, closed
    ):
        """The entry for closures is that of the largest block that one closure solves, not that of
        the graph.
        """
        config = {"block_size": block_size, "cutoff": cutoff}
        if method is not None:
            tuned.save(made(entry(n, "solve", method=method, **config), kernel="solve"))
        tuned.save(made(entry(closed, "closure", closure_tile=128), kernel="closure"))
        assert find(n).closure_tile == 128
        whole = find(n, Config(block_size=n)).closure_tile  # one closure for the whole graph
        assert whole == (128 if n <= 2 * closed else DEFAULT.closure_tile)


class TestGiven:
    def test_given_fields_override_tuned_ones(self, gpu, entry, made):
        path = tuned.save(made(entry(1024)))
        found = find(given=Config(cutoff=77))
        assert (found.cutoff, found.product.block_k, found.source) == (77, 8, f"given, {path}")
        assert find(given=Config(engine="nvidia")).source == str(path)

    def test_a_configuration_that_cannot_run_is_an_error(self, gpu, entry, made):
        tuned.save(made(entry(1024, "closure", closure_programs=8), kernel="closure"))
        assert find(given=Config(closure_warps=4)).closure_programs == 8
        with pytest.raises(
            InputError, match=r"closure_warps \* closure_programs must be at most 32, but is 128"
        ):
            find(given=Config(closure_warps=16))


class TestUsing:
    def test_solves_inside_take_the_forced_configuration(self):
        weights = torch.rand(20, 20)
        forced = Config(block_size=5, cutoff=7, method="kleene", product=CpuTiles(8, 8, 8))
        with tuned.using(forced):
            result = tri_apsp.shortest_paths(weights)
            assert (result.method, result.config.block_size, result.config.cutoff) == (
                "kleene",
                5,
                7,
            )
            assert (result.config.product, result.config.source) == (CpuTiles(8, 8, 8), "given")
            assert tri_apsp.select(weights).method == "kleene"
            assert tri_apsp.select(weights, method="squaring").method == "squaring"
            assert tri_apsp.select(weights, config=Config(cutoff=9)).config.cutoff == 9
        assert torch.equal(result.distances, tri_apsp.shortest_paths(weights).distances)
        assert tri_apsp.select(weights).config.source == "default"

    def test_an_inner_using_overrides_an_outer_one(self):
        with tuned.using(Config(cutoff=5, block_size=6)):
            with tuned.using(Config(cutoff=7)):
                found = tuned.find("cpu", CPU, torch.float32)
                assert (found.cutoff, found.block_size) == (7, 6)
            assert tuned.find("cpu", CPU, torch.float32).cutoff == 5

    def test_another_type_is_refused(self):
        with (
            pytest.raises(
                InputError, match=r"using must get a tri_apsp\.Config, but got dict; give"
            ),
            tuned.using({"cutoff": 3}),
        ):
            pass


def test_the_configuration_of_a_file_reaches_the_solve_and_its_result(entry, made, cpu_file):
    tiles, signed = CpuTiles(48, 64, 32), CpuTiles(96, 64, 32)
    entries = [
        entry(200, sign=sign, config=to_fields(Config(product=each)))
        for sign, each in (("nonnegative", tiles), ("any", signed))
    ]
    product = made(*entries, engine="cpu", device=describe(CPU))
    paths = [tuned.save(cpu_file), tuned.save(product)]
    weights = torch.rand(200, 200)
    result = tri_apsp.shortest_paths(weights)
    expected = Config(method="floyd_warshall", block_size=32, cutoff=64, product=tiles)
    assert to_fields(result.config) == to_fields(expected)
    assert result.method == "floyd_warshall"
    assert result.config.source == ", ".join(map(str, paths))
    assert tri_apsp.select(weights).config.product == tiles, "no value was read"
    assert tri_apsp.select(weights).reason.startswith("tuned")
    weights[0, 1] = -1e-9
    weights[1, 0] = 1
    assert tri_apsp.shortest_paths(weights).config.product == signed
    assert tri_apsp.select(torch.rand(450, 450)).config.source == "default"


@pytest.mark.parametrize("given", [None, Config(cutoff=64)], ids=["none", "some"])
def test_a_warm_lookup_takes_no_time(gpu, entry, made, given):
    """A warm lookup takes 3 to 7 us on two cores. The least of many repeats counts, since other
    programs run too.
    """
    for kernel in KERNELS["nvidia"]:
        tuned.save(made(entry(1024, kernel), kernel=kernel))
    find(given=given)
    assert min(timeit.repeat(lambda: find(given=given), number=100, repeat=50)) / 100 < 20e-6
