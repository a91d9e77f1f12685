"""Exact migration: places of the large job by the cost in their way, and packing questions."""

from __future__ import annotations

import heapq
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.models.migration import Migration, Plan
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Limit, Result
from optsched.solvers.solver import OnIncumbent, Solver

if TYPE_CHECKING:
    from optsched.solvers.migration.questions import Answer, Question

PATIENCE = 200
"""Boxes that a packing question may try in the first round."""

FIRST_ROUND = 2000
"""Work after which the first round ends, even if it has not found a plan."""

DIVING = 4
"""Up to how often that work a plan is sought by dives if the first round has not found one."""

GROWTH = 8
"""How much more patient each round is than the one before it."""


@solvers.register("position-search")
@dataclass(frozen=True)
class PositionSearch(Solver):
    """Ask of sets of jobs, the cheapest first, whether moving them makes room.

    A *question* is a place of the large job and a set of jobs to move, which holds those in its
    way: do they fit into the routers that are free then? A yes to the cheapest one is optimal. A
    no leads to a *family* of wider questions: one of the jobs that do not fit must get a box that
    meets further jobs, so these have to move, too. A depth-first search answers questions; those
    that it leaves open are put off to a round with more patience, and so are wider questions in the
    first round until there is a plan.

    Work is counted in boxes that this search tries, one more for each question, and for a family
    of questions in shapes whose boxes are looked at all over the torus.

    Examples
    --------
    >>> problem = Migration((4, 1, 1), ["1x1x1@1,0,0"], [1], [60], 3, wrap=(False,) * 3)
    >>> result = PositionSearch().solve(problem, budget=Budget())
    >>> result.objective, problem.describe(result.solution)[0][1]
    (60, 'move job 1 (1) from 1x1x1@1,0,0 to 1x1x1@3,0,0')
    """

    models = frozenset({"migration"})
    work_unit = "boxes tried or shapes looked at"
    seconds_per_solve = 5e-3
    seconds_per_work = 7e-5
    default_work = 2_000

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, and import what puts moves in order."""
        import networkx  # noqa: F401

        line, running = (6, 1, 1), ["1x1x1@1,0,0", "2x1x1@2,0,0"]
        # the large job fits only where both move, so that no kernel is left out
        example = Migration(line, running, [1, 2], [1, 1], 3, wrap=(False,) * 3)
        self.solve(example, budget=Budget())

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Answer a migration; nothing is drawn by `seed`."""
        assert isinstance(problem, Migration)
        progress = Progress(budget, on_incumbent, sense="min")
        search = _Search(problem, progress, self.seconds_per_work)
        if hint is not None:
            search.best, search.objective = hint, problem.objective(hint)
            progress.note(search.objective, None)
        limit = search.run()
        found = search.best, search.objective, search.bound()
        return progress.result(self.name, *found, limit, work=search.work, seed=seed)


class _Entry(NamedTuple):
    """Something to look into: a question, or a family of them.

    The order of entries is that of the search: by cost, at the same cost questions before families,
    then as they were found.
    """

    cost: int
    is_family: bool
    number: int
    item: Any


class _Search:
    """What is open, the cheapest first, and the best plan so far."""

    def __init__(self, problem: Migration, progress: Progress, seconds_per_work: float) -> None:
        from optsched.solvers.migration.questions import Questions

        self._problem = problem
        self._progress = progress
        self._seconds_per_work = seconds_per_work
        self.best: Plan | None = None
        self.objective: int | None = None
        self.work = 0
        self._questions = Questions(problem)
        self._asked: set[tuple[tuple[int, ...], int]] = set()
        self._heap: list[_Entry] = []
        self._put_off: list[_Entry] = []
        self._found = 0
        self._patience = PATIENCE
        self._enough = FIRST_ROUND
        if self._questions.may_fit():
            self._push(self._questions.places())

    def bound(self) -> int | None:
        """Return what no plan costs less than; none if there is no plan."""
        costs = [self._heap[0].cost] if self._heap else []
        costs += [entry.cost for entry in self._put_off]
        if self.objective is not None:
            costs.append(self.objective)
        return min(costs, default=None)

    def run(self) -> Limit | None:
        """Search until the best plan is proven, or a limit is reached, which is returned."""
        while True:
            is_over = not self._heap or not self._may_be_better(self._heap[0])
            if is_over or self.work > self._enough:
                self._put_off = [entry for entry in self._put_off if self._may_be_better(entry)]
                if is_over and not self._put_off:
                    return None
                self._begin_round()
            limit = self._progress.exhausted(self.work)
            if limit is not None:
                return limit
            self._step(heapq.heappop(self._heap))

    def _begin_round(self) -> None:
        if self.objective is None and self._patience == PATIENCE:
            for entry in sorted(self._put_off):
                if self.objective is None and self.work < DIVING * self._enough:
                    self._dive(entry.item)
        for entry in self._put_off:
            heapq.heappush(self._heap, entry)
        self._put_off = []
        self._patience *= GROWTH
        self._enough = GROWTH * self.work

    def _dive(self, item: Any) -> None:
        """Follow the cheapest question of each family down, so as to find a plan at all."""
        if not item.is_family:
            return
        family = copy(item)  # what it has found on a dive is still to be asked in order
        while self._progress.exhausted(self.work) is None:
            self.work += 1 + len(family.shapes)
            cheapest = family.cheapest(self.objective, 1)
            if not cheapest:
                return
            answer = self._answer(cheapest[0])
            if answer.plan is not None or answer.is_open:
                return
            family = self._questions.wider(cheapest[0], answer.needed)
            if family.cost is None:
                return

    def _may_be_better(self, entry: _Entry) -> bool:
        return self.objective is None or entry.cost < self.objective

    def _push(self, item: Any) -> None:
        floor = self._questions.floor(item.jobs)
        if item.cost is None or floor is None:
            return
        self._found += 1
        entry = _Entry(max(item.cost, floor), item.is_family, self._found, item)
        if self._may_be_better(entry):
            heapq.heappush(self._heap, entry)

    def _step(self, entry: _Entry) -> None:
        item = entry.item
        self.work += 1
        floor = self._questions.floor(item.jobs)
        if floor is None or entry.cost < floor:
            self._push(item)  # found out since
        elif not entry.is_family:
            self._ask(entry)
        elif item.is_wider and self._patience == PATIENCE and self.objective is None:
            self._put_off.append(entry)
        else:
            self.work += len(item.shapes)
            for question in item.cheapest(self.objective):
                if (question.place, question.jobs) not in self._asked:
                    self._asked.add((question.place, question.jobs))
                    self._push(question)
            self._push(item)

    def _ask(self, entry: _Entry) -> None:
        answer = self._answer(entry.item)
        if answer.is_open:
            self._put_off.append(entry)
        elif answer.plan is None:
            self._push(self._questions.wider(entry.item, answer.needed))

    def _answer(self, question: Question) -> Answer:
        """Ask a question, and keep the plan if the answer is yes."""
        left = self._progress.left(self.work, self._seconds_per_work)
        answer = self._questions.ask(question, int(min(self._patience, max(left, 1))))
        self.work += answer.tried
        if answer.plan is not None:
            # a job may have come back to where it was, and costs nothing then
            cost = self._problem.objective(answer.plan)
            if self.objective is None or cost < self.objective:
                self.best, self.objective = answer.plan, cost
                self._progress.note(cost, self.bound())
        return answer
