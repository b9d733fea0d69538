"""Triton is no dependency: without it everything runs on a CPU, and a GPU needs one sentence of
help.
"""

import importlib.util
import re
import subprocess
import sys

import pytest
import torch

import tri_apsp
from tri_apsp import Config, EngineError, engines
from tri_apsp.device import Device

CODE = """
import sys
sys.modules["triton"] = None  # what `import triton` then finds is ModuleNotFoundError
from tri_apsp.__main__ import main
from reports.__main__ import build_parser
from tri_apsp.tune.__main__ import main as tune
for words in (
    ["generate", "grid", "--n", "64", "-o", "grid.gr"],
    ["solve", "grid.gr", "--device", "cpu"],
    ["bench", "--device", "cpu", "--n", "64", "--repeat", "3"],
    ["info"],
):
    assert main(words) == 0, words
few = ["--device", "cpu", "--kernel", "product", "--n", "64", "--trials", "2"]
assert tune([*few, "--save-dir", "tuned"]) == 0
build_parser()
assert not [name for name in sys.modules if name.startswith(("triton.", "tri_apsp.kernels.nvidia"))]
"""
WITHOUT = (
    'needs Triton, but it is not installed; run pip install -c constraints.txt ".[gpu]" in a clone '
    "of tri_apsp, or use the CPU."
)
GPU = torch.device("cuda", 0)


def test_every_command_on_a_cpu_needs_no_triton(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert " 4096 of 4096 pairs\n" in result.stdout
    assert "the portable engine needs a GPU, but the device is cpu" in result.stdout
    assert "pip install" not in result.stdout  # a machine without a GPU has no use for Triton


@pytest.fixture
def no_triton(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "triton" else find(name, *rest),
    )
    engines.has_triton.cache_clear()
    monkeypatch.setattr(
        engines,
        "describe",
        lambda device: Device("cuda", "A GPU", "a-gpu", 100, 1 << 34, 99 << 10, (9, 0)),
    )
    yield
    engines.has_triton.cache_clear()


@pytest.mark.parametrize(
    ("config", "subject"),
    [
        (None, "a computation on cuda:0"),
        (Config(engine="nvidia"), "the nvidia engine"),
        (Config(engine="portable"), "the portable engine"),
    ],
)
def test_a_gpu_without_triton_is_one_sentence(no_triton, config, subject, monkeypatch):
    with pytest.raises(EngineError, match=re.escape(f"{subject} {WITHOUT}")):
        engines.choose(GPU, config)
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(EngineError, match="for Linux alone; use the CPU"):
        engines.choose(GPU, config)


def test_the_interpreter_needs_triton(no_triton, monkeypatch):
    cpu = torch.device("cpu")
    assert "needs a GPU" in str(tri_apsp.engines.unusable_because("portable", cpu))
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert tri_apsp.engines.unusable_because("portable", cpu) == f"the portable engine {WITHOUT}"
