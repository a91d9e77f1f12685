"""Gang scheduling on the Ousterhout matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from optsched.errors import InputError
from optsched.machines.matrix import Slice, masks_of, runs_of, words_of
from optsched.machines.texts import Texts, interval_text
from optsched.models.gang_packing import GangPacking
from optsched.numbers import LONGEST
from optsched.policies import _gang
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun, answered
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.problem_solver import ProblemSolver
from optsched.solvers.gang_packing.fit_rules import QuickAnswer, quick_answer
from optsched.solvers.result import Status

MOST_WORDS = 1 << 25
"""Most words of 64 columns or sums for which the kernel answers problems itself: 256 MB."""


class GangDecisions(CompiledDecisions):
    """The matrix of a run as the decision kernel keeps it."""

    def __init__(self, rule: _gang.Rule, run: CompiledRun) -> None:
        self._rule, self._run = rule, run
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
        queue = _gang.new_queue(self._rule, jobs)
        self._bind_kernel(run, _gang.decide, self._state, self._rule, queue)

    def answer(self, problem_solver: ProblemSolver) -> None:
        """Pose the problem that the kernel has left open, and hand it the answer."""
        self.record(problem_solver)
        state, rule, ids = self._state, self._rule, self._run.trace.job_id
        jobs = state.running[: state.counts["running"].item()]
        candidates = state.candidates[: state.counts["candidates"].item()]
        packing = problem_solver.pose(
            GangPacking.trusted(
                columns=rule.columns,
                rows=rule.rows,
                running=tuple(masks_of(state.columns.take(jobs, axis=0))),
                rows_of_running=tuple(state.row.take(jobs).tolist()),
                waiting=tuple(state.processors.take(candidates).tolist()),
                admission="skip" if rule.skips else "fcfs",
                rerow=rule.compacts,
                running_jobs=tuple(ids.take(jobs).tolist()),
                waiting_jobs=tuple(ids.take(candidates).tolist()),
            )
        )
        rows = (*packing.rows_of_running, *packing.rows_of_waiting)
        state.answer[: len(rows)] = rows
        if len(candidates):
            columns = words_of(packing.columns_of_waiting, state.columns.shape[1])
            state.columns[candidates] = columns

    def record(self, problem_solver: ProblemSolver) -> None:
        """Hand the problems that the kernel has answered to the problem solver."""
        if not (columns := answered(self._state)):
            return
        times, decisions, running, waiting, own, by_fallback = columns
        objectives, rows = [max(pair) for pair in zip(own, by_fallback)], self._rule.rows
        proven = self._quick is QuickAnswer.PROVEN_FIT
        status = Status.OPTIMAL if proven else Status.FEASIBLE
        problem_solver.record(
            "gang-packing",
            {
                "time": times,
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


@policies.register("gang")
@dataclass
class Gang(Policy):
    """Jobs share the processors in time slices, all processes of a job in the same slice.

    At each submission and end the matrix is updated: ended jobs leave (clean), running jobs change
    rows but not columns, so that rows become empty (compact), waiting jobs get a row and columns
    (schedule), and jobs may also run in other rows in which their columns are idle (fill).
    Compaction and scheduling are one problem, for the chosen solver. No job is killed, since gang
    scheduling needs no estimates of run times.

    Parameters
    ----------
    mpl : int
        Multiprogramming level: the largest number of matrix rows.
    admission : {"fcfs", "skip"}
        Whether the jobs behind one that does not fit wait for that job, or may be placed.
    sharing : {"rows", "fill", "nodes", "turns"}
        Division of time. ``rows``: the rows take turns, and a job runs in its own row. ``fill``: a
        job also runs in other rows in which its columns are idle, in order of submission.
        ``nodes``: the jobs on a processor share its time, and a job runs at the speed of its
        slowest processor; a relaxation, since a schedule in which all processes of a job run
        together need not exist. These
        three are shares of the time, as of time slices that are short against run times.
        ``turns``: the rows take turns of `time_slice` seconds, and a job starts with its first.
    compact : bool
        Whether running jobs may change rows.
    window : int
        Number of jobs from the queue head that are packed together; if all get a place, the next
        ones follow.
    time_slice : float
        Seconds of a time slice, including the context switch.
    context_switch : float
        Seconds of each time slice that a job loses, unless the job runs in all rows.

    Raises
    ------
    InputError
        If there is no row or no job in the window, or the context switch takes a whole time slice.

    References
    ----------
    H. Franke, J. Jann, J. Moreira, P. Pattnaik, M. Jette, "An evaluation of parallel job scheduling
    for ASCI Blue-Pacific", Supercomputing 1999, sections 3 and 4.
    """

    mpl: int = 3
    admission: Literal["fcfs", "skip"] = "fcfs"
    sharing: Literal["rows", "fill", "nodes", "turns"] = "rows"
    compact: bool = True
    window: int = 100
    time_slice: float = 60.0
    context_switch: float = 0.0

    machines: ClassVar[frozenset[str]] = frozenset({"matrix"})
    models: ClassVar[Mapping[str, Answers]] = {"gang-packing": Answers("first-fit", "first-fit")}
    enforces_limits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("mpl", "window"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}; expected a whole number from 1")
        if not 0 < self.time_slice <= LONGEST:
            expected = f"expected seconds above 0 and at most {LONGEST:,}"
            raise InputError(f"time slice {self.time_slice}; {expected}")
        if not 0 <= self.context_switch < self.time_slice:
            expected = f"expected seconds from 0 and below the time slice of {self.time_slice}"
            raise InputError(f"context switch {self.context_switch}; {expected}")

    def compiled(self, run: CompiledRun) -> CompiledDecisions:
        """Bind the decision kernel to a run, with an empty matrix."""
        rule = _gang.Rule(
            columns=run.machine.size,
            rows=self.mpl,
            skips=self.admission == "skip",
            sharing=_gang.SHARINGS.index(self.sharing),
            compacts=self.compact,
            window=self.window,
            useful=1.0 - self.context_switch / self.time_slice,
            time_slice=float(self.time_slice),
            answer=_gang.ASK,
        )
        return GangDecisions(rule, run)
