"""D <- D* in Gluon, in one launch: blocked Floyd-Warshall, by one program per graph or by several
that wait for each other.

Read tile_closure.py first: what a program does with one or two tiles.

    for each diagonal tile k, and all other i and j:        # tiles of [TILE, TILE]
        diagonal:   D[k, k] <- D[k, k]*
        panels:     D[k, j] <- D[k, k] D[k, j]  and  D[i, k] <- D[i, k] D[k, k]
        remainder:  D[i, j] <- min(D[i, j], D[i, k] D[k, j])

The diagonal tiles form a chain: each needs the one before. Where a graph has several programs,
program 0, the diagonal program, closes diagonal tiles and does nothing else; the update programs,
all others, update the panels and the remainder. The diagonal program works one step ahead: it
updates the next diagonal tile itself, by two products of tiles that are not yet updated.

    diagonal program:                                       # T [TILE, TILE] stays in registers
        T = D[0, 0]
        for each k:
            T <- T*,  D[k, k] <- T
            if update programs are still at the remainder of k-1:
                signal that D[k, k] is closed, and wait for them
            C, R <- D[k+1, k], D[k, k+1]
            signal that C and R are read (and that D[k, k] is closed, if that is still to do)
            T <- min(D[k+1, k+1], C (T R))

    update programs:
        for each k:
            wait until D[k, k] is closed, and all update programs are done with the remainder of k-1
            update the panels, divided among them;
                store D[k+1, k] and D[k, k+1] only after the diagonal program has read them
            arrive, and wait until all update programs have
            update the remainder but D[k+1, k+1], divided among them
            arrive

    in time, where closing T takes less time than a remainder:
        diagonal:   T*   wait        read C, R   T = min(..., C (T R))   T*   wait
        update:     remainder of k-1 | panels of k       | remainder of k

So update programs wait for a diagonal tile only if closing it takes longer than the remainder. C
and R could also be read after their update; but sums of floats would then be rounded differently,
and the result would depend on which program was faster.

Where the last round of tiles in a phase has fewer tiles than programs, its tiles are divided into
PARTS.

In this file `matrix` is (d_ptr, n, stride_dm), D [n, n] of one graph, and `smem` what allocate()
returned. The counter of a graph has two halves of 32 bits: arrivals of update programs in the lower
one, signals of the diagonal program in the upper one, 1 << 32 each. From the start of a closure
they grow to

    all update programs have done phase p of k      arrivals: (2 k + p + 1) * update_programs
    D[k, k] is closed                               signals: 2 k + 1
    D[k+1, k] and D[k, k+1] are read                signals: 2 k + 2

where phase 0 is the panels, and 1 the remainder. The last k has no signal 2 k + 2: there is no tile
that waits for it.

Source: Venkataraman, Sahni, Mukhopadhyaya, A Blocked All-Pairs Shortest-Paths Algorithm; Katz and
Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU.
"""

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon
from tri_apsp.kernels.nvidia.int16x2 import pack_int16x2, unpack_int16x2
from tri_apsp.kernels.nvidia.synchronization import arrive, wait_until
from tri_apsp.kernels.nvidia.tile_closure import allocate, close_tile, multiply


@gluon.jit
def tile_pointers(
    d_ptr, start_m, start_n, n, stride_dm, M: gl.constexpr, N: gl.constexpr, ACC: gl.constexpr
):
    """Return the pointers to the block [M, N] of D [n, n] from (start_m, start_n) on, and the mask
    of those inside D.
    """
    offs_m = start_m + gl.arange(0, M, layout=gl.SliceLayout(1, ACC))  # [M]
    offs_n = start_n + gl.arange(0, N, layout=gl.SliceLayout(0, ACC))  # [N]
    ptrs = d_ptr + offs_m.to(gl.int64)[:, None] * stride_dm + offs_n[None, :]
    return ptrs, (offs_m < n)[:, None] & (offs_n < n)[None, :]


@gluon.jit
def _load(
    matrix,
    start_m,
    start_n,
    M: gl.constexpr,
    N: gl.constexpr,
    ACC: gl.constexpr,
    NO_EDGE: gl.constexpr,
):
    """Load the block [M, N] of D; int16 as words [M, N // 2]."""
    d_ptr, n, stride_dm = matrix
    ptrs, mask = tile_pointers(d_ptr, start_m, start_n, n, stride_dm, M, N, ACC)
    tile = gl.load(ptrs, mask=mask, other=NO_EDGE)
    return pack_int16x2(tile) if tile.dtype == gl.int16 else tile


