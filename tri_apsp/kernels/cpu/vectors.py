"""LLVM's own vectors, for loops that its vectorizer does not keep in registers."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import binding, ir
from numba import types

__all__ = ["VECTORS", "VECTOR_BYTES", "VectorCode", "addresses", "broadcast", "vector_of"]


def _vector_bytes() -> int:
    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 64
    return 32 if features.get("avx2") else 16


VECTOR_BYTES = _vector_bytes()
"""Bytes of a vector register."""

VECTORS = 2 if VECTOR_BYTES == 32 else 4
"""Vectors in a row of values that a kernel keeps in registers: there are 32 with AVX-512 and on Arm, 16 with AVX2."""


def vector_of(context: Any, value: Any) -> ir.VectorType:
    """Return the vector type that a register holds of a Numba type."""
    return ir.VectorType(context.get_data_type(value), VECTOR_BYTES * 8 // value.bitwidth)


def broadcast(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    """Emit a vector of one value."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, zeros)


class VectorCode:
    """Emits operations on vectors of values of a Numba type.

    Attributes:
        type: the vector of one register.
        bytes: of a value.
        is_float: whether the values are floats.
        zero, no_place: vectors of 0 and of -1.
    """

    def __init__(self, context: Any, builder: Any, value: Any) -> None:
        self.type, self.bytes = vector_of(context, value), value.bitwidth // 8
        self._builder, self.is_float = builder, isinstance(value, types.Float)
        self._places = ir.VectorType(ir.IntType(32), self.type.count)
        self.zero = ir.Constant(self.type, [0] * self.type.count)
        self.no_place = ir.Constant(self._places, [-1] * self.type.count)

    def broadcast(self, value: Any) -> Any:
        return broadcast(self._builder, value, self.type)

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
        return self._builder.fcmp_ordered("<", x, y) if self.is_float else self._builder.icmp_signed("<", x, y)

    def smaller(self, x: Any, y: Any) -> Any:
        return self._builder.select(self.less(x, y), x, y)

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

    def places(self, item: int) -> Any:
        """Emit the places of the values of vector `item`, of int32."""
        count = self.type.count
        return ir.Constant(self._places, list(range(item * count, (item + 1) * count)))

    def broadcast_place(self, place: Any) -> Any:
        """Emit a vector of one int32, of as many as there are values in a vector."""
        return broadcast(self._builder, place, self._places)

    def load_places(self, address: Any, item: int) -> Any:
        return self._builder.load(self._pointer(address, item, self._places), align=4)

    def store_places(self, vector: Any, address: Any, item: int) -> None:
        self._builder.store(vector, self._pointer(address, item, self._places), align=4)

    def _pointer(self, address: Any, item: int, vector: ir.VectorType) -> Any:
        offset = item * vector.count * (4 if vector is self._places else self.bytes)
        return self._builder.inttoptr(self._builder.add(address, ir.Constant(ir.IntType(64), offset)), vector.as_pointer())


def addresses(context: Any, builder: Any, kinds: Any, values: Any) -> list[Any]:
    """Return the addresses of arrays, in bytes."""
    arrays = [context.make_array(kind)(context, builder, value) for kind, value in zip(kinds, values, strict=True)]
    return [builder.ptrtoint(array.data, ir.IntType(64)) for array in arrays]
