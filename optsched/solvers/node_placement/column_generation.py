"""Exact node placement by column generation over contents of nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any

from optsched.errors import InputError
from optsched.models.export import cp_sat_model
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.generic import Search
from optsched.solvers.node_placement._alike_nodes import alike_nodes
from optsched.solvers.node_placement._effort import Effort
from optsched.solvers.node_placement._leaf_bound import LeafBound
from optsched.solvers.node_placement._leaf_search import LeafSearch, can_search
from optsched.solvers.node_placement._least_fragmentation import FragmentationSearch
from optsched.solvers.node_placement._limited_jobs import limited_jobs, packed_around
from optsched.solvers.node_placement._packing import Packing
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._types import Instance
from optsched.solvers.node_placement._whole_nodes import pools
from optsched.solvers.node_placement.fit_rules import FirstFit
from optsched.solvers.node_placement.switch_groups import SwitchGroups
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Incumbent, Limit, Result
from optsched.solvers.solver import OnIncumbent, Solver

MOST_PAIRS = 300_000
"""Largest number of jobs times nodes that CP-SAT searches."""

LEAST_LIMIT = 1e-6
"""Limit of a search when none is left."""

FEW_PAIRS = 2_000
"""Number of jobs times nodes up to which jobs with limits are not placed first."""

AROUND = 0.25
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
class ColumnGeneration(Solver):
    """Most weight by column generation over the contents of nodes, then CP-SAT.

    Jobs and nodes that are alike are counted. The linear relaxation over contents of nodes bounds
    the weight; dives and integer programs over the contents found round it; if jobs have several
    chunks, an integer program over prices of the relaxation chooses jobs; and some nodes are packed
    anew, time and again. If switches or idle nodes are minimized then, a large neighbourhood search
    lowers them at the weight found, and a Lagrangian relaxation over leaves bounds the switches.
    Where all that proves nothing, for few nodes in the main, or where a switch or block must hold a
    job, HiGHS, if it is a small program, and CP-SAT search from the best placement. Jobs of whole
    nodes on the fewest switches go to `SwitchGroups`. Where levels limit the groups of jobs and no
    node holds two chunks, nodes that are alike are counted there too; if only some jobs are held by
    groups, those are placed first and the others packed around them.

    If `then` begins with the fragmentation, and no job has spans or nodes to itself, contents of
    nodes get the fragmentation that they leave as costs: at the weight found, their linear
    relaxation bounds it, and integer programs over them reduce it, of all nodes or of some. The
    bound counts if the weight is proven and no job has weight 0.

    With more than 300,000 pairs of jobs and nodes, CP-SAT is left out; without a proof, the limit
    is then that of memory.

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

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Placements | None = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Solve a problem, at least as well as the feasible placements `hint`."""
        assert isinstance(problem, NodePlacement)
        if _is_of_whole_nodes(problem):
            return self._switch_groups(problem, budget, hint, seed, on_incumbent)
        counted = alike_nodes(problem) if _has_limits(problem) else None
        progress = Progress(budget, on_incumbent)
        if counted is not None:
            problem = counted.problem
            hint = None if hint is None else counted.counted(hint)
        search = _Search(problem, Effort(budget, progress), progress)
        search.start(hint)
        limit = search.run(seed)
        return progress.result(
            self.name,
            search.solution if counted is None else counted.spread(search.solution),
            search.value,
            search.bound,
            limit,
            work=search.effort.work,
            seed=seed,
        )

    def _switch_groups(
        self,
        problem: NodePlacement,
        budget: Budget,
        hint: Placements | None,
        seed: int,
        on_incumbent: OnIncumbent | None,
    ) -> Result:
        solver = SwitchGroups()
        price = solver.seconds_per_work
        if budget.work is not None:
            budget = replace(budget, work=budget.work / price)
        result = solver.solve(
            problem, budget=budget, hint=hint, seed=seed, on_incumbent=on_incumbent
        )
        return replace(result, solver=self.name, work=result.work * price)


class _Search:
    """The search for the best placement of a problem.

    Attributes
    ----------
    solution : Placements
        Best placement so far.
    value, bound : int
        Its objective, and an upper bound of all.
    """

    solution: Placements
    value: int

    def __init__(self, problem: NodePlacement, effort: Effort, progress: Progress) -> None:
        self._problem, self.effort, self._progress = problem, effort, progress
        self._instance = Instance(problem)
        classes = self._instance.classes
        self._most_weight = int(classes.weights @ classes.jobs)
        self._radix = math.prod(problem.radices)
        self.bound = self._most_weight * self._radix
        self._only_weight = not problem.then and _spans_nothing(problem)
        self._reduces_fragmentation = _reduces_fragmentation(problem)

    def start(self, hint: Placements | None) -> None:
        """Take the hint, or the first placement if it is better."""
        problem = self._problem
        found = _first(problem, self._instance)
        if hint is not None:
            found = max(found, hint, key=problem.objective)
        self.effort.work += SECONDS_PER_PAIR * len(problem.chunks) * len(problem.free)
        self.solution, self.value = found, problem.objective(found)
        self._progress.note(self.value, self.bound)

    def run(self, seed: int) -> Limit | None:
        """Search until the placement is proven, or a limit is reached, which is returned."""
        if not self._is_over() and self._instance.jobs_of:
            self._pack(seed)
            if self._reduces_fragmentation and not self._is_over():
                self._reduce_fragmentation()
        pairs = len(self._problem.chunks) * len(self._problem.free)
        if not self._is_over() and pairs > FEW_PAIRS and not _spans_nothing(self._problem):
            self._pack_around(seed)
        if not self._is_over():
            return self._search_program(seed)
        return self.effort.limit()

    def _is_over(self) -> bool:
        return self.value == self.bound or self.effort.limit() is not None

    def _pack(self, seed: int) -> None:
        """Search for the greatest weight."""
        start = Plan(self._instance)
        if self._only_weight or self._reduces_fragmentation:
            start.take(self.solution)
        packing = Packing(self._instance, self.effort, start)
        packing.relax()
        self._most_weight = min(self._most_weight, packing.bound)
        self._lower(self._most_weight * self._radix)
        if not _spans_nothing(self._problem):
            return
        steps = packing.round(), packing.choose(), packing.combine()
        until = WEIGHING if self._reduces_fragmentation else PACKING if self._problem.then else 1.0
        for _ in chain.from_iterable(steps):
            self._most_weight = packing.bound
            self._lower(self._most_weight * self._radix)
            if packing.plan.value * self._radix > self.value:
                self._offer(packing.placements())
            if self.effort.spent() >= until:
                break
        self._most_weight = packing.bound
        self._lower(self._most_weight * self._radix)
        few_leaves = self._problem.then[:1] not in ((), ("fragmentation",))
        if few_leaves and can_search(self._problem):
            self._offer(packing.placements())
            self._span_few(packing, seed)

    def _span_few(self, packing: Packing, seed: int) -> None:
        """Search for few switches and idle nodes at the weight found, and bound the switches."""
        problem = self._problem
        search = LeafSearch(problem, self.solution, self.effort, seed)
        pairs = len(problem.chunks) * len(problem.free)
        limits: LeafBound | None = None
        for share in SPANNING:
            if "switches" in problem.then:
                until = self.effort.after(BOUNDING)
                limits = limits or LeafBound(self._instance, packing, self.effort, until)
                limits.raise_to(problem.measures(self.solution)["switches"], until)
                scale = math.prod(problem.radices[problem.then.index("switches") + 1 :])
                self._lower(self._most_weight * self._radix - scale * limits.bound)
            if self._is_over():
                return
            patience = PATIENCE + PATIENCE_PER_PAIR * pairs
            search.run(self.effort.after(share), patience, self.bound)
            self._offer(search.placements())

    def _pack_around(self, seed: int) -> None:
        """Place jobs with limits first, and pack the others around them."""
        effort = self.effort

        def solved(problem: NodePlacement) -> Placements | None:
            seconds, work = AROUND * effort.seconds_left(), AROUND * effort.work_left()
            result = ColumnGeneration().solve(
                problem,
                budget=Budget(
                    None if math.isinf(seconds) else max(LEAST_LIMIT, seconds),
                    None if math.isinf(work) else max(LEAST_LIMIT, work),
                ),
                seed=seed,
            )
            effort.work += result.work or 0
            solution: Placements | None = result.solution
            return solution

        found = packed_around(self._problem, solved)
        if found is not None:
            self._offer(found)

    def _reduce_fragmentation(self) -> None:
        """Search for less fragmentation at the weight found; its bound counts if that is proven."""
        instance = self._instance
        search = FragmentationSearch(self._problem, self.effort, self.solution)
        most, *later = self._problem.radices
        for _ in search.run():
            self._offer(search.plan.placements())
            if search.weight == self._most_weight and not instance.weightless:
                self._lower((search.weight * most - search.bound) * math.prod(later))
        if instance.weightless:
            search.plan.fill(instance.weightless)
            self._offer(search.plan.placements())

    def _search_program(self, seed: int) -> Limit | None:
        """Search the program with CP-SAT, and return the limit that ends the search."""
        problem, effort = self._problem, self.effort
        if len(problem.chunks) * len(problem.free) > MOST_PAIRS:
            return Limit.MEMORY
        seconds, work = effort.seconds_left(), effort.work_left()
        price = CpSat.seconds_per_work
        budget = Budget(
            None if math.isinf(seconds) else max(LEAST_LIMIT, seconds),
            None if math.isinf(work) else max(LEAST_LIMIT, work / price),
        )
        search = Search(budget, seed, self._note)
        search.begin(problem, self.solution)
        model = cp_sat_model(search.program)
        row = model.proto.constraints.add().linear  # the first variables tell what is placed
        row.vars.extend(range(len(problem.chunks)))
        row.coeffs.extend(problem.weights.tolist())
        row.domain.extend((0, self._most_weight))
        outcome = search.checked(CpSat().search_model(model, search))
        effort.work += outcome.work * price
        if outcome.message:
            raise ArithmeticError(outcome.message)
        _, x, bound = search.conclude(outcome)
        assert x is not None
        self._offer(search.formulation.decode(x))
        if bound is not None:
            self._lower(bound)
        return outcome.limit

    def _note(self, incumbent: Incumbent) -> None:
        """Note what CP-SAT found."""
        bound = self.bound if incumbent.bound is None else min(self.bound, int(incumbent.bound))
        self._progress.note(incumbent.objective, bound)

    def _offer(self, solution: Placements) -> None:
        value = self._problem.objective(solution)
        if value > self.value:
            self.solution, self.value = solution, value
            self._progress.note(value, self.bound)

    def _lower(self, bound: int) -> None:
        self.bound = max(self.value, min(self.bound, bound))
        self._progress.note(self.value, self.bound)


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


def _has_limits(problem: NodePlacement) -> bool:
    return bool(problem.most_groups.any() or (problem.segments > 1).any())


def _reduces_fragmentation(problem: NodePlacement) -> bool:
    """Return whether the fragmentation comes right after the weight, and contents decide it."""
    first = problem.then[:1] == ("fragmentation",)
    return first and _spans_nothing(problem) and not problem.exclusive


def _first(problem: NodePlacement, instance: Instance) -> Placements:
    """Return a first placement."""
    if not _spans_nothing(problem):
        return FirstFit(order="largest").place(problem)
    plan = Plan(instance)
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
        progress = Progress(Budget(), None)
        search = _Search(problem, Effort(Budget(), progress), progress)
        search.start(None)
        search._pack(0)


@cache
def _compile_fragmentation() -> None:
    problem = NodePlacement(
        ["cores"], [[2]], [1, 1], [[1], [1]], devices=[[1000]], share=[500, 500],
        then=("fragmentation",),
    )  # fmt: skip
    progress = Progress(Budget(), None)
    search = _Search(problem, Effort(Budget(), progress), progress)
    search.start(None)
    search._reduce_fragmentation()
