"""Shortest paths by several devices: of one process, or of processes that torch.distributed joins,
on one machine or on many.

    torchrun --nproc-per-node 2 script.py

with the script

    import torch, torch.distributed as dist
    from tri_apsp import distributed

    dist.init_process_group()
    rows = ...  # the rows of this rank, (rows, n)
    distances = distributed.shortest_paths(rows).distances
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
