"""The decisions of `window` in a run: what Python does for the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from optsched.machines._line_nodes import texts_of
from optsched.machines.free_runs import Run
from optsched.models.fields import read_only
from optsched.models.window_mkp import WindowMKP
from optsched.models.window_mkp.problem import choice_among
from optsched.policies import _window
from optsched.simulator.chosen_solvers import ChosenSolver
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.problem_solver import ProblemSolver
from optsched.solvers.result import Status
from optsched.solvers.window_mkp.branch_and_bound import BranchAndBound, quick_nodes
from optsched.solvers.window_mkp.greedy import Greedy


class WindowDecisions(CompiledDecisions):
    """The queue and the nodes of a run as the decision kernel keeps them."""

    def __init__(self, rule: _window.Rule, run: CompiledRun) -> None:
        self._run, self._chosen = run, run.problem_solver.solvers["window-mkp"]
        if run.problem_solver.only_solves:
            rule = rule._replace(answer=_answer(self._chosen))
        self._searches = rule.answer == _window.SEARCH
        self.answers = rule.answer != _window.ASK
        processors = run.trace.processors.astype(np.int64)
        largest = min(rule.window, len(processors))
        work = self._chosen.budget.work
        most_nodes = [quick_nodes(jobs, work) for jobs in range(largest + 1)]
        times, nodes = run.core.requested, run.machine.size
        self._state = _window.new_state(processors, times, nodes, rule, np.array(most_nodes))
        self._counts, self.places = self._state.counts[0], self._state.held
        if run.is_alone:
            core = run.core, run.way, run.news
            self.run = run.bind(_window.run, *core, self._state, rule, numbers=(0,))
            self.decide = partial(self.run, 1)
        else:
            self.decide = run.bind(_window.decide, self._state, rule, run.news)
        self.resources()  # loads the kernels

    def answer(self, problem_solver: ProblemSolver) -> None:
        """Pose the problem that the kernel has left open, and hand it the answer."""
        self.record(problem_solver)
        state, counts, ids = self._state, self._counts, self._run.trace.job_id
        jobs, slots = slice(counts.jobs), slice(counts.slots)
        sizes = read_only(state.weights[jobs].copy())
        state.answer[jobs] = problem_solver.pose(
            WindowMKP.trusted(
                weights=sizes,
                capacities=read_only(state.capacities[slots].copy()),
                profits=sizes,
                jobs=tuple(ids[state.jobs[jobs]].tolist()),
                slots=tuple(state.starts[slots].tolist()),
            )
        )
        counts.charged = problem_solver.charged

    def record(self, problem_solver: ProblemSolver) -> None:
        """Hand the problems that the kernel has answered to the problem solver."""
        number, self._counts.problems = int(self._counts.problems), 0
        if not number:
            return
        own_time = self._run.own_time
        columns = (column[:number].tolist() for column in self._state.problems)
        times, decisions, jobs, slots, totals, objectives, by_greedy, works = columns
        status = Status.OPTIMAL if self._searches else Status.FEASIBLE
        problem_solver.record(
            "window-mkp",
            {
                "time": [own_time.get(time, time) for time in times],
                "decision": decisions,
                "size": [f"{j}x{s}" for j, s in zip(jobs, slots)],
                "choice": [*map(choice_among, jobs, objectives, totals)],
                "status": [status.value] * number,
                "objective": objectives,
                "work": works,
            }
            | ({"heuristic": by_greedy, "bound": objectives} if self._searches else {}),
        )

    def place(self, job: int, value: float) -> tuple[Run, ...]:
        """Return the runs of nodes of a job."""
        held = self._state.held
        return tuple(map(tuple, held.runs[held.first[job] : held.last[job]].tolist()))

    def resources(self) -> Sequence[str]:
        """Return the nodes that each job held, as interval sets."""
        return texts_of(self._state.held)


def _answer(chosen: ChosenSolver) -> int:
    """Return how the decision kernel can answer as a solver does, without a time limit."""
    if type(chosen.solver) is Greedy and not chosen.is_compared:
        return _window.GREEDY
    is_own = type(chosen.solver) is BranchAndBound and type(chosen.fallback) is Greedy
    return _window.SEARCH if is_own and chosen.budget.seconds is None else _window.ASK
