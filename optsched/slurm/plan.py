"""A plan for the pending jobs of Slurm, beside Slurm's own, and how Slurm follows it."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Ints
from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.models.node_placement.rules import Rule, RuledPlacement, room, with_rules
from optsched.models.snapshot import Snapshot
from optsched.numbers import short
from optsched.slurm.capture import capture_queue, captured, run_command
from optsched.slurm.explain import unseen_rules
from optsched.slurm.order import Order, age, ahead_by, rank
from optsched.slurm.pins import Update, Updates, clearing, updates_of, without_pins
from optsched.slurm.queue import QueuedJob, SlurmQueue, read_queue
from optsched.slurm.requests import lacking
from optsched.slurm.running import read_captured, unseen_preemption
from optsched.slurm.snapshot import Row, SlurmSnapshot, amounts_to_weigh, placement_problem
from optsched.slurm.starts import (
    Reserved,
    beside,
    reserve,
    reserved,
    started_now,
    starts_now,
    with_reserved,
)
from optsched.slurm.supply import Supply
from optsched.slurm.what_if import Change, Present, changed
from optsched.solvers.conflict import SECONDS, conflict_or_vector
from optsched.solvers.result import Conflict, Result, Status


class Ask(NamedTuple):
    """What a plan is to be like."""

    weigh: str = "priority"  # the weight of a job, a name in `optsched.slurm.snapshot.WEIGHTS`
    strict: bool = False  # whether jobs are placed in strict order, whatever they weigh
    reserve: int = 0  # so many blocked jobs are not delayed, the first ones in order
    rules: Mapping[str, Rule] = {}
    changes: Sequence[Change] = ()  # what is different, see `optsched.slurm.what_if`


FITS = "it fits alone, but other jobs of the plan take its room"


@dataclass(frozen=True)
class Situation:
    """What Slurm says at one time, and the problem that it poses."""

    queue: SlurmQueue  # the queue as it is, with the pins of earlier plans
    supply: Supply  # the site and what is free
    posed: SlurmSnapshot  # the problem, as if no job was pinned
    ask: Ask
    reserved: tuple[Reserved, ...] = ()  # the blocked jobs that are not delayed

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of the rules of the site that the plan keeps."""
        problem = self.posed.problem
        return tuple(problem.rules) if isinstance(problem, RuledPlacement) else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the files do not state, what was left out or changed, and how jobs are weighed."""
        found = (*self.supply.notes, *self.queue.notes)
        if self.ask.weigh == "priority" and self.posed.tells_order and not self.ask.strict:
            found += ("priorities tell the order alone: jobs are weighed by rank",)
        return found

    def snapshot(self) -> Snapshot:
        """Return the problem with its origin, which counts the jobs that are not in it."""
        origin = {
            "scheduler": "Slurm",
            "site": self.supply.site.name,
            "time": self.supply.time,
            "weigh": self.ask.weigh,
            "blocked": len(self.posed.blocked),
            "left": len(self.posed.left),
        }
        return Snapshot(self.posed.problem, origin | ({"rules": self.rules} if self.rules else {}))


@dataclass(frozen=True)
class PlannedJob:
    """A job that starts now by our plan or by Slurm's, or by both."""

    label: str
    job: QueuedJob  # record of the queue
    nodes: tuple[str, ...]  # its nodes by our plan, empty if it is not placed
    # Leaf switches of these nodes, or their blocks on a site without a tree of switches
    groups: tuple[str, ...]


