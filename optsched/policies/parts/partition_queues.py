"""Waiting jobs of a site in its queues, and reservations of nodes for some of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from optsched.machines.site import Held, SiteMachine
from optsched.simulator.actions import Action, Start, Wake
from optsched.simulator.system import System
from optsched.sites.queues import Windows

if TYPE_CHECKING:
    from optsched.machines._site_nodes import Flags
    from optsched.policies.parts._partition_queues import Room


class PartitionQueues:
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

    Attributes
    ----------
    promised : dict of int to float
        The time by which each head starts, the earliest that was reserved since it is a head and
        no job has come first.
    """

    def __init__(self, system: System, machine: SiteMachine) -> None:
        from optsched.machines._site_nodes import Place, take
        from optsched.policies.parts import _partition_queues, _site_backfilling

        self.system, self.machine, self._queues = system, machine, machine.queues
        self._kernels, self._add, self._new_place = _partition_queues, _site_backfilling.add, Place
        self._take, self._no_tiers = take, not self._queues.has_tiers
        origin = self._queues.first - system.submit[0]
        self._heads = _partition_queues.no_heads(machine.asked, len(self._queues.cells))
        self._rooms = {
            number: self._room(self._queues.windows(number, origin))
            for number in {-1, *self._queues.reservation}
        }
        edges = ((*each.closed.start, *each.closed.end) for each in self._rooms.values())
        self._changes = sorted({at for some in edges for at in some if math.isfinite(at)})
        self._woken = -math.inf
        jobs, cores = len(system.demands), int(machine.nodes.total[0])  # one on each node at least
        self._running = _site_backfilling.nothing_runs(min(jobs, cores) + 1, cores)
        self._shortages = _site_backfilling.no_shortages(len(machine.requests.alternatives))
        self._candidates = _partition_queues.Candidates(
            np.zeros(jobs, dtype=np.int64),
            np.array(system.demands, dtype=np.int64),
            np.array(system.requested_time, dtype=np.float64),
            np.zeros((len(self._queues.cells) + 1, len(machine.requests.first)), dtype=bool),
        )
        self._place_request = {
            number: _partition_queues.place_request.bound(room, numbers=(0, 0.0))
            for number, room in self._rooms.items()
        }
        self.promised: dict[int, float] = {}
        self._before = self.promised
        self._last, self._is_kept, self._until = -1, False, -math.inf
        self._stopped = np.zeros(self._queues.cells.shape[1], dtype=bool)
        self._overlaps = self._is_stopped = [False] * len(self._queues.cells)

    def decide(
        self,
        jobs: Sequence[int],
        *,
        backfills: bool,
        fixed: bool = False,
        in_order: Callable[[list[int]], list[int]] = list,
    ) -> Iterator[Action]:
        """Start jobs of the queue.

        Parameters
        ----------
        jobs : sequence of int
            All waiting jobs, in the order of the policy.
        backfills : bool
            Whether later jobs may start that do not delay a head.
        fixed : bool
            Whether that is the order of submission.
        in_order : callable
            Returns jobs in the order of backfilling, by default as they are.
        """
        system, now = self.system, self.system.now
        if system.ended or system.rejected:
            self._is_kept = False
        if backfills:
            self.update()
        if not system.queue:
            return
        yield from self.wake()
        if not self.machine.free:
            self._is_kept = False
            return
        is_kept = self._is_kept and fixed and now < self._until
        if is_kept and min(system.submitted, default=math.inf) > self._last:
            jobs = system.submitted  # the others still do not fit
        elif len(self._rooms) == 1:
            self._start_again()
        else:
            self.forget_heads()
        behind: list[int] = []
        of_job = self._queues.of_job
        ordered = iter(self.by_tier(jobs))
        for job in ordered:
            stopped = self._overlaps if backfills else self._is_stopped
            if stopped[of_job[job]]:
                behind.append(job)
                if all(stopped):
                    behind.extend(ordered)
            elif (place := self.place(job, unless_stopped=not backfills)) is None:
                self._stop(job)
                if backfills:
                    self.reserve(job)
            elif backfills:
                yield from self.start_first(job, place)
            else:
                yield Start(job, place)
        if backfills:
            yield from self.backfill(self.by_tier(in_order(behind)))
        self._is_kept = fixed and self._no_tiers and self.machine.free > 0
        self._until = next((at for at in self._changes if at > now), math.inf)

    def place(self, job: int, *, unless_stopped: bool = False) -> Held | None:
        """Return where a job can start now without delaying a head, or None.

        With `unless_stopped`, not on nodes of queues that a head stops.
        """
        room = self._room_of(job)
        if self._changes:
            room.allowed[:] = self.open_to(job)
        if unless_stopped and self._reservation_of(job) < 0:
            stopped = self._stopped[: len(room.allowed)]
            room.allowed[:] = room.closed.open & ~stopped
        if len(self._rooms) > 1:
            self._heads.opened[0] = self._kernels.UNKNOWN  # each room has its own open nodes
        call = self._place_request[self._reservation_of(job)]
        one, used = call(self._candidates.requests[job], self._end(job))
        return self._found(room, one, used) if used else None

    def place_head(self, job: int) -> Held | None:
        """Return where the only head can start now, or None; then it is a head no longer."""
        shadow = self._heads.shadow[0]
        self._heads.shadow[0] = math.inf  # nothing is beyond that
        if (place := self.place(job)) is None:
            self._heads.shadow[0] = shadow
        return place

    def open_to(self, job: int) -> Flags:
        """Return the nodes that no reservation closes to a job that starts now, shape (nodes,).

        It is valid until the next call.
        """
        closed, now = self._room_of(job).closed, float(self.system.now)
        self._kernels.note_closed(closed, now, now + self.system.requested_time[job])
        return closed.open

    def survey(self, jobs: Sequence[int]) -> tuple[list[int], int]:
        """Return the alternative of each job that fits now, or -1, and how many fit together.

        These are the first ones, placed one after the other. There must be no head.
        """
        chosen, together = [], 0
        left = type(self.machine.nodes)(*(part.copy() for part in self.machine.nodes))
        for at, job in enumerate(jobs):
            place = None
            if together == at:
                room = self._room_of(job)
                room.allowed[:] = self.open_to(job)
                request, end = self._candidates.requests[job], self._end(job)
                kernel, there = self._kernels.place_request, room._replace(free=left)
                one, used = kernel(there, request, end)
                place = self._found(room, one, used) if used else None
            if place is not None:
                where = self._new_place(place.nodes, place.chunks)
                self._take(room.asked, left, place.alternative, where, 0, len(place.nodes))
                together += 1
            else:
                place = self.place(job)
            chosen.append(-1 if place is None else place.alternative)
        return chosen, together

    def _found(self, room: Room, one: int, used: int) -> Held:
        return Held(one, room.place.node[:used].copy(), room.place.chunks[:used].copy())

    def backfill(self, jobs: Sequence[int]) -> Iterator[Action]:
        """Start those of the jobs behind heads that fit and delay no head, in order.

        Within a decision, a job fails if a like one has: one of the same request that would be
        beyond the same shadow times.
        """
        if self._changes:
            yield from self._backfill_among_reservations(jobs)
            return
        room, now, at = self._rooms[-1], float(self.system.now), 0
        candidates = self._candidates
        candidates.job[: len(jobs)] = jobs
        if jobs:
            self._forget_failed(len(jobs))
        while at < len(jobs):
            at, one, used = self._next_beside(at, len(jobs), now)
            if used:
                yield from self.start(int(candidates.job[at]), self._found(room, one, used))
                at += 1

    def _backfill_among_reservations(self, jobs: Sequence[int]) -> Iterator[Action]:
        """Start jobs where nodes are closed to some: like ones are closed to the same, too."""
        now, heads = self.system.now, int(self._heads.number[0])
        edges = np.sort(np.concatenate((self._heads.shadow[:heads], self._changes)))
        ends = now + self._candidates.requested[np.array(jobs, dtype=np.int64)]
        failed: set[tuple[int, int, int]] = set()
        for job, beyond in zip(jobs, np.searchsorted(edges, ends).tolist()):
            like = int(self._candidates.requests[job]), self._queues.of_job[job], beyond
            if like in failed:
                continue
            if (place := self.place(job)) is None:
                failed.add(like)
                continue
            yield from self.start(job, place)
            if not self.machine.free:
                return

    @property
    def change_now(self) -> bool:
        """Whether a reservation begins or ends now."""
        return self.system.now in self._changes

    def wake(self) -> Iterator[Action]:
        """Ask for a decision when a reservation begins or ends next."""
        at = next((at for at in self._changes if at > self.system.now), math.inf)
        if at != self._woken:
            self._woken = at
            if at < math.inf:
                yield Wake(at)

    def start(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job, and note where it runs."""
        yield Start(job, place)
        one, nodes, chunks = place
        end = float(self.system.running.estimated_end(job))
        self._add(self._running, end, job, one, self._new_place(nodes, chunks), len(nodes))

    def start_first(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job that is before the heads that are to come, and may delay them."""
        yield from self.start(job, place)
        self._keep_no_others()
        self._before = {}

    def start_beside(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job on nodes that are free and open to it, unless that delays a head."""
        room, where = self._room_of(job), self._new_place(place.nodes, place.chunks)
        if self._kernels.spare_for_heads(room, place.alternative, self._end(job), where):
            yield from self.start(job, place)

    def _stop(self, job: int) -> None:
        """Let a job be the head of its queue, which stops that and those that share cells."""
        self._last = max(self._last, job)
        self._stopped |= self._queues.cells[self._queues.of_job[job]]
        cells = self._queues.cells
        self._overlaps = np.any(cells & self._stopped, axis=1).tolist()
        self._is_stopped = np.all(cells <= self._stopped, axis=1).tolist()

    def reserve(self, job: int) -> None:
        """Reserve for a head, at the earliest time at which it fits by estimated ends."""
        now, requested = float(self.system.now), self._candidates.requested[job]
        request = self._candidates.requests[job]
        shadow = self._reserve[self._reservation_of(job)](request, requested, now)
        if shadow < math.inf:
            self.promised[job] = min(shadow, self._before.get(job, math.inf))

    def _reservation_of(self, job: int) -> int:
        return self._queues.reservation[self._queues.of_job[job]]

    def _room_of(self, job: int) -> Room:
        return self._rooms[self._reservation_of(job)]

    def _end(self, job: int) -> float:
        """Return until when a job may run that starts now."""
        return float(self.system.now + self.system.requested_time[job])

    def forget_heads(self) -> None:
        """Let there be no heads."""
        self._start_again()
        self._keep_no_others()
        for room in self._rooms.values():
            room.owner[:] = self._kernels.NO_HEAD

    def _start_again(self) -> None:
        """Let there be no heads; those that become heads again are not reserved for anew."""
        self._heads.number[0], self._heads.opened[0] = 0, self._kernels.UNKNOWN
        self._before, self.promised = self.promised, {}
        self._stopped[:] = False
        self._overlaps = self._is_stopped = [False] * len(self._queues.cells)
        self._last, self._is_kept, self._until = -1, False, -math.inf

    def update(self) -> None:
        """Remove the jobs that have ended from the running ones."""
        for job in self.system.ended:
            self._remove(job)

    def _keep_no_others(self) -> None:
        self._heads.kept[0] = self._heads.number[0]

    @functools.cached_property
    def _remove(self) -> Callable[..., None]:
        tables = self._rooms[-1], self._running, self._shortages
        bound: Callable[..., None] = self._kernels.remove.bound(*tables, numbers=(0,))
        return bound

    @functools.cached_property
    def _reserve(self) -> dict[int, Callable[..., float]]:
        kernel, running = self._kernels.reserve, self._running
        return {
            number: kernel.bound(room, running, numbers=(0, 0.0, 0.0))
            for number, room in self._rooms.items()
        }

    @functools.cached_property
    def _forget_failed(self) -> Callable[..., None]:
        tables = self._heads, self._candidates
        bound: Callable[..., None] = self._kernels.forget_failed.bound(*tables, numbers=(0,))
        return bound

    @functools.cached_property
    def _next_beside(self) -> Callable[..., tuple[int, int, int]]:
        tables = self._rooms[-1], self._shortages, self._candidates
        kernel = self._kernels.next_beside_heads
        bound: Callable[..., tuple[int, int, int]] = kernel.bound(*tables, numbers=(0, 0, 0.0))
        return bound

    def by_tier(self, jobs: Sequence[int]) -> Sequence[int]:
        """Return jobs in order, those of a higher tier first."""
        tier = self._queues.tier
        return jobs if self._no_tiers else sorted(jobs, key=lambda job: -tier[job])

    def _room(self, windows: Windows) -> Room:
        """Return the room of the jobs of one reservation, or of those of none.

        No two of these have a node at the same time.
        """
        nodes = len(self.machine.site.nodes)
        holds, open_nodes = np.zeros(len(windows.start), dtype=bool), np.ones(nodes, dtype=bool)
        closed = self._kernels.Closed(*windows, holds, open_nodes)
        machine = self.machine
        return self._kernels.new_room(machine.asked, machine.nodes, self._heads, closed)


def queues_of(system: System) -> PartitionQueues | None:
    """Return the queues of the machine of a simulation; None on a line of processors."""
    machine = system.machine
    return PartitionQueues(system, machine) if isinstance(machine, SiteMachine) else None
