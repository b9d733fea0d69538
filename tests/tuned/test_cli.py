"""What `info` says of tuned files."""

from __future__ import annotations

import json

import torch

from tri_apsp import tuned
from tri_apsp.__main__ import main
from tri_apsp.device import describe
from tri_apsp.tuned.schema import Entry

CPU = describe(torch.device("cpu"))


def _file():
    times = dict.fromkeys(("p20_ms", "p50_ms", "p80_ms", "default_ms", "speedup"), 1.0)
    config = {"method": "floyd_warshall", "block_size": 32, "cutoff": 64}
    entry = Entry(sign="nonnegative", n=700, config=config, **times, evaluated=1)
    run = {"space_hash": "", "protocol": "", "seed": 0, "budget_seconds": None, "complete": True}
    return tuned.new_file("cpu", "solve", "float32", CPU, [entry], **run)


def test_info_says_what_is_used_and_why_not(capsys, directories):
    file = _file()
    used, damaged = tuned.save(file, directories["user"]), tuned.save(file, directories["shipped"])
    damaged.write_text("{")
    foreign = directories["shipped"] / "b-cpu" / "cpu-solve-float32.json"
    foreign.parent.mkdir()
    foreign.write_text(used.read_text().replace(CPU.slug, "b-cpu"))
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["tuned"]
    assert found["files"] == [str(path) for path in tuned.files()]
    assert set(found["files"]) == {str(used), str(damaged), str(foreign)}
    assert found["unused"].keys() == {str(damaged), str(foreign)}
    assert "breaks its schema" in found["unused"][str(damaged)]
    assert "b-cpu" in found["unused"][str(foreign)]
    assert found["save_directory"] == str(directories["user"])
    assert main(["info"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert f"  {used.parent.name}/: {used.stem}; n = 700, tuned {file.created}\n" in out
    assert f"  {damaged.parent.name}/: {damaged.stem}; not used: tuned file" in out
