"""Textbook scheduler of a line: as plain as can be, sharing nothing with the package."""


def easy(jobs, processors, *, one_by_one, backfills=True, shortest_first=False):
    """Return the starts of jobs in order of submission by EASY backfilling, or FCFS without.

    The jobs are lists of submissions, run times, estimates, and sizes.

    One by one: submissions before ends, a pass after each; a running job whose estimated end has
    come counts as free even if its end at this instant has not been handled.
    """
    submit, runtime, estimate, size = jobs
    starts = [None] * len(submit)
    queue, running, arrived = [], [], 0  # running, in order of starts: (end, estimated end, size)

    def one_pass(now):
        def free():
            held = [s for _, estimated, s in running if not (one_by_one and estimated <= now)]
            return processors - sum(held)

        def start(job):
            queue.remove(job)
            starts[job] = now
            running.append((now + runtime[job], now + estimate[job], size[job]))

        while queue and size[queue[0]] <= free():
            start(queue[0])
        if not queue or not backfills:
            return
        available, shadow = free(), now
        for moment in sorted({estimated for _, estimated, _ in running}):
            if one_by_one and moment <= now:
                continue
            if available >= size[queue[0]]:
                break
            shadow = moment
            available += sum(s for _, estimated, s in running if estimated == moment)
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
        now = min([end for end, *_ in running] + submit[arrived : arrived + 1])
        if one_by_one and arrived < len(submit) and submit[arrived] == now:
            queue.append(arrived)
            arrived += 1
        elif one_by_one:
            running.remove(next(entry for entry in running if entry[0] == now))
        else:
            running[:] = [entry for entry in running if entry[0] != now]
            while arrived < len(submit) and submit[arrived] == now:
                queue.append(arrived)
                arrived += 1
        one_pass(now)
    return starts
