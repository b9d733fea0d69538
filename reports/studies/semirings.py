"""How fast are products over other semirings? Alone, and beside those of torch and of other
projects; and Viterbi's algorithm by such products.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from reports.studies.calls import by_label, runs_of, seconds_of, table_of
from reports.studies.markdown import section
from reports.studies.study import (
    Group,
    Measurer,
    Page,
    Platform,
    Point,
    Study,
    StudyRow,
    grouped,
)
from tri_apsp.api import direct_products, min_plus, semiring_product
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import CompleteConfig
from tri_apsp.console.output import amount
from tri_apsp.device import Device
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError

_Work = Callable[[], Any]

_OURS, _TORCH, _EINSUM = "tri_apsp", "torch", "torch-semiring-einsum"
_TROPICAL, _HMMLEARN = "tropical-gemm", "hmmlearn"
_VITERBI, _ARGUMENTS, _MAX_PLUS = "Viterbi", " with arguments", "max_plus with arguments"
# Operands are integers below _VALUES, of floats divided by _DIVISOR: sums and products are exact in
# float32, and no exponential underflows. By sign, what they are multiplied by, and what is added.
_VALUES, _DIVISOR = 1000, 64
_SIGNS = {"not negative": (1, 0), "not positive": (-1, 0), "any sign": (1, -_VALUES // 2)}
_PRODUCTS = (
    ("min_plus", "not negative"),
    ("max_min", "any sign"),
    ("min_plus", "any sign"),
    ("max_plus", "not positive"),
    ("max_plus", "any sign"),
    ("min_max", "any sign"),
    ("max_times", "not negative"),
    ("log", "not positive"),
)
_OF_INTEGERS, _SIGN_OF = _PRODUCTS[:2], dict(reversed(_PRODUCTS))
# What a product adds up, and the function of torch that does.
_TERMS: dict[str, tuple[Callable[..., torch.Tensor], str]] = {
    "min_plus": (torch.add, "amin"),
    "max_plus": (torch.add, "amax"),
    "max_min": (torch.minimum, "amax"),
    "min_max": (torch.maximum, "amin"),
    "max_times": (torch.mul, "amax"),
    "log": (torch.add, "logsumexp"),
}
# The rows that are compared, the error of a logarithm, and the time of a call that is not repeated.
_CHECKED, _ROUNDING, _LONG_MS = 8, 2e-5, 2000.0
_SOURCES = ("semirings.py", "dense/product.py", "engines/log_product.py")
# Up to this n, others are measured too, with as many terms in memory as is the best of _BLOCKS.
_LARGEST_OF_OTHERS = {"cuda": 4096, "cpu": 1024}
_BLOCKS = {"cuda": (1 << 28, 1 << 30), "cpu": (1 << 22, 1 << 26)}
_CALLS = {
    _OURS: ("max_plus", _MAX_PLUS, "max_min", "log"),
    _TORCH: ("max_plus", _MAX_PLUS, "max_min", "log"),
    _EINSUM: (_MAX_PLUS, "log"),  # no other operations
    _TROPICAL: ("max_plus", _MAX_PLUS),
    _HMMLEARN: (),
}
_SEQUENCES = {
    "cuda": {
        _OURS: "1000 steps of 64 sequences",
        _EINSUM: "20 steps of 64 sequences",
        _HMMLEARN: "20 steps of 1 sequence",
    },
    "cpu": {
        _OURS: "100 steps of 8 sequences",
        _EINSUM: "20 steps of 8 sequences",
        _HMMLEARN: "20 steps of 1 sequence",
    },
}


def _viterbi(
    step: Callable[[torch.Tensor], torch.Tensor], a: torch.Tensor, b: torch.Tensor
) -> torch.Tensor:
    """Return states (steps, batch) of costs (states, states) and (steps, batch, states), as the
    function of docs/how-to/semirings.md does, whose `step` is a min-plus product with `a`.
    """
    costs = [b[0]]
    for emission in b[1:]:
        costs.append(step(costs[-1]) + emission)
    states, to_state = [costs[-1].argmin(1)], a.mT.contiguous()
    for before in costs[-2::-1]:
        states.append((before + to_state[states[-1]]).argmin(1))
    return torch.stack(states[::-1])


def _own(call: str, a: torch.Tensor, b: torch.Tensor, block: int) -> _Work:
    if call == _VITERBI:
        return partial(_viterbi, lambda costs: min_plus(costs, a, check=False), a, b)
    semiring, _, more = call.partition(" ")
    return partial(semiring_product, a, b, semiring=semiring, return_arguments=bool(more))


def _by_torch(call: str, a: torch.Tensor, b: torch.Tensor, block: int) -> _Work:
    """All terms of some rows at a time."""
    semiring, _, more = call.partition(" ")
    times, name = _TERMS[semiring]
    add_up = getattr(torch, name.removeprefix("a") if more else name)
    rows = torch.split(a[:, :, None], max(1, block // b.numel()))

    def run() -> Any:
        found = [add_up(times(some, b), dim=1) for some in rows]
        return tuple(map(torch.cat, zip(*found, strict=True))) if more else torch.cat(found)

    return run


def _by_einsum(call: str, a: torch.Tensor, b: torch.Tensor, block: int) -> _Work:
    """Some terms of all values at a time, which lie side by side in memory: faster than others."""
    project = import_module("torch_semiring_einsum")
    left, right = (b[0], -a.mT.contiguous()) if call == _VITERBI else (a, b.mT.contiguous())
    equation, size = project.compile_equation("ik,jk->ij"), max(1, block // left.numel())
    forward = project.log_einsum if call == "log" else project.log_viterbi_einsum_forward
    product = partial(forward, equation, block_size=size)
    if call == _VITERBI:
        return partial(_viterbi, lambda costs: -product(-costs, right)[0], a, b)
    return partial(product, a, right)


def _by_tropical_gemm(call: str, a: torch.Tensor, b: torch.Tensor, block: int) -> _Work:
    name = "maxplus_matmul_2d" if call == "max_plus" else "maxplus_matmul_with_argmax"
    return partial(getattr(import_module("tropical_gemm"), name), a.cpu().numpy(), b.cpu().numpy())


def _by_hmmlearn(call: str, a: torch.Tensor, b: torch.Tensor, block: int) -> _Work:
    """What `decode` of its models does with the logarithms of emissions, for each sequence."""
    find = partial(import_module("hmmlearn._hmmc").viterbi, np.ones(len(a)))
    transitions, emissions = (-a).double().exp().cpu().numpy(), (-b).double().cpu().numpy()
    sequences = [*map(np.ascontiguousarray, emissions.swapaxes(0, 1))]
    return lambda: np.stack([find(transitions, sequence)[1] for sequence in sequences], axis=1)


_BY: dict[str, Callable[[str, torch.Tensor, torch.Tensor, int], _Work]] = {
    _OURS: _own,
    _TORCH: _by_torch,
    _EINSUM: _by_einsum,
    _TROPICAL: _by_tropical_gemm,
    _HMMLEARN: _by_hmmlearn,
}


def _groups(task: TuningTask, base: CompleteConfig, device: Device) -> list[Group]:
    """Return the group of all products; of small ones, of those that others compute, and of
    Viterbi's algorithm.
    """
    cases: list[tuple[str, str, str]] = []
    if task.n <= _LARGEST_OF_OTHERS[device.kind] and task.dtype == "float32":
        for by, calls in _CALLS.items():
            cases += [(call, _SIGN_OF[call.partition(" ")[0]], by) for call in calls]
        cases += [(_VITERBI, graph, by) for by, graph in _SEQUENCES[device.kind].items()]
    else:
        products = _PRODUCTS if task.torch_dtype.is_floating_point else _OF_INTEGERS
        cases += [(call, sign, _OURS) for call, sign in products]
        if task.dtype == "float32":
            more = [call for call in _TERMS if call != "log"]
            cases += [(f"{call}{_ARGUMENTS}", _SIGN_OF[call], _OURS) for call in more]
    points = [
        Point({"call": call, "graph": graph, "by": by, "block": block}, sources=_SOURCES)
        for call, graph, by in cases
        if find_spec(by.replace("-", "_")) is not None
        for block in (_BLOCKS[device.kind] if by in (_TORCH, _EINSUM) else (0,))
    ]
    return [Group("Products", task, tuple(points))]


def _operands(task: TuningTask, graph: str, device: torch.device) -> list[torch.Tensor]:
    """Return the operands of a product, or the costs of transitions and of emissions."""
    random = torch.Generator(device).manual_seed(task.n)
    factor, more = _SIGNS.get(graph, (1, 0))
    divisor = _DIVISOR if task.torch_dtype.is_floating_point else 1
    lengths = [int(word) for word in graph.split() if word.isdecimal()] or [task.n]
    shapes = [(task.n, task.n), (*lengths, task.n)]
    drawn = [torch.randint(_VALUES, each, generator=random, device=device) for each in shapes]
    return [((factor * x + more) / divisor).to(task.torch_dtype) for x in drawn]


def _error(call: str, a: torch.Tensor, b: torch.Tensor, result: Any) -> float:
    """Return the largest error of some rows of a product, and of their arguments, beside the
    definition in float64; or that of the costs of states, beside the least.
    """
    found = [torch.as_tensor(part).to(a.device) for part in _parts(result)]
    if call == _VITERBI:
        (states,), transitions, least = found, a.double(), b[0].double()
        for emission in b[1:]:
            least = min_plus(least, transitions, check=False) + emission
        costs = b.gather(2, states[..., None]).double().sum((0, 2))
        costs += transitions[states[:-1], states[1:]].sum(0)
        return float((costs - least.amin(1)).abs().max())
    rows = slice(None, None, max(1, len(a) // _CHECKED))
    right = _parts(_by_torch(call, a[rows].double(), b.double(), 1)())
    pairs = zip(found, right, strict=True)
    return max(float((part.reshape(a.shape)[rows] - one).abs().max()) for part, one in pairs)


def _parts(result: Any) -> Sequence[Any]:
    return result if isinstance(result, tuple) else (result,)


class _SemiringsMeasurer(Measurer):
    """Measures in this process, without the time of checks."""

    def measure(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        call, graph, by, block = point.values.values()
        a, b = _operands(task, str(graph), self.device)
        work = _BY[str(by)](str(call), a, b, int(block))
        with direct_products():
            error = _error(str(call), a, b, work())
            if not error <= (_ROUNDING if call == "log" else 0):
                raise WrongResultError(f"the largest error is {error:g}")
            samples = [1000 * timed(work, self.device)[1]]
            if samples[0] < _LONG_MS:
                warm_up(work, self.device)
                samples = runs_of(work, self.device)
        # The first step has no product.
        operations = (b[1:] if call == _VITERBI else b).numel() * task.n
        times = Times.of(samples)
        rate = {"ops_per_second": 1000 * operations / times.p50_ms}
        return Outcome(OutcomeKind.correct, times, metrics=rate)


def _page(rows: Sequence[StudyRow], platform: Platform, name: str) -> Page:
    parts = []
    for (n,), same in reversed(grouped(rows, "n").items()):
        keys = grouped(same, "call", "graph", "by", "dtype")
        shown = partial(
            by_label,
            [min(blocks, key=seconds_of) for blocks in keys.values()],
            lambda row: f"{row['call']}, {row['graph']}",
            lambda row: f"{row['by']}, {row['dtype']}",
        )
        rates = shown(lambda row: float(row["ops_per_second"]))
        tables = table_of(shown(), column="{}"), table_of(rates, lambda x: f"{amount(x)}/s", "{}")
        parts.append(section(f"n = {n}", *tables))
    return Page({}, parts)


SEMIRINGS_STUDY = Study(
    name="semirings",
    summary="products over other semirings and Viterbi's algorithm, compared with torch, "
    "torch-semiring-einsum, tropical-gemm and hmmlearn",
    question="How fast are products over other semirings?",
    parameters=("call", "graph", "by", "block"),
    cases={
        "nvidia": {
            "float32": (("product", 8192), ("product", 4096)),
            "int16": (("product", 8192),),
        },
        "cpu": {
            "float32": (("product", 2048), ("product", 1024)),
            "float64": (("product", 2048),),
            "int16": (("product", 2048),),
        },
    },
    groups_of=_groups,
    measurer=_SemiringsMeasurer,
    page=_page,
    peers=(_EINSUM, _TROPICAL, _HMMLEARN),
)
