"""Starting processes: from a server or as a new Python, they have the same environment, and none is
left behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from multiprocessing import Pipe, forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch
from tune import children

from tri_apsp.tune.workers import processes

linux = pytest.mark.skipif(sys.platform != "linux", reason="the fork server is used on Linux only")


def receive(pipe: Connection) -> Any:
    assert pipe.poll(60), "no answer"
    return pipe.recv()


def answer(target: Callable[..., None], *arguments: Any) -> Any:
    """Run target(pipe, *arguments) in a process, and return the object that it sends."""
    ours, theirs = Pipe()
    process = processes.start_process(target, (theirs, *arguments), "test")
    theirs.close()
    found = receive(ours)
    process.join(30)
    assert process.exitcode == 0
    return found


@linux
def test_processes_are_forked_from_one_server_without_cuda() -> None:
    first, second = answer(children.describe), answer(children.describe)
    assert first["parent"] == second["parent"] != os.getpid()
    assert not first["cuda"]


@linux
def test_a_server_may_start_first() -> None:
    processes.start_server()
    before = forkserver._forkserver._forkserver_pid
    assert before is not None
    assert answer(children.describe)["parent"] == before
    processes.start_server()
    assert forkserver._forkserver._forkserver_pid == before


def test_the_environment_is_the_present_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRI_APSP_GONE", "1")
    answer(children.describe)  # the server has started
    monkeypatch.setenv("TRI_APSP_NEW", "2")
    monkeypatch.delenv("TRI_APSP_GONE")
    monkeypatch.chdir(tmp_path)
    found = answer(children.describe)
    assert found["environment"] == dict(os.environ)
    assert found["folder"] == str(tmp_path)


@linux
@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "TRITON_INTERPRET", "CUDA_VISIBLE_DEVICES"])
def test_variables_read_at_import_take_a_new_python(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = answer(children.describe)
    monkeypatch.setenv(name, "1")
    assert processes._server() is None
    if name == "OMP_NUM_THREADS":
        found = answer(children.describe)
        assert found["parent"] == os.getpid()
        assert found["environment"][name] == "1"
        assert found["threads"] == 1
    monkeypatch.undo()
    assert answer(children.describe)["parent"] == before["parent"]


@linux
@pytest.mark.parametrize(
    "name", ["CUDA_MODULE_LOADING", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"]
)
def test_variables_set_by_libraries_take_no_new_python(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(name, raising=False)
    before = answer(children.describe)
    monkeypatch.setenv(name, "LAZY")
    found = answer(children.describe)
    assert found["parent"] == before["parent"] != os.getpid()
    assert found["environment"][name] == "LAZY"


@linux
@pytest.mark.gpu
def test_cuda_in_this_process_takes_no_new_python() -> None:
    before = answer(children.describe)
    torch.ones(1, device="cuda")
    found = answer(children.describe)
    assert found["parent"] == before["parent"] != os.getpid()
    assert not found["cuda"]


def test_threads_work_in_every_process() -> None:
    expected = answer(children.compute, 1)
    for _ in range(2):
        assert answer(children.compute, 2) == pytest.approx(expected)


@linux
def test_an_interrupt_ends_neither_the_server_nor_its_processes() -> None:
    ours, theirs = Pipe()
    process = processes.start_process(children.wait, (theirs,), "test")
    child, server = receive(ours)
    assert server != os.getpid()
    for pid in (child, server):
        os.kill(pid, signal.SIGINT)
    assert answer(children.describe)["parent"] == server
    assert process.is_alive()
    process.kill()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL


SCRIPT = """
    import os, signal, threading
    from multiprocessing import Pipe, forkserver
    from tune import children
    from tri_apsp.tune.workers import processes

    if __name__ == "__main__":
        {before}
        ours, theirs = Pipe()
        process = processes.start_process(children.wait, (theirs,), "test")
        child, parent = ours.recv()
        print(child, parent, "spawned" if parent == os.getpid() else "forked")
"""


def script(tmp_path: Path, before: str = "", **environment: str) -> tuple[int, int, str]:
    """Start a process from a script; return its id, that of its parent, and how it was started,
    once the script is over.
    """
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT.format(before=before)))
    known = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), **environment}
    done = subprocess.run(
        [sys.executable, path],
        env=known,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        start_new_session=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    child, parent, how = done.stdout.split()
    return int(child), int(parent), how


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@linux
def test_server_and_processes_end_with_their_parent(tmp_path: Path) -> None:
    *pids, how = script(tmp_path)
    deadline = time.monotonic() + 20
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (how, *map(runs, pids)) == ("forked", False, False)


@linux
def test_an_interrupt_does_not_end_a_server_that_starts(tmp_path: Path) -> None:
    """A terminal interrupts the whole process group; the script ignores the signal, and the server
    must too.
    """
    presses = [
        f"threading.Timer({after}, os.killpg, (0, signal.SIGINT)).start()"
        for after in (0.05, 0.1, 0.2, 0.4)
    ]
    before = "; ".join(["signal.signal(signal.SIGINT, lambda *_: None)", *presses])
    assert script(tmp_path, before)[-1] == "forked"


@linux
@pytest.mark.parametrize("why", ["it cannot import", "its socket has too long a name"])
def test_without_a_server_processes_are_a_new_python(tmp_path: Path, why: str) -> None:
    (tmp_path / "leaves.py").write_text("import os\nos._exit(3)\n")
    before = 'processes._PRELOAD[:] = ["leaves"]' if why == "it cannot import" else ""
    folder = tmp_path / ("short" if before else 200 * "x")
    folder.mkdir()
    assert script(tmp_path, before, TMPDIR=str(folder))[-1] == "spawned"
