"""The facts of the devices of this machine, and versions.

No other module queries or synchronizes CUDA devices, or asks for the free memory.
"""

import contextlib
import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import torch

from tri_apsp.errors import InputError, error_for
from tri_apsp.messages import counted, shown

# The control group of this process, and the folder of all.
_OWN_GROUP, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")

DeviceName: TypeAlias = str | torch.device
Devices: TypeAlias = DeviceName | Sequence[DeviceName]
Mark: TypeAlias = "torch.cuda.Event | None"
"""A point in the work of a stream; None: there is nothing to wait for."""


@dataclass(frozen=True)
class Device:
    """The facts of one device that tile sizes depend on.

    Attributes:
        kind: "cpu" or "cuda".
        name: as the vendor writes it.
        slug: the name as the files of this project spell it.
        units: multiprocessors, or cores.
        memory: bytes.
        shared_memory: the largest amount that one program may use, in bytes.
        capability: (major, minor) of an NVIDIA GPU.
        clock_hz: the highest clock of the multiprocessors of a GPU; None: unknown.
    """

    kind: str
    name: str
    slug: str
    units: int
    memory: int
    shared_memory: int = 0
    capability: tuple[int, int] | None = None
    clock_hz: float | None = None

    @property
    def has_wgmma(self) -> bool:
        """Whether this is a GPU of compute capability 9.x, whose tensor cores read operands from
        shared memory by wgmma.
        """
        return self.capability is not None and self.capability[0] == 9


_ONE = "auto, cpu, cuda or cuda:N"
_SEVERAL = "auto, all, cpu, cuda, cuda:N or a list of devices"


def resolve(name: object, names: str = _ONE) -> torch.device:
    """Turn "auto", "cpu", "cuda" or "cuda:1" into a device that exists here.

    Args:
        name: a str or a torch.device.
        names: what a name may be, for the message.

    Raises:
        InputError: for another name, or for CUDA where there is none.
    """
    if isinstance(name, str) and name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    is_name = isinstance(name, (str, torch.device))
    if not is_name or not re.fullmatch(r"cpu(:0)?|cuda(:\d{1,4})?", str(name)):
        given = str(name) if isinstance(name, torch.device) else name
        what = "empty" if isinstance(name, Sequence) and not name else shown(given)
        raise error_for(name, str, torch.device)(
            f"`device` must be {names}, but is {what}; choose one of these."
        )
    device = torch.device(str(name).replace("cpu:0", "cpu"))
    if device.type == "cuda" and (device.index or 0) >= cuda_count():
        found = cuda_count()
        raise InputError(
            f"device {name} must exist, but this machine has "
            f"{counted(found, 'usable CUDA device')}; use cpu or auto."
        )
    return device


def resolve_all(devices: Any) -> tuple[torch.device, ...]:
    """Return the devices that a caller names: "auto"; "all" GPUs, or the CPU where there is none;
    one, or several with commas; or a list.

    Raises:
        InputError: one is not there, or they are of different kinds.
    """
    names = [name.strip() for name in devices.split(",")] if isinstance(devices, str) else devices
    if not isinstance(names, Sequence) or not names:
        names = [devices]
    if list(names) == ["all"]:
        gpus = [torch.device("cuda", index) for index in range(cuda_count())]
        return tuple(gpus) or (torch.device("cpu"),)
    if len(names) > 1 and any(str(name) in ("all", "auto") for name in names):
        raise InputError(
            "`device` must have auto or all alone, but names others beside it; leave them out."
        )
    found = tuple(resolve(name, _SEVERAL) for name in names)
    if len(found) == 1:
        return found
    found = tuple(
        current_gpu() if device.type == "cuda" and device.index is None else device
        for device in found
    )
    gpus = [device for device in found if device.type == "cuda"]
    if gpus and (len(gpus) < len(found) or len(set(gpus)) < len(gpus)):
        raise InputError(
            "`device` must name different devices of one kind, but names "
            f"{', '.join(map(str, found))}; leave some of them out."
        )
    return found


