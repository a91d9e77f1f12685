"""Why a pending job of Slurm does not start, when it can, and the least to do so that it does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from optsched.errors import InputError, UnknownNameError
from optsched.models.hold.program import Shortage, shortage
from optsched.numbers import counted, moment, short, whole_number
from optsched.sites.job_request import UnplaceableError, licences_asked
from optsched.sites.parts import MAGNETIC
from optsched.sites.slurm_files import listed
from optsched.slurm import access
from optsched.slurm.hold_problem import (
    ACTIONS,
    Question,
    fits_with,
    hold_problem,
    lacks_service,
    questions,
)
from optsched.slurm.order import Order, new_priority
from optsched.slurm.queue import Factors, QueuedJob, SlurmQueue, behind_by
from optsched.slurm.requests import (
    HELD,
    Request,
    alternatives,
    blocked_by_rule,
    released,
    requirements,
)
from optsched.slurm.running import (
    end_of,
    held_by,
    hidden_amounts,
    hidden_licences,
    started_of,
    supply_at,
    unseen_on_nodes,
    unseen_preemption,
)
from optsched.slurm.starts import RESOLUTION, changes, earliest_start, planned_end
from optsched.slurm.supply import Supply

DEFAULT = ("requeue",)  # what may be done by default


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a pending job does not start."""

    queue: SlurmQueue
    supply: Supply  # the site and what is free
    job: QueuedJob  # the job; of a job array, one task
    by: int  # when it is to start at the latest, in seconds since 1970
    actions: tuple[str, ...] = DEFAULT  # what may be done, of `optsched.slurm.hold_problem.ACTIONS`
    # Whether running jobs may be stopped although something is not known of the job
    force: bool = False
    factors: Factors = field(default_factory=dict)  # of the priorities of pending jobs

    @cached_property
    def unseen(self) -> tuple[str, ...]:
        """In words, what is not known that decides on its start; nothing is proven if there is any.

        A start that Slurm plans, but that seems impossible, is among them.
        """
        found = unseen(self.job, self.queue, self.supply)
        planned, now = self.job.start, self.supply.time
        if self.left or self.rule:
            return found
        if self.supply.completing.any() and self.earliest == now + 1:
            found += ("how soon jobs are completed on nodes where it then fits",)
        if planned is None or planned <= now:
            return found
        if self.earliest is None or self.earliest > planned + RESOLUTION:
            found += (f"why Slurm plans its start in {short(planned - now)}, which seems too soon",)
        return found

    @cached_property
    def rule(self) -> str:
        """The rule that keeps the job from starting, whatever is free; empty if there is none."""
        return blocked_by_rule(self.job, self.supply, started_of(self.job, self.queue, self.supply))

    @cached_property
    def limit_users(self) -> tuple[tuple[str, int], ...]:
        """Who has how much of the limit that keeps the job from starting, most first."""
        return access.users_of_limit(self.job, self.queue.running, self.supply)

    @cached_property
    def released(self) -> QueuedJob:
        """The job as it is once it is released, if it is held."""
        if not self.job.held and {*HELD}.isdisjoint(self.job.flags):
            return self.job
        return released(self.job, self.priority_then[0])

    @cached_property
    def priority_then(self) -> tuple[int, str]:
        """The priority that Slurm gives it when it is released, and what is assumed for that."""
        return new_priority(self.job, self.queue, self.supply)

    @cached_property
    def rule_then(self) -> str:
        """The rule that keeps the released job from all of `starts`; or empty."""
        if not all(self.rule_at(start) for start in reversed(self.starts)):
            return ""
        return self.rule_at(self.starts[0])

    def rule_at(self, time: int) -> str:
        """Return the rule that keeps the released job from starting at a time; or empty."""
        then = supply_at(self.supply, self.queue, time)
        return blocked_by_rule(self.released, then, started_of(self.job, self.queue, then))

    @cached_property
    def is_expected(self) -> bool:
        """Whether Slurm itself expects to start the job by the time `by`, which is not now.

        A time that is over is no such start, unless Slurm has planned nodes and the job fits.
        """
        start, now = self.job.start, self.supply.time
        if self.rule or start is None or self.by == now:
            return False
        if start <= now:
            return bool(self.job.planned_nodes) and self.earliest == now
        return start <= self.by

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Starts by the time `by`, the first one first, of which one costs least of all.

        Between two of them nothing becomes free, more pending jobs start, and costs grow.
        """
        now = self.supply.time
        if not self.follows_plan and self.earliest is not None and self.earliest <= self.by:
            return (self.earliest,)  # which costs nothing
        times = {now, *changes(self.released, self.queue, self.supply)[0]}
        if self.follows_plan:
            ends = (planned_end(each) for each in self.queue.pending if each.planned_nodes)
            times |= {math.ceil(end) for end in ends if now < end < math.inf}
        if "drain" in self.actions:
            times.add(now + 1)  # as nothing is drained for a start now
        return tuple(sorted(time for time in times if time <= self.by))

    @cached_property
    def left(self) -> str:
        """Why the model cannot state the job; empty if it can."""
        try:
            for each in alternatives(self.job, self.supply):
                each.held_in(self.supply)
        except UnplaceableError as error:
            return str(error)
        return ""

    @cached_property
    def request(self) -> Request:
        """The request in the partition and with the choice of features that fit the job best."""
        return self._request(self.supply)

    def _request(self, supply: Supply) -> Request:
        return max(
            alternatives(self.job, supply),
            key=lambda each: (each.fits(supply), min(each.room(supply), each.chunks)),
        )

    @cached_property
    def shortage(self) -> Shortage:
        """What is short now."""
        return self._shortage(self.supply, self.request)

    @cached_property
    def shortage_of_idle(self) -> Shortage:
        """What would be short if no job ran."""
        # nodes that others own now are open then
        return self._shortage(self.supply.idle, self._request(self.supply.idle))

    def _shortage(self, supply: Supply, request: Request) -> Shortage:
        problem = hold_problem(self.job, supply, request)
        return shortage(problem, requirements(self.job, supply, request))

    @cached_property
    def earliest(self) -> int | None:
        """The earliest start of the released job, see `earliest_start`."""
        return earliest_start(self.released, self.queue, self.supply)

    @cached_property
    def gives_up_switches(self) -> bool:
        """Whether the job fits at its earliest start only as it waits for switches no more."""
        job = self.released
        if self.earliest is None or not job.switches or job.eligible is None:
            return False
        if job.eligible + job.switches_wait <= self.supply.time:
            return False
        then = supply_at(self.supply, self.queue, self.earliest)
        waiting = replace(job, eligible=None)  # from which its wait is counted
        return not any(each.fits(then) for each in alternatives(waiting, then))

    @cached_property
    def _order(self) -> Order:
        return Order(self.queue, self.supply)

    @cached_property
    def ahead(self) -> tuple[QueuedJob, ...]:
        """The pending jobs before it, see `Order`."""
        return self._order.before(self.released)

    @cached_property
    def ahead_by_priority(self) -> tuple[QueuedJob, ...]:
        """Those of `ahead` that it can overtake by its priority: they are of no higher tier."""
        return self._order.before(self.released, of_tier=True)

    @cached_property
    def resumed_fits(self) -> bool:
        """Whether it would fit at the time `by` if all drained nodes were in service."""
        then = supply_at(self.supply, self.queue, self.by)
        running = [each for each in self.queue.running if end_of(each, self.supply.time) > self.by]
        held = [held_by(each, self.supply) for each in running]
        return fits_with(self.released, ("drained",), then, held)

    @cached_property
    def lacks_service(self) -> str:
        """The state of the nodes without which it never fits; empty if it may fit without them."""
        return lacks_service(self.released, self.supply) if self.shortage_of_idle.is_proof else ""

    @cached_property
    def behind(self) -> list[tuple[str, int]]:
        """By how much `ahead_by_priority` are ahead in each factor of the priority on average."""
        return behind_by(self.job, self.ahead_by_priority, self.factors)

    @property
    def follows_plan(self) -> bool:
        """Whether other jobs start as Slurm plans, but those that are held or kept away.

        Otherwise the job comes first, by its ``Nice``.
        """
        return bool({"hold", "drain"} & {*self.actions})

    def questions(self, start: int) -> tuple[Question, ...]:
        """Return the problems of making the job fit at a start; the cheapest answer counts."""
        return questions(self.job, self.queue, self.supply, start=start, actions=self.actions)


def explain(
    queue: SlurmQueue,
    supply: Supply,
    # Number of the job: ``17``, or ``17_3`` for a task of an array; ``17`` for its next task
    label: str,
    *,
    by: int | None = None,  # by default now
    actions: tuple[str, ...] = DEFAULT,
    force: bool = False,
    factors: Factors | None = None,
) -> Explanation:
    """Return why a pending job does not start; for the parameters see `Explanation`."""
    for action in actions:
        if action not in ACTIONS:
            unknown = UnknownNameError("action", action, ACTIONS)
            raise InputError(str(unknown), field="actions")
    if len({*actions}) < len(actions):
        raise InputError(f"{','.join(actions)}; expected every action once", field="actions")
    job = pending_job(queue, label)
    by = supply.time if by is None else by
    if by < supply.time:
        expected = f"expected a time from {moment(supply.time)}, when Slurm was asked"
        raise InputError(f"{moment(by)}; {expected}", field="by")
    supply = supply_at(supply, queue, supply.time)
    return Explanation(queue, supply, job, by, actions, force, factors or {})


def pending_job(queue: SlurmQueue, label: str) -> QueuedJob:
    """Return a pending job by its number; of a job array, one task."""
    array, _, task = label.partition("_")
    number = whole_number(task)
    for job in queue.pending:
        if array == str(job.array_id) and number in job.array_tasks:
            return replace(job, array_tasks=(number,))
        if label in (job.label, str(job.job_id), str(job.array_id or job.job_id), job.part_of):
            return replace(job, array_tasks=job.array_tasks[:1])
    for job in queue.jobs:
        if label in (job.label, str(job.job_id), job.part_of):
            raise InputError(f"{label!r} is {job.state}; expected a pending job", field="job")
    expected = "expected the number of a pending job, such as 17 or 17_3"
    what = "in the queue" if label[:1].isdigit() else "the number of a job"
    raise InputError(f"{label!r} is not {what}; {expected}", field="job")


def unseen_rules(job: QueuedJob, queue: SlurmQueue, supply: Supply) -> tuple[str, ...]:
    """Return in words which rules on the start of a job are not known."""
    found = list(supply.unread)
    if job.exclusive is None:
        found.append("whether it shares its nodes, which the queue does not state")
    own = access.reservations_of(job, supply)
    for reservation in own:
        found += access.unknown_admission(job, reservation, supply)
    if job.reservation and not own:
        found.append(f"reservation {job.reservation}, which is not shown")
    for partition in access.open_partitions(job, supply) or access.partitions_of(job, supply):
        users = (each.user for each in queue.running if partition.name in each.partitions)
        found += access.unknown_rules(job, partition, supply, users)
    return tuple(dict.fromkeys(found))


def unseen(job: QueuedJob, queue: SlurmQueue, supply: Supply) -> tuple[str, ...]:
    """Return in words what is not known that decides on the start of a job."""
    return (
        *unseen_rules(job, queue, supply),
        *_hidden(job, queue, supply),
        *unseen_on_nodes(job, queue, supply),
        *_beside_reservations(job, supply),
        *unseen_preemption(job, queue, supply),
    )


def _hidden(job: QueuedJob, queue: SlurmQueue, supply: Supply) -> Iterator[str]:
    """Yield what no job of the queue holds, though it is in use: of its nodes and licences."""
    usable = np.isin(supply.site.states, ("up", "reserved")) & access.nodes_of(job, supply)
    held = (held_by(each, supply) for each in queue.running)
    cores = np.where(usable, hidden_amounts(held, supply)[:, 0], 0)
    nodes = [supply.site.nodes[node] for node in np.flatnonzero(cores > 0).tolist()]
    if nodes:
        hidden = counted(int(cores[cores > 0].sum()), "core")
        yield f"which jobs hold {hidden} of {listed(nodes)}: none that the queue shows"
    for name, count in hidden_licences(queue, supply).items():
        if count > 0 and name in licences_asked(job.licences):
            yield f"which jobs hold {count:,} of licence {name}: none that the queue shows"
    if queue.missing.get("allocations.gres") and any((job.per_node, job.per_task, job.per_job)):
        jobs = counted(queue.missing["allocations.gres"], "job")
        yield f"which GPUs and the like {jobs} hold"


def _beside_reservations(job: QueuedJob, supply: Supply) -> Iterator[str]:
    """Yield how Slurm may start a job where reservations that are not its own are in the way."""
    there, asked = access.nodes_of(job, supply), licences_asked(job.licences).keys()
    own, names = job.reservation.split(","), []
    for each in supply.reservations:
        on_nodes = bool((np.isin(supply.site.nodes, each.nodes) & there).any())
        if (
            each.name in own
            or each.end <= supply.time
            or not (on_nodes or asked & each.licences.keys())
        ):
            continue
        names.append(name := f"reservation {each.name}")
        if on_nodes and access.keeps_parts(each, supply):
            yield f"what {name} leaves of its nodes to others"
        partitions = job.partitions or ("",)
        admitted = any(access.admits(job, each, supply, partition) for partition in partitions)
        if MAGNETIC in each.flags and admitted and not job.reservation:
            yield f"whether it starts in the magnetic {name}"
    if names and 0 < job.least_time < (math.inf if job.limit is None else job.limit):
        least = f"to {short(job.least_time)} or more (--time-min)"
        others = " or others" if len(names) > 1 else ""
        yield f"whether Slurm shortens its time limit, {least}, before {names[0]}{others}"
