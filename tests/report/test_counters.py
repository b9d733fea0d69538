"""Reading the GPU's counters by ncu: what it is asked, and how its answer is read."""

from __future__ import annotations

import stat
import sys
import time
from pathlib import Path

import pytest
import torch
from tri_apsp.tune.space.task import Task

from tri_apsp import device
from tri_apsp.report import counted_calls
from tri_apsp.report.counters import CountingTimeoutError, NotCountedError, counted_traffic, parse
from tri_apsp.report.traffic import Traffic

CPU = torch.device("cpu")
TASK = Task("nvidia", "solve", "float32", "nonnegative", 64)
# The form of the answer of ncu 2025.3.1, without most of its columns: attributes of the device.
ANSWER = """\
==PROF== Connected to process 4242 (/usr/bin/python3.12)
==PROF== Profiling "range" - 0: Application replay pass 1
==PROF== Disconnected from process 4242
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"device__attribute_clock_rate","device__attribute_display_name","dram__bytes_read.sum","dram__bytes_write.sum","lts__t_bytes.sum"
"","","","","","","","","","","","","","byte","byte","byte"
"""
RANGE = '"{}","4242","python3.12","127.0.0.1","range","1","0","","","0","9.0","1,980,000","NVIDIA H200","{}","67,108,864","{}"\n'


def answer(*ranges: tuple[str, str]) -> str:
    return ANSWER + "".join(RANGE.format(index, *values) for index, values in enumerate(ranges))


def test_an_answer():
    assert parse(answer(("1,000,000", "2,345,678,901"))) == [Traffic(2345678901.0, 68108864.0)]
    assert parse(answer(("1", "2"), ("3", "4")) + "==WARNING== something\n") == [
        Traffic(2, 67108865),
        Traffic(4, 67108867),
    ]
    assert parse("") == parse("==PROF== nothing\n") == parse(answer()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (answer(("n/a", "2")), "could not convert"),
        (answer(("1", "2")).replace("lts__t_bytes.sum", "other"), "lts__t_bytes.sum"),
        (answer(("1", "2")).replace('"byte","byte"', '"Kbyte","byte"'), "Kbyte"),
        (answer() + '"0","4242"\n', "could not convert"),
        (
            answer(("1", "2")).replace('"4242"', f'"{"4" * 200_000}"'),
            "field larger than field limit",
        ),
    ],
)
def test_an_answer_that_cannot_be_used(text, reason):
    with pytest.raises(NotCountedError, match=reason):
        parse(text)


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Return a function that puts an ncu on the PATH: a program that appends its arguments to a
    file, and runs `code`.
    """

    def install(code: str) -> Path:
        seen = tmp_path / "seen"
        program = tmp_path / "ncu"
        program.write_text(
            f"#!{sys.executable}\nimport sys\nopen({str(seen)!r}, 'a').write('\\t'.join(sys.argv[1:]) + '\\n')\n{code}\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))
        return seen

    return install


def test_one_process_counts_several_calls_and_changes_no_clock(ncu):
    seen = ncu(f"print({answer(('1', '2'), ('3', '4'))!r})")
    found = counted_traffic(TASK, ["auto", "simple"], CPU, 60.0)
    assert found == {"auto": Traffic(2, 67108865), "simple": Traffic(4, 67108867)}
    (line,) = seen.read_text().splitlines()
    words = line.split("\t")
    for option, value in [
        ("--clock-control", "none"),
        ("--cache-control", "none"),
        ("--replay-mode", "app-range"),
    ]:
        assert words[words.index(option) + 1] == value
    assert words[-6:] == ["cpu", "nvidia", "64", "float32", "auto", "simple"]
    assert "tri_apsp.report.counted_calls" in line


def test_an_ncu_that_reports_fewer_ranges_gets_one_call_at_a_time(ncu):
    seen = ncu(f"print({answer(('1', '2'))!r})")
    assert counted_traffic(TASK, ["auto", "simple"], CPU, 60.0) == dict.fromkeys(
        ["auto", "simple"], Traffic(2, 67108865)
    )
    assert [line.split("\t")[10:][-1] for line in seen.read_text().splitlines()] == [
        "simple",
        "auto",
        "simple",
    ]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "print('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters')\nsys.exit(1)",
            "ncu failed: ERR_NVGPUCTRPERM - The user does not have permission",
        ),
        (
            "sys.stderr.write('Traceback\\nRuntimeError: no GPU\\n'); sys.exit(3)",
            "ncu failed: RuntimeError: no GPU",
        ),
        ("print('==WARNING== No kernels were profiled.')", "ncu failed: 0 ranges for 1 calls"),
        ("sys.exit(1)", "ncu failed: 0 ranges"),
    ],
)
def test_a_failure_is_a_reason(ncu, code, reason):
    ncu(code)
    with pytest.raises(NotCountedError, match=reason) as raised:
        counted_traffic(TASK, ["auto"], CPU, 10.0)
    assert not isinstance(raised.value, CountingTimeoutError), "it would fail with more time, too"


def test_ncu_ends_with_its_processes_when_the_time_is_over(ncu):
    ncu("import subprocess; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])")
    begin = time.monotonic()
    with pytest.raises(CountingTimeoutError, match="ncu was not done within 1 s"):
        counted_traffic(TASK, ["auto"], CPU, 1.0)
    assert time.monotonic() - begin < 20


def test_without_ncu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotCountedError, match="ncu is not on the PATH"):
        counted_traffic(TASK, ["auto"], CPU, 10.0)


def test_the_process_solves_each_call_in_a_range_of_its_own(monkeypatch):
    events: list[object] = []
    solve = counted_calls.shortest_paths

    def record(weights, **options):
        events.append(
            (weights.shape[0], str(weights.dtype), options["method"], options["config"].engine)
        )
        return solve(weights, **options)

    monkeypatch.setattr(counted_calls, "shortest_paths", record)
    monkeypatch.setattr(counted_calls, "_SMALL", 20)
    monkeypatch.setattr(device, "synchronize", lambda _: None)
    monkeypatch.setattr(torch.cuda.profiler, "start", lambda: events.append("start"))
    monkeypatch.setattr(torch.cuda.profiler, "stop", lambda: events.append("stop"))
    counted_calls.main(["cpu", "cpu", "40", "int16", "kleene", "squaring"])
    assert events == [
        event
        for method in ("kleene", "squaring")
        for event in (
            (20, "torch.int16", method, "cpu"),
            "start",
            (40, "torch.int16", method, "cpu"),
            "stop",
        )
    ]
