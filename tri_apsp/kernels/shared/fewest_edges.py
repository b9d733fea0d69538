"""Predecessors on paths of the fewest edges, for sources whose predecessors may form a loop, in
plain Triton.

The host first extends all paths by one edge at a time, with the search kernels of predecessors.py.
When such a search finds few of the pairs that are left, this kernel continues by a breadth-first
search for each source i:

    queue = i, and all vertices with a predecessor
    for each level:
        for each vertex k that the last level appended to the queue, at first for all of the queue:
            for each edge (k, j) with D[i, k] + W[k, j] = D[i, j], if no earlier level reached j:
                pred[i, j] = min(pred[i, j], k); append j to the queue if it is new

If a level of floats reaches no vertex, the whole queue is searched again, over all edges and with
twice the tolerance. The tolerance of floats is that of tight_edges.py.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import widen
from tri_apsp.kernels.shared.predecessors import SEARCH
from tri_apsp.kernels.shared.tight_edges import absolute_tolerance, wide

# A predecessor k that this level found is stored as THIS_LEVEL - k, which is less than SEARCH and
# is largest for the least k.
THIS_LEVEL: tl.constexpr = tl.constexpr(-3)


@triton.jit
def _begin_queue(pred_row, queue_ptr, i, n, BLOCK: tl.constexpr):
    """Queue the vertices that have a predecessor, and the source; return how many, and how many are
    still to be found.
    """
    count = 0
    remaining = 0
    # The running sum gives each vertex its place behind those before it.
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        pred = tl.load(pred_row + offs, mask=offs < n, other=-1)
        reached = ((pred >= 0) | (offs == i)).to(tl.int32)
        tl.store(queue_ptr + count + tl.cumsum(reached, axis=0) - 1, offs, mask=reached == 1)
        count += tl.sum(reached)
        remaining += tl.sum((pred == SEARCH).to(tl.int32))
    return count, remaining


@triton.jit
def _settle(pred_row, queue_ptr, start, end, BLOCK: tl.constexpr):
    """Store the predecessors that a level found for the vertices from `start` to `end` of the
    queue.
    """
    while start < end:
        offs = start + tl.arange(0, BLOCK)
        j = tl.load(queue_ptr + offs, mask=offs < end, other=0)
        pred = tl.load(pred_row + j, mask=offs < end, other=0)
        tl.store(pred_row + j, -pred + THIS_LEVEL, mask=offs < end)
        start += BLOCK


@triton.jit
def _expand(
    pred_row,
    queue_ptr,
    tail,
    k,
    targets_ptr,
    weights_ptr,
    start,
    end,
    w_row,
    stride_wn,
    d_row,
    by_lists,
    scale,
    absolute,
    NO_EDGE: tl.constexpr,
    RELATIVE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Extend the path to k by its listed edges from `start` to `end`, or by its row of W; return
    the new end of the queue.
    """
    # BLOCK edges (k, j) at a time, [BLOCK].
    before = widen(tl.load(d_row + k))
    while start < end:
        offs = start + tl.arange(0, BLOCK)
        j = tl.load(targets_ptr + offs, mask=by_lists & (offs < end), other=0)
        j = tl.where(by_lists, j, offs.to(tl.int32))
        pred = tl.load(pred_row + j, mask=offs < end, other=-1)
        # To be found, or found on this level already: then the least k counts.
        wanted = pred <= SEARCH
        x = tl.load(weights_ptr + offs, mask=by_lists & wanted, other=NO_EDGE)
        w_ptrs = w_row + j.to(tl.int64) * stride_wn
        x = widen(
            tl.where(by_lists, x, tl.load(w_ptrs, mask=wanted & (by_lists == 0), other=NO_EDGE))
        )
        longest = widen(tl.load(d_row + j, mask=wanted, other=NO_EDGE))
        if RELATIVE != 0:
            longest += scale * (RELATIVE * tl.abs(longest) + absolute)
        # Extend the path where the sum is the distance; a new vertex goes to the end of the queue.
        fits = wanted & (x < NO_EDGE) & (before + x <= longest)
        new = (fits & (pred == SEARCH)).to(tl.int32)
        found = tl.zeros_like(pred) - k + THIS_LEVEL
        tl.store(pred_row + j, tl.where(new == 1, found, tl.maximum(pred, found)), mask=fits)
        tl.store(queue_ptr + tail + tl.cumsum(new, axis=0) - 1, j, mask=new == 1)
        tail += tl.sum(new)
        start += BLOCK
    return tail


