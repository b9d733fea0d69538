"""int16 in pairs: a word of 32 bits holds two neighbours of a row, and VIADDMNMX.S16x2 adds and takes the minimum of both.

In a product A B the words of B, and of the sum, hold two columns; those of A hold the same value twice.
"""

from __future__ import annotations

from tri_apsp.kernels.nvidia.gluon_names import gl, gluon

__all__ = ["halves", "twice", "words"]


@gluon.jit
def twice(a):
    """Return int16 values in both halves of a word: one instruction a value, which takes it from the word that holds two."""
    return gl.inline_asm_elementwise(
        "{ .reg .b16 low, high; mov.b32 {low, high}, $2; mov.b32 $0, {low, low}; mov.b32 $1, {high, high}; }",
        "=r,=r,r", [a], gl.int32, True, 2,
    )  # fmt: skip


@gluon.jit
def halves(pairs):
    """Return the int16 values [M, N] of words [M, N // 2]."""
    M: gl.constexpr = pairs.shape[0]
    N: gl.constexpr = 2 * pairs.shape[1]
    return gl.reshape(gl.join(pairs.to(gl.int16), (pairs >> 16).to(gl.int16)), [M, N])


@gluon.jit
def words(x):
    """Return int16 values [M, N] in words [M, N // 2]; no data moves."""
    M: gl.constexpr = x.shape[0]
    N: gl.constexpr = x.shape[1]
    low, high = gl.split(gl.reshape(x, [M, N // 2, 2]))
    return (low.to(gl.int32) & 0xFFFF) | (high.to(gl.int32) << 16)
