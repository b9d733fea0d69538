"""What a lookup depends on, and the command that tunes it."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import torch

from tri_apsp.configs import default_config
from tri_apsp.device import Device, describe
from tri_apsp.semirings import DTYPES_BY_NAME, dtype_name
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
        sign: the sign of the weights, one of tri_apsp.tuned.SIGNS.
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

    def of_any_sign(self) -> LookupCall:
        """Return the same call for weights of which some may be negative."""
        return self._replace(sign="any")

    def records(self) -> list[TunableKernel[Any]]:
        """Return the kernels to look up, the solve first: it decides the size of closures, and its
        fields are not changed.
        """
        return sorted(self._records_to_tune(), key=lambda record: not record.is_solve)

    def _records_to_tune(self) -> list[TunableKernel[Any]]:
        """Return the same kernels in the order of tuning."""
        return [
            record
            for record in records_of(self.engine)
            if self.kind in record.calls and self.dtype in record.dtypes and self.n >= record.from_n
        ]

    def kernels_to_tune(self) -> list[str]:
        """Return the kernels that decide how fast the call is, in the order of tuning."""
        records = self._records_to_tune()
        if self.kind == "batch":
            # A kernel for batches solves small graphs alone, and large ones not at all.
            own = [record for record in records if record.calls == ("batch",)]
            small = [record for record in own if self.n <= 2 * max(record.full_sizes)]
            records = small or [record for record in records if record not in own]
        if self.kind == "product":
            # Not small_product for a product that is larger than any of these.
            default = default_config(self.engine, DTYPES_BY_NAME[self.dtype])
            records = [
                record for record in records if record.lookup_size(self.n, default) == self.n
            ]
        return [record.name for record in records]

    def tuner_arguments(self) -> list[str]:
        """Return the arguments with which `python -m tri_apsp.tune` tunes this size;
        kernels_to_tune() may be added.
        """
        # The tuner takes "nonnegative" by default.
        sign = [] if self.sign == "nonnegative" else ["--sign", self.sign]
        options = {
            "--device": str(self.torch_device),
            "--engine": self.engine,
            "--dtype": self.dtype,
            "--n": str(self.n),
        }
        return [*itertools.chain.from_iterable(options.items()), *sign]

    def command(self) -> str:
        """Return the command that tunes this size, as a user may type it."""
        kernels = self.kernels_to_tune()
        only = ["--kernel", *kernels] if len(kernels) == 1 else []
        return " ".join(["python -m tri_apsp.tune", *self.tuner_arguments(), *only])


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
