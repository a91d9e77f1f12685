"""Exact node placement by column generation over contents of nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from optsched.arrays import Flags
from optsched.errors import InputError
from optsched.models.export import cp_sat_model
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import WHOLE
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress, StoppedError
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.generic import Search
from optsched.solvers.node_placement._leaf_bound import LeafBound
from optsched.solvers.node_placement._leaf_search import LeafSearch, can_search
from optsched.solvers.node_placement._node_state import limited_jobs
from optsched.solvers.node_placement._packing import FragmentationSearch, Packing
from optsched.solvers.node_placement._plan import PartialPlacement
from optsched.solvers.node_placement._types import Instance
from optsched.solvers.node_placement._whole_nodes import alike_nodes, has_limits, pools
from optsched.solvers.node_placement.fit_rules import BestFit, FirstFit
from optsched.solvers.node_placement.switch_groups import SwitchGroups
from optsched.solvers.result import Budget, Limit

MOST_PAIRS = 300_000
"""Largest number of jobs times nodes that CP-SAT searches."""

FEW_PAIRS = 2_000
"""Number of jobs times nodes up to which jobs with limits are not placed first."""

AROUND = 0.2
"""Share of the budget left for each of the problems without these limits."""

WEIGHING = 0.8
"""Most of the budget that goes to the weight where the fragmentation matters next."""

PACKING = 0.5
"""Share of the budget for the weight where switches or idle nodes are minimized, too."""

SPANNING = (0.05, 0.3, 1.0)
"""Shares of the budget left that the search for few switches takes, after each bound of them."""

BOUNDING = 0.3
"""Most of the budget left that a bound of switches takes."""

PATIENCE, PATIENCE_PER_PAIR = 100, 2
"""Attempts in vain at few switches after which a bound, and then a program, is searched, and more
for each job and node."""

SECONDS_PER_PAIR = 1e-8
"""Nominal seconds of the first placement, for each job and node."""


@solvers.register("column-generation")
@dataclass(frozen=True)
class ColumnGeneration(AnytimeSolver):
    """Most weight by column generation over the contents of nodes, then CP-SAT.

    Jobs of whole nodes on the fewest switches go to `SwitchGroups`. Where levels limit the groups
    of jobs and no node holds two chunks, nodes that are alike become one. Otherwise a placement by
    a rule is improved until it is proven or a limit is reached, by these strategies in turn:

    1. The linear relaxation over contents of nodes bounds the weight. Jobs and nodes that are alike
       are counted.
    2. If no switch, block or level limits a job, a dive rounds the relaxation.
    3. If jobs have several chunks, too, an integer program over prices of the relaxation chooses
       jobs, and bounds the weight.
    4. An integer program combines the contents found, if nodes are of at most 200 kinds.
    5. Time and again, some nodes are emptied and packed anew.
    6. If switches or idle nodes are minimized next, a large neighbourhood search lowers them at the
       weight found, and a Lagrangian relaxation over leaves bounds the switches.
    7. If the fragmentation is minimized next and no job has nodes to itself, it becomes a cost of
       contents: at the weight found, their relaxation bounds it, and an integer program over them
       lowers it. The bound counts if the weight is proven and no job has weight 0.
    8. If switches, blocks or levels limit some jobs, and there are more than 2,000 pairs of jobs
       and nodes, these jobs are placed first and the others packed around them.
    9. CP-SAT searches the program, if there are at most 300,000 pairs. With more, the limit is that
       of memory.

    Work is counted in nominal seconds of the steps of all parts.

    Examples
    --------
    >>> problem = NodePlacement(
    ...     ["cores"], free=[[8], [6]], chunks=[2, 1, 1], demand=[[4], [5], [3]],
    ...     weights=[8, 5, 3])
    >>> result = ColumnGeneration().solve(problem, budget=Budget())
    >>> result.status, result.objective
    (<Status.OPTIMAL: 'optimal'>, 13)
    """

    models = frozenset({"node-placement"})
    work_unit = "nominal seconds"
    seconds_per_solve = 5e-3
    seconds_per_work = 1.0
    default_work = 1.0
    requires = "highspy"

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Import HiGHS and OR-Tools, and compile the kernels that `problem` needs, or load them."""
        CpSat().prepare()
        _compile()
        if isinstance(problem, NodePlacement) and _is_of_whole_nodes(problem):
            SwitchGroups().prepare(problem)
        if not isinstance(problem, NodePlacement) or _reduces_fragmentation(problem):
            _compile_fragmentation()

    def search(
        self, problem: NodePlacement, progress: Progress, hint: Placements | None, seed: int
    ) -> None:
        """Improve a placement by a rule, strategy after strategy."""
        if _is_of_whole_nodes(problem):
            solver = SwitchGroups()
            progress.go_on(solver, problem, seed, hint=hint, price=solver.seconds_per_work)
            return
        counted = alike_nodes(problem) if has_limits(problem) else None
        if counted is not None:
            problem = counted.problem
            hint = None if hint is None else counted.counted(hint)
        search = _Search(problem, progress)
        search.start(hint)
        try:
            search.run(seed)
        finally:
            if counted is not None:
                progress.solution = counted.spread(progress.solution)


