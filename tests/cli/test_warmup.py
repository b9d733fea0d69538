"""warmup: its arguments; tests/test_cache_folder.py fills folders with it."""

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
