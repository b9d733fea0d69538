"""Counting bits, in plain Triton."""

import triton
import triton.language as tl


@triton.jit
def count_bits(x):
    """Return how many bits of each int32 are set: the sums of pairs of bits, of 4, and of 8, which
    a product adds up.
    """
    x = x.to(tl.uint32, bitcast=True)
    x -= (x >> 1) & 0x55555555
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) >> 24).to(tl.int32)
