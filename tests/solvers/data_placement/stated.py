"""The rules of Gonthier et al. 2024 in plain Python, as the paper and its authors state them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from optsched.models.data_placement.fields import Plan


@dataclass
class Node:
    """What is known of a node while a plan is made."""

    available: list
    reserved: list
    visits: list = field(default_factory=list)  # file, load, start, loaded, end
    starts: list | None = None  # of all jobs, if they evict files
    held: list = field(default_factory=list)  # start, end, core

    def in_order(self):
        return sorted(range(len(self.available)), key=lambda core: (self.available[core], core))

    def loading(self, file, load, at, from_start):
        if file < 0:
            return 0
        visits = [visit for visit in self.visits if visit[0] == file]
        there = [loaded for *_, start, loaded, end in visits if start <= at <= end]
        there += [loaded for *_, loaded, end in visits if self.left_alone(end, at)]
        if not there:
            return load
        if there[0] <= at:
            return 0
        return there[0] - at if from_start else there[0]

    def left_alone(self, end, at):
        return self.starts is not None and end < at and not any(end <= s < at for s in self.starts)

    def reloading(self, file, load, at, capacity, in_memory):
        if in_memory:
            there = {
                other: size
                for other, size, start, _, end in self.visits
                if start <= at <= end or self.left_alone(end, at)
            }
            return sum(there.values()) * load // capacity
        last = {other: (size, end) for other, size, _, _, end in self.visits if other != file}
        return sum(size for size, end in last.values() if end <= at) * load // capacity

    def free_at(self, core, start, end):
        return all(core != other or end <= a or b <= start for a, b, other in self.held)


@dataclass
class Rule:
    """A rule by its score and its options."""

    loading: int
    reloading: int
    opportune: bool = False
    whole_scan: bool = False
    from_start: bool = False
    in_memory: bool = False
    threshold: int = 0
    backfill: str = "none"
    stop: str = "full"


def stated(problem, rule):
    """Return the plan of a rule, job after job and node after node."""
    nodes = [Node([max(0, t) for t in row], [0] * len(row)) for row in problem.available.tolist()]
    if problem.reserved is not None:
        for node, row in zip(nodes, problem.reserved.tolist()):
            node.reserved = row
    if problem.kept == "next":
        for node, started in zip(nodes, problem.started):
            node.starts = [0] if started else []
    for n, file, load, loaded, until in problem.resident.tolist():
        nodes[n].visits.append((file, load, 0, loaded, until))
    for node in nodes:
        for core, (free_from, hole) in enumerate(zip(node.available, node.reserved)):
            if free_from > 0:
                node.held.append((hole, free_from, core))
    running = list(problem.occupied)
    width = len(nodes[0].available)
    counts = [sum(1 for until in node.reserved if until > 0) for node in nodes]
    widest = list(problem.noticed or (max(counts), counts.index(max(counts))))
    out = [(-1, 0, 0)] * len(problem.processors)
    jobs = zip(problem.processors, problem.walltimes, problem.files, problem.loads)
    for job, (processors, walltime, file, load) in enumerate(np.array(list(jobs)).tolist()):
        only_holes = False
        if problem.partial:
            if rule.backfill == "conservative":
                idle = [n.free_at(c, 0, 1) for n in nodes for c in range(width)]
                if not any(idle):
                    break
            else:
                free = sum(t <= 0 for node in nodes for t in node.available)
                only_holes = free < processors if rule.stop == "short" else free == 0
        a, b, once = rule.loading, rule.reloading, rule.opportune
        if sum(running) * 100 // len(nodes) < rule.threshold:
            a, b, once = 1, 0, False
        if only_holes:
            if rule.backfill != "holes":
                break
            if processors > widest[0]:
                continue
        if only_holes and rule.whole_scan and once:
            a, b = 1, 0
        best = None
        for n, node in enumerate(nodes):
            for start, cores, hole in places(rule, node, processors, walltime, only_holes):
                if once and rule.whole_scan and start == 0 and not hole:
                    a, b = 1, 0
                x, y = (1, 0) if once and not rule.whole_scan and start == 0 else (a, b)
                wait = node.loading(file, load, start, rule.from_start) if x else 0
                score = start + x * wait
                if y:
                    score += y * node.reloading(file, load, start, problem.capacity, rule.in_memory)
                if best is None or score < best[0]:
                    best = (score, n, start, cores, hole, wait)
        if best is None:
            continue
        _, n, start, cores, hole, wait = best
        node = nodes[n]
        if start == 0 and not running[n] and no_plan_for(rule, node):
            running[n] = True
        if node.starts is not None:
            node.starts.append(start)
        if not only_holes:
            node.visits.append((file, load, start, start + wait, start + walltime))
        for core in cores:
            if hole and node.reserved[core] >= walltime:
                node.reserved[core] = 0
            else:
                if rule.backfill == "holes" and start > 0 and node.available[core] <= 0:
                    node.reserved[core] = start
                node.available[core] = start + walltime
            node.held.append((start, start + walltime, core))
        if rule.backfill == "holes" and n == widest[1]:
            counts = [sum(1 for until in node.reserved if until > 0) for node in nodes]
            widest = [max(counts), counts.index(max(counts))]
        out[job] = (n, start, sum(1 << core for core in cores))
    return Plan(*(np.array(column) for column in zip(*out))) if out else Plan([], [], [])


def no_plan_for(rule, node):
    """Whether the node counts as one that begins to run."""
    if rule.backfill == "conservative":
        return True
    return all(t <= 0 for t in node.available)


def places(rule, node, processors, walltime, only_holes):
    """Yield start, cores and whether they are backfilled, of what a node offers to a job."""
    width = len(node.available)
    if rule.backfill == "conservative":
        for start in sorted({0} | {end for _, end, _ in node.held}):
            free = [c for c in range(width) if node.free_at(c, start, start + walltime)]
            if len(free) >= processors:
                yield start, free[:processors], False
                return
    order = node.in_order()
    if not only_holes:
        start = max(0, node.available[order[processors - 1]])
        cores = order[:processors]
        if rule.backfill == "holes":
            cores = [c for c in range(width) if node.available[c] <= start][:processors]
        yield start, cores, False
    if rule.backfill != "holes" or not any(node.reserved):
        return
    long_enough = [c for c in range(width) if node.reserved[c] >= walltime > 0]
    holes = sorted(long_enough, key=lambda c: (node.reserved[c], c))[:processors]
    missing = processors - len(holes)
    others = order[:missing]
    if only_holes and missing:
        return
    if all(node.available[c] <= 0 for c in others):
        yield 0, holes + others, True
