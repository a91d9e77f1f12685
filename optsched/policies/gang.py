"""Gang scheduling on the Ousterhout matrix."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from optsched.column_sets import loads
from optsched.errors import InputError
from optsched.machines.matrix import Matrix, Slice
from optsched.models.gang_packing import NOT_PLACED, GangPacking
from optsched.numbers import LONGEST
from optsched.policies.parts.time_sharing import SHARINGS, Turns
from optsched.registry import policies
from optsched.schedule import Schedule, State
from optsched.simulator.actions import Action, Move, Share, Start, Wake
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System
from optsched.solvers.gang_packing.fit_rules import QuickAnswer, quick_answer
from optsched.solvers.result import Status

if TYPE_CHECKING:
    from optsched.machines.machine import Machine
    from optsched.policies.parts import _gang_replay as compiled
    from optsched.simulator.execution import ExecutionModel
    from optsched.simulator.problem_solver import ProblemSolver
    from optsched.traces.trace import Trace

MOST_WORDS = 1 << 25
"""Most words of 64 columns or sums that a replay keeps: 256 MB."""


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
        slowest processor; a relaxation, see `optsched.policies.parts.time_sharing.by_nodes`. These
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
    replay_from: ClassVar[int] = 5_000

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

    def begin(self, system: System) -> None:
        """Forget the shares of an earlier run."""
        self._shares: dict[int, float] = {}
        self._turns = Turns(self.time_slice)
        self._wakes_at = 0.0

    def decide(self, system: System) -> Iterable[Action]:
        """Compact and schedule, then share the time among the jobs."""
        matrix, before = system.machine, dict(system.held)
        assert isinstance(matrix, Matrix)
        by_turns = self.sharing == "turns"
        if not by_turns or system.submitted or system.ended:  # otherwise a turn ends
            yield from self._fill_rows(system, matrix)
        if by_turns:
            yield from self._take_turns(system, matrix)
        elif system.ended or system.held != before:
            yield from self._share(SHARINGS[self.sharing](system.held, matrix.rows, self._useful()))

    def _fill_rows(self, system: System, matrix: Matrix) -> Iterator[Action]:
        """Compact and schedule."""
        candidates = [] if self._is_blocked(system) else self._candidates(system, matrix)
        spare = self.compact and bool(system.ended) and _has_spare_row(matrix)
        while candidates or spare:
            placed = yield from self._pack(system, candidates)
            spare = False
            if placed < len(candidates):
                break
            # if all are placed, jobs behind the window may fit, too
            candidates = self._candidates(system, matrix)

    def replays(self, problem_solver: ProblemSolver, execution: ExecutionModel | None) -> bool:
        """Return whether kernels know what the solver and the fallback answer without a search.

        They know no turns.
        """
        chosen = problem_solver.solvers["gang-packing"]
        known = quick_answer(chosen.solver) is not None
        by_first_fit = quick_answer(chosen.fallback) is QuickAnswer.FIRST_FIT
        shared = self.sharing in SHARINGS
        return execution is None and shared and known and by_first_fit

    def replay_run(
        self,
        trace: Trace,
        machine: Machine,
        problem_solver: ProblemSolver,
        execution: ExecutionModel | None,
    ) -> Schedule | None:
        """Replay a run, unless its sets of columns or sums would take too much memory."""
        from optsched.machines._interval_text import interval_text
        from optsched.machines.texts import Texts
        from optsched.policies.parts import _gang_replay as compiled

        answer = quick_answer(problem_solver.solvers["gang-packing"].solver)
        assert answer is not None
        rule = compiled.Rule(
            columns=machine.size,
            rows=self.mpl,
            skips=self.admission == "skip",
            sharing=list(SHARINGS).index(self.sharing),
            compacts=self.compact,
            window=self.window,
            useful=self._useful(),
            answer=int(answer),
        )
        words = compiled.words_of(rule, len(trace))
        if type(machine) is not Matrix or words > MOST_WORDS:
            return None
        submit, runtime = trace.submit.astype(np.float64), trace.runtime.astype(np.float64)
        state = compiled.new_state(submit, runtime, trace.processors, rule)
        queue = compiled.new_queue(rule, len(trace))
        at_submission = trace.submit.tolist()  # of the type of the trace's own times
        recorded = 0
        while (outcome := compiled.replay(state, rule, queue)) == compiled.OPEN:
            self._record(problem_solver, state, at_submission, recorded)
            self._answer(problem_solver, machine.size, state, at_submission)
            recorded = int(state.tally[compiled.PROBLEMS]) + 1
        if outcome == compiled.INFEASIBLE:
            raise RuntimeError("the replay of gang scheduling has found an infeasible packing")
        self._record(problem_solver, state, at_submission, recorded)
        final = np.array([State.FINISHED, State.REJECTED], dtype=object)
        return Schedule(
            start=state.start,
            end=state.end,
            state=final[(trace.processors > machine.size).astype(np.int8)],
            resources=Texts(*interval_text(*compiled.runs_of(state.columns))),
            decisions=int(state.tally[compiled.DECISIONS]),
            paused=state.paused,
        )

    def _record(
        self,
        problem_solver: ProblemSolver,
        state: compiled.State,
        at_submission: Sequence[float],
        first: int,
    ) -> None:
        """Record the problems that a replay has answered, from the `first` on."""
        from optsched.policies.parts import _gang_replay as compiled

        chosen = problem_solver.solvers["gang-packing"]
        proven = quick_answer(chosen.solver) is QuickAnswer.PROVEN_FIT
        answered = slice(first, state.tally[compiled.PROBLEMS])
        columns = (column[answered].tolist() for column in state.problems)
        times, decisions, submitted, running, waiting, own, by_fallback = columns
        objectives = [max(pair) for pair in zip(own, by_fallback)]
        problem_solver.record(
            "gang-packing",
            times=[at_submission[s] if s >= 0 else t for s, t in zip(submitted, times)],
            decisions=decisions,
            sizes=[f"{r}+{w}x{self.mpl}" for r, w in zip(running, waiting)],
            objectives=objectives,
            works=[0 if proven else (r + w) * self.mpl for r, w in zip(running, waiting)],
            statuses=[Status.OPTIMAL] * len(times) if proven else None,
            heuristics=by_fallback if chosen.is_compared else None,
            bounds=objectives if proven else None,
            fallbacks=[one < other for one, other in zip(own, by_fallback)],
        )

    def _answer(
        self,
        problem_solver: ProblemSolver,
        columns: int,
        state: compiled.State,
        at_submission: Sequence[float],
    ) -> None:
        """Pose the problem that a replay has left open, and hand it the answer."""
        from optsched.policies.parts import _gang_replay as compiled

        times, decisions, submitted, *counts = (
            column[state.tally[compiled.PROBLEMS]].item() for column in state.problems
        )
        now = at_submission[submitted] if submitted >= 0 else times
        problem_solver.begin_decision(now, decisions)
        jobs = state.running[: counts[0]]
        candidates = state.candidates[: counts[1]]
        packing = problem_solver.pose(
            GangPacking.trusted(
                columns=columns,
                rows=self.mpl,
                running=tuple(compiled.masks_of(state.columns[jobs])),
                rows_of_running=tuple(state.row[jobs].tolist()),
                waiting=tuple(state.processors[candidates].tolist()),
                admission=self.admission,
                rerow=self.compact,
                running_jobs=None,
                waiting_jobs=None,
            )
        )
        rows = (*packing.rows_of_running, *packing.rows_of_waiting)
        state.answer[: len(rows)] = rows

    def _is_blocked(self, system: System) -> bool:
        """Return whether the queue head had no place before, and no job has ended since."""
        waited = len(system.queue) > len(system.submitted)
        return self.admission == "fcfs" and waited and not system.ended

    def _candidates(self, system: System, matrix: Matrix) -> list[int]:
        """Return the waiting jobs that may get a place now, judged by sizes alone."""
        processors = system.processors
        free = self.mpl * matrix.size - sum(row.bit_count() for row in matrix.rows)
        window = system.queue[: self.window]
        if self.admission == "skip":
            return [job for job in window if processors[job] <= free]
        totals = accumulate(processors[job] for job in window)
        return [job for job, total in zip(window, totals) if total <= free]

    def _pack(self, system: System, candidates: list[int]) -> Generator[Action, None, int]:
        """Pose the packing of running and waiting jobs; return the number of jobs started."""
        held = system.held
        running = list(held)
        packing = system.pose(
            GangPacking(
                columns=system.machine.size,
                rows=self.mpl,
                running=[held[job].columns for job in running],
                rows_of_running=[held[job].row for job in running],
                waiting=[system.processors[job] for job in candidates],
                admission=self.admission,
                rerow=self.compact,
                running_jobs=[system.job_id[job] for job in running],
                waiting_jobs=[system.job_id[job] for job in candidates],
            )
        )
        moves = {
            job: Slice(row, held[job].columns)
            for job, row in zip(running, packing.rows_of_running)
            if row != held[job].row
        }
        if moves:
            yield Move(moves)
        for job, row, columns in zip(
            candidates, packing.rows_of_waiting, packing.columns_of_waiting
        ):
            if row != NOT_PLACED:
                yield Start(job, Slice(row, columns))
        return sum(row != NOT_PLACED for row in packing.rows_of_waiting)

    def _take_turns(self, system: System, matrix: Matrix) -> Iterator[Action]:
        """Let the jobs of the row on turn run, until its turn ends."""
        turns, several = self._turns, sum(map(bool, matrix.rows)) > 1
        turns.advance(system.now, matrix.rows)
        share = self._useful() if several else 1.0
        yield from self._share(
            {job: share if place.row == turns.row else 0.0 for job, place in system.held.items()}
        )
        if several and turns.ends != self._wakes_at:
            self._wakes_at = turns.ends
            yield Wake(turns.ends)

    def _share(self, shares: dict[int, float]) -> Iterator[Action]:
        """Yield the shares of time that have changed."""
        old, self._shares = self._shares, shares
        for job, share in shares.items():
            if old.get(job, 1.0) != share:
                yield Share(job, share)

    def _useful(self) -> float:
        """Return the part of a time slice that is left after the context switch."""
        return 1.0 - self.context_switch / self.time_slice


def _has_spare_row(matrix: Matrix) -> bool:
    """Return whether fewer rows might suffice, by the busiest column and by all processors held."""
    used = [row for row in matrix.rows if row]
    total = sum(row.bit_count() for row in used)
    return len(used) > max(len(loads(used)), -(-total // matrix.size))
