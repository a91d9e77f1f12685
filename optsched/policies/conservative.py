"""Conservative backfilling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import Kernel
from optsched.machines._site_nodes import log_texts
from optsched.machines.site import Held, SiteMachine
from optsched.policies import _reservations as on_line
from optsched.policies._line import LineDecisions, is_line
from optsched.policies.site import _reservations as on_site
from optsched.policies.site._lines import NONE
from optsched.policies.site._tables import all_turns, closed_nodes
from optsched.registry import policies
from optsched.simulator._core import DONE, new_news
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun, hear, stated
from optsched.simulator.policy import Action, Policy, Start
from optsched.simulator.problem_solver import ProblemSolver
from optsched.simulator.system import COLUMNS, System


@policies.register("conservative")
@dataclass
class Conservative(Policy):
    """Every waiting job has a reservation, which later jobs may not delay.

    A submitted job gets the earliest reservation that delays no other. When a job ends, the waiting
    jobs are placed again one by one in order of submission; each reservation moves earlier or
    stays. That includes an end at the estimated time, unless the previous pass moved no job: a pass
    may leave a hole before a job that it had already placed. The policy decides at every event,
    since reservations begin at ends.

    Notes
    -----
    Like jobs that are adjacent in the queue move as one, and only reservations that can move are
    examined, see `optsched.policies._reservations`. If an execution model slows jobs down, a
    reservation can pass, or begin on occupied processors; from then on, every waiting job is placed
    again after an end.

    On a site where jobs ask for more than cores, are held, or in several partitions, reservations
    are for certain nodes, see `optsched.policies.site._reservations`. A job can then wait for
    one that would leave enough room on other nodes.

    References
    ----------
    A. Mu'alem, D. Feitelson, "Utilization, predictability, workloads, and user runtime estimates
    in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001.
    """

    machines = frozenset({"nodes", "site"})

    def begin(self, system: System) -> None:
        """Start with an empty profile and no reservations."""
        self._on_nodes: NodeReservations | None = None
        machine = system.machine
        if isinstance(machine, SiteMachine):
            holds = not COLUMNS.isdisjoint((*system.annotations, *system.texts))
            if holds or not (machine.requests.only_cores and machine.queues.is_one):
                self._on_nodes = NodeReservations(system, machine)
                return
        self._processors = np.array(system.processors, dtype=np.int64)
        self._durations = np.array(system.requested_time, dtype=np.float64)
        self._table = on_line.no_reservations(
            self._processors, self._durations, system.machine.size
        )
        self._news = new_news(len(self._processors))
        self._decide: Callable[[], int] | None = None
        self._is_kept = True
        self._promised: dict[int, float] = {}

    def decide(self, system: System) -> Iterable[Action]:
        """Update the reservations, and start the jobs whose reservations begin."""
        if self._on_nodes is not None:
            return self._on_nodes.actions(system)
        if self._is_kept and self._table.soonest[0] < system.now:
            self._leave_runs([])
        return self._keep(system) if self._is_kept else self._place_again(system)

    def promised(self, system: System) -> Mapping[int, float]:
        """Return the first reserved start of each job, which no later one may delay."""
        if self._on_nodes is not None:
            return self._on_nodes.promised
        if self._is_kept:  # afterwards, only what was promised before
            reserved = on_line.reserved_starts(self._table)
            before = self._promised
            self._promised = {j: min(at, before.get(j, at)) for j, at in reserved.items()}
        return self._promised

    def _keep(self, system: System) -> Iterator[Action]:
        """Start jobs by the reservations of runs of jobs."""
        hear(self._news, system)
        self._decide = self._decide or on_line.decide.bound(self._table, self._news)
        self._decide()
        refused = []
        for start in stated(self._news, lambda job, value: None):
            assert isinstance(start, Start)
            if system.processors[start.job] <= system.machine.free:
                yield start
            else:
                refused.append(start.job)
        if refused:
            self._leave_runs(refused)

    def _leave_runs(self, refused: Sequence[int]) -> None:
        """Take over the reservations of the runs."""
        self._is_kept = False
        for job, start in on_line.reserved_starts(self._table).items():
            self._table.start[job] = start
        self._stable = bool(self._table.counts[0].settled) and not refused

    def _place_again(self, system: System) -> Iterator[Action]:
        """Place every waiting job again after an end, and start the jobs whose time has come."""
        now, starts, processors = float(system.now), self._table.start, system.processors
        for job in system.ended:
            estimated_end, profile = starts[job] + self._durations[job], self._table.profile
            if estimated_end > now:
                self._stable = False
                entry = on_line.entry_at(profile, now)
                on_line.change(profile, now, estimated_end, processors[job], entry)
        if system.ended and not self._stable:
            new = set(system.submitted)
            waited = [job for job in system.queue if job not in new]
            self._stable = not self._place(waited, now)
        if system.submitted:
            self._place(system.submitted, now)
        for job in list(system.queue):
            if starts[job] <= now:
                if processors[job] <= system.machine.free:
                    yield Start(job)
                else:
                    self._stable = False
        on_line.forget(self._table.profile, now)

    def _place(self, jobs: Sequence[int], now: float) -> bool:
        """Place jobs, first or again; return whether any reservation has changed."""
        columns = np.array(jobs, dtype=np.int64), self._processors, self._durations
        return bool(on_line.place_again(self._table.profile, now, *columns, self._table.start))

    def compiled(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel of the machine; on a line, unless jobs may end late."""
        if self._on_nodes is not None:
            return self._on_nodes.compiled(run)
        over = run.trace.runtime - run.trace.requested_time
        is_late = ((over > 0) & (over <= run.way.tolerance)).any()
        is_late |= run.execution is not None or self.interval > 0
        if is_late or not is_line(run):
            return None
        return LineDecisions.at_hand(run, on_line.decide, self._table)