@gluon.jit
def _store(matrix, start_m, start_n, tile, ACC: gl.constexpr):
    """Store a tile that _load returned."""
    d_ptr, n, stride_dm = matrix
    if d_ptr.dtype.element_ty == gl.int16:
        tile = gl.convert_layout(unpack_int16x2(tile), ACC, assert_trivial=True)
    ptrs, mask = tile_pointers(
        d_ptr, start_m, start_n, n, stride_dm, tile.shape[0], tile.shape[1], ACC
    )
    gl.store(ptrs, tile, mask=mask)


@gluon.jit
def _update_block(
    matrix,
    start_m,
    start_k,
    start_n,
    smem,
    counter_ptr,
    signals,
    M: gl.constexpr,
    N: gl.constexpr,
    ACC: gl.constexpr,
    CLOSURE: gl.constexpr,
):
    """C <- min(C, A B) for blocks C [M, N], A [M, TILE] and B [TILE, N] of D; ACC is the layout of
    B and C.

    Unless `signals` is 0, C is stored only after the diagonal program has signalled that often.
    """
    TILE: gl.constexpr = CLOSURE.TILE
    ACC_A: gl.constexpr = CLOSURE.ACC
    NO_EDGE: gl.constexpr = CLOSURE.NO_EDGE
    c = _load(matrix, start_m, start_n, M, N, ACC, NO_EDGE)  # [M, N]
    a = _load(matrix, start_m, start_k, M, TILE, ACC_A, NO_EDGE)  # [M, TILE]
    b = _load(matrix, start_k, start_n, TILE, N, ACC, NO_EDGE)  # [TILE, N]
    c = multiply(c, a, b, smem, CLOSURE)
    if signals > 0:
        wait_until(counter_ptr, 0, signals)
    _store(matrix, start_m, start_n, c, ACC)


@gluon.jit
def _skip(x, k):
    """Return the x-th of the integers 0, 1, ... without k."""
    return x if x < k else x + 1


