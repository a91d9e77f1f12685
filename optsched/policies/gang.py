"""Gang scheduling on the Ousterhout matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.machines.matrix import Slice
from optsched.models.gang_packing import GangPacking
from optsched.numbers import LONGEST
from optsched.registry import policies
from optsched.schedule import Schedule, State
from optsched.simulator.actions import Action, Move, Share, Start, Wake
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.problem_solver import NoProblems
from optsched.simulator.system import System
from optsched.solvers.gang_packing.fit_rules import QuickAnswer, quick_answer
from optsched.solvers.result import Status

if TYPE_CHECKING:
    from optsched.machines.machine import Machine
    from optsched.policies.parts import _gang as compiled
    from optsched.simulator._core import Core, News, Way
    from optsched.simulator.problem_solver import ProblemSolver
    from optsched.traces.trace import Trace

MOST_WORDS = 1 << 25
"""Most words of 64 columns or sums that a run keeps outside the engine: 256 MB."""


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
        """Begin with an empty matrix; all problems go to the solver of the run."""
        from optsched.simulator._core import new_news

        columns, processors = system.machine.size, np.array(system.processors, dtype=np.int64)
        self._news = new_news(len(processors))
        self._matrix = GangMatrix(self, columns, processors, self._news)
        self._ids = system.job_id

    def decide(self, system: System) -> Iterable[Action]:
        """Hand what has happened to the decision kernel, and return the actions that it states."""
        from optsched.simulator._core import N_ACTIONS, N_ENDED, N_SUBMITTED
        from optsched.simulator.driving import DONE, OPEN

        news = self._news
        news.now[0] = system.now
        for heard, count, jobs in (
            (news.ended, N_ENDED, system.ended),
            (news.submitted, N_SUBMITTED, system.submitted),
        ):
            heard[: len(jobs)] = jobs
            news.counts[count] = len(jobs)
        news.counts[N_ACTIONS] = 0
        outcome, stated = OPEN, 0
        while outcome == OPEN:
            outcome = self._matrix.decide()
            yield from self._matrix.actions(stated)
            stated = int(news.counts[N_ACTIONS])
            if outcome == OPEN:
                self._matrix.answer(system.pose, self._ids)
        assert outcome == DONE  # the problem solver has verified the answers

    def replays(self, problem_solver: ProblemSolver, execution: ExecutionModel | None) -> bool:
        """Return whether the event core can run the policy: the execution model decides."""
        return execution is None or vars(type(execution)).get("places_suffice", False)

    def replay_run(
        self,
        trace: Trace,
        machine: Machine,
        problem_solver: ProblemSolver,
        execution: ExecutionModel | None,
    ) -> Schedule | None:
        """Run a trace on the event core, unless its sets of columns would take too much memory."""
        from optsched.machines._interval_text import interval_text
        from optsched.machines.texts import Texts
        from optsched.policies.parts import _gang as compiled
        from optsched.simulator import _core
        from optsched.simulator.driving import drive

        chosen = problem_solver.solvers["gang-packing"]
        known, by_fallback = quick_answer(chosen.solver), quick_answer(chosen.fallback)
        quick = known if by_fallback is QuickAnswer.FIRST_FIT else None
        submit, runtime = trace.submit.astype(np.float64), trace.runtime.astype(np.float64)
        requested = trace.requested_time.astype(np.float64)
        admitted = trace.processors <= machine.size
        news = _core.new_news(len(trace))
        if compiled.words_of(self._rule(machine.size, quick), len(trace)) > MOST_WORDS:
            return None
        processors = trace.processors.astype(np.int64)
        matrix = GangMatrix(self, machine.size, processors, news, quick)
        core = _core.new_core(submit, runtime, requested, admitted)
        tells = execution is not None
        way = _core.Way(False, tells, False, self.enforces_limits, self.interval, 0.0)
        set_speeds = None
        if execution is not None:
            set_speeds = matrix.speeds_by(execution, core, way, trace, machine)
        at_submission = dict(zip(submit.tolist(), trace.submit.tolist()))  # the trace's own times
        recorded = 0

        def answer() -> None:
            nonlocal recorded
            matrix.record(problem_solver, at_submission, recorded)
            now = news.now.item()
            decision = int(core.tally[_core.DECISIONS])
            problem_solver.begin_decision(at_submission.get(now, now), decision)
            matrix.answer(problem_solver.pose)
            recorded = matrix.problems + 1

        drive(core, way, news, matrix.decide, answer, set_speeds)
        matrix.record(problem_solver, at_submission, recorded)
        final = np.array([State.REJECTED, State.FINISHED], dtype=object)
        return Schedule(
            start=core.start,
            end=core.end,
            state=final[admitted.astype(np.int8)],
            resources=Texts(*interval_text(*compiled.runs_of(matrix.state.columns))),
            decisions=int(core.tally[_core.DECISIONS]),
            paused=core.paused,
        )

    def _rule(self, columns: int, quick: QuickAnswer | None) -> compiled.Rule:
        """Return the settings for the decision kernel."""
        from optsched.policies.parts import _gang as compiled

        return compiled.Rule(
            columns=columns,
            rows=self.mpl,
            skips=self.admission == "skip",
            sharing=compiled.SHARINGS.index(self.sharing),
            compacts=self.compact,
            window=self.window,
            useful=1.0 - self.context_switch / self.time_slice,
            time_slice=float(self.time_slice),
            answer=compiled.ASK if quick is None else int(quick),
        )


class GangMatrix:
    """The matrix of a run as the decision kernel keeps it, and what Python does for the kernel.

    Attributes
    ----------
    decide : callable
        The decision kernel, bound to the matrix and to the news.
    """

    def __init__(
        self,
        policy: Gang,
        columns: int,
        processors: NDArray[np.int64],
        news: News,
        quick: QuickAnswer | None = None,
    ) -> None:
        from optsched.policies.parts import _gang as compiled

        self._policy, self._news, self._quick = policy, news, quick
        self._rule = policy._rule(columns, quick)
        self.state = compiled.new_state(processors, self._rule)
        queue = compiled.new_queue(self._rule, len(processors))
        self.decide: Callable[[], int] = compiled.decide.bound(self.state, self._rule, queue, news)

    @property
    def problems(self) -> int:
        """Number of problems so far."""
        from optsched.policies.parts import _gang as compiled

        return int(self.state.tally[compiled.PROBLEMS])

    def answer(self, pose: Callable[[Any], Any], ids: list[int] | None = None) -> None:
        """Pose the problem that the kernel has left open, and hand it the answer."""
        from optsched.policies.parts import _gang as compiled

        state, policy, at = self.state, self._policy, self.problems
        jobs = state.running[: state.problems.running[at]]
        candidates = state.candidates[: state.problems.waiting[at]]
        packing = pose(
            GangPacking.trusted(
                columns=self._rule.columns,
                rows=policy.mpl,
                running=tuple(compiled.masks_of(state.columns[jobs])),
                rows_of_running=tuple(state.row[jobs].tolist()),
                waiting=tuple(state.processors[candidates].tolist()),
                admission=policy.admission,
                rerow=policy.compact,
                running_jobs=None if ids is None else tuple(ids[job] for job in jobs.tolist()),
                waiting_jobs=None if ids is None else tuple(ids[j] for j in candidates.tolist()),
            )
        )
        rows = (*packing.rows_of_running, *packing.rows_of_waiting)
        state.answer[: len(rows)] = rows
        for job, mask in zip(candidates.tolist(), packing.columns_of_waiting):
            state.columns[job] = compiled.words_of_mask(mask, state.columns.shape[1])

    def speeds_by(
        self, execution: ExecutionModel, core: Core, way: Way, trace: Trace, machine: Machine
    ) -> Callable[[int], None]:
        """Return a function that has an execution model set the speeds after a start or an end."""
        from optsched.policies.parts import _gang as compiled
        from optsched.simulator import _core
        from optsched.simulator.system import System

        system = System.before(trace, machine, NoProblems().pose)
        execution.begin(system, trace)
        held, columns = system.held, self.state.columns

        def set_speeds(event: int) -> None:
            job = int(core.tally[_core.CHANGED])
            system.now = core.clock[_core.NOW]
            if event == _core.STARTED:
                mask = compiled.masks_of(columns[[job]])[0]
                held[job] = Slice(int(self.state.row[job]), mask)
                speeds = execution.started(job, held[job], system)
            else:
                speeds = execution.ended(job, held.pop(job), system)
            for other, speed in speeds:
                _core.set_speed.compiled(core, way, other, speed)

        return set_speeds

    def actions(self, first: int = 0) -> Iterator[Action]:
        """Yield the actions that the kernel has stated, from the `first` on."""
        from optsched.policies.parts import _gang as compiled
        from optsched.simulator import _core

        news = self._news
        stated = slice(first, news.counts[_core.N_ACTIONS])
        columns = (column[stated].tolist() for column in (news.kind, news.job, news.value))
        moves: dict[int, Slice] = {}
        for kind, job, value in zip(*columns):
            if kind in (_core.START, _core.MOVE):
                place = Slice(int(value), compiled.masks_of(self.state.columns[[job]])[0])
            if kind == _core.MOVE:
                moves[job] = place
                continue
            if moves:
                yield Move(moves)
                moves = {}
            if kind == _core.START:
                yield Start(job, place)
            else:
                yield Share(job, value) if kind == _core.SHARE else Wake(value)
        if moves:
            yield Move(moves)

    def record(
        self, problem_solver: ProblemSolver, at_submission: Mapping[float, float], first: int
    ) -> None:
        """Record the problems that the kernel has answered, from the `first` on."""
        if self._quick is None:
            return
        chosen, mpl = problem_solver.solvers["gang-packing"], self._policy.mpl
        proven = self._quick is QuickAnswer.PROVEN_FIT
        answered = slice(first, self.problems)
        columns = (column[answered].tolist() for column in self.state.problems)
        times, decisions, running, waiting, own, by_fallback = columns
        objectives = [max(pair) for pair in zip(own, by_fallback)]
        problem_solver.record(
            "gang-packing",
            times=[at_submission.get(time, time) for time in times],
            decisions=decisions,
            sizes=[f"{r}+{w}x{mpl}" for r, w in zip(running, waiting)],
            objectives=objectives,
            works=[0 if proven else (r + w) * mpl for r, w in zip(running, waiting)],
            statuses=[Status.OPTIMAL] * len(times) if proven else None,
            heuristics=by_fallback if chosen.is_compared else None,
            bounds=objectives if proven else None,
            fallbacks=[one < other for one, other in zip(own, by_fallback)],
        )
