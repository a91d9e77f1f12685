"""The earliest start of a pending job of Slurm, as running jobs end at their time limits."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Container, Sequence

from optsched.slurm.queue import LeftToSlurmError, Queue, QueuedJob
from optsched.slurm.requests import alternatives, blocked_by_rule
from optsched.slurm.running import end_of, supply_at
from optsched.slurm.supply import Supply


def earliest_start(job: QueuedJob, queue: Queue, supply: Supply) -> int | None:
    """Return the earliest time at which a pending job fits, in seconds since 1970.

    Running jobs end at their time limits, and no other job starts meanwhile. None if it never fits,
    or if a rule keeps it from starting of which the end is not known.

    Whether the job fits changes only at `changes`. Between two of reservations only more is free
    with time, so there the first time at which the job fits is found by bisection.
    """
    times, of_reservations = changes(job, queue, supply)

    def fits(time: int) -> bool:
        return could_start(job, queue, supply_at(supply, queue, time))

    return first_fit(times, of_reservations, fits)


def could_start(job: QueuedJob, queue: Queue, supply: Supply) -> bool:
    """Return whether a job fits on what is free, and no rule keeps it from starting then."""
    if blocked_by_rule(job, supply, started_of(job, queue, supply)):
        return False
    try:
        return any(each.fits(supply) for each in alternatives(job, supply))
    except LeftToSlurmError:
        return False


def first_fit(
    times: Sequence[int], of_reservations: Container[int], fits: Callable[[int], bool]
) -> int | None:
    """Return the first of ascending times that fits; None if none does.

    Between two of reservations only more is free with time.
    """
    first = 0
    for last, time in enumerate(times):
        if last + 1 == len(times) or times[last + 1] in of_reservations:
            if fits(time):
                return times[bisect_left(times, True, first, last, key=fits)]
            first = last + 1
    return None


def changes(job: QueuedJob, queue: Queue, supply: Supply) -> tuple[list[int], set[int]]:
    """Return the times at which it may change whether a job fits, now first, and some of them.

    These are those of its deadline and of reservations. The others are the ends of running jobs,
    and those of its own begin time and of its wait for fewer switches.
    """
    now = supply.time
    ends = {end for each in queue.running if (end := end_of(each, now)) < math.inf}
    if job.eligible is not None:
        ends |= {job.eligible, job.eligible + job.switches_wait}
    limits = {each.max_time for each in supply.site.partitions if each.name in job.partitions}
    limits = limits if job.limit is None else {job.limit}
    both = {each.end for each in supply.reservations}
    if job.deadline is not None:
        both |= {job.deadline - (job.least_time or limit) for limit in limits}
    both |= {each.start - limit for each in supply.reservations for limit in (0, *limits)}
    both |= {*supply.closing.tolist()}
    # a job that ends when a reservation begins is not in its way, one second later it is
    seconds = {math.floor(at) + late for at in both if abs(at) < math.inf for late in (0, 1)}
    ends |= {now + 1} if supply.completing.any() else set()
    return sorted({now, *(math.ceil(at) for at in {*ends, *seconds} if at > now)}), seconds


def started_of(job: QueuedJob, queue: Queue, supply: Supply) -> int:
    """Return how many tasks of the array of a job run at the time of the supply."""
    same = [each for each in queue.running if job.array_id and each.array_id == job.array_id]
    return sum(end_of(each, queue.time or 0) > supply.time for each in same)