@dataclass(frozen=True)
class QueuePlan:
    """Feasible placements of pending jobs."""

    situation: Situation  # what was planned for
    placements: Placements
    # Labels of jobs that are not pinned this time, as Slurm did not start them on their pins
    unmet: frozenset[str] = frozenset()

    @cached_property
    def updates(self) -> Updates:
        """The updates by which Slurm follows the plan."""
        situation = self.situation
        return updates_of(
            situation.queue, situation.posed, self.placements, self.unmet, self.raises
        )

    @cached_property
    def raises(self) -> Mapping[str, int]:
        """By label, how far jobs are raised to be before all that wait for their nodes.

        Without `Ask.reserve` none is. A job is raised only if it passes none over, as far as is
        known: each job before it starts by the plan, or has no room beside the reservations and
        those that do and come before it. One left to Slurm may have room.
        """
        situation = self.situation
        posed, supply, problem = situation.posed, situation.supply, situation.posed.problem
        if not situation.ask.reserve:
            return {}
        order = Order(without_pins(situation.queue), supply)
        in_order = sorted(range(len(posed.rows)), key=lambda at: rank(posed.rows[at].job, supply))
        found: dict[str, int] = {}
        started: list[int] = []
        for place in in_order:
            row, job = posed.rows[place], posed.rows[place].job
            if not self.placements.nodes[place]:
                if not row.request.fits(supply):
                    continue
                there = room(problem, self.placements.only(started), place)
                if there.sum() < problem.chunks[place]:
                    continue
                break
            started.append(place)
            before = order.before(job, of_tier=True)
            if not before or job.priority_by_operator or unseen_rules(job, situation.queue, supply):
                continue
            if posed.left.keys().isdisjoint(each.label for each in before):
                found[row.label] = ahead_by(job, before)
        return found

    def lost(self, now: SlurmQueue) -> frozenset[str]:
        """Return the labels of the jobs on whose nodes others have started since.

        Those do not count which the plan has there too.
        """
        ran = {job.label for job in self.situation.queue.running}
        nodes = {each.label: each.nodes for each in self.jobs}
        taken = {
            node
            for job in now.running
            if job.label not in ran
            for node in {*job.nodes}.difference(nodes.get(job.label, ()))
        }
        return frozenset(label for label, own in nodes.items() if not taken.isdisjoint(own))

    def given_up(self, now: SlurmQueue) -> tuple[Update, ...]:
        """Return the updates that take back the pins of the jobs that have `lost` their nodes."""
        return clearing(now, {job.label for job in now.jobs} - self.lost(now))

    @cached_property
    def totals(self) -> dict[str, Mapping[str, int]]:
        """Number of jobs, weight, leaf switches and nodes of our plan and of Slurm's for now.

        The weight is what is weighed, GPUs for instance, without the scale of the problem.
        """
        situation = self.situation
        slurm = started_now(situation.posed, situation.supply)
        return {"plan": self._total(self.placements), "slurm": self._total(slurm)}

    def _total(self, placements: Placements) -> dict[str, int]:
        situation = self.situation
        rows = situation.posed.rows
        weighed = amounts_to_weigh(rows, situation.supply, situation.ask.weigh)
        placed = [amount for amount, at in zip(weighed, placements.nodes) if at]
        measures = situation.posed.problem.measures(placements)
        return {"jobs": len(placed), **measures, "weight": sum(placed)}

    @cached_property
    def jobs(self) -> tuple[PlannedJob, ...]:
        """The jobs that start now by either plan, in the order of the queue."""
        situation = self.situation
        problem = situation.posed.problem
        names = problem.nodes or ()
        groups = problem.switches or problem.blocks
        found = []
        for row, at in zip(situation.posed.rows, self.placements.nodes):
            is_due = row.job.planned_nodes and (row.job.start or 0) <= situation.supply.time
            if not at and not is_due:
                continue
            nodes = tuple(str(names[node]) for node in dict.fromkeys(at))
            its_groups = tuple(sorted({groups[node] for node in at})) if groups else ()
            found.append(PlannedJob(row.label, row.job, nodes, its_groups))
        return tuple(found)

    @cached_property
    def not_placed(self) -> tuple[tuple[Row, str], ...]:
        """The jobs of the problem that are not placed, and why; of high priority first."""
        rows, supply = self.situation.posed.rows, self.situation.supply
        found = []
        for place, (row, at) in enumerate(zip(rows, self.placements.nodes)):
            if at:
                continue
            reason = lacking(row.request, supply) or FITS
            if reason == FITS and (jobs := self._would_delay(place)):
                reason = f"it would delay job {jobs}"
            if row.label in self.delayed:
                reason += f"; {self.delayed[row.label]}"
            problem = self.situation.posed.problem
            if isinstance(problem, RuledPlacement) and reason.startswith(FITS):
                broken = problem.blocking(self.placements, place)
                reason = f"on the first room left it would break {broken}" if broken else reason
            found.append((row, reason))
        return tuple(sorted(found, key=lambda pair: rank(pair[0].job, supply)))

    def _would_delay(self, place: int) -> str:
        """Return the reserved jobs that alone keep a job from its room beside the plan."""
        kept, problem = self.situation.reserved, self.situation.posed.problem
        ends = tuple(map(beside, kept))
        theirs = {name for name in problem.resources if name.endswith(ends)}
        with_them, without = (
            room(problem, self.placements, place, names).sum() >= problem.chunks[place]
            for names in ((), theirs)
        )
        return ", ".join(one.row.label for one in kept) if without > with_them else ""

    @cached_property
    def delayed(self) -> Mapping[str, str]:
        """By label, by how much the plan delays jobs that fit now, for others of lower priority.

        Of these jobs there are the first `MOST_DELAYED`, that is how long they may have to wait.
        """
        situation = self.situation
        rows, supply, now = situation.posed.rows, situation.supply, situation.supply.time
        placed = [(row, at) for row, at in zip(rows, self.placements.nodes) if at]
        taken = [starts_now(row, at, supply) for row, at in placed]
        hint = "" if situation.ask.strict else ", see --order strict"
        found: dict[str, str] = {}
        order = sorted(range(len(rows)), key=lambda place: rank(rows[place].job, supply))
        for place in order:
            row = rows[place]
            is_placed = self.placements.nodes[place]
            if is_placed or not row.request.fits(supply) or self._would_delay(place):
                continue
            if not any(
                rank(row.job, supply) < rank(other.job, supply) and row.request.nodes[[*at]].any()
                for other, at in placed
            ):
                continue
            if len(found) == MOST_DELAYED:
                break
            then = reserve(row, situation.queue, supply, taken)
            late = "its start is not known then" if then is None else ""
            if then is not None and then.start > now:
                late = f"delayed by at most {short(then.start - now)}{hint}"
            found[row.label] = late or f"Slurm may start it first{hint}"
        return found

    @property
    def may_wait(self) -> bool:
        """Whether Slurm may keep jobs of the plan waiting for others of higher priority."""
        posed, supply = self.situation.posed, self.situation.supply
        placed = [rank(row.job, supply) for row, at in zip(posed.rows, self.placements.nodes) if at]
        others = [row.job for row, _ in self.not_placed]
        others += [job for job in self.situation.queue.pending if job.label in posed.left]
        return bool(placed and others) and min(rank(job, supply) for job in others) < max(placed)

    @cached_property
    def unseen(self) -> Mapping[str, int]:
        """What is not known that decides on the starts of the jobs, with the number of these."""
        queue, supply = self.situation.queue, self.situation.supply
        found = Counter[str]()
        for job in {row.job.job_id: row.job for row in self.situation.posed.rows}.values():
            found.update(unseen_rules(job, queue, supply))
        alike: dict[tuple[tuple[str, ...], str, int], tuple[str, ...]] = {}
        for row, _ in self.not_placed:
            key = row.job.partitions, row.job.qos, row.job.priority
            if key not in alike:
                alike[key] = unseen_preemption(row.job, queue, supply)
            found.update(alike[key])
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON-able object."""
        lines = {update.label: update.line for update in self.updates.updates}
        return {
            "jobs": [
                {
                    "job": each.label,
                    "user": each.job.user,
                    "partition": ",".join(each.job.partitions),
                    "priority": each.job.priority,
                    "nodes": list(each.nodes),
                    "groups": list(each.groups),
                    "slurm_nodes": list(each.job.planned_nodes),
                    "slurm_start": each.job.start if each.job.planned_nodes else None,
                }
                for each in self.jobs
            ],
            "totals": {name: dict(total) for name, total in self.totals.items()},
            "not_placed": [
                {
                    "job": row.label,
                    "user": row.job.user,
                    "partition": ",".join(row.job.partitions),
                    "priority": row.job.priority,
                    "age": age(row.job, self.situation.supply.time),
                    "reason": reason,
                }
                for row, reason in self.not_placed
            ],
            "reserved": [
                {"job": one.row.label, "start": one.start, "nodes": list(one.nodes)}
                for one in self.situation.reserved
            ],
            "rules": [*self.situation.rules],
            "unseen": dict(self.unseen),
            "blocked": dict(self.situation.posed.blocked),
            "left": dict(self.situation.posed.left),
            "not_pinned": dict(self.updates.without),
            "raised": sorted(self.updates.raised),
            "lines": list(lines.values()),
        }


def blocked_by_site(
    queue: SlurmQueue, supply: Supply, job: QueuedJob, rules: Mapping[str, Rule]
) -> str:
    """Return the rule of the site that keeps a job from what is free, empty if none is known."""
    if not rules:
        return ""
    posed = placement_problem(queue, supply)
    own = [place for place, row in enumerate(posed.rows) if row.job.job_id == job.job_id]
    if not own:
        return ""
    program = with_rules(posed.problem, rules).formulate().program
    lower, upper = program.lower.copy(), program.upper.copy()
    upper[: len(posed.rows)] = 0  # the first variables say which jobs start: it alone
    lower[own[0]] = upper[own[0]] = 1
    found = conflict_or_vector(replace(program, lower=lower, upper=upper), SECONDS)
    if not isinstance(found, Conflict):
        return ""
    theirs = {row for row in found.families if any(row.startswith(rule) for rule in rules)}
    return str(found) if theirs else ""


def read_situation(folder: Path, ask: Ask) -> Situation:
    """Return the situation in captured output of Slurm, and the problem that it poses."""
    queue, supply = read_captured(folder)
    present = changed(Present(queue, supply), ask.changes)
    queue, supply = present.queue, present.supply
    unpinned = without_pins(queue)
    posed = placement_problem(unpinned, supply, weigh=ask.weigh)
    kept = reserved(posed, unpinned, supply, ask.reserve)
    posed = with_reserved(posed, supply, kept)
    if ask.rules:
        posed = replace(posed, problem=with_rules(posed.problem, ask.rules))
    return Situation(queue, supply, posed, ask, kept)


MOST_DELAYED = 10  # most jobs of which a plan says by how much it delays them
FRESH = 1.0  # age in seconds from which the queue is read again before an update

CHANGING = frozenset(
    (
        *("job_id", "array_tasks", "flags", "reason", "eligible", "start", "end"),
        *("priority", "priority_by_operator", "planned_nodes", "allocations", "tres"),
    )
)
"""Fields that change while a job waits, or that tasks of one array do not share."""

OF_PIN = ("required", "excluded", "comment", "nice")
"""The fields of a job that count when its pin is taken back."""


def current_situation(ask: Ask) -> Situation:
    """Return the situation of the Slurm of this machine, and the problem that it poses."""
    with captured(None) as folder:
        return read_situation(folder, ask)


def current_queue() -> SlurmQueue:
    """Return the queue of the Slurm of this machine."""
    with tempfile.TemporaryDirectory(prefix="optsched-") as folder:
        capture_queue(Path(folder))
        return read_queue(folder)


def carry_out(
    updates: Iterable[Update],
    plan: QueuePlan | None = None,  # the plan of the pins
) -> Iterator[tuple[Update, str]]:
    """Carry updates out, and leave those jobs alone that changed since the updates were decided.

    No job is pinned to nodes on which others have started since: it would wait for them, and in
    Slurm's main scheduler no job of lower priority starts there meanwhile.
    If a pin is taken back, it alone counts: Slurm 22.05 changes the memory of waiting jobs.
    With each update comes why the job was left alone; empty if it was updated.
    """
    jobs: dict[str, QueuedJob] = {}  # by label, each task of an array under its own, too
    lost: frozenset[str] = frozenset()
    read_at = float("-inf")
    for update in updates:
        if time.monotonic() - read_at > FRESH:
            queue = current_queue()
            jobs = {job.label: job for job in queue.jobs}
            for job in queue.jobs:
                jobs |= {f"{job.array_id}_{task}": job for task in job.array_tasks}
            lost = plan.lost(queue) if plan else lost
            read_at = time.monotonic()
        reason = _changed(update, jobs.get(update.label))
        if not reason and update.what == "pin" and update.label in lost:
            reason = "others have started on its nodes"
        if not reason and (refusal := run_command(update.words).refusal):
            reason = f"Slurm refuses: {refusal}"
        yield update, reason


def _changed(update: Update, now: QueuedJob | None) -> str:
    """Return how the job of an update changed; an empty text if it did not."""
    before = update.job
    if now is None:
        return "it is no longer in the queue"
    if now.state != before.state and update.what != "lower":
        return f"it is {now.state} by now"
    names = [field.name for field in fields(QueuedJob) if field.name not in CHANGING]
    for name in names if update.what == "pin" else OF_PIN:
        if getattr(now, name) != getattr(before, name):
            return f"its {name.replace('_', ' ')} changed"
    return ""


MOST_WEIGHT = 2**30  # upper limit of the sum of weights, so that solvers reckon with them exactly
AT_ONCE = 16  # jobs of which weights state the order at once


class Strict(NamedTuple):
    """The answer in strict order."""

    placements: Placements | None  # None if the solver found none
    result: Result | None  # the last answer of the solver
    proven: int  # so many jobs, in order, are proven to be the first ones
    of: int  # of so many that fit alone


def strict(
    posed: SlurmSnapshot,
    supply: Supply,
    # Solves a problem, starting from placements of some of its jobs if there are any
    solve: Callable[[NodePlacement, Placements | None], Result],
) -> Strict:
    """Return placements in which a job is passed over only where none has it and those before it.

    Weights can state the order of some `AT_ONCE` jobs exactly. So the problem is solved for the
    first ones, which then stay, for the next, and so on; in the end, the placed jobs are the first
    of all in lexicographic order, as far as each answer is proven.
    """
    rows = posed.rows
    fit = [at for at, row in enumerate(rows) if row.request.fits(supply)]
    order = sorted(fit, key=lambda at: rank(rows[at].job, supply))
    placed: list[int] = []
    best: Placements | None = None
    result: Result | None = None
    proven, closed = 0, True
    for first in range(0, len(order), AT_ONCE):
        block = order[first : first + AT_ONCE]
        one = min(2 ** len(block), MOST_WEIGHT // (len(placed) + 2))
        weights = np.zeros(len(rows), dtype=np.int64)
        weights[placed] = one
        for place, at in enumerate(block):
            weights[at] = 2 ** (len(block) - 1 - place)
        result = solve(_weighed(posed.problem, weights, ()), best)
        if result.solution is None or not result.verified:
            return Strict(best, result, proven, len(order))
        best = result.solution
        placed = [at for at in (*placed, *block) if best.nodes[at]]
        closed &= result.status is Status.OPTIMAL
        proven = first + len(block) if closed else proven
    if placed and posed.problem.then:
        weights = np.isin(np.arange(len(rows)), placed).astype(np.int64)
        last = solve(_weighed(posed.problem, weights, posed.problem.then), best)
        if last.verified and last.solution and all(last.solution.nodes[at] for at in placed):
            best, result = last.solution, last
    if best is not None:
        best = best.only(placed)
    return Strict(best, result, proven, len(order))


def _weighed(problem: NodePlacement, weights: Ints, then: Sequence[str]) -> NodePlacement:
    if isinstance(problem, RuledPlacement):
        return with_rules(_weighed(problem.relaxation, weights, then), problem.rules)
    return replace(problem, weights=weights, then=then)


def on_lighter_nodes(problem: NodePlacement, placements: Placements, weights: Ints) -> Placements:
    """Return placements of the same jobs, with the chunks on nodes of as low a weight as is found.

    The weight of a node says how dear it is to its site; a node with much memory has a high one.
    Slurm takes nodes of low weight first. Nodes of equal weight that are in use already leave
    others idle for jobs that need whole ones. Both are no part of the problem: solvers choose among
    nodes alike.

    Among nodes of equal weight, as few idle ones as are found are taken. Jobs are moved one at a
    time, while one of them finds better nodes, to no more leaf switches. Jobs with limits on groups
    of nodes, and those with devices, stay where they are. The objective is at least that of the
    placements given.
    """
    state = _Moves(problem, placements, weights)
    jobs = [job for job, at in enumerate(placements.nodes) if at]
    while sum(map(state.move, jobs)):
        pass
    found = Placements(tuple(state.at), placements.devices)
    if problem.violations(found) or problem.objective(found) < problem.objective(placements):
        return placements
    return found


class _Moves:
    """Nodes of the jobs, and what they leave free."""

    def __init__(self, problem: NodePlacement, placements: Placements, weights: Ints) -> None:
        self.problem, self.weights = problem, weights
        self.at = list(placements.nodes)
        self.free = problem.free.copy()
        self.jobs = np.zeros(len(weights), dtype=np.int64)  # on each node
        self.jobs[list(problem.busy)] = 1
        self.is_closed = np.zeros(len(weights), dtype=bool)  # as its job shares it with none
        self.exclusive = {*problem.exclusive}
        groups = {"switch": problem.switches, "block": problem.blocks}
        self.group = {  # the number of the group of each node, in the order of their names
            name: np.unique(np.array(names), return_inverse=True)[1].ravel()
            for name, names in groups.items()
            if names is not None
        }
        self.pools = {
            name: [np.flatnonzero(of == one) for one in range(of.max(initial=-1) + 1)]
            for name, of in self.group.items()
        }
        self.kinds = np.array(problem.kinds if problem.kinds is not None else [""] * len(weights))
        for job, at in enumerate(self.at):
            self._take(job, at, 1)

    def move(self, job: int) -> bool:
        """Move a job to lighter nodes if there are any; return whether it was moved."""
        problem, at = self.problem, self.at[job]
        if problem.share[job] or (problem.most_groups[job] | problem.segments[job]).any():
            return False
        self._take(job, at, -1)
        cost, room = self._cost(at), self._room(job)
        best = at
        if cost > (len(at) * self.weights.min(), 0):
            found = [self._filled(job, nodes, room) for nodes in self._pools(job)]
            best = min((at, *map(tuple, filter(None, found))), key=self._cost)
        moves = self._cost(best) < cost
        self.at[job] = tuple(sorted(best)) if moves else at
        self._take(job, self.at[job], 1)
        return moves

    def _cost(self, at: Sequence[int]) -> tuple[int, int]:
        """Return the weight of the nodes of chunks, and how many of the nodes are idle."""
        return int(self.weights[list(at)].sum()), sum(not self.jobs[node] for node in {*at})

    def _take(self, job: int, at: Sequence[int], sign: int) -> None:
        for node in at:
            self.free[node] -= sign * self.problem.demand[job]
        there = [*{*at}]
        self.jobs[there] += sign
        if job in self.exclusive:
            self.is_closed[there] = sign > 0

    def _room(self, job: int) -> Ints:
        """Return the most chunks of a job on each node, which the job has left."""
        problem = self.problem
        most = int(problem.most_per_node[job]) or int(problem.chunks[job])
        needs = problem.demand[job]
        some = needs > 0
        room = np.full(len(self.weights), most)
        if some.any():
            room = np.minimum(most, (self.free[:, some] // needs[some]).min(axis=1))
        closed = self.jobs > 0 if job in self.exclusive else self.is_closed
        allowed = problem.allowed[job]
        if allowed is not None:
            closed = closed | ~np.isin(self.kinds, allowed)
        return np.where(closed, 0, room)

    def _pools(self, job: int) -> Iterator[Ints]:
        """Yield sets of nodes in which a job spans no more groups than now."""
        name = "block" if self.problem.span[job] == "block" else "switch"
        if name not in self.group:
            yield np.arange(len(self.weights))
            return
        at, group = list(self.at[job]), self.group[name]
        own = np.unique(group[at])
        yield np.flatnonzero(np.isin(group, own))
        leaf = self.group.get("switch", group)
        if len(own) == 1 and len(np.unique(leaf[at])) == 1:
            yield from self.pools[name]

    def _filled(self, job: int, nodes: Ints, room: Ints) -> list[int]:
        """Return nodes that hold the chunks of a job, the best first; none if there is no room."""
        chunks = self.problem.chunks[job]
        nodes = nodes[np.lexsort((self.jobs[nodes] == 0, self.weights[nodes]))]
        room = np.maximum(room[nodes], 0)
        left = chunks - np.cumsum(room) + room  # once the nodes before are full
        found = np.repeat(nodes, np.clip(left, 0, room)).tolist()
        return found if len(found) == chunks else []
