"""Window-based locality-aware scheduling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from optsched.errors import InputError
from optsched.machines._line_nodes import texts_of
from optsched.machines.nodes import Run
from optsched.models.fields import read_only
from optsched.models.window_mkp import WindowMKP, choice_among
from optsched.policies import _window
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun, answered
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.problem_solver import ChosenSolver, ProblemSolver
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
        self._bind_kernel(run, _window.decide, self._state, rule)

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
        if not (columns := answered(self._state)):
            return
        times, decisions, jobs, slots, totals, objectives, by_greedy, works = columns
        status = Status.OPTIMAL if self._searches else Status.FEASIBLE
        problem_solver.record(
            "window-mkp",
            {
                "time": times,
                "decision": decisions,
                "size": [f"{j}x{s}" for j, s in zip(jobs, slots)],
                "choice": [*map(choice_among, jobs, objectives, totals)],
                "status": [status.value] * len(times),
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


@policies.register("window")
@dataclass
class Window(Policy):
    """The first jobs of the queue are placed into contiguous slots, all in one decision.

    Jobs that no slot can hold wait, equation (7). Slots that can hold no job are left out, equation
    (8), and so are the smallest ones if there are more slots than jobs. The rest is a 0-1 multiple
    knapsack problem for the chosen solver. Within a slot, jobs are in the order of the queue from
    the low end.

    Parameters
    ----------
    window : int
        Number of jobs from the queue head that are decided on together.
    interval : float
        Seconds between two decisions, each on one window. With 0, a decision follows every event,
        on successive windows until one starts no job.
    backfill : {"none", "easy"}
        With ``none``, only jobs of the window start, and all wait behind a head that no slot can
        hold: the strict reading of the paper, under which waits are many times longer. With
        ``easy``, later jobs may start after the window if the queue head is blocked, each in
        the smallest slot that holds it, without delay of the head. The head has a reservation of
        contiguous nodes, by estimated ends, which backfilled jobs respect, but not the window.
    scatter : {"never", "head"}
        Whether a queue head that no slot can hold starts on scattered nodes, of the largest slots
        first, if enough are free. Its reservation is then that of EASY, by number.

    Raises
    ------
    InputError
        If the window holds no job or the interval is negative.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.
    """

    window: int = 5
    interval: float = 30.0
    backfill: Literal["none", "easy"] = "easy"
    scatter: Literal["never", "head"] = "never"

    models: ClassVar[Mapping[str, Answers]] = {"window-mkp": Answers("branch-and-bound", "greedy")}

    def __post_init__(self) -> None:
        if self.window < 1:
            raise InputError(f"window {self.window}; expected a whole number from 1")
        if not self.interval >= 0:
            raise InputError(f"interval {self.interval}; expected seconds from 0")

    def compiled(self, run: CompiledRun) -> CompiledDecisions:
        """Bind the decision kernel to a run, with all nodes free."""
        rule = _window.Rule(
            window=self.window,
            repeats=not self.interval,
            backfills=self.backfill == "easy",
            scatters=self.scatter == "head",
            answer=_window.ASK,
        )
        return WindowDecisions(rule, run)
