"""The defaults on every compute capability that an engine runs on, compiled without a GPU."""

from collections import Counter

import pytest

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.neighbourhood import LIMITS, Row, compiled_apart, ranked, resident
from kernels.sass import Compiled, needs_disassembler

from tri_apsp.gpu.ahead import GPUS

pytestmark = needs_disassembler


@pytest.mark.parametrize("gpu", GPUS)
def test_no_default_spills_or_is_too_large(gpu: str) -> None:
    """By one size of values each; test_compiled.py has more dtypes of fewer capabilities."""
    rows = compiled_apart(gpu, "--defaults", "--dtypes", "float32", "float64")
    assert len(rows) == 16 + (gpu == "sm_90")  # products by exponents run on that alone
    assert [row for row in rows if not row.runs or row.spills] == []
    assert min(row.warps for row in rows) >= 4


def code(registers: int, shared: int) -> Compiled:
    return Compiled(registers, shared, [], Counter(), [], [], stack=0)


def test_a_multiprocessor_holds_programs_until_one_of_its_limits() -> None:
    assert resident(code(168, 0), 4, LIMITS["sm_90"]) == 3  # 3 * 4 * 168 * 32 <= 65536
    assert resident(code(168, 33840), 4, LIMITS["sm_86"]) == 2  # 2 * 34.1 KiB <= 100
    assert resident(code(32, 0), 8, LIMITS["sm_86"]) == 6  # of 48 warps
    assert resident(code(32, 0), 1, LIMITS["sm_86"]) == 16
    assert resident(code(32, 0), 1, LIMITS["sm_89"]) == 24


def test_what_spills_or_does_not_run_has_no_rank() -> None:
    row = Row("sm_90", "nvidia", "product", "float32", "product.block_k", 8, fits=True, rate=1.0)
    spilling, slow = (
        Row(**(vars(row) | {"value": value, **more}))
        for value, more in ((1, {"local_share": 0.1, "rate": 2.0}), (2, {"rate": 0.5}))
    )
    large = Row(**(vars(row) | {"fits": False}))
    failed = Row(**(vars(row) | {"error": "PTXASError"}))
    default = Row(**(vars(row) | {"parameter": None}))
    assert ranked([spilling, large, slow, failed, default, row]) == [row, slow]
