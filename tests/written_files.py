"""Reading the distances and predecessors that a call wrote."""

import gzip
from pathlib import Path

import numpy as np
import torch


def load(path: Path) -> torch.Tensor:
    """Return what write_distances or write_predecessors wrote."""
    if path.suffix == ".pt":
        return torch.load(path, weights_only=True)
    if ".csv" in path.suffixes:
        return torch.from_numpy(np.loadtxt(path, delimiter=",", ndmin=2))
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        found = np.load(stream)
        (array,) = found.values() if path.suffix == ".npz" else (found,)
        return torch.from_numpy(array)
