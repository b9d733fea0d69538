"""Nested dissection of a sparse graph, in Numba: an order of elimination with little fill-in.

    eliminate vertices of degree 1, 2 and 3, in rounds                     # reduce
    dissect(part of the rest):
        if it has few vertices: order them by minimum degree               # _order_leaf
        else: find a small separator of two halves                         # bisect
              order: dissect(one half), dissect(other half), separator

A separator is found on several scales: vertices are merged in pairs until few are left; these are
separated, and the separator is refined each time that pairs are taken apart. On the coarser scales
this is done several times, and the best separator is kept.

Sources: nested dissection: George, Nested Dissection of a Regular Finite Element Mesh, 1973; the
scales: Karypis, Kumar, A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs,
1998; the refinement: Fiduccia, Mattheyses, A Linear-Time Heuristic for Improving Network
Partitions, 1982, of vertex separators as in METIS; minimum degree: Liu, Modification of the
Minimum-Degree Algorithm by Multiple Elimination, 1985; orders for shortest paths in road networks:
Dibbelt, Strasser, Wagner, Customizable Contraction Hierarchies, 2016.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel

# The most vertices of a leaf of the dissection.
_LEAF = 120
# Vertices are merged until at most this many are left, or a step leaves more than this share.
_COARSEST, _STALLED = 80, 0.9
# One less than the number of vertices among which the next one to be merged is chosen at random.
_SHUFFLED = 255
# The tries of a bisection, which share the scales with more than 1 / _SHARED of the vertices.
_TRIES, _SHARED = 3, 4
# The share of edges that a bisection cuts: random graphs with mean degree d have 1 / 2 - 0.76 /
# sqrt(d) (Dembo, Montanari, Sen, Extremal Cuts of Sparse Random Graphs, 2017). Less is assumed on
# the first scales, where a graph may have many edges to near vertices.
_CUT, _CUT_EARLY = 0.3, 0.1
# The largest share of the vertices that one half may have.
_LARGEST_HALF = 0.6
# Passes of the refinement on each scale, and the moves without improvement that end a pass.
_PASSES, _FUTILE_MOVES = 6, 80
# Vertices of degrees up to this are eliminated first, in at most so many rounds for degree 1 and
# for each further degree: a round can add 1 to the height of the tree.
_REDUCED_DEGREE, _LEAF_ROUNDS, _ROUNDS = 3, 16, 32
# Lists longer than this are not searched for a vertex.
_LONG = 32
# As int64: Numba would compile functions once more for literals.
_SIDE_0, _NO_MOVES, _COARSEST_SCALE = np.int64(0), np.int64(0), np.int64(_COARSEST)


def _inner(function):
    """Return a kernel that only other kernels call, which compiles faster."""
    return kernel(function, no_cpython_wrapper=True, error_model="numpy")


@_inner
def _copy_lists(offsets, neighbours, left):
    """Return lists of the neighbours that are left, which may grow:

    lists: (n, 4) of int64, where the list of each vertex begins, its length, how long it may
        become, and the degree: the list may hold vertices that are not left any more.
    ends: the neighbours, and memory for lists that move.
    used: [1], how much of `ends` is used.
    """
    n = len(left)
    lists = np.empty((n, 4), np.int64)
    ends = np.empty(2 * len(neighbours) + 12 * n + 16, np.int32)
    used = 0
    for v in range(n):
        count = 0
        if left[v]:
            for e in range(offsets[v], offsets[v + 1]):
                if left[neighbours[e]]:
                    ends[used + count] = neighbours[e]
                    count += 1
        lists[v, 0], lists[v, 1], lists[v, 2], lists[v, 3] = used, count, count + 4, count
        used += count + 4
    return lists, ends, np.array([used])


@_inner
def _find(lists, ends, a, b):
    """Return the place of b in the list of a, or -1."""
    for e in range(lists[a, 0], lists[a, 0] + lists[a, 1]):
        if ends[e] == b:
            return e
    return -1


@_inner
def _replace(lists, ends, used, left, a, v, b):
    """Replace v, which is eliminated, by b in the list of a; append b to a long list.

    A list that is full drops the vertices that are not left, and moves if that does not help.
    """
    if lists[a, 1] <= _LONG:
        place = _find(lists, ends, a, v)
        if place >= 0:
            ends[place] = b
            return
    begin, capacity = lists[a, 0], lists[a, 2]
    if lists[a, 1] == capacity:
        count = 0
        for e in range(begin, begin + capacity):
            if left[ends[e]]:
                ends[begin + count] = ends[e]
                count += 1
        if 4 * count > 3 * capacity:
            for i in range(count):  # a copy of slices takes a second to compile
                ends[used[0] + i] = ends[begin + i]
            lists[a, 0], lists[a, 2] = used[0], 2 * capacity
            used[0] += 2 * capacity
        lists[a, 1] = count
    ends[lists[a, 0] + lists[a, 1]] = b
    lists[a, 1] += 1


@_inner
def _eliminate(lists, ends, used, left, beside, v):
    """Eliminate a vertex of degree 3 at most: its neighbours become adjacent to each other.

    Args:
        beside: receives the neighbours.

    Returns their number; -1 if there is no memory for lists that move, and nothing is done.
    """
    count = needed = 0
    for e in range(lists[v, 0], lists[v, 0] + lists[v, 1]):
        u = ends[e]
        if left[u]:
            beside[count] = u
            needed += 2 * lists[u, 2]
            count += 1
    if used[0] + 2 * needed > len(ends):
        return -1
    left[v] = False
    absent = 0  # a bit for each pair
    for i in range(1, count):
        for j in range(i):
            a, b = beside[i], beside[j]
            if lists[a, 1] > lists[b, 1]:
                a, b = b, a
            if _find(lists, ends, a, b) < 0:
                absent |= 1 << (i + j)
    for i in range(count):
        lists[beside[i], 3] -= 1
        for j in range(count):
            if i != j and absent >> (i + j) & 1:
                lists[beside[i], 3] += 1
                _replace(lists, ends, used, left, beside[i], v, beside[j])
    return count


@kernel
def reduce(offsets, neighbours, order, stop):
    """Eliminate vertices of degree 1, 2 and 3, in rounds of vertices that are not adjacent, so that
    a path gives a tree of logarithmic height. Vertices of very high degree come last.

    Args:
        offsets, neighbours: the graph, (n + 1,) of int64 and of int32.
        order: (n,) of int32, receives the eliminated vertices at its begin, those of high degree at
            its end.
        stop: [1] of bool; another thread may set it, which ends this.

    Returns the number of eliminated vertices, the number of edges of the filled graph so far, and
    the graph of the rest: offsets, neighbours, vertices of the whole graph.
    """
    n = len(offsets) - 1
    left = np.ones(n, np.bool_)
    dense = int(16 + 10 * np.sqrt(n))
    end, fill = n, 0
    for v in range(n):
        if offsets[v + 1] - offsets[v] > dense:
            left[v] = False
            end -= 1
            order[end] = v
            fill += offsets[v + 1] - offsets[v]
    lists, ends, used = _copy_lists(offsets, neighbours, left)
    # A vertex is queued once; the round in which a neighbour was eliminated defers it to the next.
    queued, touched = np.zeros(n, np.bool_), np.zeros(n, np.int32)
    queue, later = np.empty(n, np.int32), np.empty(n, np.int32)
    beside = np.empty(3, np.int32)
    done = rounds = 0
    for most in range(1, _REDUCED_DEGREE + 1):
        waiting, last_round = 0, rounds + (_LEAF_ROUNDS if most == 1 else _ROUNDS)
        for v in range(n):
            queued[v] = left[v] and lists[v, 3] <= most
            if queued[v]:
                queue[waiting] = v
                waiting += 1
        while waiting > 0 and rounds < last_round and not stop[0]:
            rounds += 1
            deferred = 0
            for q in range(waiting):
                v = queue[q]
                queued[v] = False
                degree = lists[v, 3]
                if degree > most:
                    continue
                if touched[v] == rounds:
                    later[deferred] = v
                    deferred += 1
                    queued[v] = True
                    continue
                count = _eliminate(lists, ends, used, left, beside, v)
                if count < 0:
                    continue
                order[done] = v
                done += 1
                fill += degree
                for i in range(count):
                    u = beside[i]
                    touched[u] = rounds
                    if lists[u, 3] <= most and not queued[u]:
                        later[deferred] = u
                        deferred += 1
                        queued[u] = True
            queue, later, waiting = later, queue, deferred
    return done, fill, _rest(lists, ends, left)


@_inner
def _rest(lists, ends, left):
    """Return the graph of the vertices that are left: offsets, neighbours, vertices."""
    n = len(left)
    index = np.empty(n, np.int32)
    count = edges = 0
    for v in range(n):
        if left[v]:
            index[v] = count
            count += 1
            edges += lists[v, 3]
    offsets, neighbours = np.zeros(count + 1, np.int64), np.empty(edges, np.int32)
    vertices = np.empty(count, np.int32)
    place = count = 0
    for v in range(n):
        if left[v]:
            for e in range(lists[v, 0], lists[v, 0] + lists[v, 1]):
                if left[ends[e]]:
                    neighbours[place] = index[ends[e]]
                    place += 1
            vertices[count] = v
            count += 1
            offsets[count] = place
    return offsets, neighbours, vertices


@_inner
def _next(seed):
    """Return the next number of a linear congruential generator."""
    return (seed * 1103515245 + 12345) & 0x7FFFFFFF


@_inner
def _match(graph, heaviest, seed):
    """Merge vertices in pairs, each with the neighbour u of largest edge weight^2 / weight of u.

    Args:
        graph: offsets, neighbours, weights of the edges, weights of the vertices.
        heaviest: the largest weight of a pair.
        seed: of the order in which vertices are visited.

    Returns for each vertex its pair (n,); for each pair, or single vertex, its vertices (pairs,) in
    two arrays, in the second -1 if there is none.
    """
    offsets, neighbours, weights, sizes = graph
    n = len(sizes)
    pair = np.full(n, -1, np.int32)
    ones, others = np.empty(n, np.int32), np.empty(n, np.int32)
    count = 0
    visits = np.arange(n)
    for i in range(n):
        # Visit vertices at random, since matchings in the given order follow its pattern; but near
        # each other in memory.
        seed = _next(seed)
        j = min(i + ((seed >> 8) & _SHUFFLED), n - 1)
        v = visits[j]
        visits[j] = visits[i]
        if pair[v] >= 0:
            continue
        best, best_weight, best_size = -1, 0, 1
        room = heaviest - sizes[v]
        for e in range(offsets[v], offsets[v + 1]):
            u = neighbours[e]
            if pair[u] < 0 and sizes[u] <= room:
                weight = np.int64(weights[e]) * weights[e]
                if weight * best_size > best_weight * sizes[u]:
                    best, best_weight, best_size = u, weight, np.int64(sizes[u])
        pair[v] = count
        ones[count], others[count] = v, best
        if best >= 0:
            pair[best] = count
        count += 1
    return pair, ones[:count], others[:count]


@_inner
def _contract(graph, pair, ones, others):
    """Return the graph of the pairs, with the sums of the weights."""
    offsets, neighbours, weights, sizes = graph
    n = len(ones)
    new_offsets, new_sizes = np.empty(n + 1, np.int64), np.empty(n, np.int32)
    new_neighbours = np.empty(len(neighbours), np.int32)
    new_weights = np.empty(len(neighbours), np.int32)
    place = np.full(n, -1, np.int64)  # where the edge to a pair is; below `begin`: of another list
    end = 0
    for p in range(n):
        begin = new_offsets[p] = end
        size = 0
        v = ones[p]
        while v >= 0:
            size += sizes[v]
            for e in range(offsets[v], offsets[v + 1]):
                q = pair[neighbours[e]]
                if place[q] >= begin:
                    new_weights[place[q]] += weights[e]
                elif q != p:
                    place[q] = end
                    new_neighbours[end], new_weights[end] = q, weights[e]
                    end += 1
            v = others[p] if v == ones[p] else -1
        new_sizes[p] = size
    new_offsets[n] = end
    return new_offsets, new_neighbours[:end], new_weights[:end], new_sizes


@_inner
def _join(graph, cut, v, to):
    """Add v to the list of the separator, with the gain of a move to a side: how much lighter it
    makes the separator.

    Args:
        cut: side (n,) of int8: 0, 1 or 2 for the separator; slot (n,) of int32, the place in the
            list; the list, and the gains (n,); total: [4] of int64, the weights of the sides and of
            the separator, and the length of the list.
    """
    offsets, neighbours, _, sizes = graph
    side, slot, separator, gains, total = cut
    gain = sizes[v]
    for e in range(offsets[v], offsets[v + 1]):
        if side[neighbours[e]] == 1 - to:
            gain -= sizes[neighbours[e]]
    k = total[3]
    slot[v], separator[k], gains[k] = k, v, gain
    total[3] = k + 1


@_inner
def _move(graph, cut, v, to, moves, done):
    """Move v from the separator to a side; its neighbours on the other side join the separator.

    Args:
        moves: a log: each vertex that moved, and then ~u for each u that joined the separator;
            `done` entries are in use.

    Returns the entries in use.
    """
    offsets, neighbours, _, sizes = graph
    side, slot, separator, gains, total = cut
    other = 1 - to
    k = total[3] - 1
    place, last = slot[v], separator[k]
    separator[place], gains[place], slot[last] = last, gains[k], place
    total[3] = k
    side[v] = to
    total[to] += sizes[v]
    total[2] -= sizes[v]
    moves[done] = v
    done += 1
    for e in range(offsets[v], offsets[v + 1]):
        u = neighbours[e]
        if side[u] == other:
            side[u] = 2
            total[other] -= sizes[u]
            total[2] += sizes[u]
            moves[done] = ~u
            done += 1
            for f in range(offsets[u], offsets[u + 1]):
                if side[neighbours[f]] == 2:
                    gains[slot[neighbours[f]]] += sizes[u]
            _join(graph, cut, u, to)
    return done


@_inner
def _best_move(cut):
    """Return the vertex of the separator with the largest gain; of several the last, which moves
    clusters.
    """
    _, _, separator, gains, total = cut
    best = 0
    for i in range(1, total[3]):
        if gains[i] >= gains[best]:
            best = i
    return separator[best]


@_inner
def _value(total, largest):
    """Return the cost of a cut: the weight of the separator, plus that of the heavier side beyond
    `largest`; then, between equal costs, the difference of the sides.
    """
    excess = max(0, max(total[0], total[1]) - largest)
    return total[2] + excess, abs(total[0] - total[1])


@_inner
def _refine(graph, cut, largest):
    """Make the separator lighter by moves of its vertices; side and total are set before and after.

    Each pass moves vertices to one side, first to the heavier one and then in turn: the best moves,
    whether their gains are positive or not. It ends in the best state that it reached.
    """
    side, _, separator, _, total = cut
    n = len(side)
    moves, members = np.empty(2 * n, np.int32), np.empty(n, np.int32)
    count = 0
    for v in range(n):
        if side[v] == 2:
            members[count] = v
            count += 1
    to, useless = (1 if total[0] < total[1] else 0), 0
    for _ in range(_PASSES):
        total[3] = 0
        for i in range(count):
            _join(graph, cut, members[i], to)
        best = before = _value(total, largest)
        done = kept = futile = 0
        while total[3] > 0 and futile < _FUTILE_MOVES:
            v = _best_move(cut)
            if total[to] + graph[3][v] > largest:
                break
            done = _move(graph, cut, v, to, moves, done)
            futile += 1
            value = _value(total, largest)
            if value < best:
                best, kept, futile = value, done, 0
        # The best separator is among the present one and the vertices that moved since.
        candidates = total[3]
        for i in range(candidates):
            members[i] = separator[i]
        for i in range(kept, done):
            if moves[i] >= 0:
                members[candidates] = moves[i]
                candidates += 1
        _undo(graph, cut, moves, kept, done, to)
        count = 0
        for i in range(candidates):
            if side[members[i]] == 2:
                members[count] = members[i]
                count += 1
        useless = useless + 1 if best[0] >= before[0] else 0
        if useless == 2:
            break
        to = 1 - to


@_inner
def _undo(graph, cut, moves, kept, done, to):
    """Undo the moves to a side in a log, see _move(), from its end down to `kept`."""
    side, total, sizes = cut[0], cut[4], graph[3]
    for i in range(done - 1, kept - 1, -1):
        v = max(moves[i], ~moves[i])
        other = 1 - to
        if moves[i] >= 0:
            side[v] = 2
            total[to] -= sizes[v]
            total[2] += sizes[v]
        else:
            side[v] = other
            total[other] += sizes[v]
            total[2] -= sizes[v]


@_inner
def _grow(graph, cut, start):
    """Grow side 0 of a new cut from a vertex until it is as heavy as side 1, always by the vertex
    of the separator with the largest gain.
    """
    side, total = cut[0], cut[4]
    n, sizes = len(side), graph[3]
    for v in range(n):
        side[v] = 1
        total[1] += sizes[v]
    moves = np.empty(2 * n, np.int32)
    v = start
    while total[0] < total[1]:
        if total[3] == 0:
            while side[v] != 1:
                v = v + 1 if v + 1 < n else 0
            side[v] = 2
            total[1] -= sizes[v]
            total[2] += sizes[v]
            _join(graph, cut, v, _SIDE_0)
        _move(graph, cut, _best_move(cut), _SIDE_0, moves, _NO_MOVES)


@_inner
def _new_cut(n):
    """Return memory for a cut of n vertices, see _join()."""
    return (
        np.empty(n, np.int8),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.zeros(4, np.int64),
    )


@_inner
def _coarsen(graph, fewest, heaviest, most, seed, stop):
    """Merge vertices in pairs until there are at most `fewest`.

    Returns the graphs on all scales; the pairs of each but the last, from place 1 on; whether there
    can be a separator with at most `most` edges between its vertices.
    """
    n, degree = len(graph[3]), len(graph[1]) / max(1, len(graph[3]))
    graphs, pairs = [graph], [np.empty(0, np.int32)]
    while len(graph[3]) > fewest and not stop[0]:
        pair, ones, others = _match(graph, heaviest, seed)
        if len(ones) > _STALLED * len(pair):
            break
        graph = _contract(graph, pair, ones, others)
        graphs.append(graph)
        pairs.append(pair)
        seed = _next(seed)
        # A planar graph has at most three edges per vertex on any scale. Of more edges, which a
        # graph without small separators has, a bisection cuts a share, and a vertex of the
        # separator covers as many as its degree.
        share = _CUT_EARLY if 4 * len(graph[3]) > n else _CUT
        separator = share * (len(graph[1]) // 2 - 3 * len(graph[3])) / max(1.0, degree)
        if separator > 0 and separator * separator > 2 * most:
            return graphs, pairs, False
    return graphs, pairs, True


@_inner
def _uncoarsen(graphs, pairs, side, largest, stop):
    """Return a cut of the first graph from the sides of the last, refined on each scale."""
    cut = _new_cut(0)
    for scale in range(len(graphs) - 1, -1, -1):
        graph = graphs[scale]
        cut = _new_cut(len(graph[3]))
        for v in range(len(graph[3])):
            cut[0][v] = side[v if scale == len(graphs) - 1 else pairs[scale + 1][v]]
            cut[4][cut[0][v]] += graph[3][v]
        if not stop[0]:
            _refine(graph, cut, largest)
        side = cut[0]
    return cut


@kernel
def bisect(offsets, neighbours, most, seed, stop):
    """Return a small separator of two halves of a graph.

    Args:
        offsets, neighbours: the graph, (n + 1,) of int64 and of int32.
        most: the most edges between vertices of the separator; if there is no such separator, it
            may have all vertices.
        seed: an integer.
        stop: [1] of bool; another thread may set it, which makes this end soon with any sides.

    Returns the side of each vertex, (n,) of int8: 0, 1, or 2 for the separator; the sizes of these
    three and an unused number.
    """
    n = len(offsets) - 1
    graph = (offsets, neighbours, np.ones(len(neighbours), np.int32), np.ones(n, np.int32))
    largest = max(int(_LARGEST_HALF * n), n // 2 + 1)
    heaviest = 3 * n // (2 * _COARSEST) + 1
    fewest = max(n // _SHARED, _COARSEST)
    graphs, pairs, separable = _coarsen(graph, fewest, heaviest, most, seed, stop)
    if not separable:
        return np.full(n, 2, np.int8), np.array([0, 0, n, 0])
    best_side = np.empty(0, np.int8)
    best = (np.int64(-1), np.int64(0))
    for _ in range(_TRIES):
        seed = _next(seed)
        scales, merged, _ = _coarsen(graphs[-1], _COARSEST_SCALE, heaviest, n * n, seed, stop)
        coarsest = scales[-1]
        cut = _new_cut(len(coarsest[3]))
        _grow(coarsest, cut, (seed >> 8) % len(coarsest[3]))
        cut = _uncoarsen(scales, merged, cut[0], largest, stop)
        value = _value(cut[4], largest)
        if best[0] < 0 or value < best:
            best, best_side = value, cut[0]
    cut = _uncoarsen(graphs, pairs, best_side, largest, stop)
    return cut[0], cut[4]


@kernel
def split(offsets, neighbours, vertices, side, end, order):
    """Write the separator of a part to the order, and return the halves.

    Args:
        offsets, neighbours, vertices: the part; vertices: their numbers in the order.
        side: (n,) of int8, see bisect().
        end: where the vertices of this part end in `order`.

    Returns for both sides: offsets, neighbours, vertices, end.
    """
    n = len(side)
    index = np.empty(n, np.int32)
    count, edges = np.zeros(3, np.int64), np.zeros(3, np.int64)
    for v in range(n):
        s = side[v]
        index[v] = count[s]
        count[s] += 1
        edges[s] += offsets[v + 1] - offsets[v]
        if s == 2:
            order[end - count[2]] = vertices[v]
    halves = [
        _half(offsets, neighbours, vertices, side, s, index, count[s], edges[s]) for s in range(2)
    ]
    end -= count[2]
    return (*halves[0], end), (*halves[1], end - count[0])


@_inner
def _half(offsets, neighbours, vertices, side, wanted, index, count, edges):
    """Return the graph of the vertices of a side: offsets, neighbours, vertices."""
    new_offsets, new_neighbours = np.empty(count + 1, np.int64), np.empty(edges, np.int32)
    new_vertices = np.empty(count, np.int32)
    end = new_offsets[0] = 0
    for v in range(len(side)):
        if side[v] == wanted:
            for e in range(offsets[v], offsets[v + 1]):
                u = neighbours[e]
                if side[u] == wanted:
                    new_neighbours[end] = index[u]
                    end += 1
            new_vertices[index[v]] = vertices[v]
            new_offsets[index[v] + 1] = end
    return new_offsets, new_neighbours[:end], new_vertices


@_inner
def _count_bits(x):
    """Return the number of ones in a word of 64 bits."""
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@_inner
def _order_leaf(rest, vertices, end, order, local):
    """Write the vertices of a leaf to the order, those of minimum degree first; of these, the one
    whose neighbours were eliminated the longest time ago. Degrees count separators too.

    Args:
        rest: offsets and neighbours of all vertices that nested dissection orders.
        vertices: the leaf.
        end: where it ends in `order`.
        local: (vertices of rest,) of int32, -1 before and after.

    Returns the number of edges of the filled graph that begin in the leaf.
    """
    offsets, neighbours = rest
    n = len(vertices)
    one = np.uint64(1)
    # Number the leaf, and then its neighbours in separators.
    edges = 0
    for i in range(n):
        local[vertices[i]] = i
        edges += offsets[vertices[i] + 1] - offsets[vertices[i]]
    outside, count = np.empty(edges, np.int32), 0
    for i in range(n):
        for e in range(offsets[vertices[i]], offsets[vertices[i] + 1]):
            u = neighbours[e]
            if local[u] < 0:
                local[u] = n + count
                outside[count] = u
                count += 1
    # One row of bits for the neighbours of each vertex.
    words = (n + count + 63) // 64
    adjacent = np.zeros((n, words), np.uint64)
    key = np.empty(n, np.int64)  # degree, last elimination beside it
    for i in range(n):
        v = vertices[i]
        for e in range(offsets[v], offsets[v + 1]):
            u = local[neighbours[e]]
            adjacent[i, u >> 6] |= one << np.uint64(u & 63)
        key[i] = (offsets[v + 1] - offsets[v]) << 16
    for i in range(n):
        local[vertices[i]] = -1
    for i in range(count):
        local[outside[i]] = -1
    left = np.arange(n)
    fill = 0
    for done in range(n):
        best = 0
        for i in range(1, n - done):
            if key[left[i]] < key[left[best]]:
                best = i
        v = left[best]
        left[best] = left[n - done - 1]
        order[end - n + done] = vertices[v]
        fill += key[v] >> 16
        for i in range(n - done - 1):
            u = left[i]
            if (adjacent[v, u >> 6] >> np.uint64(u & 63)) & one:
                degree = 0
                for w in range(words):
                    adjacent[u, w] |= adjacent[v, w]
                    degree += _count_bits(adjacent[u, w])
                adjacent[u, v >> 6] &= ~(one << np.uint64(v & 63))
                adjacent[u, u >> 6] &= ~(one << np.uint64(u & 63))
                key[u] = (degree - 2) << 16 | done
    return fill


@kernel
def dissect(rest, part, order, most, stop):
    """Order the vertices of a part by nested dissection.

    Args:
        rest: offsets and neighbours of all vertices that nested dissection orders.
        part: offsets, neighbours, vertices, end; see split().
        order: (vertices of rest,) of int32, receives those of the part.
        most: the most edges that the filled graph may have at them; more end this.
        stop: [1] of bool; another thread may set it, which ends this.

    Returns the estimated number of these edges: those at vertices of leaves, and those between the
    vertices of each separator.
    """
    local = np.full(len(rest[0]) - 1, -1, np.int32)
    parts = [part]
    fill = 0
    while len(parts) > 0 and fill <= most and not stop[0]:
        offsets, neighbours, vertices, end = parts.pop()
        if len(vertices) <= _LEAF:
            fill += _order_leaf(rest, vertices, end, order, local)
            continue
        side, total = bisect(offsets, neighbours, most, end, stop)
        fill += total[2] * (total[2] - 1) // 2
        one, two = split(offsets, neighbours, vertices, side, end, order)
        parts.append(one)
        parts.append(two)
    return fill