@gluon.jit
def _tile_of(t, phase, k, others):
    """Return row and column of the t-th tile of a phase: 0, the panels of k; or 1, the remainder,
    with `others` tiles per row.
    """
    if phase == 0:  # even: the row panel, D[k, j]; odd: the column panel, D[i, k]
        other = _skip(t // 2, k)
        i = k if t % 2 == 0 else other
        j = other if t % 2 == 0 else k
    else:
        i = _skip(t // others, k)
        j = _skip(t % others, k)
    return i, j


@gluon.jit
def _signals_before(phase, k, i, j, signals):
    """Return `signals` if the diagonal program reads tile (i, j) while this phase of k updates it,
    else 0.
    """
    return signals if (phase == 0) & ((i == k + 1) | (j == k + 1)) else 0


@gluon.jit
def _update_phase(
    matrix, phase, k, pid, programs, smem, counter_ptr, signals, CLOSURE: gl.constexpr
):
    """Update every `programs`-th tile of a phase of k, from tile `pid` on: 0, the panels; 1, the
    remainder but D[k+1, k+1].

    D[k+1, k] and D[k, k+1] are stored only after the diagonal program has signalled `signals`
    times.
    """
    _, n, _ = matrix
    TILE: gl.constexpr = CLOSURE.TILE
    PARTS: gl.constexpr = CLOSURE.PARTS
    ACC: gl.constexpr = CLOSURE.ACC
    PART: gl.constexpr = TILE // PARTS
    # Tiles of the phase: `others` in each panel, or in each row and column of the remainder.
    others = gl.cdiv(n, TILE) - 1
    tiles = 2 * others
    if phase == 1:
        tiles = others * others
    # The tiles of the last round are divided, if there are enough programs for all their parts.
    whole_tiles = tiles
    if PARTS > 1:
        whole_tiles = tiles // programs * programs
        if (tiles - whole_tiles) * PARTS > programs:
            whole_tiles = tiles
    # Whole tiles [TILE, TILE].
    for t in range(pid, whole_tiles, programs):
        i, j = _tile_of(t, phase, k, others)
        if (i != k + 1) | (j != k + 1):
            _update_block(
                matrix,
                i * TILE,
                k * TILE,
                j * TILE,
                smem,
                counter_ptr,
                _signals_before(phase, k, i, j, signals),
                TILE,
                TILE,
                ACC,
                CLOSURE,
            )
    # Parts of the last tiles, one per program.
    if PARTS > 1:
        if pid < (tiles - whole_tiles) * PARTS:
            i, j = _tile_of(whole_tiles + pid // PARTS, phase, k, others)
            part = pid % PARTS * PART
            before = _signals_before(phase, k, i, j, signals)
            # An update of D[k, j] reads all of its rows, which other programs must not store
            # meanwhile: so it is divided into columns [TILE, PART], all others into rows.
            if (phase == 0) & (i == k):
                ACC_TALL: gl.constexpr = CLOSURE.ACC_TALL
                _update_block(
                    matrix,
                    i * TILE,
                    k * TILE,
                    j * TILE + part,
                    smem,
                    counter_ptr,
                    before,
                    TILE,
                    PART,
                    ACC_TALL,
                    CLOSURE,
                )
            elif (i != k + 1) | (j != k + 1):
                _update_block(
                    matrix,
                    i * TILE + part,
                    k * TILE,
                    j * TILE,
                    smem,
                    counter_ptr,
                    before,
                    PART,
                    TILE,
                    ACC,
                    CLOSURE,
                )


@gluon.jit
def _run_diagonal_program(matrix, counter_ptr, arrivals, smem, CLOSURE: gl.constexpr):
    """Close the diagonal tiles, one step ahead of the update programs.

    Signals twice for each k: D[k, k] is closed; D[k+1, k] and D[k, k+1] are read. If the update
    programs have all arrived from the remainder by then, both signals are given at once, since the
    program that updates D[k+1, k] must wait for the second one anyway.

    `arrivals`: the lower half of the counter before this closure.
    """
    _, n, _ = matrix
    TILE: gl.constexpr = CLOSURE.TILE
    ACC: gl.constexpr = CLOSURE.ACC
    NO_EDGE: gl.constexpr = CLOSURE.NO_EDGE
    update_programs = gl.num_programs(0) - 1
    steps = gl.cdiv(n, TILE)
    tile = _load(matrix, 0, 0, TILE, TILE, ACC, NO_EDGE)
    for k in range(steps):
        start, following = k * TILE, (k + 1) * TILE
        tile = close_tile(tile, smem, CLOSURE)
        _store(matrix, start, start, tile, ACC)
        if k + 1 < steps:
            arrived = arrivals + 2 * k * update_programs
            # Whether update programs still work on the remainder of k-1, after which each of them
            # has arrived 2 k times. An addition of 0 reads the counter.
            count = gl.atomic_add(counter_ptr, 0, sem="acquire", scope="gpu").to(gl.int32)
            pending = count < arrived
            if pending:
                arrive(counter_ptr, 1 << 32)
                wait_until(counter_ptr, arrived, 0)
            # C, R and the next diagonal tile, [TILE, TILE] each, before any program updates them.
            column = _load(matrix, following, start, TILE, TILE, ACC, NO_EDGE)
            row = _load(matrix, start, following, TILE, TILE, ACC, NO_EDGE)
            next_tile = _load(matrix, following, following, TILE, TILE, ACC, NO_EDGE)
            arrive(counter_ptr, gl.where(pending, 1, 2).to(gl.int64) << 32)
            row = multiply(row, tile, row, smem, CLOSURE)
            tile = multiply(next_tile, column, row, smem, CLOSURE)
        else:
            arrive(counter_ptr, 1 << 32)
    # Reset the signals, which the next call counts from 0, once all update programs have finished
    # the last panels and wait for no signal. The wait also keeps an arrival of this program at a
    # later barrier of the caller from counting as one of theirs. There were 2 * steps - 1 signals,
    # or 0 for a graph without vertices.
    wait_until(counter_ptr, arrivals + (2 * steps - 1) * update_programs, 0)
    gl.atomic_add(
        counter_ptr, gl.minimum(1 - 2 * steps, 0).to(gl.int64) << 32, sem="relaxed", scope="gpu"
    )


@gluon.jit
def _run_update_program(matrix, counter_ptr, arrivals, smem, CLOSURE: gl.constexpr):
    """Update panels and remainders together with the other programs from 1 on; arrive after each of
    these phases.

    `arrivals`: the lower half of the counter before this closure.
    """
    _, n, _ = matrix
    TILE: gl.constexpr = CLOSURE.TILE
    pid, update_programs = gl.program_id(0) - 1, gl.num_programs(0) - 1
    # Each program arrives once per phase, 2 k + phase times before this one. The panels also wait
    # for the closed D[k, k]: the signal 2 k + 1.
    for k in range(gl.cdiv(n, TILE)):
        for phase in range(2):
            wait_until(
                counter_ptr,
                arrivals + (2 * k + phase) * update_programs,
                2 * k + 1 if phase == 0 else 0,
            )
            _update_phase(
                matrix,
                phase,
                k,
                pid,
                update_programs,
                smem,
                counter_ptr,
                2 * k + 2,
                CLOSURE,
            )
            arrive(counter_ptr, 1)


@gluon.jit
def _run_single_program(matrix, smem, CLOSURE: gl.constexpr):
    """Do all steps. A diagonal tile gets the update that _update_phase leaves out just before it is
    closed.
    """
    d_ptr, n, _ = matrix
    TILE: gl.constexpr = CLOSURE.TILE
    ACC: gl.constexpr = CLOSURE.ACC
    NO_EDGE: gl.constexpr = CLOSURE.NO_EDGE
    for step in range(2 * gl.cdiv(n, TILE)):
        k, phase = step // 2, step % 2
        # A tile is closed inside this loop over phases: a loop over k around this one would spill
        # registers.
        if phase == 0:
            start, before = k * TILE, (k - 1) * TILE
            tile = _load(matrix, start, start, TILE, TILE, ACC, NO_EDGE)
            if k > 0:
                column = _load(matrix, start, before, TILE, TILE, ACC, NO_EDGE)
                row = _load(matrix, before, start, TILE, TILE, ACC, NO_EDGE)
                tile = multiply(tile, column, row, smem, CLOSURE)
            tile = close_tile(tile, smem, CLOSURE)
            _store(matrix, start, start, tile, ACC)
            barrier()
        # d_ptr takes the place of the counter, which is not read where there is no signal to wait
        # for.
        _update_phase(matrix, phase, k, 0, 1, smem, d_ptr, 0, CLOSURE)
        barrier()


@gluon.jit
def close_matrix(
    d_ptr,
    counter_ptr,
    n,
    arrivals,
    stride_dm,
    smem,
    COOPERATIVE: gl.constexpr,
    CLOSURE: gl.constexpr,
):
    """D <- D* for one graph, in the workspace `smem`; see _closure_kernel.

    If several programs are COOPERATIVE, the lower half of the counter stands at `arrivals` before,
    and has grown by two for each diagonal tile and each update program after; the caller may use it
    for barriers before and after. The diagonal program counts its signals in the upper half, and
    takes them back.
    """
    matrix = d_ptr, n, stride_dm
    if COOPERATIVE:
        if gl.program_id(0) == 0:
            _run_diagonal_program(matrix, counter_ptr, arrivals, smem, CLOSURE)
        else:
            _run_update_program(matrix, counter_ptr, arrivals, smem, CLOSURE)
    else:
        _run_single_program(matrix, smem, CLOSURE)


@gluon.jit(do_not_specialize=["arrivals"])
def _closure_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    sizes_ptr,  # (batch,): the leading vertices of each graph to close, if SIZES
    counter_ptr,  # (batch,) of int64, which stand at `arrivals`, if COOPERATIVE
    n,
    arrivals,
    stride_db,
    stride_dm,
    SIZES: gl.constexpr,
    COOPERATIVE: gl.constexpr,  # whether a graph has several programs, all resident at one time
    CLOSURE: gl.constexpr,  # ClosureConstants
):
    """D <- D* for each graph of the batch: axis 1 of the grid is the graph, axis 0 its programs.

    Rows and columns past n load NO_EDGE and are not stored. Values stay in [FLOOR, NO_EDGE].
    """
    # Program id to graph, and its size.
    pid_b = gl.program_id(1).to(gl.int64)
    d_ptr += pid_b * stride_db
    counter_ptr += pid_b
    if SIZES:
        n = gl.load(sizes_ptr + pid_b).to(gl.int32)
    smem = allocate(CLOSURE)
    close_matrix(d_ptr, counter_ptr, n, arrivals, stride_dm, smem, COOPERATIVE, CLOSURE)
