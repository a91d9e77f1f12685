"""Room on a site for the jobs of policies that choose these one by one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from optsched.machines.site import Held, SiteMachine
from optsched.policies.parts.partition_queues import PartitionQueues
from optsched.simulator.actions import Action, Start
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.machines._site_nodes import Flags


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
        return self._found(one, used)

    def place_head(self, job: int) -> Held | None:
        """Return where the only head can start now, or None; then it is a head no longer."""
        heads = self._room.heads
        shadow = float(heads.shadow[0])
        heads.shadow[0] = math.inf  # nothing is beyond that
        if (place := self.place_now(job)) is None:
            heads.shadow[0] = shadow
        return place

    def open_to(self, job: int) -> Flags:
        """Return the nodes that no reservation closes to a job that starts now, shape (nodes,).

        It is valid until the next call.
        """
        from optsched.policies.parts._partition_queues import note_closed

        closed, own = self._room.closed, self._candidates.own[job]
        note_closed(closed, own, float(self.system.now), self._end(job))
        return closed.open

    def survey(self, jobs: Sequence[int]) -> tuple[list[int], int]:
        """Return the alternative of each job that fits now, or -1, and how many fit together.

        These are the first ones, placed one after the other. There must be no head.
        """
        from optsched.machines._site_nodes import take

        chosen, together, tables = list[int](), 0, self.tables
        now = float(self.system.now)
        free = type(self._room.free)(*(part.copy() for part in self._room.free))
        left = tables._replace(room=self._room._replace(free=free))
        for at, job in enumerate(jobs):
            one, used = self._kernels.place_job(left if together == at else tables, job, now)
            if used and together == at:
                take(self._room.asked, free, one, self._room.place, 0, used)
                together += 1
            elif together == at:
                one, _ = self._place_job(job, now)
            chosen.append(one)
        return chosen, together

    def backfill(self, jobs: Sequence[int]) -> Iterator[Action]:
        """Start those of the jobs behind heads that fit and delay no head, in order."""
        from optsched.policies.parts._site_backfilling import put_off

        self._candidates.job[: len(jobs)] = jobs
        self._bound["backfill"](len(jobs))
        for action in self._stated():
            yield action
            assert isinstance(action, Start)
            end = float(self.system.running.estimated_end(action.job))
            if end != self._end(action.job):  # a decision that is charged for
                put_off(self.tables.running, action.job, end)

    def ask_again(self) -> Iterator[Action]:
        """Ask for a decision when a reservation begins or ends next."""
        self._kernels.ask_again(self.tables, self._news)
        yield from self._stated()

    @property
    def change_now(self) -> bool:
        """Whether a reservation begins or ends now."""
        return bool((self._room.closed.edges == self.system.now).any())

    def start(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job, and note where it runs."""
        from optsched.machines._site_nodes import Place

        yield Start(job, place)
        one, nodes, chunks = place
        end = float(self.system.running.estimated_end(job))
        self._run(job, one, Place(nodes, chunks), len(nodes), end)

    def start_first(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job that is before the heads that are to come, and may delay them."""
        yield from self.start(job, place)
        self._kernels.start_before(self._room.heads)

    def start_beside(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job on nodes that are free and open to it, unless that delays a head."""
        from optsched.machines._site_nodes import Place
        from optsched.policies.parts._partition_queues import spare_for_heads

        where, own = Place(place.nodes, place.chunks), self._candidates.own[job]
        if spare_for_heads(self._room, place.alternative, own, self._end(job), where):
            yield from self.start(job, place)

    def reserve(self, job: int) -> None:
        """Reserve for a head, at the earliest time at which it fits by estimated ends."""
        now = float(self.system.now)
        self._kernels.reserve(self._room, self.tables.running, self._candidates, job, now)

    def forget_heads(self) -> None:
        """Remove all heads and their reservations."""
        self._kernels.forget_heads(self._room)
        self._room.heads.kept[0] = 0

    def _end(self, job: int) -> float:
        """Return until when a job may run that starts now."""
        return float(self.system.now + self.system.requested_time[job])

    def _found(self, one: int, used: int) -> Held | None:
        place = self._room.place
        return Held(one, place.node[:used].copy(), place.chunks[:used].copy()) if used else None

    def _run(self, job: int, *where: Any) -> None:
        self._kernels.run(self.tables, job, *where)

    @functools.cached_property
    def _place_job(self) -> Callable[..., tuple[int, int]]:
        kernel = self._kernels.place_job
        bound: Callable[..., tuple[int, int]] = kernel.bound(self.tables, numbers=(0, 0.0))
        return bound
