"""The stage that turns a sparse plan into the final one. The values of the weights decide: whether
potentials are needed, what negative cycles reach, and whether the graph stays sparse while its
vertices are eliminated.
"""

import dataclasses
from typing import NamedTuple

import torch

from tri_apsp import engines
from tri_apsp.cycles.search import NegativeCycle, allowance_of
from tri_apsp.cycles.sparse import Reweighted, SparseComponents, reweight
from tri_apsp.elimination.base import Sweeps
from tri_apsp.elimination.prepared import PreparedGraph, ordered
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.messages import counted
from tri_apsp.sparse.choice import one_row_method
from tri_apsp.sparse.plan import SparsePlan, engine_name


class Settled(NamedTuple):
    """A final plan, and what its rows share.

    Attributes:
        plan: the final one: its method and its engine solve.
        given: the graph whose distances are wanted.
        graph: the graph that is solved: that one, or with potentials, without negative cycles, or
            in a dtype that holds all sums.
        sources: those of the plan, (rows,) of int64 on the CPU.
        sweeps: of the solved graph, if the method is "elimination".
        reweighted: the potentials; None without.
        components: the negative cycles that were removed; None without.
        negative_cycle: one that is marked; None if the sources lead to none.
    """

    plan: SparsePlan
    given: SparseGraph
    graph: SparseGraph
    sources: torch.Tensor
    sweeps: Sweeps | None
    reweighted: Reweighted | None
    components: SparseComponents | None
    negative_cycle: NegativeCycle | None


def settle(graph: SparseGraph, plan: SparsePlan, cycle_vertices: int | None = None) -> Settled:
    """Return the final plan of a solve by rows.

    Args:
        cycle_vertices: the most vertices of a cycle; None: all.

    Raises:
        InputError: the method does not solve this graph.
        NegativeCycleError: a source leads to a negative cycle.
        DistanceRangeError: a potential does not fit the dtype.
    """
    engines.choose(graph.device)  # which raises if no kernel can run
    sources = torch.arange(graph.n) if plan.sources is None else plan.sources
    solved, reweighted, components = graph, None, None
    # Predecessors beside negative weights need potentials.
    direct = graph.lowest == 0 or not plan.options.predecessors
    sweeps = _sweeps_of(graph, plan) if direct else None
    if graph.lowest < 0 and sweeps is None:
        weights, error = graph.by_source.weights, plan.options.weight_error
        allowance = allowance_of(weights, cycle_vertices or graph.n, error)
        while (reweighted := reweight(solved, allowance)) is None:
            components = components or SparseComponents(solved, allowance)
            solved = components.remove_from(solved)
        solved = reweighted.graph
        sweeps = _sweeps_of(solved, plan)
    reached = None if components is None else components.first_reached(sources)
    if reached is not None and plan.options.negative_cycles == "raise":
        raise NegativeCycleError(reached.vertices, labels=graph.labels, weight=reached.weight)
    if sweeps is not None:
        if (plan.method, plan.engine) != ("elimination", sweeps.engine):
            plan = dataclasses.replace(plan, method="elimination", engine=sweeps.engine)
        solved = solved.in_sums_dtype()
    elif plan.method == "elimination":
        raise InputError(
            "method 'elimination' needs a graph that stays sparse while vertices are "
            f"eliminated, as road networks do, but {counted(solved.n, 'vertex', 'vertices')} with "
            f'{counted(solved.edges, "edge")} do not; give method="auto".'
        )
    return Settled(plan, graph, solved, sources, sweeps, reweighted, components, reached)


def settle_nearest(graph: SparseGraph, plan: SparsePlan) -> tuple[SparsePlan, Sweeps | None]:
    """Return the final plan of a solve from the nearest source, and the sweeps that solve it, if
    any.
    """
    sweeps = None if plan.options.predecessors else _sweeps_of(graph, plan)
    sums_fit = graph.sums_fit or graph.sums_dtype != graph.dtype
    if sweeps is not None and sums_fit:  # else a vertex too far away would seem not reached
        return dataclasses.replace(plan, method="elimination", engine=sweeps.engine), sweeps
    method = plan.method
    if method == "elimination" and isinstance(graph, PreparedGraph):
        # Another vertex is added, which the order does not have.
        method = one_row_method(graph)
    return dataclasses.replace(plan, method=method, engine=engine_name(graph.device, method)), None


def _sweeps_of(graph: SparseGraph, plan: SparsePlan) -> Sweeps | None:
    """Return the sweeps of a graph where its plan eliminates; None if the graph does not stay
    sparse, or its weights are not for them.
    """
    if not (plan.may_eliminate or plan.method == "elimination"):
        return None
    if not isinstance(graph, PreparedGraph) or graph.tree is None:
        graph = ordered(graph, "auto")
    return graph.sweeps
