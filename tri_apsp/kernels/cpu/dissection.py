"""Nested dissection of a sparse graph, in Numba: an order of elimination with little fill-in.

    eliminate vertices of degree 1, 2 and 3, in rounds                     # reduce
    dissect(part of the rest):
        if it has few vertices: order them by minimum degree               # _order_leaf
        else: find a small separator of two halves                         # _halve, _bisect
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

import math

import numpy as np

from tri_apsp.kernels.cpu.bits import count_bits
from tri_apsp.kernels.cpu.compilation import inner, kernel

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
# Bits of the lower part of the value of a cut.
_COST = 32


@inner
def _copy_lists(offsets, neighbours, left):
    """Return lists of the neighbours that are left, which may grow:

    lists: (n, 4) of int64, where the list of each vertex begins, its length, how long it may
        become, and the degree: the list may hold vertices that are not left any more.
    ends: the neighbours, and memory for lists that move.
    used: [1], how much of `ends` is used.
    """
    n = len(left)
    lists, total = np.empty((n, 4), np.int64), np.empty(1, np.int64)
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
    total[0] = used
    return lists, ends, total


@inner
def _find(lists, ends, a, b):
    """Return the place of b in the list of a, or -1."""
    for e in range(lists[a, 0], lists[a, 0] + lists[a, 1]):
        if ends[e] == b:
            return e
    return -1


@inner
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


@inner
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
    # A vertex is queued once; the round in which a neighbour was eliminated defers it to the next.
    left, queued, touched = np.empty(n, np.bool_), np.empty(n, np.bool_), np.empty(n, np.int32)
    dense = int(16 + 10 * math.sqrt(n))
    end, fill = n, 0
    for v in range(n):
        left[v], touched[v] = offsets[v + 1] - offsets[v] <= dense, 0
        if not left[v]:
            end -= 1
            order[end] = v
            fill += offsets[v + 1] - offsets[v]
    lists, ends, used = _copy_lists(offsets, neighbours, left)
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


@inner
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
    offsets, neighbours = np.empty(count + 1, np.int64), np.empty(edges, np.int32)
    vertices = np.empty(count, np.int32)
    place = count = 0
    offsets[0] = 0
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


@inner
def _next(seed):
    """Return the next number of a linear congruential generator."""
    return (seed * 1103515245 + 12345) & 0x7FFFFFFF


@inner
def _match(graph, heaviest, seed):
    """Merge vertices in pairs, each with the neighbour u of largest edge weight^2 / weight of u.

    Args:
        graph: offsets, neighbours, weights of the edges, weights of the vertices, and the vertex
            that each of the graph before became.
        heaviest: the largest weight of a pair.
        seed: of the order in which vertices are visited.

    Returns for each vertex its pair (n,); for each pair, or single vertex, its vertices in two
    arrays, in the second -1 if there is none; and the number of pairs.
    """
    offsets, neighbours, weights, sizes, _ = graph
    n = len(sizes)
    pair, ones, others = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    visits = np.empty(n, np.int32)
    for v in range(n):
        pair[v], visits[v] = -1, v
    count = 0
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
    return pair, ones, others, count


@inner
def _contract(graph, pair, ones, others, n):
    """Return the graph of the n pairs, with the sums of the weights."""
    offsets, neighbours, weights, sizes, _ = graph
    new_offsets, new_sizes = np.empty(n + 1, np.int64), np.empty(n, np.int32)
    edges = offsets[len(sizes)]
    new_neighbours, new_weights = np.empty(edges, np.int32), np.empty(edges, np.int32)
    place = np.empty(n, np.int64)  # where the edge to a pair is; below `begin`: of another list
    for p in range(n):
        place[p] = -1
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
    return new_offsets, new_neighbours, new_weights, new_sizes, pair


@inner
def _cut_of(graph, side):
    """Return a cut: the side of each vertex (n,): 0, 1, or 2 for the separator; the place of those
    of the separator in a list; the list, and the gains, see _join(); a log of moves; and `total`,
    of int64: the weights of the sides and of the separator, and the lengths of list and log.
    """
    n = len(side)
    slot, separator, gains = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    moves, total = np.empty(2 * n, np.int32), np.empty(5, np.int64)
    for i in range(5):
        total[i] = 0
    for v in range(n):
        total[side[v]] += graph[3][v]
    return side, slot, separator, gains, moves, total


@inner
def _join(graph, cut, v, to):
    """Add v to the list of the separator, with the gain of a move to a side: how much lighter it
    makes the separator.
    """
    offsets, neighbours, _, sizes, _ = graph
    side, slot, separator, gains, _, total = cut
    gain = sizes[v]
    for e in range(offsets[v], offsets[v + 1]):
        if side[neighbours[e]] == 1 - to:
            gain -= sizes[neighbours[e]]
    k = total[3]
    slot[v], separator[k], gains[k] = k, v, gain
    total[3] = k + 1


@inner
def _best(cut):
    """Return the place in the list of the vertex with the largest gain; of several the last, which
    moves clusters.
    """
    _, _, _, gains, _, total = cut
    best = 0
    for i in range(1, total[3]):
        if gains[i] >= gains[best]:
            best = i
    return best


@inner
def _move(graph, cut, place, to):
    """Move the vertex at a place of the list to a side; its neighbours on the other side join the
    separator. The log receives the vertex, and then ~u for each u that joined.
    """
    offsets, neighbours, _, sizes, _ = graph
    side, slot, separator, gains, moves, total = cut
    other, k, done = 1 - to, total[3] - 1, total[4]
    v, last = separator[place], separator[k]
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
    total[4] = done


@inner
def _undo(graph, cut, kept, to):
    """Undo the moves to a side in the log, from its end down to `kept`."""
    sizes, other = graph[3], 1 - to
    side, _, _, _, moves, total = cut
    for i in range(total[4] - 1, kept - 1, -1):
        v = moves[i]
        if v >= 0:
            side[v] = 2
            total[to] -= sizes[v]
            total[2] += sizes[v]
        else:
            side[~v] = other
            total[other] += sizes[~v]
            total[2] -= sizes[~v]


@inner
def _value(total, largest):
    """Return the cost of a cut: the weight of the separator, plus that of the heavier side beyond
    `largest`; then, between equal costs, the difference of the sides, in the lower _COST bits.
    """
    heavier, lighter = max(total[0], total[1]), min(total[0], total[1])
    return (total[2] + max(0, heavier - largest)) << _COST | heavier - lighter


@inner
def _refine(graph, cut, largest):
    """Make the separator lighter by moves of its vertices.

    Each pass moves vertices to one side, first to the heavier one and then in turn: the best moves,
    whether their gains are positive or not. It ends in the best state that it reached.
    """
    side, _, separator, _, moves, total = cut
    n = len(side)
    members = np.empty(n, np.int32)
    count = 0
    for v in range(n):
        if side[v] == 2:
            members[count] = v
            count += 1
    to, useless = (1 if total[0] < total[1] else 0), 0
    for _ in range(_PASSES):
        total[3] = total[4] = 0
        for i in range(count):
            _join(graph, cut, members[i], to)
        best = before = _value(total, largest)
        kept = futile = 0
        while total[3] > 0 and futile < _FUTILE_MOVES:
            place = _best(cut)
            if total[to] + graph[3][separator[place]] > largest:
                break
            _move(graph, cut, place, to)
            futile += 1
            value = _value(total, largest)
            if value < best:
                best, kept, futile = value, total[4], 0
        # The best separator is among the present one and the vertices that moved since.
        candidates = total[3]
        for i in range(candidates):
            members[i] = separator[i]
        for i in range(kept, total[4]):
            if moves[i] >= 0:
                members[candidates] = moves[i]
                candidates += 1
        _undo(graph, cut, kept, to)
        count = 0
        for i in range(candidates):
            if side[members[i]] == 2:
                members[count] = members[i]
                count += 1
        useless = useless + 1 if best >> _COST >= before >> _COST else 0
        if useless == 2:
            break
        to = 1 - to


@inner
def _grow(graph, start):
    """Return the sides of a cut of which side 0 grew from a vertex until it was as heavy as side 1,
    always by the vertex of the separator with the largest gain.
    """
    sizes = graph[3]
    n = len(sizes)
    side = np.empty(n, np.int32)
    for v in range(n):
        side[v] = 1
    cut = _cut_of(graph, side)
    total, v, to = cut[5], start, np.int64(0)
    while total[0] < total[1]:
        if total[3] == 0:
            while side[v] != 1:
                v = v + 1 if v + 1 < n else 0
            side[v] = 2
            total[1] -= sizes[v]
            total[2] += sizes[v]
            _join(graph, cut, np.int32(v), to)
        _move(graph, cut, _best(cut), to)
    return side


@inner
def _coarsen(graphs, fewest, heaviest, most, seed, stop):
    """Merge vertices of the last graph in pairs, and append the graph of the pairs, until there are
    at most `fewest`.

    Returns whether there can be a separator with at most `most` edges between its vertices.
    """
    graph = graphs[-1]
    n = len(graph[3])
    degree = graph[0][n] / max(1, n)
    while len(graph[3]) > fewest and not stop[0]:
        pair, ones, others, count = _match(graph, heaviest, seed)
        if count > _STALLED * len(pair):
            break
        graph = _contract(graph, pair, ones, others, count)
        graphs.append(graph)
        seed = _next(seed)
        # A planar graph has at most three edges per vertex on any scale. Of more edges, which a
        # graph without small separators has, a bisection cuts a share, and a vertex of the
        # separator covers as many as its degree.
        share = _CUT_EARLY if 4 * count > n else _CUT
        separator = share * (graph[0][count] // 2 - 3 * count) / max(1.0, degree)
        if separator > 0 and separator * separator > 2 * most:
            return False
    return True


@inner
def _uncoarsen(graphs, left, side, largest, stop):
    """Refine the cut of the last graph with these sides, and that of each graph before it, and
    remove graphs until `left` are left. Return the sides of the last one, and its `total`.
    """
    while True:
        graph = graphs[-1]
        cut = _cut_of(graph, side)
        if not stop[0]:
            _refine(graph, cut, largest)
        if len(graphs) == left:
            return side, cut[5]
        pair = graphs.pop()[4]
        finer = np.empty(len(pair), np.int32)
        for v in range(len(pair)):
            finer[v] = side[pair[v]]
        side = finer


@inner
def _bisect(offsets, neighbours, most, seed, stop):
    """Return a small separator of two halves of a graph: the side of each vertex (n,): 0, 1, or 2
    for the separator.

    Args:
        offsets, neighbours: the graph, (n + 1,) of int64 and of int32.
        most: the most edges between vertices of the separator; if there is no such separator, it
            has all vertices.
        seed: an integer.
        stop: [1] of bool; another thread may set it, which makes this end soon with any sides.
    """
    n = len(offsets) - 1
    side, sizes = np.empty(n, np.int32), np.empty(n, np.int32)
    weights = np.empty(len(neighbours), np.int32)
    for v in range(n):
        side[v], sizes[v] = 2, 1
    for e in range(len(neighbours)):
        weights[e] = 1
    graphs = [(offsets, neighbours, weights, sizes, side)]
    largest = max(int(_LARGEST_HALF * n), n // 2 + 1)
    heaviest = 3 * n // (2 * _COARSEST) + 1
    if not _coarsen(graphs, max(n // _SHARED, _COARSEST), heaviest, most, seed, stop):
        return side
    shared, best = len(graphs), np.int64(-1)
    for _ in range(_TRIES):
        seed = _next(seed)
        _coarsen(graphs, np.int64(_COARSEST), heaviest, n * n, seed, stop)
        grown = _grow(graphs[-1], (seed >> 8) % len(graphs[-1][3]))
        found, total = _uncoarsen(graphs, shared, grown, largest, stop)
        value = _value(total, largest)
        if best < 0 or value < best:
            best, side = value, found
    return _uncoarsen(graphs, np.int64(1), side, largest, stop)[0]


@inner
def _halve(part, begin, end, most, seed, stop):
    """Find a separator of the part [begin, end), and order the vertices of the part: those of one
    half, those of the other, and the separator. Returns where the halves end.

    Args:
        part, most, seed, stop: see dissect().
    """
    vertices, begins, ends, neighbours = part
    n, first_edge, edges = end - begin, begins[begin], 0
    for p in range(begin, end):
        edges += ends[p] - begins[p]
    # Copy the part, and number its vertices from 0.
    offsets, near = np.empty(n + 1, np.int64), np.empty(edges, np.int32)
    old, place = np.empty(n, np.int32), np.empty(n, np.int32)
    edges = offsets[0] = 0
    for v in range(n):
        old[v] = vertices[begin + v]
        for e in range(begins[begin + v], ends[begin + v]):
            near[edges] = neighbours[e] - begin
            edges += 1
        offsets[v + 1] = edges
    side = _bisect(offsets, near, most, seed, stop)
    middle, last, edges = begin, end, first_edge
    for v in range(n):
        if side[v] == 1:
            place[v] = middle
            middle += 1
        elif side[v] == 2:
            last -= 1
            place[v] = last
    count = middle
    for v in range(n):
        if side[v] == 0:
            place[v] = count
            count += 1
        vertices[place[v]] = old[v]
    for half in range(1, -1, -1):  # the edges of each are kept together in memory
        for v in range(n):
            if side[v] == half:
                begins[place[v]] = edges
                for e in range(offsets[v], offsets[v + 1]):
                    if side[near[e]] == half:
                        neighbours[edges] = place[near[e]]
                        edges += 1
                ends[place[v]] = edges
    return middle, last


@inner
def _order_leaf(offsets, neighbours, vertices, begin, end, local):
    """Order the vertices of a leaf: those of minimum degree first; of these, the one whose
    neighbours were eliminated the longest time ago. Degrees count separators too.

    Args:
        offsets, neighbours: of all vertices that nested dissection orders.
        vertices: the leaf is [begin, end) of these.
        local: (vertices,) of int32, -1 before and after.

    Returns the number of edges of the filled graph that begin in the leaf.
    """
    n = end - begin
    # Number the leaf, and then its neighbours in separators.
    own, left, key = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64)
    edges = 0
    for i in range(n):
        v = vertices[begin + i]
        own[i], left[i], local[v] = v, i, i
        edges += offsets[v + 1] - offsets[v]
    outside, count = np.empty(edges, np.int32), 0
    for i in range(n):
        for e in range(offsets[own[i]], offsets[own[i] + 1]):
            u = neighbours[e]
            if local[u] < 0:
                local[u] = n + count
                outside[count] = u
                count += 1
    # One row of bits for the neighbours of each vertex.
    words = (n + count + 63) // 64
    adjacent = np.empty((n, words), np.int64)
    for i in range(n):
        for w in range(words):
            adjacent[i, w] = 0
        v = own[i]
        for e in range(offsets[v], offsets[v + 1]):
            u = local[neighbours[e]]
            adjacent[i, u >> 6] |= 1 << (u & 63)
        key[i] = (offsets[v + 1] - offsets[v]) << 16  # degree, last elimination beside it
    for i in range(n):
        local[own[i]] = -1
    for i in range(count):
        local[outside[i]] = -1
    fill = 0
    for done in range(n):
        best = 0
        for i in range(1, n - done):
            if key[left[i]] < key[left[best]]:
                best = i
        v = left[best]
        left[best] = left[n - done - 1]
        vertices[begin + done] = own[v]
        fill += key[v] >> 16
        for i in range(n - done - 1):
            u = left[i]
            if (adjacent[v, u >> 6] >> (u & 63)) & 1:
                degree = 0
                for w in range(words):
                    adjacent[u, w] |= adjacent[v, w]
                    degree += count_bits(adjacent[u, w])
                adjacent[u, v >> 6] &= ~(1 << (v & 63))
                adjacent[u, u >> 6] &= ~(1 << (u & 63))
                key[u] = (degree - 2) << 16 | done
    return fill


@kernel
def dissect(offsets, neighbours, part, waiting, once, local, most, stop):
    """Order the vertices of a part by nested dissection.

    Args:
        offsets, neighbours: the graph of all vertices that nested dissection orders.
        part: vertices, whose order changes; and by their place there, where the neighbours of each
            within its part begin and end in the array of neighbours, and these, which are places.
        waiting: (., 3) of int64, the first the part: the begin and end among the vertices, and a
            seed.
        once: whether the part is only halved.
        local: (vertices,) of int32, -1 before and after.
        most: the most edges that the filled graph may have at them; more end this.
        stop: [1] of bool; another thread may set it, which ends this.

    Returns the estimated number of these edges: those at vertices of leaves, and those between the
    vertices of each separator; and how many parts are waiting.
    """
    fill, count = 0, 1
    while count > 0 and fill <= most and not stop[0]:
        count -= 1
        begin, end, seed = waiting[count, 0], waiting[count, 1], waiting[count, 2]
        if end - begin <= _LEAF:
            fill += _order_leaf(offsets, neighbours, part[0], begin, end, local)
            continue
        middle, last = _halve(part, begin, end, most, seed, stop)
        fill += (end - last) * (end - last - 1) // 2
        waiting[count, 0], waiting[count, 1], waiting[count, 2] = middle, last, last
        waiting[count + 1, 0], waiting[count + 1, 1], waiting[count + 1, 2] = begin, middle, middle
        count += 2
        if once:
            break
    return fill, count
