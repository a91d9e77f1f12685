"""Textbook statement of `window`, node by node.

Its only purpose is to be compared with the kernel of `optsched.policies.window`.
"""

import numpy as np

from optsched.models.window_mkp import NOT_PLACED, WindowMKP
from optsched.policies.window import Window
from optsched.simulator.policy import Start


def free_nodes(system, by=None):
    """Return the free nodes, with those of the jobs that are estimated to end by a time."""
    held = [
        run
        for job, runs in system.held.items()
        if by is None or system.running.estimated_end(job) > by
        for run in runs
    ]
    return set(range(system.machine.size)).difference(*(range(*run) for run in held))


def slots_of(free):
    """Return the maximal runs of nodes, in order."""
    starts = sorted(node for node in free if node - 1 not in free)
    stops = sorted(node + 1 for node in free if node + 1 not in free)
    return list(zip(starts, stops))


def length(slot):
    return slot[1] - slot[0]


def largest(free):
    return max(map(length, slots_of(free)), default=0)


def smallest_slot(free, size):
    """Return the first of the smallest slots of at least `size` nodes."""
    return min((slot for slot in slots_of(free) if length(slot) >= size), key=length, default=None)


class TextbookWindow(Window):
    """What the policy does, in the engine."""

    def decide(self, system):
        """Start jobs window by window, or those of one, and others behind a blocked head."""
        if self.scatter == "head":
            yield from self.scatter_heads(system)
        while True:
            before = len(system.queue)
            yield from self.decide_window(system)
            if self.interval or len(system.queue) == before:
                break
        if self.scatter == "head":
            yield from self.scatter_heads(system)
        if self.backfill == "easy" and system.queue:
            yield from self.backfill_jobs(system)

    def scatter_heads(self, system):
        """Start queue heads that no slot can hold, on nodes of the largest slots."""
        while system.queue:
            head, free = system.queue[0], free_nodes(system)
            size = system.processors[head]
            if not largest(free) < size <= len(free):
                break
            slots = sorted(slots_of(free), key=length, reverse=True)
            nodes = [node for slot in slots for node in range(*slot)][:size]
            yield Start(head, tuple(slots_of(set(nodes))))

    def decide_window(self, system):
        """Pose the window and the slots as a knapsack problem."""
        free, size = free_nodes(system), system.processors
        jobs = [job for job in system.queue[: self.window] if size[job] <= largest(free)]
        if not jobs:
            return
        least = min(size[job] for job in jobs)
        slots = [slot for slot in slots_of(free) if length(slot) >= least]
        slots = sorted(sorted(slots, key=length, reverse=True)[: len(jobs)])
        problem = WindowMKP(
            weights=[size[job] for job in jobs],
            capacities=[length(slot) for slot in slots],
            jobs=[system.job_id[job] for job in jobs],
            slots=[start for start, _ in slots],
        )
        first = [start for start, _ in slots]
        for job, slot in zip(jobs, system.pose(problem)):
            if slot != NOT_PLACED:
                first[slot] += size[job]
                yield Start(job, ((first[slot] - size[job], first[slot]),))

    def backfill_jobs(self, system):
        """Start jobs behind the blocked queue head that do not delay it, in the smallest slots."""
        head, *others = system.queue
        if system.processors[head] <= largest(free_nodes(system)):
            return
        if self.scatter == "head":
            shadow, kept, extra = self.reserve_anywhere(system, head)
        else:
            shadow, kept, extra = self.reserve_slot(system, head)
        for job in others:
            size, free = system.processors[job], free_nodes(system)
            in_time = system.requested_time[job] <= shadow - system.now
            slot = smallest_slot(free if in_time else free - kept, size)
            if slot is None or not (in_time or size <= extra):
                continue
            if not in_time:
                extra -= size
            yield Start(job, ((slot[0], slot[0] + size),))

    def reserve_slot(self, system, head):
        """Reserve nodes at the end of the smallest slot that overlaps fewer free nodes."""
        size = system.processors[head]
        # of jobs that have overrun, those that should have ended first are expected to end first
        for end in sorted({end for end, _ in system.running.by_estimated_end}):
            slot = smallest_slot(free_nodes(system, by=end), size)
            if slot is not None:
                low, high = set(range(*slot)[:size]), set(range(*slot)[-size:])
                free = free_nodes(system)
                kept = high if len(high & free) < len(low & free) else low
                return max(end, system.now), kept, np.inf
        raise ValueError("a job larger than the machine")

    def reserve_anywhere(self, system, head):
        """Reserve by number, as EASY does; return the time and the nodes that are left over."""
        for end in sorted({max(end, system.now) for end, _ in system.running.by_estimated_end}):
            free = len(free_nodes(system, by=end))
            if free >= system.processors[head]:
                return end, set(), free - system.processors[head]
        raise ValueError("a job larger than the machine")
