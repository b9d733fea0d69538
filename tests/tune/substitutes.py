"""Engines that stand in for every other engine, right and wrong, for the tests of measurements."""

import dataclasses
from typing import ClassVar

import torch

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.engines import Block, MatrixSpec, Update, block
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned import KERNELS

CPU = torch.device("cpu")
TILES = default_config("cpu", torch.float32).product
ALL = [
    (engine, kernel)
    for engine, kernels in KERNELS.items()
    for kernel in kernels
    if kernel != "sweep"  # which no engine runs
]


def task_of(
    engine: str, kernel: str, dtype: str = "float32", sign: str = "any", n: int = 144
) -> TuningTask:
    return TuningTask(engine, kernel, dtype, sign, n, 5 if kernel == "batch" else 1)


def complete(task: TuningTask) -> CompleteConfig:
    """Return the default configuration, with blocks that are small enough for several of them."""
    config = default_config(task.engine, task.torch_dtype)
    return dataclasses.replace(config, block_size=32, cutoff=64)


class Substitute(CpuEngine):
    """Takes the configurations of every engine, and records them."""

    configs: ClassVar[list[CompleteConfig]] = []

    def __init__(self, spec: MatrixSpec, config: CompleteConfig) -> None:
        self.configs.append(config)
        super().__init__(spec, dataclasses.replace(config, product=TILES))


class Faulty(Substitute):
    """Faulty only for a cutoff of 77: the expected result, that of the default, is right."""

    def __init__(self, spec: MatrixSpec, config: CompleteConfig) -> None:
        super().__init__(spec, config)
        self.default = config.cutoff != 77

    def harm(self, written: Block) -> None:
        """Called with a block that an operation wrote."""

    def product(self, *updates: Update) -> None:
        super().product(*updates)
        if not self.default:
            self.harm(updates[0].c)

    def closure(self, d: Block) -> None:
        super().closure(d)
        if not self.default:
            self.harm(d)

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        super().panels(d, row, column, skip)
        if not self.default:
            self.harm(row)


class OneValue(Faulty):
    """One value is wrong."""

    def harm(self, written: Block) -> None:
        written[-1, 0, -1] = -700


class Stray(Faulty):
    """Also writes outside of its operands."""

    def harm(self, written: Block) -> None:
        if written.storage_offset():
            written.as_strided((1,), (1,), written.storage_offset() - 1).fill_(0)


class ReadsWorkspace(Faulty):
    """Uses the values of uninitialised workspace."""

    def harm(self, written: Block) -> None:
        torch.minimum(written, self.scratch(written, 1, 1), out=written)


class NegativeCycle(Faulty):
    """Makes a cycle negative, which a checked call notices."""

    def harm(self, written: Block) -> None:
        written.diagonal(dim1=-2, dim2=-1).fill_(-1)


class Lazy(Faulty):
    """Omits the last sixteenth of each k, a closure, and a panel."""

    def product(self, *updates: Update) -> None:
        for update in updates:
            k = update.a.shape[2]
            used = k if self.default else k - max(1, k // 16)
            a, b = (
                block(update.a, (0, update.a.shape[1]), (0, used)),
                block(update.b, (0, used), (0, update.b.shape[2])),
            )
            super().product(update._replace(a=a, b=b))

    def closure(self, d: Block) -> None:
        if self.default:
            super().closure(d)

    def panels(self, d: Block, row: Block, column: Block, skip: tuple[int, int] = (0, 0)) -> None:
        super().panels(
            d, row, column if self.default else block(column, (0, 0), (0, column.shape[2])), skip
        )