@triton.jit
def _fewest_edges_kernel(
    pred_ptr,  # (batch, rows, n) of int32: SEARCH where a predecessor is still to be found
    loops_ptr,  # (batch, rows) of int32: 1 for the sources with a possible loop
    queue_ptr,  # (programs, n) of int32
    targets_ptr,
    weights_ptr,  # the listed edges, by their sources
    ends_ptr,  # (batch, n) of int64: where the edges of each source end
    w_ptr,
    d_ptr,  # W (batch, n, n) of any strides, D (batch, rows, n) contiguous
    tolerance_ptr,  # (absolute, ...), for floats
    listed,  # 1: the lists hold all tight edges; 0: they overflowed, and rows of W are searched
    has_all,  # 1: W is there; 0: only the lists are, and some predecessors may be left
    all_rows,  # batch * rows
    rows,
    n,
    first,
    stride_wb,
    stride_wm,
    stride_wn,
    NO_EDGE: tl.constexpr,
    RELATIVE: tl.constexpr,
    INTEGER: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Find the predecessors that are missing in rows whose source has a possible loop."""
    # The tolerance is multiplied by scale < WIDEST; sums of integers are exact.
    WIDEST: tl.constexpr = 2.0 if INTEGER else 1 / RELATIVE
    queue_ptr += tl.program_id(0).to(tl.int64) * n
    absolute = absolute_tolerance(tolerance_ptr, INTEGER)
    # Each row is the search of one source; a program takes one after another.
    for row in range(tl.program_id(0), all_rows, tl.num_programs(0)):
        if tl.load(loops_ptr + row) == 1:
            graph, i = wide(row // rows), first + row % rows
            pred_row, d_row, w_graph = (
                pred_ptr + wide(row) * n,
                d_ptr + wide(row) * n,
                w_ptr + graph * stride_wb,
            )
            tail, remaining = _begin_queue(pred_row, queue_ptr, i, n, BLOCK)
            # The threads of the program read what others stored in pred_row and queue.
            tl.debug_barrier()
            # Levels: those of the queue from head to last are extended, and tail is its end.
            head = 0
            scale = 1.0
            while (remaining > 0) & (scale < WIDEST):
                by_lists = (listed == 1) & (scale == 1.0)
                last = tail
                while head < last:
                    k = tl.load(queue_ptr + head)
                    place = graph * n + k
                    start = tl.load(ends_ptr + place - 1, mask=by_lists & (place > 0), other=0)
                    end = tl.load(ends_ptr + place, mask=by_lists, other=0) + tl.where(
                        by_lists, 0, n
                    )
                    tail = _expand(
                        pred_row,
                        queue_ptr,
                        tail,
                        k,
                        targets_ptr,
                        weights_ptr,
                        start,
                        end,
                        w_graph + wide(k) * stride_wm,
                        stride_wn,
                        d_row,
                        by_lists,
                        scale,
                        absolute,
                        NO_EDGE,
                        RELATIVE,
                        BLOCK,
                    )
                    tl.debug_barrier()
                    head += 1
                _settle(pred_row, queue_ptr, last, tail, BLOCK)
                tl.debug_barrier()
                remaining -= tail - last
                # No vertex was reached: integers are done; floats search again, with twice the
                # tolerance.
                if tail == last:
                    scale = WIDEST if INTEGER else tl.where(has_all == 1, 2 * scale, WIDEST)
                    head = 0
            # Only if the distances are not those of the weights.
            if (remaining > 0) & ((has_all == 1) | INTEGER):
                for start in range(0, n, BLOCK):
                    offs = start + tl.arange(0, BLOCK)
                    pred = tl.load(pred_row + offs, mask=offs < n, other=-1)
                    tl.store(pred_row + offs, tl.maximum(pred, -1), mask=offs < n)
            tl.debug_barrier()  # the queue is this program's for its next row