class _Search:
    """The search for the best placement of a problem."""

    _packing: Packing

    def __init__(self, problem: NodePlacement, progress: Progress) -> None:
        self._problem, self._progress = problem, progress
        self._instance = Instance(problem)
        classes = self._instance.classes
        self._most_weight = int(classes.weights @ classes.jobs)
        self._radix = math.prod(problem.radices)
        self._only_weight = not problem.then and _spans_nothing(problem)
        self._reduces_fragmentation = _reduces_fragmentation(problem)
        self._limit: Limit | None = Limit.MEMORY  # of the last strategy, unless it is run

    def start(self, hint: Placements | None) -> None:
        """Take the hint, or the first placement if it is better."""
        problem, progress = self._problem, self._progress
        found = _first(problem, self._instance)
        if hint is not None:
            found = max(found, hint, key=problem.objective)
        progress.work += SECONDS_PER_PAIR * len(problem.chunks) * len(problem.free)
        progress.offer(found, problem.objective(found), self._most_weight * self._radix)

    def run(self, seed: int) -> None:
        """Run strategies until the placement is proven, or a limit is reached."""
        problem, jobs = self._problem, bool(self._instance.jobs_of)
        pairs, limited = len(problem.chunks) * len(problem.free), not _spans_nothing(problem)
        free = jobs and not limited
        leaves = free and problem.then[:1] not in ((), ("fragmentation",)) and can_search(problem)
        for is_apt, strategy in (
            (jobs, self._relax),
            (free, lambda: self._weigh(self._packing.round())),
            (free, lambda: self._weigh(self._packing.choose())),
            (free, lambda: self._weigh(self._packing.combine())),
            (free, lambda: self._weigh(self._packing.repack(seed))),
            (leaves, lambda: self._span_few(seed)),
            (jobs and self._reduces_fragmentation, self._reduce_fragmentation),
            (limited and pairs > FEW_PAIRS, lambda: self._pack_around(seed)),
            (pairs <= MOST_PAIRS, lambda: self._search_program(seed)),
        ):
            if self._progress.is_proven:
                return
            self._progress.check()
            if is_apt:
                strategy()
        if self._limit is not None and not self._progress.is_proven:
            raise StoppedError(self._limit)

    def _relax(self) -> None:
        start = PartialPlacement(self._instance)
        if self._only_weight or self._reduces_fragmentation:
            start.take(self._progress.solution)
        self._packing = Packing(self._instance, self._progress, start)
        self._packing.relax()
        self._bound_weight(self._packing.bound)

    def _bound_weight(self, weight: int) -> None:
        self._most_weight = min(self._most_weight, weight)
        self._lower(self._most_weight * self._radix)

    def _weigh(self, steps: Iterator[None]) -> None:
        """Search for the greatest weight in its share of the budget."""
        packing, until = self._packing, 1.0
        if self._problem.then:
            until = WEIGHING if self._reduces_fragmentation else PACKING
        if self._progress.spent() < until:
            for _ in steps:
                self._bound_weight(packing.bound)
                if packing.plan.value * self._radix > self._value:
                    self._offer(packing.placements())
                if self._progress.spent() >= until:
                    break
        self._bound_weight(packing.bound)

    def _span_few(self, seed: int) -> None:
        """Search for few switches and idle nodes at the weight found, and bound the switches."""
        problem, packing, progress = self._problem, self._packing, self._progress
        self._offer(packing.placements())
        search = LeafSearch(problem, progress.solution, progress, seed)
        pairs = len(problem.chunks) * len(problem.free)
        limits: LeafBound | None = None
        for share in SPANNING:
            if "switches" in problem.then:
                until = progress.after(BOUNDING)
                limits = limits or LeafBound(self._instance, packing, progress, until)
                limits.raise_to(problem.measures(progress.solution)["switches"], until)
                scale = math.prod(problem.radices[problem.then.index("switches") + 1 :])
                self._lower(self._most_weight * self._radix - scale * limits.bound)
            if progress.is_proven or progress.exhausted():
                return
            patience = PATIENCE + PATIENCE_PER_PAIR * pairs
            assert progress.bound is not None  # that of the weight
            search.run(progress.after(share), patience, progress.bound)
            self._offer(search.placements())

    def _pack_around(self, seed: int) -> None:
        """Place jobs with limits first, and pack the others around them."""
        progress = self._progress

        def solved(problem: NodePlacement) -> Placements | None:
            result = ColumnGeneration().solve(problem, budget=progress.rest(AROUND), seed=seed)
            progress.work += result.work or 0
            solution: Placements | None = result.solution
            return solution

        found = packed_around(self._problem, solved)
        if found is not None:
            self._offer(found)

    def _reduce_fragmentation(self) -> None:
        """Search for less fragmentation at the weight found; its bound counts if that is proven."""
        instance = self._instance
        search = FragmentationSearch(self._problem, self._progress, self._progress.solution)
        most, *later = self._problem.radices
        for _ in search.run():
            self._offer(search.plan.placements())
            if search.weight == self._most_weight and not instance.weightless:
                self._lower((search.weight * most - search.bound) * math.prod(later))
        if instance.weightless:
            search.plan.fill(instance.weightless)
            self._offer(search.plan.placements())

    def _search_program(self, seed: int) -> None:
        problem, progress = self._problem, self._progress
        price = CpSat.seconds_per_work
        search = Search(progress.rest(price=price), seed, progress.follow)
        search.begin(problem, progress.solution)
        model = cp_sat_model(search.program)
        row = model.proto.constraints.add().linear  # the first variables tell what is placed
        row.vars.extend(range(len(problem.chunks)))
        row.coeffs.extend(problem.weights.tolist())
        row.domain.extend((0, self._most_weight))
        outcome = search.checked(CpSat().search_model(model, search))
        progress.work += outcome.work * price
        if outcome.message:
            raise ArithmeticError(outcome.message)
        _, x, bound = search.conclude(outcome)
        assert x is not None
        self._offer(search.formulation.decode(x))
        if bound is not None:
            self._lower(bound)
        self._limit = outcome.limit

    @property
    def _value(self) -> int:
        """Objective of the best placement, which `start` has found."""
        assert self._progress.value is not None
        return self._progress.value

    def _offer(self, solution: Placements) -> None:
        self._progress.offer(solution, self._problem.objective(solution))

    def _lower(self, bound: int) -> None:
        self._progress.prove(max(self._value, bound))


