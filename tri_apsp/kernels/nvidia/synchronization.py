"""How programs of one launch wait for each other, in Gluon: by counters and locks in memory.

What a program read and wrote before it says something comes before what another does that has waited for it. Who waits must
be sure that those it waits for run, or have run: they are resident together, or came first.
"""

from __future__ import annotations

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon

__all__ = ["count", "lock", "meet", "say", "unlock", "wait"]


@gluon.jit
def say(counter_ptr, what):
    """Add to a counter, after all that the threads of this program have read and written."""
    barrier()
    gl.atomic_add(counter_ptr, what, sem="release", scope="gpu")


@gluon.jit
def count(counter_ptr):
    """Read a counter that other programs add to, and with it all they had written before."""
    address = counter_ptr.to(gl.int64)
    return gl.inline_asm_elementwise("ld.acquire.gpu.global.u64 $0, [$1];", "=l,l", [address], gl.int64, False, 1)


@gluon.jit
def wait(counter_ptr, arrived, said):
    """Wait until a counter has come to `arrived` in its lower and `said` in its upper half."""
    now = count(counter_ptr)
    while (now.to(gl.int32) < arrived) | (now >> 32 < said):
        now = count(counter_ptr)
    barrier()


@gluon.jit
def meet(counter_ptr, expected, MANY: gl.constexpr):
    """Wait for all programs of a graph, if there are MANY; what any of them wrote before, each can read after."""
    if MANY:
        say(counter_ptr, 1)
        wait(counter_ptr, expected, 0)
    else:
        barrier()


@gluon.jit
def lock(lock_ptr):
    """Take a lock, whose lowest bit says that it is taken; return twice the number of programs that had it before."""
    before = gl.atomic_or(lock_ptr, 1, sem="acquire", scope="gpu")
    while before % 2 == 1:
        before = gl.atomic_or(lock_ptr, 1, sem="acquire", scope="gpu")
    barrier()
    return before


@gluon.jit
def unlock(lock_ptr, before, holders):
    """Give back a lock that `lock` took; the last of `holders` programs leaves it as it was at first."""
    say(lock_ptr, gl.where(before + 2 == 2 * holders, -1 - before, 1))