def describe(device: torch.device) -> Device:
    """Return the facts of a device; "meta" stands for the current GPU, if there is one.

    They are cached, because tile sizes are looked up on every call.
    """
    kind, index = device.type, device.index
    if (
        index is None
        and not _ASSUMED
        and (kind == "cuda" or (kind == "meta" and torch.cuda.is_available()))
    ):
        kind, index = "cuda", torch.cuda.current_device()
    return _describe(kind, index)


_ASSUMED: list[Device] = []


def assume(facts: Device) -> None:
    """Use `facts` as the facts of every device in this process, so that the device need not exist
    here.
    """
    _ASSUMED[:] = [facts]
    _describe.cache_clear()


def only_compiles() -> bool:
    """Return whether this process compiles for a device that need not be here."""
    return bool(_ASSUMED)


@cache
def _describe(kind: str, index: int | None) -> Device:
    if _ASSUMED:
        return _ASSUMED[0]
    if kind == "cuda":
        properties = torch.cuda.get_device_properties(index)
        return Device(
            kind="cuda",
            name=properties.name,
            slug=_slug(properties.name),
            units=properties.multi_processor_count,
            memory=properties.total_memory,
            shared_memory=getattr(properties, "shared_memory_per_block_optin", 48 * 1024),
            capability=None if torch.version.hip else (properties.major, properties.minor),
            clock_hz=getattr(properties, "clock_rate", 0) * 1e3 or None,
        )
    name, cores = _cpu_name(), cpu_count()
    return Device(
        kind="cpu",
        name=name,
        slug=_slug(f"{name} {cores} cores"),
        units=cores,
        memory=psutil.virtual_memory().total,
    )


def installed_version(*names: str) -> str | None:
    """Return the version of the first of these packages that is installed; None: there is none."""
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return None


@cache
def triton_version() -> str | None:
    """Return the version of Triton that is installed, or None."""
    return installed_version(
        "triton", "pytorch-triton", "pytorch-triton-rocm"
    )  # of which the latter two are nightly builds


def current_gpu() -> torch.device:
    """Return the current CUDA device of this thread."""
    return torch.device("cuda", torch.cuda.current_device())


_SAME = nullcontext()  # one for all calls, since making one takes as long as entering it


def current(device: torch.device) -> AbstractContextManager[object]:
    """Make `device` the current device inside a `with`: Triton launches on the current device, not
    on that of the tensors.
    """
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return _SAME
    return torch.cuda.device(device)


def synchronize(device: torch.device) -> None:
    """Block until all work queued on `device` is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def synchronize_stream(device: torch.device) -> None:
    """Block until all work queued on the current stream of `device` is done."""
    if device.type == "cuda":
        _current_stream(device).synchronize()


def record_event(device: torch.device) -> Callable[[], None]:
    """Return a function that blocks until all work queued so far on the current stream of `device`
    is done.
    """
    if device.type != "cuda":
        return lambda: None
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(_current_stream(device))
    return event.synchronize


def raw_stream(index: int) -> int:
    """Return the handle of the current stream of a CUDA device."""
    return torch._C._cuda_getCurrentRawStream(index)


def stream_of(device: torch.device) -> int:
    """Return the handle of the current stream of a device; 0 of one without streams."""
    return raw_stream(device.index) if device.type == "cuda" else 0


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def copy_to_cpu(values: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Return a function that copies `values` to pinned memory once the work that is queued now is
    done, beside later work.

    Another thread may call it, and blocks until the copy is done. Values that are on the CPU are
    returned themselves.
    """
    if values.device.type != "cuda":
        return lambda: values
    side, queued = _side_stream(values.device), _current_stream(values.device).record_event()

    def copy() -> torch.Tensor:
        result = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        with torch.cuda.stream(side):
            side.wait_event(queued)
            result.copy_(values, non_blocking=True)
        side.synchronize()
        return result

    return copy