def packed_around(
    problem: NodePlacement, solve: Callable[[NodePlacement], Placements | None]
) -> Placements | None:
    """Return placements for which limited jobs come first, None if none are found."""
    limited = limited_jobs(problem)
    free = dict.fromkeys(("span", "most_groups", "segments"))
    without = solve(_changed(problem, free))
    if without is None:
        return None
    worth = limited & np.array([bool(nodes) for nodes in without.nodes], dtype=bool)
    weights = np.where(worth, problem.weights, 0)
    fitted = BestFit(order="largest").place(_changed(problem, {"weights": weights}))
    taken = {job for job in np.flatnonzero(worth).tolist() if fitted.nodes[job]}
    rest = solve(_changed(problem, {**free, **_beside(problem, limited, fitted, taken)}))
    if rest is None:
        return None
    source = [fitted if job in taken else rest for job in range(len(limited))]
    found = Placements(
        tuple(one.nodes[job] for job, one in enumerate(source)),
        tuple(one.devices[job] for job, one in enumerate(source)),
    )
    return None if problem.violations(found) else found


def _beside(
    problem: NodePlacement, limited: Flags, fitted: Placements, taken: set[int]
) -> dict[str, Any]:
    """Return the fields of the problem beside the limited jobs that are taken."""
    amounts, licences = problem.free.copy(), problem.licences.copy()
    devices = [list(row) for row in problem.devices]
    exclusive = {*problem.exclusive}
    busy = {*problem.busy}
    for job in taken:
        licences -= problem.licences_of[job]
        for node, chosen in zip(fitted.nodes[job], fitted.devices[job]):
            busy.add(node)
            amounts[node] -= problem.demand[job]
            for device in chosen:
                devices[node][device] -= min(int(problem.share[job]), WHOLE)
            if job in exclusive:
                amounts[node] = 0
    return {
        "free": amounts,
        "devices": devices,
        "licences": licences,
        "busy": tuple(busy),
        "kinds": problem.kinds or [""] * len(amounts),
        "allowed": [
            () if is_limited else allowed
            for is_limited, allowed in zip(limited.tolist(), problem.allowed)
        ],
    }


