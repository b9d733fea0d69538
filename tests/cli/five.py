"""A graph of five vertices whose distances were computed by hand."""

# Vertex 5 is isolated, and no edge leads to vertex 4. The distances, with vertices numbered from 0:
#     0: 0 2 5 - -     1: 4 0 3 - -     2: 1 3 0 - -     3: 5 7 4 0 -     4: - - - - 0
FIVE = """\
c five vertices
p sp 5 5
a 1 2 2
a 2 3 3
a 1 3 9
a 3 1 1
a 4 3 4
"""
FIVE_DISTANCES = [
    [0, 2, 5, None, None],
    [4, 0, 3, None, None],
    [1, 3, 0, None, None],
    [5, 7, 4, 0, None],
    [None, None, None, None, 0],
]
FIVE_FACTS = {"n": 5, "edges": 5, "reachable_pairs": 14, "max_distance": 7, "sum_distances": 34}
