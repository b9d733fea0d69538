"""Reading the GPU's counters by ncu: what it is asked, and how its answer is read."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from fake_study import CPU

from reports.studies.counters import counted_traffic, parse
from tri_apsp.errors import EngineError
from tri_apsp.tune.tasks import TuningTask

TASK = TuningTask("nvidia", "solve", "float32", "nonnegative", 64)
# The form of the answer of ncu 2025.3.1, without most of its columns: attributes of the device.
ANSWER = """\
==PROF== Profiling "range" - 0: Application replay pass 1
"ID","CC","dram__bytes_read.sum","dram__bytes_write.sum","lts__t_bytes.sum"
"","","byte","byte","byte"
"0","9.0","1,000,000","67,108,864","2,345,678,901"
"1","9.0","1","2","3"
"""
COUNTED = [
    {"l2_bytes": 2345678901, "dram_bytes": 68108864},
    {"l2_bytes": 3, "dram_bytes": 3},
]


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER.replace('"3"', '"n/a"'),
        ANSWER.replace("lts__t_bytes.sum", "other"),
        ANSWER.replace('"byte","byte","byte"', '"byte","byte","Kbyte"'),
        ANSWER + '"2","9.0"\n',
    ],
)
def test_an_answer_that_cannot_be_used(answer: str) -> None:
    with pytest.raises(EngineError):
        parse(answer)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Put a program on the PATH that is called ncu."""
    program = folder / "ncu"
    program.write_text(f"#!{sys.executable}\nimport sys, time\n{code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_ncu_is_asked_for_all_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"print({ANSWER!r}); assert sys.argv[-5:] == ['nvidia', '64', 'float32', 'a', 'b']"
    install(tmp_path, monkeypatch, code)
    assert counted_traffic(TASK, ["a", "b"], CPU, 60) == dict(zip("ab", COUNTED, strict=True))
    with pytest.raises(EngineError, match="ncu failed: "):
        counted_traffic(TASK, ["a"], CPU, 60)
