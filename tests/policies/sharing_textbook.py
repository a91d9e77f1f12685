"""Textbook statement of the policies for nodes that share resources: a problem for each question.

Its only purpose is to be compared with `optsched.policies.sjbf` and `optsched.policies.rua`.
Nothing is left out: candidates without a place and thresholds of one and the same start are posed,
and feasibility is that of `ThresholdAllocation.violations`.
"""

import math
from collections import namedtuple
from itertools import accumulate
from typing import NamedTuple

from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.policies.rua import RUA
from optsched.policies.sjbf import SJBF
from optsched.simulator.policy import Start, Wake


class Found(NamedTuple):
    """Place and start of a job: the solution of a problem."""

    problem: ThresholdAllocation
    placement: Placement

    @property
    def seconds(self):
        """Requested time of the job in whole seconds, raised by the penalty of the place."""
        lost = self.problem.penalised_time(self.placement)
        return self.problem.walltime + math.ceil(lost / self.problem.unit)


Reservation = namedtuple("Reservation", "job start found")
"""Reservation of a queue head: its exact start in seconds, and its place."""


class Textbook:
    """What both policies do, in the engine."""

    def begin(self, system):
        """Begin with empty nodes, without a reservation."""
        self._running = {}  # limit, and processes on each node
        self._reservation, self._wakes_at = None, -math.inf

    def decide(self, system):
        """Start queue heads, reserve for the first that has to wait, backfill later jobs."""
        for job in system.ended:
            del self._running[job]
        while system.queue:
            head = system.queue[0]
            found = self.place_head(head, system)
            kept = self.kept(head, found, system)
            found = kept or found
            if found.placement.start > 0:
                break
            yield self.start(head, found, system)
        else:
            return
        reserved, start = self._reservation, system.now + found.placement.start
        if reserved is not None and reserved.job == head:
            start = min(start, reserved.start)
        if kept is None:
            self._reservation = Reservation(head, start, found)
        elif start != self._wakes_at:
            self._wakes_at = start
            yield Wake(start)
        yield from self.backfill(found, system)

    def kept(self, job, found, system):
        """Return the reserved place and start of a job, if the new ones are later."""
        reserved, start = self._reservation, system.now + found.placement.start
        if reserved is None or reserved.job != job or start < reserved.start + 1:
            return None
        start = max(0, math.ceil(reserved.start - system.now))
        same = self.problem(job, system, threshold=reserved.found.problem.threshold)
        kept = Found(same, Placement(start, reserved.found.placement.processes))
        return kept if is_place(*kept) else None

    def breaks(self, job, found, head, system):
        """Return whether a job that starts now makes the reserved place infeasible."""
        reserved, limit, now = self._reservation, self.limit(found), system.now
        start, processes = head.placement
        both = (found.placement.processes > 0) & (processes > 0)
        if now + limit <= reserved.start or not both.any():
            return False
        if limit <= start:
            return True
        if now + start > reserved.start:  # a later event may round the start to less
            limit += 1
        held = self.rows(system) + self.rows_of(job, found.placement.processes, 0, limit, system)
        again = self.problem(head.problem.job, system, held, head.problem.threshold)
        return not is_place(again, head.placement)

    def limit(self, found):
        """Return the seconds for which a job may run at a place."""
        return found.seconds if self.limits == "raised" else found.problem.walltime

    def start(self, job, found, system):
        """Return the action that starts a job at a place."""
        limit, processes = self.limit(found), found.placement.processes
        self._running[job] = system.now + limit, processes
        return Start(job, system.machine.place(processes), float(limit))

    def thresholds_of(self, job, system):
        """Return the thresholds of a job, raised to its factor if spread on an empty machine."""
        alone, on_a_node = 0.0, math.ceil(system.processors[job] / system.machine.nodes)
        for name, capacity in system.machine.capacity.items():
            alone += max(on_a_node * self.demand(job, name, system) - capacity, 0) / capacity
        least = 1000 + math.ceil(1000 * alone)
        return [max(factor, least) for factor in self.factors()] or [None]

    def demand(self, job, name, system):
        """Return the demand of a process of a job on a resource."""
        return int(system.annotations[name][job]) if name in system.annotations else 0

    def rows_of(self, job, processes, start, end, system):
        """Return the allocations of a job."""
        demands = [self.demand(job, name, system) for name in system.machine.capacity]
        counts = enumerate(processes.tolist())
        return [[node, count, start, end, *demands] for node, count in counts if count]

    def rows(self, system):
        """Return the allocations of running jobs, as seen from now."""
        found = []
        for job, (until, processes) in self._running.items():
            left = max(1, math.ceil(until - system.now))
            found += self.rows_of(job, processes, 0, left, system)
        return found

    def with_reservation(self, head, system):
        """Return the allocations of the reservation and of running jobs."""
        start, processes = head.placement
        end = start + self.limit(head)
        return self.rows_of(head.problem.job, processes, start, end, system) + self.rows(system)

    def problem(self, job, system, held=None, threshold=None, goal="start", latest=None):
        """Return a problem of a job, whose label is its row."""
        machine = system.machine
        held = self.rows(system) if held is None else held
        return ThresholdAllocation(
            *(machine.nodes, machine.processors, list(machine.capacity.values()), held),
            asked=system.processors[job],
            walltime=math.ceil(system.requested_time[job]),
            demand=[self.demand(job, name, system) for name in machine.capacity],
            threshold=threshold,
            goal=goal,
            latest=latest,
            job=job,
        )

    def pose(self, problem, system):
        """Pose a problem; return the place found, None without one."""
        placement = system.pose(problem)
        return None if placement is None else Found(problem, placement)


