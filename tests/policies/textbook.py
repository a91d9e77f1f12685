"""Textbook schedulers: as plain as can be, sharing nothing with the package.

Each takes lists of submit times, run times, estimates and sizes (in order of submission) and the
number of processors, and returns the start time of each job.
"""

from __future__ import annotations


def fcfs(submit, runtime, estimate, size, processors):
    """First come, first served."""
    starts, running, previous = [], [], 0
    for job, arrival in enumerate(submit):
        now = max(arrival, previous)
        while True:
            busy = sum(s for end, s in running if end > now)
            if busy + size[job] <= processors:
                break
            now = min(end for end, _ in running if end > now)
        starts.append(now)
        previous = now
        running = [(end, s) for end, s in running if end > now] + [(now + runtime[job], size[job])]
    return starts


def easy(submit, runtime, estimate, size, processors, *, one_by_one=False, shortest_first=False):
    """EASY backfilling, in both orders of events of one instant.

    One by one: submissions before ends, a pass after each; a running job whose estimated end has
    come counts as free even if its end at this instant has not been handled.
    """
    starts = [None] * len(submit)
    queue, running, arrived = [], [], 0  # running: (start order, end, estimated end, size)
    order = 0

    def one_pass(now):
        nonlocal order

        def free():
            held = [s for _, _, estimated, s in running if not (one_by_one and estimated <= now)]
            return processors - sum(held)

        def start(job):
            nonlocal order
            queue.remove(job)
            starts[job] = now
            running.append((order, now + runtime[job], now + estimate[job], size[job]))
            order += 1

        while queue and size[queue[0]] <= free():
            start(queue[0])
        if not queue:
            return
        available, shadow = free(), now
        ends = sorted({estimated for _, _, estimated, _ in running})
        for moment in ends:
            if one_by_one and moment <= now:
                continue
            if available >= size[queue[0]]:
                break
            shadow = moment
            available += sum(s for _, _, estimated, s in running if estimated == moment)
        extra = available - size[queue[0]]
        candidates = queue[1:]
        if shortest_first:
            candidates.sort(key=lambda job: estimate[job])
        for job in candidates:
            if size[job] > free():
                continue
            if now + estimate[job] > shadow:
                if size[job] > extra:
                    continue
                extra -= size[job]
            start(job)

    while arrived < len(submit) or running:
        times = [end for _, end, _, _ in running]
        if arrived < len(submit):
            times.append(submit[arrived])
        now = min(times)
        if one_by_one:
            if arrived < len(submit) and submit[arrived] == now:
                queue.append(arrived)
                arrived += 1
            else:
                running.remove(min(entry for entry in running if entry[1] == now))
            one_pass(now)
        else:
            running[:] = [entry for entry in running if entry[1] != now]
            while arrived < len(submit) and submit[arrived] == now:
                queue.append(arrived)
                arrived += 1
            one_pass(now)
    return starts


def conservative(submit, runtime, estimate, size, processors):
    """Conservative backfilling, batched: at an end every waiting job is placed again in order."""
    starts = [None] * len(submit)
    planned: dict[int, float] = {}
    running: list[tuple[float, float, int]] = []  # end, estimated end, size
    arrived = 0

    def use(moment, without):
        used = sum(s for _, estimated, s in running if estimated > moment)
        for job, at in planned.items():
            if job != without and at <= moment < at + estimate[job]:
                used += size[job]
        return used

    def earliest(job, now):
        moments = {now} | {estimated for _, estimated, _ in running if estimated > now}
        moments |= {at + estimate[j] for j, at in planned.items() if j != job}
        for at in sorted(moments):
            edges = {at} | {
                p for j, p in planned.items() if j != job and at < p < at + estimate[job]
            }
            if all(use(edge, job) + size[job] <= processors for edge in edges):
                return at
        raise AssertionError("no place")

    while arrived < len(submit) or running or planned:
        times = [end for end, _, _ in running]
        if arrived < len(submit):
            times.append(submit[arrived])
        now = min(times)
        ended = [entry for entry in running if entry[0] == now]
        running = [entry for entry in running if entry[0] != now]
        if ended:
            for job in sorted(planned):
                planned[job] = earliest(job, now)
        while arrived < len(submit) and submit[arrived] == now:
            planned[arrived] = earliest(arrived, now)
            arrived += 1
        for job in sorted(planned):
            if planned[job] <= now:
                starts[job] = now
                running.append((now + runtime[job], now + estimate[job], size[job]))
                del planned[job]
    return starts
