"""Waiting jobs of a site in its queues, room for them, and reservations of nodes for some."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Floats
from optsched.machines._site_nodes import Free, Place, hold, log_texts, new_log, with_runs
from optsched.machines.site import Held, SiteMachine
from optsched.policies.site import _decisions, _heads, _tables
from optsched.simulator._core import new_news, zeroed
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun, hear, stated
from optsched.simulator.policy import Action, Start
from optsched.simulator.problem_solver import ProblemSolver
from optsched.simulator.system import System


class PartitionQueues(CompiledDecisions):
    """The queues of a site, see `optsched.sites.requests`, in which the first blocked job waits.

    Jobs start in order, those of a higher tier first. One that does not fit is the *head* of its
    queue. Without backfilling, no later job gets nodes of the partitions of a head. With it, each
    head has a reservation as under `easy`, unless its partitions share nodes with those of a head
    before it: two heads never want the same node. Later jobs start if they delay no head.

    A job that names a reservation of the site runs on its nodes, within its time. No other job gets
    a node that would be reserved before its requested time is over.

    `system`: the system before the first event. `machine`: its machine. `backfills`: whether later
    jobs may start that do not delay a head.
    """

    def __init__(self, system: System, machine: SiteMachine, *, backfills: bool) -> None:
        self.machine, self._queues, self._backfills = machine, machine.queues, backfills
        jobs, cells = len(system.demands), self._queues.cells
        self._news = new_news(jobs)
        closed = _tables.closed_nodes(self._queues, system.submit[0])
        free = Free(*(part.copy() for part in machine.nodes))
        room = _heads.new_room(machine.asked, free, len(cells), closed)
        kinds = len(closed.first) - 1, len(cells) + len(closed.edges) + 1
        number, gone, come, decision = np.zeros((4, 1), dtype=np.int64)
        of_job = np.array(self._queues.of_job)
        rank = _rank(np.arange(jobs), -np.array(self._queues.tier))
        candidates = zeroed(
            _heads.Candidates,
            jobs,
            requests=np.array(system.demands, dtype=np.int64),
            requested=np.array(system.requested_time, dtype=np.float64),
            own=closed.of_queue[of_job],
            failed=np.zeros((*kinds, len(machine.requests.first)), dtype=np.int64),
            decision=decision,
        )
        counts = {"number": number, "gone": gone, "come": come}
        order = {"rank": rank, "backfilling": rank, "queue": of_job}
        opened, (last, until) = np.ones(cells.shape[1], dtype=bool), np.full((2, 1), -np.inf)
        if not backfills and not len(closed.start):
            room = room._replace(allowed=opened)
        self.tables = _decisions.Queues(
            room,
            _tables.nothing_runs(jobs, int(free.total[0])),
            _tables.no_shortages(len(machine.requests.alternatives)),
            zeroed(_decisions.Waiting, jobs, candidates=candidates, **order, **counts),
            zeroed(
                _decisions.Stops,
                len(cells),
                cells=cells,
                shares=cells @ cells.T,
                open=opened,
                is_kept=np.zeros(1, dtype=bool),
                last=last,
                until=until,
            ),
            new_log(0),
        )

    @property
    def promised(self) -> dict[int, float]:
        """The time by which each head starts.

        It is the earliest that was reserved since it is a head and no job has come first. A head
        that asks for a licence of an earlier one has none.
        """
        heads = self.tables.room.heads
        number = int(heads.number[0])
        promised = zip(heads.job[:number].tolist(), heads.promised[:number].tolist())
        return {job: at for job, at in promised if at < math.inf}

    def compiled(
        self, run: CompiledRun, *, rank: Floats | None = None, shortest_first: bool = False
    ) -> PartitionQueues:
        """Return the decisions of a run in which the order of the jobs does not change.

        Of a tier, the job of lowest rank is first, and of equal ones the first submitted.
        """
        waiting = self.tables.waiting
        jobs, tier = np.arange(len(waiting.queue)), -np.array(self._queues.tier)
        first = waiting.rank if rank is None else _rank(jobs, rank, tier)
        behind = _rank(first, waiting.candidates.requested, tier) if shortest_first else first
        self.tables = self.tables._replace(
            waiting=waiting._replace(rank=first, backfilling=behind), log=new_log(len(jobs))
        )
        self._news, self._bind = run.news, run.bind
        self.answer(run.problem_solver)
        return self

    def answer(self, problem_solver: ProblemSolver) -> None:
        """Make room in the log of nodes."""
        log = with_runs(self.tables.log, len(self.tables.running.held.node))
        self.tables = self.tables._replace(log=log)
        self.decide = self._bind(_decisions.decide, self.tables, self._news, self._backfills)

    def place(self, job: int, value: float) -> Held:
        """Return the nodes of a running job."""
        running = self.tables.running
        where = slice(running.begin[job], running.stop[job])
        nodes, chunks = (column[where].copy() for column in running.held)
        return Held(int(running.alternative[job]), nodes, chunks)

    def resources(self) -> Sequence[str]:
        """Return the nodes that each job held, as interval sets."""
        return log_texts(self.tables.log)

    def actions(
        self,
        system: System,
        order: Sequence[int] | None = None,
        in_order: Callable[[list[int]], list[int]] | None = None,
    ) -> Iterator[Action]:
        """Start jobs of the queue of a system at a decision.

        `order`: all waiting jobs, in order; by default in that of submission. `in_order` returns
        jobs in the order of backfilling; by default that of all jobs.
        """
        self.hear(system)
        waiting, kernels = self.tables.waiting, self._bound
        if order is not None:
            number = waiting.number[0] = len(order)
            waiting.order[:number] = waiting.behind[:number] = self.by_tier(order)
            self.tables.stops.is_kept[0] = False
        number = kernels["start_in_order"](self._backfills)
        yield from stated(self._news, self.place)
        if self._backfills:
            if in_order is not None:
                jobs = waiting.candidates.job
                ordered = in_order(jobs[:number].tolist())
                number = len(ordered)
                jobs[:number] = self.by_tier(ordered)
            kernels["backfill"](number)
            yield from stated(self._news, self.place)

    def hear(self, system: System) -> None:
        """Note what has happened since the last decision."""
        hear(self._news, system)
        self._bound["hear"]()

    def by_tier(self, jobs: Sequence[int]) -> Sequence[int]:
        """Return jobs in order, those of a higher tier first."""
        tier = self._queues.tier
        has_tiers = self._queues.has_tiers
        return sorted(jobs, key=lambda job: -tier[job]) if has_tiers else jobs

    @functools.cached_property
    def _bound(self) -> Mapping[str, Callable[..., Any]]:
        """The kernels that are called from Python, by name."""
        given = self.tables, self._news
        return {
            "hear": _decisions.hear.bound(*given),
            "start_in_order": _decisions.start_in_order.bound(*given, numbers=(True,)),
            "backfill": _decisions.backfill.bound(*given, numbers=(0,)),
        }


class SiteRoom(PartitionQueues):
    """Nodes for jobs now, and beside the reservations of blocked jobs.

    All jobs that start are to be started here, after `hear`.
    """

    def __init__(self, system: System, machine: SiteMachine) -> None:
        super().__init__(system, machine, backfills=True)
        self.system, self._room = system, self.tables.room
        self._candidates = self.tables.waiting.candidates

    def place_now(self, job: int) -> Held | None:
        """Return where a job can start now without delaying a head, or None."""
        one, used = self._place_job(job, float(self.system.now))
        place = self._room.place
        return Held(one, place.node[:used].copy(), place.chunks[:used].copy()) if used else None

    def place_head(self, job: int) -> Held | None:
        """Return where the only head can start now, or None; then it is a head no longer."""
        heads = self._room.heads
        shadow = float(heads.shadow[0])
        heads.shadow[0] = math.inf  # nothing is beyond that
        if (place := self.place_now(job)) is None:
            heads.shadow[0] = shadow
        return place

    def open_to(self, job: int) -> Flags:
        """Return the nodes that are open to a job that starts now, valid until the next call."""
        closed, own = self._room.closed, self._candidates.own[job]
        _tables.note_closed(closed, own, float(self.system.now), self._end(job))
        return closed.open

    def survey(self, jobs: Sequence[int]) -> tuple[list[int], int]:
        """Return the alternative of each job that fits now, or -1, and how many fit together.

        These are the first ones, placed one after the other. There must be no head.
        """
        chosen, together, tables = list[int](), 0, self.tables
        now = float(self.system.now)
        free = Free(*(part.copy() for part in self._room.free))
        left = tables._replace(room=self._room._replace(free=free))
        for at, job in enumerate(jobs):
            one, used = _decisions.place_job(left if together == at else tables, job, now)
            if used and together == at:
                hold(self._room.asked, free, one, self._room.place, 0, used, -1)
                together += 1
            elif together == at:
                one, _ = self._place_job(job, now)
            chosen.append(one)
        return chosen, together

    def backfill(self, jobs: Sequence[int]) -> Iterator[Action]:
        """Start those of the jobs behind heads that fit and delay no head, in order."""
        self._candidates.job[: len(jobs)] = jobs
        self._bound["backfill"](len(jobs))
        for action in stated(self._news, self.place):
            yield action
            assert isinstance(action, Start)
            end = float(self.system.running.estimated_end(action.job))
            if end != self._end(action.job):  # a decision that is charged for
                _tables.put_off(self.tables.running, action.job, end)

    def ask_again(self) -> Iterator[Action]:
        """Ask for a decision when a reservation begins or ends next."""
        _tables.ask_again(self._room.closed, self._news)
        yield from stated(self._news, self.place)

    @property
    def change_now(self) -> bool:
        """Whether a reservation begins or ends now."""
        return bool((self._room.closed.edges == self.system.now).any())

    def start(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job, and note where it runs."""
        yield Start(job, place)
        one, nodes, chunks = place
        end = float(self.system.running.estimated_end(job))
        _decisions.run(self.tables, job, one, Place(nodes, chunks), len(nodes), end)

    def start_first(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job that is before the heads that are to come, and may delay them."""
        yield from self.start(job, place)
        _heads.start_before(self._room.heads)

    def start_beside(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job on nodes that are free and open to it, unless that delays a head."""
        where, own = Place(place.nodes, place.chunks), self._candidates.own[job]
        if _heads.spare_for_heads(self._room, place.alternative, own, self._end(job), where):
            yield from self.start(job, place)

    def reserve(self, job: int) -> None:
        """Reserve for a head, at the earliest time at which it fits by estimated ends."""
        now = float(self.system.now)
        _heads.reserve(self._room, self.tables.running, self._candidates, job, now)

    def forget_heads(self) -> None:
        """Remove all heads and their reservations."""
        _heads.forget_heads(self._room)
        self._room.heads.kept[0] = 0

    def _end(self, job: int) -> float:
        """Return until when a job may run that starts now."""
        return float(self.system.now + self.system.requested_time[job])

    @functools.cached_property
    def _place_job(self) -> Callable[..., tuple[int, int]]:
        bound: Callable[..., tuple[int, int]] = _decisions.place_job.bound(
            self.tables, numbers=(0, 0.0)
        )
        return bound


def queues_of(system: System, *, backfills: bool) -> PartitionQueues | None:
    """Return the queues of the machine of a simulation; None on a line of processors."""
    machine = system.machine
    if not isinstance(machine, SiteMachine):
        return None
    return PartitionQueues(system, machine, backfills=backfills)


def _rank(*keys: NDArray[Any]) -> Floats:
    """Return the place of each job in the order of some keys, of which the last is the first."""
    order = np.lexsort(keys)
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order), dtype=np.float64)
    return rank
