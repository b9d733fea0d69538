"""The plan of a dense solve: method, engine and configuration, and how the solve is carried out."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import torch

from tri_apsp import engines, tuned
from tri_apsp.arguments import DenseBatch, check_method
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.cycles.dense import matrices_of_marking
from tri_apsp.methods import METHODS, Method, auto, require_used
from tri_apsp.plan import BY_NAME, Options, Plan


@dataclass(frozen=True, kw_only=True)
class DensePlan(Plan):
    """How weights (batch, n, n) of one dtype and device are solved.

    Attributes:
        implementation: the method itself.
        options: what the caller wants of the distances.
        call: the lookup of the configuration; None if it is given, for weights of either sign.
        given: the method as the caller gave it, and the configuration asked for.
        nonnegative: whether no weight is negative; taken for granted until the values are read.
        in_place: whether the solve works in the memory of the weights.
        in_out: whether it works in a copy of them in `out`.
        matrices: what the call allocates, in matrices of the size of the weights.
        threshold: of products by exponents, once the values are read; None: no product.
        by_density: whether edges must be counted first, since few lead to a method of sparse
            graphs.
    """

    config: CompleteConfig
    implementation: Method = field(repr=False)
    options: Options = field(repr=False)
    matrices: float = field(repr=False)
    call: tuned.LookupCall | None = field(default=None, repr=False)
    given: tuple[str, Config | None] = field(default=("auto", None), repr=False)
    nonnegative: bool = True
    in_place: bool = False
    in_out: bool = False
    threshold: int | None = None
    by_density: bool = field(default=False, repr=False)

    def for_any_sign(self) -> DensePlan:
        """Return the plan for weights of which some may be negative.

        A solve in one launch keeps its configuration, since the values are read after it.
        """
        if not self.nonnegative:
            return self
        if self.call is None or self.way == "one launch":
            return dataclasses.replace(self, nonnegative=False)
        call = self.call._replace(sign="any")
        method, config, reason = _choose(call, *self.given)
        return dataclasses.replace(
            self,
            method=method,
            implementation=METHODS[method],
            config=config,
            reason=reason,
            call=call,
            nonnegative=False,
        )

    def by_exponents(self, threshold: int | None) -> DensePlan:
        """Return the plan whose products of at least a threshold are tried by exponents."""
        if threshold is None:
            return self
        return dataclasses.replace(self, threshold=threshold, exponents=True)


def plan_dense(
    batch: DenseBatch,
    method: str = "auto",
    config: Config | None = None,
    options: Options = Options(),
    out: torch.Tensor | None = None,
) -> DensePlan:
    """Return what solves weights whose values are not read.

    Args:
        batch: the weights.
        method: "auto", or a key of METHODS.
        config: what the caller asks for.
        options: checked.
        out: where the distances (batch, n, n) go; None: to a new tensor.

    Raises:
        InputError: no such method; a configuration that cannot run.
        EngineError: the engine that `config` names, or every engine, cannot run on the device.
    """
    check_method(method, ("auto", *METHODS))
    weights, wanted = batch.weights, tuned.with_forced(config)
    require_used(method, METHODS.get(method), config)
    engine = engines.choose(weights.device, wanted, weights.dtype)
    call = tuned.call_of(
        engine,
        weights.device,
        weights.dtype,
        n=batch.n,
        batch=batch.count,
        nonnegative=options.check,
    )
    chosen, complete, reason = _choose(call, method, wanted)
    plan = plan_with(batch, chosen, complete, options=options, reason=reason, out=out)
    return dataclasses.replace(plan, call=call, given=(method, wanted))


def plan_with(
    batch: DenseBatch,
    method: str,
    config: CompleteConfig,
    *,
    implementation: Method | None = None,
    options: Options = Options(),
    reason: str = BY_NAME,
    out: torch.Tensor | None = None,
) -> DensePlan:
    """Return the plan of a method with a complete configuration, for weights of either sign.

    Args:
        batch: the weights.
        method: the name of the method.
        config: of the engine.
        implementation: the method itself; None: that of METHODS.
        options: checked.
        reason: why the method was chosen.
        out: as for plan_dense.
    """
    weights, implementation = batch.weights, implementation or METHODS[method]
    engine_type = engines.type_of(config.engine)
    in_place = options.overwrite and engine_type.can_solve_in_place(weights)
    one_launch = (
        _is_one_block(method, config, batch.n)
        and not options.overwrite
        and engine_type.can_solve_in_one_launch(weights, batch.sizes, check=options.check)
    )
    in_out = out is not None and not one_launch and engine_type.can_start_in(out)
    matrices = (0 if in_place or in_out else 1) + implementation.workspace
    if options.predecessors:
        index = torch.int32.itemsize / weights.itemsize
        matrices = max(matrices, 1 + index + engine_type.predecessors_workspace(weights))
    if options.negative_cycles == "mark":
        matrices += matrices_of_marking(weights.dtype)
    return DensePlan(
        way="one launch" if one_launch else "dense",
        method=method,
        implementation=implementation,
        engine=config.engine,
        config=config,
        reason=reason,
        memory=round(matrices * weights.numel() * weights.itemsize),
        matrices=matrices,
        options=options,
        in_place=in_place,
        in_out=in_out,
        nonnegative=options.check,
    )


def _is_one_block(method: str, config: CompleteConfig, n: int) -> bool:
    return method == "floyd_warshall" and n <= config.block_size


def _choose(
    call: tuned.LookupCall, method: str, config: Config | None
) -> tuple[str, CompleteConfig, str]:
    """Return the method by name or by the rules of methods.auto, a complete configuration, and the
    reason.
    """
    found = tuned.config_for_call(call, config)
    if method != "auto":
        return method, found, BY_NAME
    rule = auto.choose(call.n, found)
    by_name = config is not None and config.method is not None
    return rule.method, found, BY_NAME if by_name else auto.reason(rule, found)
