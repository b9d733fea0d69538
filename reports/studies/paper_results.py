"""Numbers that the papers print, for curves beside those of tri_apsp; results that they show only
in a plot are not here.
"""

LUND_SMITH_SECONDS: dict[str, dict[int, float]] = {
    "cpu": {1024: 2.405, 2048: 18.38, 3072: 62.04, 4096: 145.2},
    "harish_narayanan": {
        1024: 0.408,
        2048: 3.212,
        3072: 10.99,
        4096: 26.05,
        5120: 50.87,
        6144: 87.9,
        8192: 208.6,
    },
    "katz_kider": {
        1024: 0.108,
        2048: 0.65,
        3072: 2.01,
        4096: 4.62,
        5120: 8.84,
        6144: 15.09,
        7168: 23.82,
        8192: 35.37,
        9216: 50.24,
        10240: 68.67,
        11264: 91.08,
        16384: 277.8,
    },
    "optimised_blocked": {
        1024: 0.0428,
        2048: 0.282,
        3072: 0.653,
        4096: 2.06,
        5120: 4.02,
        6144: 6.89,
        7168: 10.9,
        8192: 16.39,
        9216: 23.05,
        10240: 31.52,
        11264: 41.82,
        12288: 54.05,
        13312: 68.56,
        14336: 85.56,
        16384: 126.9,
    },
    "staged_load": {
        1024: 0.0274,
        2048: 0.14,
        3072: 0.401,
        4096: 0.934,
        5120: 1.76,
        6144: 2.98,
        7168: 4.65,
        8192: 6.88,
        9216: 9.71,
        10240: 13.22,
        11264: 17.48,
        12288: 22.67,
        13312: 28.63,
        14336: 36.7,
        15360: 43.74,
        16384: 53.02,
        17408: 63.4,
    },
}
"""Lund & Smith, Table 1: the seconds of each system by its name here and by vertices, on a Tesla
C1060; "cpu" on an AMD Phenom.

The tiles are 32 x 32 throughout. The optimised kernel has 256 threads per block and whole tiles in
shared memory; staged load has 64 threads and slices of m = 4 (sections 4 and 4.2).
"""

BULUC_SECONDS: dict[str, dict[int, float]] = {
    "iterative": {512: 0.251, 1024: 2.42, 2048: 46.0, 4096: 413.0, 8192: 5470.0},
    "recursive_plain": {512: 0.0162, 1024: 0.1, 2048: 0.746, 4096: 5.88, 8192: 55.7},
    "recursive_tuned": {512: 0.00643, 1024: 0.0244, 2048: 0.141, 4096: 1.01, 8192: 7.87},
    "cpu": {512: 0.781, 1024: 7.35, 2048: 59.4, 4096: 479.0, 8192: 3770.0},
}
"""Buluç, Gilbert, Budak, Table 1, on a GeForce 8800 Ultra; "cpu" is the best of Table 9, on one
core of an Intel Core 2 Duo.
"""


BULUC_MFLOP_PER_JOULE: dict[str, dict[int, float]] = {
    "GeForce 8800 Ultra": {512: 173, 1024: 368, 2048: 510, 4096: 569},
    "Athlon 64, Spiral": {512: 35.6, 1024: 31.1, 2048: 30.6, 4096: 33.2},
    "Pentium 4, Spiral": {512: 44.1, 1024: 43.7, 2048: 41.5, 4096: 38.8},
    "Core 2 Duo": {512: 19.1, 1024: 17.4, 2048: 17.3, 4096: 17.2},
    "16 Opteron cores, Cilk++": {512: 2.9, 1024: 3.7, 2048: 4.1, 4096: 4.2},
}
"""Buluç, Gilbert, Budak, Table 8: MFLOP per joule by vertices, from power that the makers state.

That of the GPU is 222.5 W: 175 W, and half of an Opteron's 95 W for the core that assists it
(section 4.6).
"""

PATHPACK_SECONDS = {126_146: 0.139}
"""All distances of a road network, by its vertices: the best published time, of PATHPACK.jl on one
NVIDIA B200, without integers, predecessors and Python.
"""
