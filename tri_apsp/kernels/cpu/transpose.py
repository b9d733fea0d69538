"""Transposing a matrix by tiles in vector registers, for one CPU core."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tri_apsp.kernels.cpu.compilation import inner
from tri_apsp.kernels.cpu.vectors import VECTOR_BYTES, VectorCode


@intrinsic
def _transpose_tile(typing_context, target, source):
    """target = transposed source, both [V, V] with unit column stride, where V values fill a
    vector.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = VectorCode(context, builder, signature.args[0].dtype)
        count = code.type.count

        def rows(kind: Any, value: Any) -> list[Any]:
            array = context.make_array(kind)(context, builder, value)
            first, step = (
                builder.ptrtoint(array.data, ir.IntType(64)),
                cgutils.unpack_tuple(builder, array.strides, 2)[0],
            )
            return [
                builder.add(first, builder.mul(step, ir.Constant(ir.IntType(64), row)))
                for row in range(count)
            ]

        def interleave(low: Any, high: Any, first: int) -> Any:
            """Return half of the values of two vectors, from place `first` of each, by turns."""
            places = [
                place + side for place in range(first, first + count // 2) for side in (0, count)
            ]
            return builder.shuffle_vector(
                low, high, ir.Constant(ir.VectorType(ir.IntType(32), count), places)
            )

        # log2(V) times, each half of the rows is interleaved with the other: row bits become column
        # bits one after another.
        tile = [code.load(row) for row in rows(signature.args[1], args[1])]
        for _ in range(count.bit_length() - 1):
            halves = zip(tile[: count // 2], tile[count // 2 :], strict=True)
            tile = [
                interleave(low, high, first) for low, high in halves for first in (0, count // 2)
            ]
        for vector, row in zip(tile, rows(signature.args[0], args[0]), strict=True):
            code.store(vector, row)
        return context.get_dummy_value()

    return types.void(target, source), emit


@inner
def transpose(target, source):
    """target = transposed source, for matrices of any shape with unit column strides: whole tiles,
    then what is left.
    """
    rows, columns = source.shape
    step = VECTOR_BYTES // target.itemsize
    for i in range(0, rows - rows % step, step):
        for j in range(0, columns - columns % step, step):
            _transpose_tile(target[j : j + step, i : i + step], source[i : i + step, j : j + step])
    for i in range(rows):
        for j in range(columns - columns % step if i < rows - rows % step else 0, columns):
            target[j, i] = source[i, j]