class NodeReservations(CompiledDecisions):
    """The start and the nodes that are reserved for each waiting job.

    `system`: the system before the first event; `machine`: its machine.
    """

    def __init__(self, system: System, machine: SiteMachine) -> None:
        self._news = new_news(len(system.submit))
        self._bind: Callable[..., Callable[[], int]] = Kernel.bound
        queues = machine.queues
        closed = closed_nodes(queues, system.submit[0])
        self.tables = on_site.new_reservations(
            *(machine.asked, machine.nodes, closed, np.array(system.demands, dtype=np.int64)),
            *(np.array(system.requested_time, dtype=np.float64), closed.of_queue[queues.of_job]),
            tier=np.array(queues.tier),
            turns=all_turns(queues.cells, np.array(queues.of_job)),
        )

    @property
    def promised(self) -> Mapping[int, float]:
        """The start that is reserved for each waiting job, if any: none moves later."""
        jobs = self.tables.order[: self.tables.waiting[0]]
        starts = zip(jobs.tolist(), self.tables.start[jobs].tolist())
        return {job: start for job, start in starts if start < np.inf}

    def actions(self, system: System) -> Iterator[Action]:
        """Update the reservations, and start the jobs whose reservations begin."""
        if not hasattr(self, "decide"):
            self.answer()
        hear(self._news, system)
        while self.decide() != DONE:
            self.answer()
        yield from stated(self._news, self.place)

    def order_by(self, rank: NDArray[np.float64]) -> None:
        """Let jobs be in another order from the next decision on, the lowest rank first."""
        table = self.tables
        table.rank[:] = rank
        waiting = table.order[: table.waiting[0]]
        ordered = waiting[np.argsort(rank[waiting], kind="stable")]
        if (ordered != waiting).any():
            waiting[:] = ordered
            table.replans[0] = on_site.NOW

    def look_ahead(self, seconds: float, quota: NDArray[np.int64], most: NDArray[np.int64]) -> None:
        """Let jobs reserve only so many seconds ahead and by quotas, see `Turns`."""
        turns = self.tables.turns._replace(quota=quota, most=most, left=most.copy())
        turns.ahead[:] = seconds
        self.tables = self.tables._replace(turns=turns)

    def compiled(self, run: CompiledRun) -> NodeReservations:
        """Return the decisions of a run."""
        self._news, self._bind = run.news, run.bind
        self.answer()
        return self

    def answer(self, problem_solver: ProblemSolver | None = None) -> None:
        """Let the tables be longer."""
        self.tables = on_site.with_room(self.tables)
        self.decide = self._bind(on_site.decide, self.tables, self._news)

    def place(self, job: int, value: float) -> Held:
        """Return the nodes that are reserved for a job."""
        table = self.tables
        entries, entry = [], int(table.first[job])
        while entry != NONE:
            entries.append(entry)
            entry = int(table.next[entry])
        return Held(int(table.alternative[job]), table.node[entries], table.chunks[entries])

    def resources(self) -> Sequence[str]:
        """Return the nodes that each job held, as interval sets."""
        return log_texts(self.tables.log)
