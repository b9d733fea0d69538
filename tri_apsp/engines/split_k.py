"""How many programs of the nvidia engine share a tile of a product that does not fill the GPU."""

from functools import lru_cache

# A model of the time of a product, in steps of k. A tile is divided into at most _MAX_PARTS parts
# of k, each of at least _MIN_K. A program takes _START_STEPS to start and end. Programs that share
# a tile store it one after another, in _STORE_STEPS each. A multiprocessor with fewer warps than a
# key of _RATES runs at that rate. With these values `split_k_tiles` is within 1% of the best of
# eight numbers of parts in the mean of 121 launches on an H200 (five strategies, n = 512 to 8192,
# one product and two), and within 16% in each launch.
_MAX_PARTS = 16
_MIN_K = 128
_START_STEPS = 32
_STORE_STEPS = 16
_RATES = {8: 0.55, 12: 0.97}


@lru_cache(maxsize=1024)
def split_k_tiles(tiles: int, k: int, units: int, resident: int, warps: int) -> tuple[int, int]:
    """Return how many tiles of a product are computed by one program each, and how many programs
    share each of the other tiles.

    A multiprocessor runs `resident` programs of `warps` warps at a time. The tiles of the last
    round of programs are shared if that takes less time.
    """
    last = tiles % (units * resident)

    def steps(parts: int) -> float:
        queue = -(-last * parts // units)
        rate = next((rate for below, rate in _RATES.items() if queue * warps < below), 1)
        return queue * (k / parts + _START_STEPS) / rate + (
            _STORE_STEPS * parts if parts > 1 else 0
        )

    parts = min(range(1, max(1, min(_MAX_PARTS, k // _MIN_K)) + 1), key=steps)
    return (tiles, 1) if parts == 1 else (tiles - last, parts)
