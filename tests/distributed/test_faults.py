"""A rank that ends or fails in the middle of a solve ends all others, with one sentence."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

CHILD = """
import os, signal, sys, threading, time
import numpy as np, torch, torch.distributed as dist
import tri_apsp
from tri_apsp import distributed
from tri_apsp.distributed import block_rows

rank, folder, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=3)
n, steps, lower = 300, [0], block_rows.BlockRowSolver._lower

def fail(self, *arguments):
    steps[0] += 1
    if rank == 1 and steps[0] == 3:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
        if how == "failed":
            raise OSError("No space left on device")
    return lower(self, *arguments)

block_rows.BlockRowSolver._lower = fail
weights = torch.rand(n, n, generator=torch.Generator().manual_seed(1))
print("begun", flush=True)
try:
    distributed.shortest_paths(weights[100 * rank : 100 * rank + 100])
except tri_apsp.RankError as error:
    print(error, flush=True)
    os._exit(3)
"""


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("killed", "rank 1 ended"),
        ("interrupted", "rank 1 was interrupted"),
        ("failed", "rank 1 failed: No space left on device"),
    ],
)
def test_others_end(tmp_path, how, sentence):
    command = [sys.executable, "-W", "ignore", "-c", CHILD]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path), how],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(3)
    ]
    try:
        for rank in ranks:
            assert rank.stdout is not None
            assert rank.stdout.readline() == "begun\n"
        begun = time.monotonic()
        found = [rank.communicate(timeout=60)[0] for rank in ranks]
        assert time.monotonic() - begun < 30
    finally:
        for rank in ranks:
            rank.kill()
    assert found[0] == found[2]
    assert sentence in found[0]
    assert [ranks[0].returncode, ranks[2].returncode] == [3, 3]