class TextbookSJBF(Textbook, SJBF):
    """Backfilling by requested time."""

    def factors(self):
        """Return the threshold in thousandths, if any."""
        return [round(1000 * self.threshold)] if self.threshold else []

    def place_head(self, job, system):
        """Return place and start of the queue head."""
        latest = None if self.threshold else self.first_room(job, system)
        return self.offer(job, system, self.rows(system), latest)

    def first_room(self, job, system):
        """Return the seconds until enough processors are free, if no other job starts."""
        free = system.machine.free
        if free >= system.processors[job]:
            return 0
        ends = sorted((until, one) for one, (until, _) in self._running.items())
        totals = accumulate((system.processors[one] for _, one in ends), initial=free)
        enough = next(at for at, total in enumerate(totals) if total >= system.processors[job])
        return max(1, math.ceil(ends[enough - 1][0] - system.now))

    def offer(self, job, system, held, latest):
        """Return the place of least cost, at the first start within a threshold if there is one."""
        cost = "everybody" if self.goal == "everybody" else "penalty"
        (threshold,) = self.thresholds_of(job, system)
        goal = "start" if self.threshold else cost
        found = self.pose(self.problem(job, system, held, threshold, goal, latest), system)
        if found is None or not self.threshold or self.goal == "paper":
            return found
        at = found.placement.start
        return self.pose(self.problem(job, system, held, threshold, cost, at), system) or found

    def backfill(self, head, system):
        """Start the candidates that have a place now, the shortest first."""
        for job in sorted(system.queue[1:], key=system.requested_time.__getitem__):
            if system.processors[job] > system.machine.free:
                continue
            found = self.offer(job, system, self.with_reservation(head, system), latest=0)
            if found is not None and not self.breaks(job, found, head, system):
                yield self.start(job, found, system)


class TextbookRUA(Textbook, RUA):
    """The least slowdown for each job, and backfilling by the penalty factor."""

    def factors(self):
        """Return the thresholds in thousandths; the solver chooses within the largest one."""
        factors = sorted({round(1000 * float(text)) for text in self.thresholds.split(",")})
        return factors[-1:] if self.choice == "response" else factors

    def place_head(self, job, system):
        """Return place and start of the queue head."""
        return self.offer(job, system, self.rows(system))

    def offer(self, job, system, held):
        """Return the place and start with the least end; of equal ones that of least threshold."""
        goal = "response" if self.choice == "response" else "start"
        offers = [
            self.pose(self.problem(job, system, held, one, goal), system)
            for one in self.thresholds_of(job, system)
        ]
        found = [one for one in offers if one is not None]
        return min(found, key=lambda one: one.placement.start + one.seconds, default=None)

    def backfill(self, head, system):
        """Start jobs one by one, each time that with the least penalty factor."""
        while True:
            ranked = []
            for job in system.queue[1:]:
                found = self.offer(job, system, self.with_reservation(head, system))
                starts_now = found is not None and found.placement.start == 0
                if starts_now and not self.breaks(job, found, head, system):
                    factor = found.problem.factor(found.placement)
                    ranked.append((factor, found.problem.walltime, job, found))
            if not ranked:
                return
            *_, job, found = min(ranked, key=lambda one: one[:3])
            yield self.start(job, found, system)


def is_place(problem, placement):
    """Return whether a placement is feasible, apart from starts that must be at an end."""
    return all(one.constraint == "start" for one in problem.violations(placement))
