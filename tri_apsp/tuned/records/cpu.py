"""The tunable kernels of the cpu engine, in the order in which they are tuned."""

from tri_apsp.configs import CpuConfig
from tri_apsp.tuned.records.base import (
    CALLS,
    SOLVE_FIELDS,
    TunableKernel,
    exceeds,
    make_space,
    solve_repeats,
)

_SIGNED = ("float32", "float64")
_SOURCES = ("cpu/min_plus.py", "cpu/vectors.py")

_PRODUCT = make_space(
    product__block_m=(96, 192, 384, 768, 1024, 1536, 2048),
    product__block_n=(128, 256, 512, 1024, 2048),
    product__block_k=(64, 128, 256, 384, 512, 768, 1024),
)
# squaring and rank_one_updates are no choices of `method`: the time of squaring depends on the
# graph, that of rank_one_updates on memory.
_SOLVE = make_space(
    method=("floyd_warshall", "kleene"),
    block_size=(16, 32, 48, 64, 96, 128, 192, 256),
    cutoff=(32, 64, 128, 192, 256, 384, 512, 1024, 2048),
)


def _product_repeats(config: CpuConfig, n: int) -> bool:
    values = _PRODUCT.values(config)
    return any(
        exceeds(values[parameter.name], parameter.choices, n) for parameter in _PRODUCT.parameters
    )


KERNELS = (
    TunableKernel[CpuConfig](
        engine="cpu",
        name="product",
        fields=("product",),
        sources=_SOURCES,
        workload="product",
        calls=CALLS,
        space=_PRODUCT,
        quick_sizes=(1024,),
        full_sizes=(256, 1024, 2048),
        signed_dtypes=_SIGNED,
        repeats=lambda config, base, dtype, n: _product_repeats(config, n),
    ),
    TunableKernel[CpuConfig](
        engine="cpu",
        name="solve",
        fields=SOLVE_FIELDS,
        sources=_SOURCES,
        workload="solve",
        calls=("solve", "batch"),
        space=_SOLVE,
        quick_sizes=(1024,),
        full_sizes=(128, 256, 512, 1024, 2048),
        signed_dtypes=_SIGNED,
        repeats=lambda config, base, dtype, n: solve_repeats(config, base, n, _SOLVE),
    ),
)
