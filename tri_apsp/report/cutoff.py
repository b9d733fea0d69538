"""Where should the recursion stop? The cutoff β, beside Henriod."""

from __future__ import annotations

import dataclasses
from functools import partial

from tri_apsp.configs import CompleteConfig
from tri_apsp.device import Device
from tri_apsp.report.config_page import Why, page_of_configs
from tri_apsp.report.grids import Curve, Grid, Panel, Point
from tri_apsp.report.papers import PaperCurve
from tri_apsp.report.study import Cases, Study
from tri_apsp.tune.space.task import Task
from tri_apsp.tuned.records import Values

__all__ = ["STUDY"]

_CASES: dict[str, Cases] = {
    "nvidia": {"float32": (("solve", 8192), ("solve", 1024), ("solve", 256))},
    "portable": {"float32": (("solve", 8192), ("solve", 1024), ("solve", 256))},
    "cpu": {"float32": (("solve", 1024), ("solve", 256), ("solve", 2048))},
}
_BETAS = (16, 32, 64, 128, 256, 512, 1024, 2048)
# The largest block of one closure: a larger one takes minutes to compile with the portable engine,
# and seconds to run on a core of a CPU.
_LARGEST_BLOCK = {"portable": 128, "cpu": 512}
_PARAMETERS = ("cutoff", "block_size")
_HENRIOD = PaperCurve("Henriod (GTX 480): best", {16: 1.0})


def _grids(task: Task, base: CompleteConfig, device: Device) -> list[Grid]:
    base = dataclasses.replace(base, method="kleene")
    most = _LARGEST_BLOCK.get(task.engine)
    points = []
    # At β = n nothing is divided. Every other β comes first, so that a small budget still shows the
    # whole curve.
    betas = [beta for beta in _BETAS if beta <= task.n] or [task.n]
    for beta in sorted(betas, key=lambda beta: betas.index(beta) % 2):
        blocks = [beta] if most is None or beta <= most else []
        if most is not None:
            blocks.append(min(beta, base.block_size))
        points += [_point(base, beta, block) for block in dict.fromkeys(blocks)]
    curves = [Curve("base case: one closure", partial(_beta, whole=True))]
    if any(point.values["cutoff"] != point.values["block_size"] for point in points):
        curves.append(
            Curve(
                f"base case: in blocks of {base.block_size}", partial(_beta, block=base.block_size)
            )
        )
    return [
        Grid(
            "solve",
            "recursion cutoff",
            task,
            (Panel("β", tuple(curves), (_HENRIOD,)),),
            tuple(points),
        )
    ]


def _point(base: CompleteConfig, beta: int, block: int) -> Point:
    return Point(
        {"cutoff": beta, "block_size": block},
        dataclasses.replace(base, cutoff=beta, block_size=block),
    )


def _beta(values: Values, *, whole: bool = False, block: int = 0) -> float | None:
    """Return β if the base case is solved by one closure (`whole`) or in blocks of up to `block`;
    None otherwise.
    """
    beta, size = int(values["cutoff"]), int(values["block_size"])
    return beta if (whole and size == beta) or (not whole and size == min(block, beta)) else None


_ON_GPU = Why(
    16, "one closure is spread over many programs, and a shorter recursion has fewer launches"
)
_ON_CPU = Why(16, "each division and base case that is saved saves a fixed cost")

STUDY = Study(
    name="cutoff",
    question="Where should the recursion stop?",
    parameters=_PARAMETERS,
    cases=_CASES,
    grids_of=_grids,
    page=partial(page_of_configs, then="β = 16 was best (Henriod)", on_gpu=_ON_GPU, on_cpu=_ON_CPU),
)
