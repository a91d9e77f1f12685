"""A textbook scheduler of a site: as plain as can be, sharing nothing with the package.

Jobs are lists of alternatives, each with ``chunks``, ``most_per_node``, ``demand``, ``nodes`` (the
allowed ones), ``exclusive`` and ``licences``. What is free is a list of amounts for each node, the
set of jobs on each node, and the licences.
"""

from __future__ import annotations

import copy


class Nodes:
    def __init__(self, capacity, licences):
        self.free = [list(row) for row in capacity]
        self.on = [[] for _ in capacity]  # (job, whether it is exclusive)
        self.licences = list(licences)

    def room(self, one, node):
        """Chunks of an alternative that fit on a node, by trying one after the other."""
        if node not in one.nodes or any(alone for _, alone in self.on[node]):
            return 0
        if one.exclusive and self.on[node]:
            return 0
        count = 0
        while count < one.most_per_node and all(
            there >= (count + 1) * needs for there, needs in zip(self.free[node], one.demand)
        ):
            count += 1
        return count

    def total(self, one):
        return sum(self.room(one, node) for node in range(len(self.free)))

    def licensed(self, one):
        return all(there >= needs for there, needs in zip(self.licences, one.licences))

    def fits(self, one):
        return self.licensed(one) and self.total(one) >= one.chunks

    def first_fit(self, one):
        if not self.fits(one):
            return None
        place, missing = {}, one.chunks
        for node in range(len(self.free)):
            count = min(self.room(one, node), missing)
            if count:
                place[node] = count
                missing -= count
        return place

    def take(self, job, one, place, sign=1):
        for node, count in place.items():
            for resource, needs in enumerate(one.demand):
                self.free[node][resource] -= sign * count * needs
            if sign > 0:
                self.on[node].append((job, one.exclusive))
            else:
                self.on[node].remove((job, one.exclusive))
        for licence, needs in enumerate(one.licences):
            self.licences[licence] -= sign * needs


def beside(now, then, job, one, head):
    """Place a job that runs beyond the shadow time, or return None.

    Chunk by chunk: first where the head loses nothing, then where it can do without.
    """
    if not now.fits(one):
        return None
    after = copy.deepcopy(then)
    after.take(job, one, {})
    if any(one.licences) and not all(
        there >= needs
        for there, needs, own in zip(after.licences, head.licences, one.licences)
        if own
    ):
        return None
    place, missing = {}, one.chunks
    for may_lose in (False, True):
        for node in range(len(now.free)):
            while missing and place.get(node, 0) < now.room(one, node):
                tried = place | {node: place.get(node, 0) + 1}
                after = copy.deepcopy(then)
                after.take(job, one, tried)
                before = copy.deepcopy(then)
                before.take(job, one, place)
                least = head.chunks if may_lose else before.total(head)
                if after.total(head) < least:
                    break
                place = tried
                missing -= 1
    return None if missing else place


def easy(capacity, licences, jobs, submit, runtime, estimate, *, backfills=True, order=None):
    """EASY backfilling, or FCFS without; all ends, then all submissions, then a decision.

    `order` gives the key of a job in the queue, by default its number.
    """
    order = order or (lambda job: job)
    nodes = Nodes(capacity, licences)
    starts, queue, running, arrived = [None] * len(jobs), [], [], 0
    while arrived < len(jobs) or running:
        moments = [entry[0] for entry in running]
        if arrived < len(jobs):
            moments.append(submit[arrived])
        now = min(moments)
        for entry in [entry for entry in running if entry[0] == now]:
            running.remove(entry)
            nodes.take(*entry[2:], sign=-1)
        while arrived < len(jobs) and submit[arrived] == now:
            if jobs[arrived]:
                queue.append(arrived)
            arrived += 1
        queue.sort(key=order)

        def start(job, one, place, now=now):
            nodes.take(job, one, place)
            running.append((now + runtime[job], now + estimate[job], job, one, place))
            queue.remove(job)
            starts[job] = now

        def possible(job, nodes=nodes):
            return next((one for one in jobs[job] if nodes.fits(one)), None)

        while queue and (one := possible(queue[0])) is not None:
            start(queue[0], one, nodes.first_fit(one))
        if not queue or not backfills:
            continue
        shadow, then = now, copy.deepcopy(nodes)
        for moment in sorted({entry[1] for entry in running}):
            shadow = moment
            for entry in running:
                if entry[1] == moment:
                    then.take(*entry[2:], sign=-1)
            if (head := possible(queue[0], then)) is not None:
                break
        for job in queue[1:]:
            for one in jobs[job]:
                late = now + estimate[job] > shadow
                if late:
                    place = beside(nodes, then, job, one, head)
                else:
                    place = nodes.first_fit(one)
                if place is not None:
                    if late:
                        then.take(job, one, place)
                    start(job, one, place)
                    break
    return starts


def conservative(capacity, licences, jobs, submit, runtime, estimate):
    """Conservative backfilling with reserved nodes, batched.

    At an end every waiting job is placed again in order, if it can start earlier.
    """
    starts = [None] * len(jobs)
    planned: dict[int, tuple] = {}  # job: start, alternative, place
    running, arrived = [], 0

    def left(moment, without):
        nodes = Nodes(capacity, licences)
        for _, end, job, one, place in running:
            if end > moment:
                nodes.take(job, one, place)
        for job, (at, one, place) in planned.items():
            if job != without and at <= moment < at + estimate[job]:
                nodes.take(job, one, place)
        return nodes

    def earliest(job, now):
        ends = {end for _, end, *_ in running} | {
            at + estimate[j] for j, (at, *_) in planned.items() if j != job
        }
        begins = {at for j, (at, *_) in planned.items() if j != job}
        for at in sorted({now} | {end for end in ends if end > now}):
            edges = {at} | {edge for edge in begins | ends if at < edge < at + estimate[job]}
            there = [left(edge, job) for edge in edges]
            for one in jobs[job]:
                if not all(nodes.licensed(one) for nodes in there):
                    continue
                place, missing = {}, one.chunks
                for node in range(len(capacity)):
                    count = min(missing, *(nodes.room(one, node) for nodes in there))
                    if count:
                        place[node] = count
                        missing -= count
                if not missing:
                    return at, one, place
        raise AssertionError("no place")

    while arrived < len(jobs) or running or planned:
        moments = [entry[0] for entry in running]
        if arrived < len(jobs):
            moments.append(submit[arrived])
        now = min(moments)
        ended = [entry for entry in running if entry[0] == now]
        running = [entry for entry in running if entry[0] != now]
        if ended:
            for job in sorted(planned):
                found = earliest(job, now)
                if found[0] < planned[job][0]:
                    planned[job] = found
        while arrived < len(jobs) and submit[arrived] == now:
            if jobs[arrived]:
                planned[arrived] = earliest(arrived, now)
            arrived += 1
        for job in sorted(planned):
            at, one, place = planned[job]
            if at <= now:
                starts[job] = now
                running.append((now + runtime[job], now + estimate[job], job, one, place))
                del planned[job]
    return starts
