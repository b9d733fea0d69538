"""Operations on the bits of words, in Numba."""

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic
def count_bits(typing_context, word):
    """Return the number of ones in a word of 64 bits."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(word), emit
