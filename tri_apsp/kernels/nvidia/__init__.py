"""Kernels of the nvidia engine, in Gluon, Triton's language for code that chooses its own layouts
and shared memory.

Read product.py first, then tiles.py, which holds its inner loop. closure.py and solve.py build on
tile_closure.py. small_graphs.py and exponents.py can be read without these three.

Gluon in a few words; L is a layout, smem a view of shared memory:

    BlockedLayout([1, 4], [4, 8], [2, 2], [1, 0])
        Which thread holds which value: values of a thread, threads of a warp, and warps, each in
        (rows, columns); last, the axes, the fastest first.
    SliceLayout(d, L)
        The layout of a vector x for which x[:, None] (d = 1) or x[None, :] (d = 0) has layout L.
    SwizzledSharedLayout(1, 1, 1, [1, 0])
        Shared memory row by row, without swizzling.
    smem.index(i), smem.slice(k, 4, dim=1), smem.reinterpret(...)
        Other views of the same memory: no data moves.
    smem.load(L), smem.store(x)
        From shared memory to registers, and back.
    copy_async(smem, ptrs), commit_group(), wait_group(p)
        Start to copy global to shared memory; close a group of such copies; wait until at most p
        groups of this thread are under way.
    convert_layout(x, L, assert_trivial=True)
        The same registers by another layout; the compiler refuses it if data would move.
    inline_asm_elementwise(asm, constraints, values, dtype, pure, pack)
        PTX for `pack` elements at a time.
"""