def _changed(problem: NodePlacement, changes: Mapping[str, Any]) -> NodePlacement:
    fields = {each.name: getattr(problem, each.name) for each in problem.schema.fields}
    return NodePlacement(**{**fields, **changes})


def _is_of_whole_nodes(problem: NodePlacement) -> bool:
    if problem.then != ("switches",):
        return False
    try:
        pools(problem)
    except InputError:
        return False
    return True


def _spans_nothing(problem: NodePlacement) -> bool:
    return not limited_jobs(problem).any()


def _reduces_fragmentation(problem: NodePlacement) -> bool:
    """Return whether the fragmentation comes right after the weight, and contents decide it."""
    first = problem.then[:1] == ("fragmentation",)
    return first and _spans_nothing(problem) and not problem.exclusive


def _first(problem: NodePlacement, instance: Instance) -> Placements:
    if not _spans_nothing(problem):
        return FirstFit(order="largest").place(problem)
    plan = PartialPlacement(instance)
    plan.fill_up()
    if not problem.then:
        plan.fill(instance.weightless)
    return plan.placements()


@cache
def _compile() -> None:
    common = {"resources": ["cores"], "free": [[1]], "chunks": [1, 1], "demand": [[1], [1]]}
    on_switch = common | {"switches": ["a"]}
    for problem in (
        NodePlacement(**common, weights=[1, 2]),
        NodePlacement(**on_switch, then=("switches", "nodes")),
        NodePlacement(**on_switch, span=["switch", "anywhere"]),
    ):
        search = _Search(problem, Progress(Budget(), None))
        search.start(None)
        search._relax()
        if problem.then:
            search._span_few(0)


@cache
def _compile_fragmentation() -> None:
    problem = NodePlacement(
        ["cores"], [[2]], [1, 1], [[1], [1]], devices=[[1000]], share=[500, 500],
        then=("fragmentation",),
    )  # fmt: skip
    search = _Search(problem, Progress(Budget(), None))
    search.start(None)
    search._reduce_fragmentation()
