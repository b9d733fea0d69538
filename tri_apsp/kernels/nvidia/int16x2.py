"""int16 in pairs: a word of 32 bits holds two neighbours of a row, and VIADDMNMX.S16x2 adds and
takes the minimum of both.

In a product A B, a word of B or of the result holds two columns, and a word of A holds one value
twice.
"""

from tri_apsp.kernels.nvidia.gluon_names import gl, gluon


@gluon.jit
def broadcast_int16x2(a):
    """Return int16 values as words that hold each value twice: one instruction per value.

    The assembly takes two neighbours at a time, in the one register that holds them.
    """
    return gl.inline_asm_elementwise(
        "{ .reg .b16 low, high; mov.b32 {low, high}, $2;"
        " mov.b32 $0, {low, low}; mov.b32 $1, {high, high}; }",
        "=r,=r,r",
        [a],
        gl.int32,
        True,
        2,
    )


@gluon.jit
def unpack_int16x2(words):
    """Return the int16 values [M, N] of words [M, N // 2]."""
    M: gl.constexpr = words.shape[0]
    N: gl.constexpr = 2 * words.shape[1]
    return gl.reshape(gl.join(words.to(gl.int16), (words >> 16).to(gl.int16)), [M, N])


@gluon.jit
def pack_int16x2(values):
    """Return int16 values [M, N] as words [M, N // 2]; no data moves, since registers hold
    neighbours side by side.
    """
    M: gl.constexpr = values.shape[0]
    N: gl.constexpr = values.shape[1]
    low, high = gl.split(gl.reshape(values, [M, N // 2, 2]))
    return (low.to(gl.int32) & 0xFFFF) | (high.to(gl.int32) << 16)
