"""A textbook scheduler of a site: as plain as can be, sharing nothing with the package.

Jobs are lists of alternatives, each with ``chunks``, ``most_per_node``, ``demand``, ``nodes`` (the
allowed ones), ``exclusive`` and ``licences``. What is free is a list of amounts for each node, the
set of jobs on each node, and the licences.
"""

import copy
from types import SimpleNamespace


class Nodes:
    """What is free on each node, and who is there."""

    def __init__(self, capacity, licences):
        self.free = [list(row) for row in capacity]
        self.on = [[] for _ in capacity]  # (job, whether it is exclusive)
        self.licences = list(licences)

    def room(self, one, node):
        """Chunks of an alternative that fit on a node, by trying one after the other."""
        there = self.on[node]
        if node not in one.nodes or any(alone for _, alone in there) or (one.exclusive and there):
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


def beside(now, heads, job, one):
    """Place a job beside the heads at whose shadow times it would run, or return None.

    Chunk by chunk: first where no head loses anything, then where they can do without.
    """
    for head in heads:
        licences = zip(head.then.licences, head.one.licences, one.licences)
        if any(own and there - own < needs for there, needs, own in licences):
            return None
    place, missing = {}, one.chunks
    for may_lose in (False, True):
        for node in range(len(now.free)):
            while missing and place.get(node, 0) < now.room(one, node):
                tried = place | {node: place.get(node, 0) + 1}
                if any(loses(head, job, one, place, tried, may_lose) for head in heads):
                    break
                place = tried
                missing -= 1
    return None if missing or not now.licensed(one) else place


def loses(head, job, one, place, tried, may_lose):
    """Whether a head loses more by a larger place than it may."""
    before, after = copy.deepcopy(head.then), copy.deepcopy(head.then)
    before.take(job, one, place)
    after.take(job, one, tried)
    return after.total(head.one) < (head.one.chunks if may_lose else before.total(head.one))


def on_open_nodes(job, one, at, duration, windows, own):
    """Restrict an alternative to nodes that reservations leave to a job during its time."""
    end, nodes = at + duration, set(one.nodes)
    for number, (start, stop, kept) in enumerate(windows):
        if own[job] == number:
            nodes &= kept if start <= at and end <= stop else set()
        elif start < end and at < stop:
            nodes -= kept
    return SimpleNamespace(**vars(one) | {"nodes": nodes})


def easy(capacity, licences, jobs, times, *, backfills, order, cells, tier, windows, own):
    """EASY backfilling, or FCFS without; all ends, then all submissions, then a decision.

    `order` gives the key of a job in the queue, by default its number. Jobs with common `cells`
    stop each other. `windows` are reservations (start, end, nodes), and `own`
    has the number of that of each job, if any. A job leaves the queue after the last time at which
    it could still end within its reservation.
    """
    submit, runtime, estimate = times
    order = order or (lambda job: job)
    nodes = Nodes(capacity, licences)
    starts, queue, running, arrived = [None] * len(jobs), [], [], 0
    changes = {at for start, stop, _ in windows for at in (start, stop)}
    last, now = {j: windows[of][1] - estimate[j] for j, of in enumerate(own) if of is not None}, -1
    while arrived < len(jobs) or running or (queue and any(at > now for at in changes)):
        moments = [entry[0] for entry in running] + submit[arrived : arrived + 1]
        moments += [at for at in changes if at > now and queue]
        moments += [last[job] for job in queue if job in last]
        gone = [job for job in queue if last.get(job, now + 1) <= now]
        queue[:] = [job for job in queue if job not in gone]
        if not gone:  # else those behind them are tried again, now
            now = min(moments)
        for entry in [entry for entry in running if entry[0] == now]:
            running.remove(entry)
            nodes.take(*entry[2:], sign=-1)
        while arrived < len(jobs) and submit[arrived] == now:
            if jobs[arrived]:
                queue.append(arrived)
            arrived += 1
        heads, stopped, behind = [], set(), []

        def ways(job, at, without=frozenset()):
            for one in jobs[job]:
                one = on_open_nodes(job, one, at, estimate[job], windows, own)
                one.nodes -= without
                yield one

        def start(job, without=frozenset(), now=now, heads=heads):
            late = [head for head in heads if now + estimate[job] > head.shadow]
            for one in ways(job, now, without):
                place = beside(nodes, late, job, one)
                if place is not None:
                    for head in late:
                        head.then.take(job, one, place)
                    nodes.take(job, one, place)
                    running.append((now + runtime[job], now + estimate[job], job, one, place))
                    queue.remove(job)
                    starts[job] = now
                    return True
            return False

        for job in sorted(queue, key=lambda job: (-tier[job], order(job))):
            if cells[job] <= stopped or (backfills and cells[job] & stopped):
                behind.append(job)
            elif not start(job, set() if own[job] is not None else stopped):
                stopped |= cells[job]
                if not backfills:
                    continue
                ends = {entry[1] for entry in running} | changes
                for moment in sorted({now} | {end for end in ends if end > now}):
                    then = copy.deepcopy(nodes)
                    for entry in running:
                        if entry[1] <= moment:
                            then.take(*entry[2:], sign=-1)
                    one = next((one for one in ways(job, moment) if then.fits(one)), None)
                    if one is not None:
                        heads.append(SimpleNamespace(one=one, shadow=moment, then=then))
                        break
        for job in behind if backfills else ():
            start(job)
    return starts


def conservative(capacity, licences, jobs, times, *, tier, windows=(), own=None, cells=None):
    """Conservative backfilling with reserved nodes, batched; parameters as for `easy`.

    At an end every waiting job is placed again in order, if it can start earlier.
    """
    submit, runtime, estimate = times
    starts, lost = [None] * len(jobs), set()
    changes = {at for start, stop, _ in windows for at in (start, stop)}
    planned, running, arrived = {}, [], 0  # planned: start, alternative, and place of each job

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
        others = {j: at for j, (at, *_) in planned.items() if j != job}
        begins, ends = {*others.values()}, {at + estimate[j] for j, at in others.items()}
        ends |= {end for _, end, *_ in running}
        for at in sorted({now} | {end for end in ends | changes if end > now}):
            edges = {at} | {edge for edge in begins | ends if at < edge < at + estimate[job]}
            there = [left(edge, job) for edge in edges]
            for one in jobs[job]:
                one = on_open_nodes(job, one, at, estimate[job], windows, own)
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
        return None

    now = -1
    while arrived < len(jobs) or running or planned:
        moments = [entry[0] for entry in running] + submit[arrived : arrived + 1]
        now = min(moments + [at for at in changes if at > now and planned])
        before, running = running, [entry for entry in running if entry[0] != now]
        if running != before:
            for job in sorted({*planned, *lost}, key=lambda job: (-tier[job], job)):
                found = earliest(job, now)
                if found and (job in lost or found[0] < planned[job][0]):
                    planned[job] = found
                    lost.discard(job)
        new = []
        while arrived < len(jobs) and submit[arrived] == now:
            if jobs[arrived]:
                new.append(arrived)
            arrived += 1
        for job in sorted(new, key=lambda job: (-tier[job], job)):
            if found := earliest(job, now):
                planned[job] = found
            else:
                lost.add(job)
        for job in sorted(planned):
            at, one, place = planned[job]
            if at <= now:
                starts[job] = now
                running.append((now + runtime[job], now + estimate[job], job, one, place))
                del planned[job]
    return starts
