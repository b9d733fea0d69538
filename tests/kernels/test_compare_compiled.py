"""The maintainer's comparison of machine code: what counts as a difference, and which tuned files
get a new hash.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("triton", reason="the variants need Triton")

from kernels import compare_compiled
from kernels.variants import all_variants


def test_every_kernel_has_variants() -> None:
    names = all_variants()
    kernels = {
        make().kernel.fn.__module__.removeprefix("tri_apsp.kernels.") for make in names.values()
    }
    assert kernels == {
        "nvidia.product",
        "nvidia.closure",
        "nvidia.solve",
        "portable.product",
        "portable.closure",
        "portable.panels",
        "shared.copy",
        "shared.initial_matrix",
        "shared.value_range",
        "nvidia.boolean",
        "portable.boolean",
        "shared.boolean",
        "nvidia.arithmetic",
        "nvidia.small_graphs",
        "nvidia.small_gradients",
        "shared.argmin",
        "shared.packed",
        "nvidia.argmin",
        "shared.gradients",
        "shared.product_predecessors",
        "nvidia.exponents",
        "shared.exponents",
        "shared.edge_count",
        "nvidia.counting",
    }
    assert {name.split()[0] for name in names} == {
        "nvidia",
        "portable",
        "shared",
        "boolean",
        "arithmetic",
        "small",
        "gradients",
        "exponents",
    }


def test_differences_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    before = {"same": ["FADD R1"], "changed": ["FADD R1", "EXIT"], "removed": ["EXIT"]}
    after = {"same": ["FADD R1"], "changed": ["FADD R2", "EXIT"], "added": ["EXIT"]}
    assert compare_compiled.compare(before, after) == ["added", "changed", "removed"]
    printed = capsys.readouterr().out
    assert "-FADD R1\n+FADD R2\n" in printed
    assert "3 of 4 variants differ" in printed


def test_names_and_directives_of_assembly_do_not_count() -> None:
    def assembly(name: str, register: str) -> str:
        return f"\t.globl\t{name}\n{name}:\n\tmov\t{register}, [{name}.const] # comment\n.LBB0:\n\tret\n"

    one, other = assembly("_ZN8tri_apsp4x", "rax"), assembly("_ZN8tri_apsp9renamed", "rax")
    assert compare_compiled._instructions(one) == compare_compiled._instructions(other)
    assert compare_compiled._instructions(one) != compare_compiled._instructions(
        assembly("_ZN8tri_apsp4x", "rbx")
    )


def test_only_files_of_the_compared_sources_get_a_new_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_compiled, "ROOT", tmp_path)
    folder = tmp_path / "tuning" / "some-gpu"
    folder.mkdir(parents=True)
    text = '{\n  "kernel_hash": "%s",\n  "n": 8\n}\n'
    for name, digest in (
        ("nvidia-product-float32", "old"),
        ("nvidia-small_product-int16", "older"),
        ("cpu-product-int16", "old"),
    ):
        (folder / f"{name}.json").write_text(text % digest)
    hashes = {"nvidia-product": "old", "nvidia-small_product": "old"}
    compare_compiled.rehash("nvidia", hashes, dict.fromkeys(hashes, "new"))
    assert (folder / "nvidia-product-float32.json").read_text() == text % "new"
    assert (folder / "nvidia-small_product-int16.json").read_text() == text % "older", (
        "it was out of date before"
    )
    assert (folder / "cpu-product-int16.json").read_text() == text % "old"
