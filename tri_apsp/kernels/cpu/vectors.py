"""Emitting LLVM's own vectors, for loops that its vectorizer does not keep in registers."""

import functools
from typing import Any

from llvmlite import binding, ir
from numba import types


def _vector_bytes() -> int:
    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 64
    return 32 if features.get("avx2") else 16


VECTOR_BYTES = _vector_bytes()
"""Bytes of a vector register."""

VECTORS = 2 if VECTOR_BYTES == 32 else 4
"""Vectors in a row of values that a kernel keeps in registers: there are 32 with AVX-512 and on
Arm, 16 with AVX2.
"""


class VectorCode:
    """Emits operations on vectors of values of a Numba type.

    Attributes:
        type: the vector of one register.
        bytes: of a value.
        is_float: whether the values are floats.
        zero, no_index: vectors of 0 and of -1.
    """

    def __init__(self, context: Any, builder: Any, value: Any) -> None:
        self.type = ir.VectorType(context.get_data_type(value), VECTOR_BYTES * 8 // value.bitwidth)
        self.bytes = value.bitwidth // 8
        self._builder, self.is_float = builder, isinstance(value, types.Float)
        self._indices = ir.VectorType(ir.IntType(32), self.type.count)
        self.zero = ir.Constant(self.type, [0] * self.type.count)
        self.no_index = ir.Constant(self._indices, [-1] * self.type.count)

    def broadcast(self, value: Any) -> Any:
        """Emit a vector of one value, which may be an index, an int32."""
        vector = ir.VectorType(value.type, self.type.count)
        undefined, places = ir.Constant(vector, ir.Undefined), ir.IntType(32)
        first = self._builder.insert_element(undefined, value, ir.Constant(places, 0))
        zeros = ir.Constant(ir.VectorType(places, vector.count), [0] * vector.count)
        return self._builder.shuffle_vector(first, undefined, zeros)

    def load(self, address: Any, item: int = 0) -> Any:
        """Emit a load of vector `item` behind an address in bytes."""
        return self._builder.load(self._pointer(address, item, self.type), align=self.bytes)

    def store(self, vector: Any, address: Any, item: int = 0) -> None:
        self._builder.store(vector, self._pointer(address, item, self.type), align=self.bytes)

    def add(self, x: Any, y: Any) -> Any:
        return self._builder.fadd(x, y) if self.is_float else self._builder.add(x, y)

    def multiply(self, x: Any, y: Any) -> Any:
        return self._builder.fmul(x, y) if self.is_float else self._builder.mul(x, y)

    def less(self, x: Any, y: Any) -> Any:
        return (
            self._builder.fcmp_ordered("<", x, y)
            if self.is_float
            else self._builder.icmp_signed("<", x, y)
        )

    def less_and_lesser(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Emit whether x is less than y, and the lesser of them.

        Values may be NaN only if the result is not used: a comparison with NaN is undefined. With
        `nnan` and `nsz` LLVM emits a minimum of floats; without them, a compare and a masked store,
        which takes six times as long with AVX2.
        """
        if not self.is_float:
            less = self.less(x, y)
            return less, self._builder.select(less, x, y)
        flags = ("nnan", "nsz")
        less = self._builder.fcmp_ordered("<", x, y, flags=flags)
        return less, self._builder.select(less, x, y, flags=flags)

    def magnitude(self, x: Any) -> Any:
        negative = self._builder.fneg(x) if self.is_float else self._builder.sub(self.zero, x)
        return self._builder.select(self.less(x, self.zero), negative, x)

    def bits(self, mask: Any) -> Any:
        """Emit the integer whose bits are the values of a comparison."""
        return self._builder.bitcast(mask, ir.IntType(self.type.count))

    def any_of(self, masks: list[Any]) -> Any:
        """Emit whether some value of some comparison is true."""
        bits = functools.reduce(self._builder.or_, map(self.bits, masks))
        return self._builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    def indices(self, item: int) -> Any:
        """Emit the indices of the values of vector `item`, of int32."""
        count = self.type.count
        return ir.Constant(self._indices, list(range(item * count, (item + 1) * count)))

    def load_indices(self, address: Any, item: int) -> Any:
        return self._builder.load(self._pointer(address, item, self._indices), align=4)

    def store_indices(self, vector: Any, address: Any, item: int) -> None:
        self._builder.store(vector, self._pointer(address, item, self._indices), align=4)

    def _pointer(self, address: Any, item: int, vector: ir.VectorType) -> Any:
        offset = item * vector.count * (4 if vector is self._indices else self.bytes)
        return self._builder.inttoptr(
            self._builder.add(address, ir.Constant(ir.IntType(64), offset)), vector.as_pointer()
        )


def addresses(context: Any, builder: Any, kinds: Any, values: Any) -> list[Any]:
    """Return the addresses of arrays, in bytes."""
    arrays = [
        context.make_array(kind)(context, builder, value)
        for kind, value in zip(kinds, values, strict=True)
    ]
    return [builder.ptrtoint(array.data, ir.IntType(64)) for array in arrays]
