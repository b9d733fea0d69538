"""Tuned files that are not used: a call goes on without them, and warns once, with the reason in
one sentence.
"""

import json
import re

import pytest
from tuned.conftest import choose

from tri_apsp import InputError, tuned
from tri_apsp.errors import TuningWarning
from tri_apsp.tuned import store


def change(**changed):
    """Return a function that changes the JSON of a file."""
    return lambda text: json.dumps({**json.loads(text), **changed})


def without(name):
    return lambda text: json.dumps(
        {key: value for key, value in json.loads(text).items() if key != name}
    )


def in_entry(**changed):
    def edit(text):
        content = json.loads(text)
        content["entries"][0] = {
            k: v for k, v in {**content["entries"][0], **changed}.items() if v is not None
        }
        return json.dumps(content)

    return edit


REFUSED = {
    "empty": (lambda text: "", "breaks its schema .file: Invalid JSON"),
    "truncated": (lambda text: text[: len(text) // 2], "breaks its schema .file: Invalid JSON"),
    "binary": (lambda text: b"\xff\xfe\x00\x80", "breaks its schema .file: Invalid JSON"),
    "no object": (lambda text: "[1]", "must be one that this version can read"),
    "NaN": (
        lambda text: text.replace('"p50_ms": 1.0', '"p50_ms": NaN'),
        "must be one that this version can read.*entries.0.p50_ms",
    ),
    "other schema": (change(schema_version=2), "schema .schema_version: Input should be 1"),
    "no kernel hash": (without("kernel_hash"), "breaks its schema .kernel_hash: Field required"),
    "no entries": (change(entries=[]), "breaks its schema .entries"),
    "an unknown field": (change(speed=1), "breaks its schema .speed"),
    "an unknown kernel": (
        change(kernel="products"),
        "kernel 'products' must exist for engine 'nvidia', but the engines have these",
    ),
    "an unknown dtype": (change(dtype="float16"), "dtype must be one of float32"),
    "no n": (in_entry(n=None), "breaks its schema .entries.0.n: Field required"),
    "n of 0": (in_entry(n=0), "breaks its schema .entries.0.n"),
    "n as text": (in_entry(n="1024"), "breaks its schema .entries.0.n"),
    "an unknown sign": (in_entry(sign="negative"), "breaks its schema .entries.0.sign"),
    "no configuration": (in_entry(config={}), "a config must have fields of product, but has none"),
    "another kernel's field": (
        in_entry(config={"cutoff": 3}),
        "must have fields of product, but has cutoff",
    ),
    "half a tile": (
        in_entry(config={"product": {"block_m": 3}}),
        "its tiles those of GpuTiles",
    ),
    "another GPU": (
        change(gpu="B GPU"),
        r"must be of A GPU \(a-gpu, 100 units.*but is of B GPU \(a-gpu",
    ),
    "another folder": (
        change(slug="b-gpu"),
        "must lie at b-gpu/nvidia-product-float32.json, but lies at a-gpu/nvidia-product",
    ),
    "fewer units": (change(units=50), "100 units, compute capability 9.0.*50 units"),
    "another architecture": (
        change(capability=[8, 0]),
        "compute capability 9.0.*compute capability 8.0",
    ),
    "other sources": (
        change(kernel_hash="0" * 64),
        "must be tuned for the present sources of its kernel, .*00000000",
    ),
    "another dtype": (change(dtype="int32"), "must lie at a-gpu/nvidia-product-int32.json, but"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_do_not_fit_are_refused(gpu, entry, made, case):
    edit, message = REFUSED[case]
    path = tuned.save(made(entry(1024)))
    default = choose(0)
    assert choose().source == str(path)
    content = edit(path.read_text())
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    tuned.reload()
    with pytest.warns(TuningWarning) as caught:
        assert choose() == default
    messages = [str(warning.message) for warning in caught if "not used" in str(warning.message)]
    assert len(messages) == 1
    assert str(path) in messages[0]
    assert re.search(message, messages[0]), messages[0]
    assert re.fullmatch(r"[^\n]*\.", messages[0])
    assert choose(1025) == default  # without another warning, which would be an error


def test_the_next_directory_serves_in_place_of_a_refused_file(gpu, entry, made, directories):
    good = tuned.save(made(entry(1024)), directories["shipped"])
    bad = tuned.path_of("nvidia", "product", "float32", gpu.slug)
    bad.mkdir(parents=True)
    tuned.reload()
    with pytest.warns(TuningWarning, match=r"must be readable, but is not \(Is a directory\)"):
        assert choose().source == str(good)
    with pytest.raises(InputError, match="No such file or directory"):
        tuned.load(bad / "none.json")


@pytest.mark.parametrize(
    ("installed", "warns"), [("3.7.0", True), ("3.6.9+git1", False), (None, False)]
)
def test_only_another_minor_version_of_triton_is_used_with_a_warning(
    gpu, entry, made, monkeypatch, recwarn, installed, warns
):
    path = tuned.save(made(entry(1024)).model_copy(update={"triton": "3.6.1"}))
    tuned.save(made(entry(8192)).model_copy(update={"triton": installed}))
    monkeypatch.setattr(store, "triton_version", lambda: installed)
    assert [choose().source, choose(1000).source, choose(8192).source] == [str(path)] * 3
    messages = [str(warning.message) for warning in recwarn]
    if warns:
        (message,) = messages
        assert "was tuned with Triton 3.6.1, but 3.7.0 is installed" in message
    else:
        assert messages == []


@pytest.mark.parametrize(
    "changed", [{"block_m": 48}, {"num_stages": 4, "block_k": 128}, {"num_warps": 64}]
)
def test_an_entry_that_cannot_run_here_is_passed_over(gpu, entry, made, changed):
    path = tuned.save(made(entry(1024, **changed), entry(2048)))
    found = choose(1024)
    assert (found.source, found.product.block_m) == (str(path), 64)
