"""How programs of one launch wait for each other, in Gluon: by counters and locks in global memory.

A program arrives at a counter by adding to it (release), and another waits until the counter has
reached a value (acquire). Everything that the first read or wrote before it arrived then happens
before what the second does after its wait. A wait ends only if the programs that arrive are
resident at the same time, or have run already.
"""

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon


@gluon.jit
def arrive(counter_ptr, amount):
    """Add `amount` to a counter, after everything that this program has read and written."""
    barrier()
    gl.atomic_add(counter_ptr, amount, sem="release", scope="gpu")


@gluon.jit
def load_acquire(counter_ptr):
    """Return the value of a 64-bit counter; writes made before the arrivals that it counts are
    visible from then on.
    """
    address = counter_ptr.to(gl.int64)
    return gl.inline_asm_elementwise(
        "ld.acquire.gpu.global.u64 $0, [$1];", "=l,l", [address], gl.int64, False, 1
    )


@gluon.jit
def wait_until(counter_ptr, arrivals, signals):
    """Wait until the lower half of a 64-bit counter has reached `arrivals`, and the upper half
    `signals`.
    """
    # Every thread loads; the barrier keeps those that are done from running ahead of the others.
    value = load_acquire(counter_ptr)
    while (value.to(gl.int32) < arrivals) | (value >> 32 < signals):
        value = load_acquire(counter_ptr)
    barrier()


@gluon.jit
def grid_barrier(counter_ptr, arrivals, COOPERATIVE: gl.constexpr):
    """Wait for all programs of a graph, if several are COOPERATIVE; each can then read what any of
    them wrote before.

    The lower half of the counter stands at `arrivals` once all have arrived.
    """
    if COOPERATIVE:
        arrive(counter_ptr, 1)
        wait_until(counter_ptr, arrivals, 0)
    else:
        barrier()


@gluon.jit
def acquire_lock(lock_ptr):
    """Acquire a lock, whose lowest bit is 1 while a program holds it; return twice the number of
    earlier holders.
    """
    # Setting a bit that is set changes nothing; whoever finds it unset holds the lock.
    before = gl.atomic_or(lock_ptr, 1, sem="acquire", scope="gpu")
    while before % 2 == 1:
        before = gl.atomic_or(lock_ptr, 1, sem="acquire", scope="gpu")
    barrier()
    return before


@gluon.jit
def release_lock(lock_ptr, before, holders):
    """Release a lock for which acquire_lock returned `before`; the last of `holders` programs
    resets it to 0.
    """
    # before + 1 is the value now. Adding 1 clears the lowest bit and counts this holder.
    arrive(lock_ptr, gl.where(before + 2 == 2 * holders, -1 - before, 1))
