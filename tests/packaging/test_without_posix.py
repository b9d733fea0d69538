"""On a CPU, nothing needs what Windows lacks: Triton, and what only POSIX systems have."""

import subprocess
import sys

import pytest

CODE = """
import sys
sys.modules["triton"] = None
# Libraries that are made for this system are imported before anything is hidden.
import filelock, numba, os, platformdirs, posix, psutil, scipy.sparse.csgraph, signal, torch
import numpy as np
for name in ("fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
on_windows = '''abort access chdir chmod close closerange cpu_count device_encoding DirEntry dup
dup2 environ error execv execve _exit F_OK fspath fstat fsync ftruncate get_inheritable
get_terminal_size getcwd getcwdb getlogin getpid getppid isatty kill link listdir lseek lstat mkdir
O_APPEND O_CREAT O_EXCL O_RDONLY O_RDWR O_TRUNC O_WRONLY open pipe putenv R_OK read readlink remove
rename replace rmdir scandir set_inheritable SIG_DFL SIG_IGN SIGABRT SIGFPE SIGILL SIGINT Signals
SIGSEGV SIGTERM stat stat_result strerror symlink system terminal_size times times_result truncate
umask unlink unsetenv urandom utime W_OK waitpid waitstatus_to_exitcode write X_OK'''.split()
for module in (os, signal):
    copy = sys.modules[module.__name__] = type(sys)(module.__name__)
    vars(copy).update(vars(module))
    for name in vars(module):
        if (name in vars(posix) or name.startswith(("SIG", "pthread_"))) and name not in on_windows:
            delattr(copy, name)

import tri_apsp
from tri_apsp.__main__ import main
weights = torch.randint(1, 99, (40, 40), dtype=torch.int32).fill_diagonal_(0)
expected = tri_apsp.shortest_paths(weights, predecessors=True).distances
np.save("w.npy", weights.numpy())
assert torch.equal(tri_apsp.read_graph("w.npy"), weights)
call = {"memory": 8 * 40 * 4, "checkpoint": tri_apsp.Checkpoint("state", every=0)}
assert torch.equal(tri_apsp.shortest_paths("w.npy", out="d.npy", **call).distances, expected)
assert sorted(os.listdir()) == ["d.npy", "state", "w.npy"] and not os.listdir("state")
assert main(["generate", "grid", "--n", "36", "-o", "g.gr"]) == 0
graph = tri_apsp.read_sparse_graph("g.gr")
rows = tri_apsp.shortest_paths(graph)
tri_apsp.distance_blocks(graph, out="rows.npy", rows_per_block=5)
assert np.array_equal(np.load("rows.npy"), rows.distances)
assert main(["solve", "g.gr", "-o", "g.npy"]) == 0
assert np.array_equal(np.load("g.npy"), rows.distances)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="lacks them itself")
def test_a_cpu_needs_what_windows_has(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
