"""What processes of tests do, and what they answer."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection
from pathlib import Path

import torch

import tri_apsp


def describe(pipe: Connection) -> None:
    """Send the state in which this process began."""
    found = {
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "parent": os.getppid(),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.is_initialized() or torch.cuda._is_in_bad_fork(),
    }
    pipe.send(found)


def compute(pipe: Connection, threads: int) -> None:
    """Run a function with threads of OpenMP, and one with threads of the cpu engine."""
    torch.set_num_threads(threads)
    total = torch.ones(1 << 22).exp().sum()
    distances = tri_apsp.shortest_paths(torch.ones(300, 300)).distances
    pipe.send((total.item(), distances.sum().item()))


def wait(pipe: Connection) -> None:
    """Send the ids of this process and its parent, and wait to be ended."""
    pipe.send((os.getpid(), os.getppid()))
    time.sleep(1000)
