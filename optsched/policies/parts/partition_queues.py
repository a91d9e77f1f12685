"""Waiting jobs of a site in its queues, and reservations of nodes for some of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.machines.site import Held, SiteMachine
from optsched.simulator.actions import Action, Start, Wake
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.policies.parts._partition_queues import Closed
    from optsched.simulator._core import News
    from optsched.simulator.problem_solver import NoProblems, ProblemSolver

Numbers = NDArray[np.int64]


class PartitionQueues(CompiledDecisions):
    """The queues of a site, see `optsched.sites.queues`, in which the first blocked job waits.

    Jobs start in order, those of a higher tier first. One that does not fit is the *head* of its
    queue. Without backfilling, no later job gets nodes of the partitions of a head. With it, each
    head has a reservation as under `easy`, unless its partitions share nodes with those of a head
    before it: two heads never want the same node. Later jobs start if they delay no head.

    A job that names a reservation of the site runs on its nodes, within its time. No other job gets
    a node that would be reserved before its requested time is over.

    Parameters
    ----------
    system : System
        The system before the first event.
    machine : SiteMachine
        Its machine.
    backfills : bool
        Whether later jobs may start that do not delay a head.
    """

    def __init__(self, system: System, machine: SiteMachine, *, backfills: bool) -> None:
        from optsched.machines._site_nodes import Free
        from optsched.policies.parts import (
            _partition_queues,
            _site_backfilling,
            _site_decisions,
            _site_log,
        )

        self.machine, self._queues, self._backfills = machine, machine.queues, backfills
        self._kernels = _site_decisions
        jobs, cells = len(system.demands), self._queues.cells
        closed, own = self._closed(self._queues.first - system.submit[0])
        free = Free(*(part.copy() for part in machine.nodes))
        room = _partition_queues.new_room(machine.asked, free, len(cells), closed)
        kinds = len(closed.first) - 1, len(cells) + len(closed.edges) + 1
        order, behind, new, candidates = np.zeros((4, jobs), dtype=np.int64)
        number, gone, come = np.zeros((3, 1), dtype=np.int64)
        of_job, rank = np.array(self._queues.of_job), np.arange(jobs, dtype=np.float64)
        waiting = _site_decisions.Waiting(
            *(rank, rank, of_job, np.zeros(jobs, dtype=bool), order, behind, number, gone, come),
            *(new,),
            candidates=_partition_queues.Candidates(
                *(candidates, np.array(system.demands, dtype=np.int64)),
                *(np.array(system.requested_time, dtype=np.float64), own[of_job]),
                failed=np.zeros((*kinds, len(machine.requests.first)), dtype=bool),
            ),
        )
        opened, stopped = np.ones(cells.shape[1], dtype=bool), np.zeros(len(cells), dtype=bool)
        if not backfills and not len(closed.start):
            room = room._replace(allowed=opened)
        times = np.full((3, 1), -np.inf)
        stops = _site_decisions.Stops(
            *(cells, cells @ cells.T, np.zeros(len(cells), dtype=np.int64), opened, stopped),
            *(np.zeros(1, dtype=bool), *times),
        )
        self.tables = _site_decisions.Queues(
            room,
            _site_backfilling.nothing_runs(jobs, int(free.total[0])),
            _site_backfilling.no_shortages(len(machine.requests.alternatives)),
            waiting,
            stops,
            _site_log.new_log(0),
        )

    @property
    def promised(self) -> dict[int, float]:
        """The time by which each head starts.

        It is the earliest that was reserved since it is a head and no job has come first.
        """
        heads = self.tables.room.heads
        number = int(heads.number[0])
        return dict(zip(heads.job[:number].tolist(), heads.promised[:number].tolist()))

    def compiled(
        self,
        run: CompiledRun,
        score: NDArray[np.float64] | None = None,
        *,
        shortest_first: bool = False,
    ) -> PartitionQueues:
        """Return the decisions of a run in which the order of the jobs does not change.

        Of a tier, the job of lowest score is first, and of equal ones the first submitted.
        """
        from optsched.policies.parts._site_log import new_log

        waiting = self.tables.waiting
        jobs, tier = np.arange(len(waiting.queue)), -np.array(self._queues.tier)
        first = _rank(jobs, jobs if score is None else score, tier)
        behind = _rank(first, waiting.candidates.requested, tier) if shortest_first else first
        self.tables = self.tables._replace(
            waiting=waiting._replace(rank=first, backfilling=behind),
            log=new_log(len(jobs)),
        )
        self._news, self._bind = run.news, run.bind
        self.answer(run.problem_solver)
        return self

    def answer(self, problem_solver: ProblemSolver | NoProblems) -> None:
        """Make room in the log of nodes."""
        from optsched.policies.parts._site_log import with_runs

        log = with_runs(self.tables.log, len(self.tables.running.held.node))
        self.tables = self.tables._replace(log=log)
        self.decide = self._bind(self._kernels.decide, self.tables, self._news, self._backfills)

    def place(self, job: int, value: float) -> Held:
        """Return the nodes of a running job."""
        from optsched.policies.parts._site_backfilling import entry_of

        running = self.tables.running
        at = entry_of(running, job)
        where = slice(running.begin[at], running.stop[at])
        held = running.held
        return Held(
            int(running.alternative[at]), held.node[where].copy(), held.chunks[where].copy()
        )

    def resources(self) -> Sequence[str]:
        """Return the nodes that each job held, as interval sets."""
        from optsched.policies.parts._site_log import texts

        return texts(self.tables.log)

    def actions(
        self,
        system: System,
        order: Sequence[int] | None = None,
        in_order: Callable[[list[int]], list[int]] | None = None,
    ) -> Iterator[Action]:
        """Start jobs of the queue of a system.

        Parameters
        ----------
        system : System
            The system at a decision.
        order : sequence of int, optional
            All waiting jobs, in order; by default in that of submission.
        in_order : callable, optional
            Returns jobs in the order of backfilling; by default that of all jobs.
        """
        self.hear(system)
        waiting, kernels = self.tables.waiting, self._bound
        if order is not None:
            number = waiting.number[0] = len(order)
            waiting.order[:number] = waiting.behind[:number] = self.by_tier(order)
            self.tables.stops.is_kept[0] = False
        number = kernels["start_in_order"](self._backfills)
        yield from self._stated()
        if self._backfills:
            if in_order is not None:
                jobs = waiting.candidates.job
                ordered = in_order(jobs[:number].tolist())
                number = len(ordered)
                jobs[:number] = self.by_tier(ordered)
            kernels["backfill"](number)
            yield from self._stated()

    def hear(self, system: System) -> None:
        """Note what has happened since the last decision."""
        from optsched.simulator import _core

        news = self._news
        news.now[0], news.counts[_core.N_ACTIONS] = system.now, 0
        for heard, count, jobs in (
            (news.ended, _core.N_ENDED, system.ended),
            (news.submitted, _core.N_SUBMITTED, system.submitted),
            (news.rejected, _core.N_REJECTED, system.rejected),
        ):
            heard[: len(jobs)] = jobs
            news.counts[count] = len(jobs)
        self._bound["hear"]()

    def by_tier(self, jobs: Sequence[int]) -> Sequence[int]:
        """Return jobs in order, those of a higher tier first."""
        tier = self._queues.tier
        has_tiers = self._queues.has_tiers
        return sorted(jobs, key=lambda job: -tier[job]) if has_tiers else jobs

    def _stated(self) -> Iterator[Action]:
        """Yield the actions that the kernel has stated."""
        from optsched.simulator._core import N_ACTIONS, START

        news = self._news
        stated = slice(news.counts.item(N_ACTIONS))
        news.counts[N_ACTIONS] = 0
        columns = (column[stated].tolist() for column in (news.kind, news.job, news.value))
        for kind, job, value in zip(*columns):
            yield Start(job, self.place(job, value)) if kind == START else Wake(value)

    @functools.cached_property
    def _news(self) -> News:
        from optsched.simulator._core import new_news

        return new_news(len(self.tables.waiting.queue))

    @functools.cached_property
    def _bound(self) -> Mapping[str, Callable[..., Any]]:
        """The kernels that are called from Python, by name."""
        kernels, given = self._kernels, (self.tables, self._news)
        return {
            "hear": kernels.hear.bound(*given),
            "start_in_order": kernels.start_in_order.bound(*given, numbers=(True,)),
            "backfill": kernels.backfill.bound(*given, numbers=(0,)),
        }

    def _closed(self, origin: float) -> tuple[Closed, Numbers]:
        """Return when nodes are closed, and for each queue the number of its reservation."""
        from optsched.policies.parts._partition_queues import Closed

        there = sorted({-1, *self._queues.reservation})
        windows = [self._queues.windows(each, origin) for each in there]
        start, end, closed = (np.concatenate(parts) for parts in zip(*windows))
        edges = {at for at in (*start.tolist(), *end.tolist()) if math.isfinite(at)}
        first = np.cumsum([0, *(len(each.start) for each in windows)])
        nodes = len(self.machine.site.nodes)
        own = [there.index(each) for each in (*self._queues.reservation, -1)]  # of no queue: none
        return Closed(
            *(first, start, end, closed, np.array(sorted(edges), dtype=np.float64)),
            *(np.zeros(len(start), dtype=bool), np.ones(nodes, dtype=bool)),
            own=np.zeros(1, dtype=np.int64),
        ), np.array(own)


def queues_of(system: System, *, backfills: bool) -> PartitionQueues | None:
    """Return the queues of the machine of a simulation; None on a line of processors."""
    machine = system.machine
    if not isinstance(machine, SiteMachine):
        return None
    return PartitionQueues(system, machine, backfills=backfills)


def _rank(*keys: NDArray[Any]) -> NDArray[np.float64]:
    """Return the place of each job in the order of some keys, of which the last is the first."""
    order = np.lexsort(keys)
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order), dtype=np.float64)
    return rank
