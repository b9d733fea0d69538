"""What `info` says of tuned files."""

import json

import torch

from tri_apsp import tuned
from tri_apsp.__main__ import main
from tri_apsp.device import describe

CPU = describe(torch.device("cpu"))


def test_info_says_what_is_used_and_why_not(capsys, cpu_file, directories):
    file = cpu_file
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
    assert f"  {used.parent.name}/: {used.stem}; n = 200, tuned {file.created}\n" in out
    assert f"  {damaged.parent.name}/: {damaged.stem}; not used: tuned file" in out
