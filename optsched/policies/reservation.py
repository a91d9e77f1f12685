"""Queues on a line or a site: the reservation of a blocked job, and backfilling around it."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from optsched.policies._line import QueueDecisions, queue_decisions
from optsched.policies.site.partition_queues import PartitionQueues, queues_of
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.policy import Action, Policy, Start
from optsched.simulator.system import System


class Reservation(NamedTuple):
    """Shadow time and extra processors of a blocked job."""

    shadow: float  # earliest time at which the running jobs will have released enough processors
    extra: int  # processors that are free then beyond those that the job needs


def reserve(system: System, job: int) -> Reservation:
    """Return the reservation of `job`, which is too large for the free processors.

    All releases of one instant count together. The processors of a running job whose estimated end
    has come count as free, even if its end event of this instant is still to follow.
    """
    processors, now = system.processors, system.now
    needed = processors[job] - system.machine.free
    releases = iter(system.running.by_estimated_end)
    shadow = now
    for end, running in releases:
        needed -= processors[running]
        shadow = end
        if needed <= 0:
            break
    for end, running in releases:
        if end > shadow and end > now:
            break
        needed -= processors[running]
    return Reservation(max(shadow, now), -needed)


def backfill(
    system: System, candidates: Iterable[int], reservation: Reservation
) -> Generator[Action, None, Reservation]:
    """Start the candidates that do not delay the reservation, in order (EASY).

    The blocked job itself is not a candidate. The reservation is returned with the extra processors
    that remain.
    """
    processors, requested_time = system.processors, system.requested_time
    free, longest = system.machine.free, reservation.shadow - system.now
    extra = reservation.extra
    for job in candidates:
        size = processors[job]
        if size > free:
            continue
        if requested_time[job] > longest:
            if size > extra:
                continue
            extra -= size
        free -= size
        yield Start(job)
        if not free:
            break
    return reservation if extra == reservation.extra else reservation._replace(extra=extra)


class QueuePolicy(Policy):
    """Base of the policies that start the jobs of one queue in order, with or without backfilling.

    On a site there is a queue for each partition, or set of partitions that share nodes.
    """

    machines = frozenset({"nodes", "site"})

    @property
    def backfills(self) -> bool:
        """Whether later jobs may start that do not delay the first one that does not fit."""
        return False

    def begin(self, system: System) -> None:
        """Prepare for the machine, and forget the reservation."""
        self._head = -1
        self._promised: Mapping[int, float] = {}
        self._queues: PartitionQueues | None = queues_of(system, backfills=self.backfills)
        self._line: QueueDecisions | None = None

    def ordered(self, system: System) -> list[int] | None:
        """Return the waiting jobs in order; None for that of submission.

        In that, a reservation is kept until a job ends, even when its time has passed.
        """
        return None

    def in_order(self, jobs: list[int], system: System) -> list[int]:
        """Return ordered candidates in the order of backfilling."""
        return jobs

    def decide(self, system: System) -> Iterable[Action]:
        """Start jobs in order while they fit, reserve for the first blocked one, backfill others.

        As long as no job has ended and the blocked job is the same, a job that could not be
        backfilled still cannot: its estimated end only moves later. So only new jobs are tried.
        """
        machine, demands = system.machine, system.demands
        if self._queues is not None:
            in_order = partial(self.in_order, system=system)
            yield from self._queues.actions(system, self.ordered(system), in_order)
            return
        if not (system.queue and machine.free):
            self._head = -1
            return
        order = self.ordered(system)
        waiting = system.queue if order is None else order
        while waiting and machine.fits(demands[waiting[0]]):
            # a job that was held may start before the head that has a reservation
            self._head, self._promised = -1, {}
            yield Start(waiting[0])
            if order is not None:  # the queue itself has lost the job
                del order[0]
        if not self.backfills or len(waiting) < 2 or not machine.free:
            self._head = -1
            return
        head, candidates = waiting[0], system.submitted
        if order is not None or system.ended or head != self._head:
            self._head, candidates = head, waiting[1:]
            self._reservation = reserve(system, head)
            shadow = self._reservation.shadow
            self._promised = {head: min(shadow, self._promised.get(head, math.inf))}
        candidates = self.in_order(candidates, system)
        self._reservation = yield from backfill(system, candidates, self._reservation)

    def promised(self, system: System) -> Mapping[int, float]:
        """Return the first shadow time of each head, since it is one and no job came first."""
        kept = self._queues or self._line
        return self._promised if kept is None else kept.promised

    def _bound(self, run: CompiledRun, **order: Any) -> CompiledDecisions | None:
        """Bind the decision kernel of the machine, with the order of its queues."""
        if self._queues is not None:
            return self._queues.compiled(run, **order)
        self._line = queue_decisions(run, backfills=self.backfills, **order)
        return self._line
