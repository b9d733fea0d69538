"""What a lookup depends on, and the command that tunes it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tri_apsp.device import Device, describe
from tri_apsp.semirings import dtype_name
from tri_apsp.tuned.records import TunableKernel, records_of


class LookupCall(NamedTuple):
    """A solve, or a product, for which a configuration is looked up.

    Attributes:
        engine: "cpu", "nvidia" or "portable".
        torch_device: the device of the tensors.
        device: the facts of that device.
        dtype: the name of the dtype, such as "float32".
        n: vertices; of a product (m, k) by (k, n), the cube root of m k n. 0: no tuned entry is
            looked up.
        batch: the number of graphs.
        sign: the sign of the weights, one of tri_apsp.semirings.SIGNS.
        kind: one of tri_apsp.tuned.records.CALLS.
    """

    engine: str
    torch_device: torch.device
    device: Device
    dtype: str
    n: int
    batch: int
    sign: str
    kind: str

    def records(self) -> list[TunableKernel[Any]]:
        """Return the kernels to look up, in the order of tuning."""
        return [
            record
            for record in records_of(self.engine)
            if self.kind in record.calls and self.dtype in record.dtypes and self.n >= record.from_n
        ]

    def kernels_to_tune(self) -> list[str]:
        """Return the kernels that decide how fast the call is, in the order of tuning."""
        return [record.name for record in self.records() if self.n <= record.tuned_to_n]

    def tuner_arguments(self) -> list[str]:
        """Return the arguments with which `python -m tri_apsp.tune` tunes this size."""
        place = ["--device", str(self.torch_device), "--engine", self.engine]
        return [*place, "--dtype", self.dtype, "--n", str(self.n), "--sign", self.sign]

    def command(self) -> str:
        """Return the command that tunes this size, as a user may type it."""
        return " ".join(["python -m tri_apsp.tune", *self.tuner_arguments()])


def call_of(
    engine: str,
    device: torch.device,
    dtype: torch.dtype,
    *,
    n: int,
    batch: int = 1,
    nonnegative: bool = False,
    product: bool = False,
) -> LookupCall:
    """Return the call with these arguments of `tri_apsp.tuned.find`."""
    kind = "product" if product else "batch" if batch > 1 else "solve"
    sign = "nonnegative" if nonnegative else "any"
    return LookupCall(engine, device, describe(device), dtype_name(dtype), n, batch, sign, kind)
