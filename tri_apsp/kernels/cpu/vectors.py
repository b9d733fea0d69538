"""LLVM's own vectors, for loops that its vectorizer does not keep in registers."""

from typing import Any

from llvmlite import binding, ir


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


def vector_of(context: Any, value: Any) -> ir.VectorType:
    """Return the vector type that a register holds of a Numba type."""
    return ir.VectorType(context.get_data_type(value), VECTOR_BYTES * 8 // value.bitwidth)


def broadcast(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    """Emit a vector of one value."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, zeros)
