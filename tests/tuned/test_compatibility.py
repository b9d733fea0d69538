"""Tuned files that are not used: the solve goes on without them, and warns once, with the reason in
one sentence.
"""

from __future__ import annotations

import json
import re
import warnings

import pytest
import torch

from tri_apsp import InputError, tuned
from tri_apsp.errors import TuningWarning
from tri_apsp.tuned import compatibility, delayed_warnings

CUDA = torch.device("cuda", 0)


def find(**arguments):
    found = tuned.find("nvidia", CUDA, torch.float32, **{"n": 1024, **arguments})
    delayed_warnings.issue()
    return found


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
    "empty": (lambda text: "", "must hold JSON, but is damaged"),
    "truncated": (lambda text: text[: len(text) // 2], "must hold JSON, but is damaged"),
    "corrupt": (
        lambda text: text.replace('"entries"', '"entr', 1),
        "must hold JSON, but is damaged",
    ),
    "binary": (lambda text: b"\xff\xfe\x00\x80", "must hold JSON, but is damaged"),
    "no object": (lambda text: "[1]", "must follow tuning/README.md"),
    "NaN": (
        lambda text: text.replace('"p50_ms": 2.0', '"p50_ms": NaN'),
        "must follow tuning/README.md.*entries.0.p50_ms",
    ),
    "other schema": (change(schema_version=2), "must have schema version 1, but has 2"),
    "no schema": (without("schema_version"), "breaks its schema .schema_version: Field required"),
    "no GPU": (without("gpu"), "breaks its schema .gpu: Field required"),
    "no kernel hash": (without("kernel_hash"), "breaks its schema .kernel_hash: Field required"),
    "no entries": (change(entries=[]), "breaks its schema .entries"),
    "an unknown field": (change(speed=1), "breaks its schema .speed"),
    "an unknown kernel": (
        change(kernel="products"),
        "kernel must be one of product, small_product",
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
        "product must have the fields of GpuTiles",
    ),
    "another GPU": (
        change(gpu="B GPU", slug="b-gpu"),
        r"must be of A GPU \(a-gpu, 100 units.*but is of B GPU \(b-gpu",
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
    "another kernel": (change(kernel="small_product", entries=None), "breaks its schema"),
    "another dtype": (change(dtype="int32"), "must be called nvidia-product-int32.json"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_do_not_fit_are_refused(gpu, entry, made, case):
    edit, message = REFUSED[case]
    path = tuned.save(made(entry(1024)))
    default = find(n=None)
    assert find().source == str(path)
    content = edit(path.read_text())
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    tuned.reload()
    with pytest.warns(TuningWarning) as caught:
        assert find() == default
    messages = [str(warning.message) for warning in caught if "not used" in str(warning.message)]
    assert len(messages) == 1
    assert str(path) in messages[0]
    assert re.search(message, messages[0]), messages[0]
    assert re.fullmatch(r"[^\n]*\.", messages[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", TuningWarning)
        tuned.reload()
        assert find(n=1025) == default


def test_a_folder_in_place_of_a_file_is_refused(gpu):
    path = tuned.path_of("nvidia", "product", "float32", gpu.slug)
    path.mkdir(parents=True)
    with pytest.warns(TuningWarning, match="must be readable, but is not \\(Is a directory\\)"):
        assert find().source == "default"
    with pytest.raises(InputError, match="must be readable"):
        tuned.load(path)
    with pytest.raises(InputError, match="No such file or directory"):
        tuned.load(path / "none.json")


def test_the_next_directory_serves_in_place_of_a_refused_file(gpu, entry, made, directories):
    good = tuned.save(made(entry(1024)), directories["shipped"])
    bad = tuned.save(made(entry(1024)), directories["user"])
    bad.write_text("{")
    tuned.reload()
    with pytest.warns(TuningWarning, match="damaged"):
        assert find().source == str(good)


def installed(monkeypatch, version):
    monkeypatch.setattr(compatibility, "triton_version", lambda: version)


def test_another_minor_version_of_triton_is_used_with_a_warning(
    gpu, entry, made, monkeypatch, recwarn
):
    warnings.simplefilter("always", TuningWarning)
    file = made(entry(1024)).model_copy(update={"triton": "3.6.1"})
    path = tuned.save(file)
    installed(monkeypatch, "3.7.0")
    assert find().source == str(path)
    find(n=1000)
    (message,) = [str(warning.message) for warning in recwarn]
    assert "was tuned with Triton 3.6.1, but 3.7.0 is installed" in message


@pytest.mark.parametrize("version", ["3.6.0", "3.6.9+git1", None])
def test_another_patch_of_triton_is_not_worth_a_warning(
    gpu, entry, made, monkeypatch, recwarn, version
):
    tuned.save(made(entry(1024)).model_copy(update={"triton": "3.6.1"}))
    installed(monkeypatch, version)
    find()
    assert not recwarn.list


def test_a_kept_entry_remembers_its_triton(gpu, entry, made, monkeypatch):
    tuned.save(made(entry(1024)).model_copy(update={"triton": "3.5.0"}))
    tuned.save(made(entry(8192)).model_copy(update={"triton": "3.7.0"}))
    installed(monkeypatch, "3.7.1")
    with pytest.warns(TuningWarning, match=r"Triton 3\.5\.0"):
        find(n=1024)


@pytest.mark.parametrize(
    ("changed", "config", "message"),
    [
        ({"block_m": 48}, None, "product.block_m must be a power of two, but is 48"),
        (
            {"num_stages": 4, "block_k": 128},
            None,
            "product must fit the 232448 bytes of shared memory",
        ),
        ({"num_warps": 64}, None, "product.num_warps must be at most 32"),
    ],
)
def test_an_entry_that_cannot_run_here_is_passed_over(gpu, entry, made, changed, config, message):
    path = tuned.save(made(entry(1024, **changed), entry(2048)))
    with pytest.warns(
        TuningWarning, match=f"an entry of {re.escape(str(path))} is not used: {message}"
    ):
        found = find(n=1024)
    assert (found.source, found.product.block_m) == (str(path), 64)