class SideStream:
    """Queues work beside that of the current stream of a device, in an order of its own. On the
    CPU work runs at once.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def run(self, work: Callable[[], object], after: Mark) -> Mark:
        """Queue `work` to begin after a mark of a stream, and return the mark of its end."""
        if self._stream is None:
            work()
            return after
        with torch.cuda.stream(self._stream):
            if after is not None:
                self._stream.wait_event(after)
            work()
            return _record(self._stream)

    def copy_from(self, source: torch.Tensor, target: torch.Tensor, after: Mark, to: Mark) -> Mark:
        """Queue a copy from this device to a tensor of another one, once the work up to `after`
        here, and up to `to` there, is done; return the mark of its end there.
        """
        stream = self._stream
        if stream is None:
            target.copy_(source)
            return None
        # torch copies on the current streams, of which a device has only one.
        side = stream if target.device == self._device else _side_stream(target.device)
        with torch.cuda.stream(stream), torch.cuda.stream(side):
            for waiting, until in ((stream, after), (side, to)):
                if until is not None:
                    waiting.wait_event(until)
            target.copy_(source, non_blocking=True)
            source.record_stream(stream)
            return _record(side)


def _record(stream: torch.cuda.Stream) -> Mark:
    event: torch.cuda.Event = stream.record_event()
    return event


def mark(device: torch.device) -> Mark:
    """Return a mark of the work that is queued so far on the current stream of a device."""
    return _record(_current_stream(device)) if device.type == "cuda" else None


def wait_for(device: torch.device, until: Mark) -> None:
    """Let work that is queued later on the current stream of a device wait for a mark."""
    if until is not None:
        _current_stream(device).wait_event(until)


def is_captured(device: torch.device) -> bool:
    """Return whether launches are being captured into a CUDA graph, to run later."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def _current_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the current stream in a third of the time of torch.cuda.current_stream: 3 instead of
    10 us on an H200's host.
    """
    index = torch.cuda.current_device() if device.index is None else device.index
    return _stream(*torch._C._cuda_getCurrentStream(index))


@cache
def _stream(stream_id: int, device_index: int, device_type: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(
        stream_id=stream_id, device_index=device_index, device_type=device_type
    )  # type: ignore[no-untyped-call]


def cuda_count() -> int:
    """Return how many CUDA devices torch can use here."""
    return torch.cuda.device_count()


def cpu_count() -> int:
    """Return the cores this process may use, which a container or taskset can make fewer than the
    machine has.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_fact(name: str) -> str:
    """Return what Linux says of the first core, such as its "model name"; "" if it says nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    facts = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in facts if key.strip() == name), "")


def _cpu_name() -> str:
    return cpu_fact("model name") or platform.processor() or platform.machine()


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def free_memory(device: torch.device) -> int:
    """Return the bytes that a new allocation on `device` can get, with torch's own cache; on the
    CPU within the limits of containers and jobs.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if device.type == "meta":  # kernels are only compiled: nothing is allocated
        return describe(device).memory
    available = int(psutil.virtual_memory().available)
    return min([available, *map(_free_of_group, _limited_groups())])


@cache
def _limited_groups() -> tuple[Path, ...]:
    """Return the control groups (cgroup v2) that limit the memory of this process, as those of
    containers and of jobs do.
    """
    try:
        lines = _OWN_GROUP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    names = [line.removeprefix("0::/") for line in lines if line.startswith("0::/")]
    groups = [group for name in names for group in (_GROUPS / name, *(_GROUPS / name).parents)]
    return tuple(group for group in groups if _facts_of_group(group, "memory.max").isdecimal())


def _free_of_group(group: Path) -> int:
    """Return how many bytes a control group may still take; the cache of files can be dropped."""
    facts = dict(line.split() for line in _facts_of_group(group, "memory.stat").splitlines())
    cached = sum(int(facts.get(name, 0)) for name in ("active_file", "inactive_file"))
    limit, used = (_facts_of_group(group, name) for name in ("memory.max", "memory.current"))
    if not (limit.isdecimal() and used.isdecimal()):  # the limit is gone
        return sys.maxsize
    return max(0, int(limit) - int(used) + cached)


def _facts_of_group(group: Path, name: str) -> str:
    try:
        return (group / name).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
