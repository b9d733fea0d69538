"""What autograd, torch.compile and torch.func need to see in place of a call: operations of torch,
and of autograd.

A call that needs none of these goes to the solver itself (see dispatch.py): an operation takes the
host some 10 us more, and custom operations of PyTorch import its compiler, which takes seconds.
"""

from tri_apsp.ops.dense import reachability, semiring_product, shortest_paths
from tri_apsp.ops.packed_graphs import pack, unpack

__all__ = ["pack", "reachability", "semiring_product", "shortest_paths", "unpack"]
