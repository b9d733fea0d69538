"""warmup: its arguments; tests/test_cache_folder.py fills folders with it."""

import os
import subprocess
import sys

import pytest

from tri_apsp.cache_folder import VARIABLE


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("--device sm_33", ["auto", "cuda:N", "sm_90", "'sm_33'"]),
        ("--device cpu --units 3", ["--units", "compute capability", "cpu"]),
        ("--n 3 4 --batch 1 2 3", ["--batch", "2 sizes", "3"]),
        ("--dtype float16", ["float16"]),
        ("--folder=", ["--folder", "is empty"]),
    ],
)
def test_arguments_are_refused(refused, words, parts):
    refused(parts, "warmup", *words.split())


def test_a_folder_and_another_variable_are_refused(refused, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", "other")
    refused(["--folder", "TRITON_CACHE_DIR", "unset that"], "warmup", "--folder", "x")


def test_a_folder_that_cannot_be_written_is_refused(refused, save, monkeypatch):
    monkeypatch.setenv(VARIABLE, "unset afterwards")
    file = save("file", "")
    refused(["--folder", "written", "give another"], "warmup", "--folder", file / "below")


@pytest.mark.slow
def test_an_error_of_every_solve_is_no_success(tmp_path):
    pytest.importorskip("triton")
    words = ("warmup", "--device", "sm_90", "--n", "20", "--folder", str(tmp_path))
    ended = subprocess.run(
        [sys.executable, "-m", "tri_apsp", *words],
        env=os.environ | {"TRI_APSP_TUNE": "sometimes"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "TRI_APSP_TUNE must be one of" in ended.stderr
    assert not list(tmp_path.iterdir())


def test_an_interpreter_compiles_nothing(refused, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    refused(
        ["--device sm_90", "TRITON_INTERPRET=1", "unset"], "warmup", "--device", "sm_90", status=1
    )
