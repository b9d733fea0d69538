"""What the systems of the papers use of an engine, without a GPU."""

from types import SimpleNamespace

import torch

from tri_apsp.engines.base import Update
from tri_apsp.semirings import floor, no_edge


class Engine:
    """What the systems use of an engine, by plain torch operations."""

    def __init__(self, dtype: torch.dtype, *, nonnegative: bool) -> None:
        self.spec = SimpleNamespace(nonnegative=nonnegative)
        self.no_edge, self.floor = no_edge(dtype), floor(dtype)

    def scratch(self, like: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
        return like.new_full((like.shape[0], rows, columns), self.floor)

    def copy(self, pair: tuple[torch.Tensor, torch.Tensor]) -> None:
        pair[0].copy_(pair[1])

    def product(self, update: Update) -> None:
        product = (
            (update.a[:, :, :, None] + update.b[:, None]).amin(2).clamp(self.floor, self.no_edge)
        )
        update.c.copy_(product if update.fresh else torch.minimum(update.c, product))
