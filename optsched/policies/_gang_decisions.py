"""The decisions of gang scheduling in a run: what Python does for the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from optsched.machines._column_words import masks_of, runs_of, words_of
from optsched.machines._interval_text import interval_text
from optsched.machines.matrix import Slice
from optsched.machines.texts import Texts
from optsched.models.gang_packing import GangPacking
from optsched.policies import _gang
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.problem_solver import ProblemSolver
from optsched.solvers.gang_packing.fit_rules import QuickAnswer, quick_answer
from optsched.solvers.result import Status

MOST_WORDS = 1 << 25
"""Most words of 64 columns or sums for which the kernel answers problems itself: 256 MB."""


class GangDecisions(CompiledDecisions):
    """The matrix of a run as the decision kernel keeps it."""

    def __init__(self, rule: _gang.Rule, run: CompiledRun) -> None:
        self._rule, self._run, self._recorded = rule, run, 0
        self._chosen = run.problem_solver.solvers["gang-packing"]
        self._quick: QuickAnswer | None = None
        by_fallback = quick_answer(self._chosen.fallback)
        if run.problem_solver.only_solves and by_fallback is QuickAnswer.FIRST_FIT:
            self._quick = quick_answer(self._chosen.solver)
        jobs = len(run.trace)
        if self._quick is not None:
            self._rule = rule._replace(answer=int(self._quick))
            if _gang.words_of(self._rule, jobs) > MOST_WORDS:
                self._quick, self._rule = None, rule
        self.answers = self._quick is not None
        processors = run.trace.processors.astype(np.int64)
        self._state = _gang.new_state(processors, self._rule)
        self._problems = self._state.counts["problems"]
        queue = _gang.new_queue(self._rule, jobs)
        given = self._state, self._rule, queue
        if run.is_alone:
            core = run.core, run.way, run.news
            self.run = run.bind(_gang.run, *core, *given, numbers=(0,))
            self.decide = partial(self.run, 1)
        else:
            self.decide = run.bind(_gang.decide, *given, run.news)
        self.resources()  # loads the kernels

    def answer(self, problem_solver: ProblemSolver) -> None:
        """Pose the problem that the kernel has left open, and hand it the answer."""
        self.record(problem_solver)
        state, rule, ids = self._state, self._rule, self._run.trace.job_id
        at = int(self._problems[0])
        jobs = state.running[: state.problems.running[at]]
        candidates = state.candidates[: state.problems.waiting[at]]
        packing = problem_solver.pose(
            GangPacking.trusted(
                columns=rule.columns,
                rows=rule.rows,
                running=tuple(masks_of(state.columns[jobs])),
                rows_of_running=tuple(state.row[jobs].tolist()),
                waiting=tuple(state.processors[candidates].tolist()),
                admission="skip" if rule.skips else "fcfs",
                rerow=rule.compacts,
                running_jobs=tuple(ids[jobs].tolist()),
                waiting_jobs=tuple(ids[candidates].tolist()),
            )
        )
        rows = (*packing.rows_of_running, *packing.rows_of_waiting)
        state.answer[: len(rows)] = rows
        columns = words_of(packing.columns_of_waiting, state.columns.shape[1])
        state.columns[candidates] = columns
        self._recorded = at + 1

    def record(self, problem_solver: ProblemSolver) -> None:
        """Record the problems that the kernel has answered since the last call."""
        first, last = self._recorded, int(self._problems[0])
        self._recorded = last
        if not self.answers or first >= last:
            return
        rows, own_time = self._rule.rows, self._run.own_time
        proven = self._quick is QuickAnswer.PROVEN_FIT
        status = Status.OPTIMAL if proven else Status.FEASIBLE
        columns = (column[first:last].tolist() for column in self._state.problems)
        times, decisions, running, waiting, own, by_fallback = columns
        objectives = [max(pair) for pair in zip(own, by_fallback)]
        problem_solver.record(
            "gang-packing",
            {
                "time": [own_time.get(time, time) for time in times],
                "decision": decisions,
                "size": [f"{r}+{w}x{rows}" for r, w in zip(running, waiting)],
                "status": [status.value] * len(times),
                "objective": objectives,
                "work": [0 if proven else (r + w) * rows for r, w in zip(running, waiting)],
                "fallback": [one < other for one, other in zip(own, by_fallback)],
            }
            | ({"heuristic": by_fallback} if self._chosen.is_compared else {})
            | ({"bound": objectives} if proven else {}),
        )

    def place(self, job: int, value: float) -> Slice:
        """Return the row, which is the value, and the columns of a job."""
        return Slice(int(value), masks_of(self._state.columns[[job]])[0])

    def resources(self) -> Sequence[str]:
        """Return the columns that each job held, as interval sets."""
        return Texts(*interval_text(*runs_of(self._state.columns)))
