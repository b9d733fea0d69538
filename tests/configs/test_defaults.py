"""The defaults fit every GPU that an engine runs on."""

import pytest
import torch

from tri_apsp.configs import NvidiaConfig, default_config, invalid_because
from tri_apsp.device import Device
from tri_apsp.gpu.ahead import GPUS
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tuned.records import RECORDS


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_a_default_fits(gpu: Device) -> None:
    for record in RECORDS.values():
        for name in record.dtypes if record.engine != "cpu" else ():
            dtype = DTYPES_BY_NAME[name]
            default = default_config(record.engine, dtype, gpu)
            assert invalid_because(default, gpu) is None
            if record.name != "exponents" or gpu.has_wgmma:
                assert record.fits(default, dtype, gpu), (record.name, name)


def test_little_shared_memory_holds_fewer_programs_of_a_closure() -> None:
    def programs(dtype: torch.dtype, gpu: str) -> tuple[int, int]:
        found = default_config("nvidia", dtype, GPUS[gpu])
        assert isinstance(found, NvidiaConfig)
        return found.closure_programs, found.batch_programs

    assert programs(torch.float32, "sm_90") == programs(torch.float32, "sm_80") == (3, 3)
    assert programs(torch.float32, "sm_120") == programs(torch.int16, "sm_120") == (2, 2)
    assert programs(torch.float64, "sm_80") == (1, 2)
    assert programs(torch.float64, "sm_86") == (1, 1)
