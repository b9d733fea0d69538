"""The machine code of products by exponents, of their encoding and of their samples."""

from __future__ import annotations

import dataclasses

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.marks import cases, needs_disassembler
from kernels.variants import encode_exponents, exponent_product, sample_exponents

from tri_apsp.configs import default_config, exponents_bytes

DTYPES = [torch.int16, torch.int32, torch.float32]
every_dtype = cases(
    "dtype", [(dtype,) for dtype in DTYPES], quick=lambda dtype: dtype == torch.int16
)


@needs_disassembler
@every_dtype
def test_instructions_of_a_product(dtype: torch.dtype) -> None:
    """A slice is 128 x 128 x 128 terms: eight instructions of a warp group, and three to decode two
    results.
    """
    compiled = exponent_product(dtype, 90).compile()
    loop = max(compiled.loops, key=lambda loop: loop["HGMMA"])
    results = 128 * 128 // 256  # of a thread
    assert loop["HGMMA"] == 8
    assert results // 2 <= loop["PRMT"] <= results // 2 + 2
    assert loop["VIADDMNMX"] == results // 2
    assert loop["LDGSTS"] == 16  # 16 bytes each
    # A part starts and ends one; the compiler does not wait for each instruction.
    assert loop["WARPGROUP"] <= 8
    assert compiled.spills <= 4
    assert loop.total() <= 6 * results
    assert compiled.registers <= 128  # two programs per multiprocessor


@needs_disassembler
@cases(
    "columns, slice_length",
    [(256, 128), (128, 512), (256, 512)],
    quick=lambda columns, slice_length: columns == slice_length // 2,
)
def test_every_tile_takes_the_shared_memory_that_is_counted(
    columns: int, slice_length: int
) -> None:
    tiles = default_config("nvidia", torch.int16).exponents
    tiles = dataclasses.replace(tiles, block_n=columns, block_k=slice_length)
    compiled = exponent_product(torch.int16, 90, block_n=columns, block_k=slice_length).compile()
    assert 0 <= compiled.shared - exponents_bytes(tiles) <= 16
    assert compiled.spills <= 12


@needs_disassembler
@cases(
    "dtype, columns, slice_length",
    [
        (dtype, columns, slice_length)
        for dtype in DTYPES
        for columns in (128, 256)
        for slice_length in (128, 512)
    ],
    quick=lambda dtype, columns, slice_length: (dtype == torch.int16) == (slice_length == 128),
)
def test_encoding(dtype: torch.dtype, columns: int, slice_length: int) -> None:
    """Nothing spills, and no sum is formed in pairs of 16 bits, of which ptxas of CUDA 12.8 leaves
    out some.
    """
    compiled = encode_exponents(dtype, 90, block_n=columns, block_k=slice_length).compile()
    assert not compiled.instructions["STL"] + compiled.instructions["LDL"]
    assert compiled.registers <= 96
    assert not [line for line in compiled.code if "VIADD.16x2" in line]


@needs_disassembler
@every_dtype
def test_samples(dtype: torch.dtype) -> None:
    """A thread forms 64 sums and their minima in each iteration, while later values are copied to
    shared memory.
    """
    compiled = sample_exponents(dtype, 90).compile()
    loop = max(compiled.loops, key=lambda loop: loop.total())
    assert not compiled.spills
    assert loop["LDG"] == 0
    assert loop["LDGSTS"] == dtype.itemsize  # 16 bytes each: of a thread 8 values of A, and 8 of B
    assert loop.total() <= 7.5 * 64
    assert (
        compiled.shared == 3 * (8 + 8) * 256 * dtype.itemsize
    )  # of 256 values of k, three iterations ahead
