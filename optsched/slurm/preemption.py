"""Which jobs a pending job may preempt, and the queue as it is for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from optsched.numbers import counted
from optsched.slurm.access import NO_RULES, nodes_of, open_partitions
from optsched.slurm.queue import Queue, QueuedJob
from optsched.slurm.running import supply_without
from optsched.slurm.supply import Flags, Supply

MOST = 8
"""Most sets of jobs that may be preempted of which each is played by itself."""

NO_TIME = "00:00:00"
"""A ``PreemptExemptTime`` that protects no job."""

_NUMBER = re.compile(r":([0-9]+)")


def may_preempt(
    job: QueuedJob, others: Iterable[QueuedJob], supply: Supply
) -> tuple[QueuedJob, ...]:
    """Return those of other jobs on its nodes that a job may preempt, by partition or by QOS.

    Those of a partition of a lower tier with a `PreemptMode`; with ``preempt/qos`` those of a QOS
    that its own may preempt, or of all others if ``qos.txt`` is not there; those of its own QOS,
    if that is one of ``WITHIN``, only of a lower priority.
    """
    kind = supply.settings.get("preempttype", "").rpartition("/")[2]
    if kind not in ("partition_prio", "qos"):
        return ()
    there = nodes_of(job, supply)
    tiers, rules = supply.tiers, supply.qos_preempts or {}
    within = "WITHIN" in supply.settings.get("preemptmode", "").upper().split(",")
    own = max((tiers[each.name] for each in open_partitions(job, supply)), default=0)
    found = []
    for each in others:
        if kind == "qos" and each.qos == job.qos:
            may = (within or job.qos in rules.get(job.qos, ())) and each.priority < job.priority
        elif kind == "qos":
            may = supply.qos_preempts is None or each.qos in rules.get(job.qos, ())
        else:
            may = any(
                tiers.get(name, own) < own and supply.access.get(name, NO_RULES).preempted
                for name in each.partitions
            )
        if may and _is_on(each, there, supply):
            found.append(each)
    return tuple(found)


def _is_on(job: QueuedJob, there: Flags, supply: Supply) -> bool:
    """Return whether a running job is on some of the nodes, or a pending one may be."""
    if job.state == "PENDING":
        return bool((nodes_of(job, supply) & there).any())
    return bool(there[supply.site.known_places(job.nodes)].any())


def unseen_preemption(job: QueuedJob, queue: Queue, supply: Supply) -> tuple[str, ...]:
    """Return in words which running jobs a job may preempt: Slurm decides; empty if none."""
    jobs = may_preempt(job, queue.running, supply)
    if not jobs:
        return ()
    kind, mode = (supply.settings.get(name, "") for name in ("preempttype", "preemptmode"))
    names = ", ".join(each.label for each in jobs[:3]) + (", ..." if len(jobs) > 3 else "")
    which = f"{counted(len(jobs), 'running job')} ({names})"
    return (f"whether it preempts {which}, PreemptType={kind}, PreemptMode={mode or 'OFF'}",)


class View(NamedTuple):
    """The queue as it is for jobs that may preempt others: these are gone."""

    jobs: frozenset[int]  # numbers of the pending jobs that see it so
    queue: Queue
    supply: Supply


def views(queue: Queue, supply: Supply) -> tuple[View, ...]:
    """Return the queue as it is for the pending jobs that may preempt others.

    Slurm takes such a job before all that it may preempt, and starts it as soon as it fits without
    them. There are no views where Slurm suspends jobs, which keep their memory, or lets them run
    for a while, where it is not known whom a QOS may preempt, and of more than `MOST` sets of jobs.
    """
    settings, rules = supply.settings, supply.qos_preempts
    if (
        "SUSPEND" in settings.get("preemptmode", "").upper()
        or settings.get("preemptexempttime", NO_TIME).upper() not in (NO_TIME, "NONE", "")
        or (settings.get("preempttype", "").endswith("/qos") and rules is None)
    ):
        return ()
    by_kind: dict[tuple[tuple[str, ...], str, int, str], frozenset[int]] = {}
    seen: dict[frozenset[int], list[QueuedJob]] = {}
    for job in queue.pending:
        kind = job.partitions, job.qos, job.priority, job.reservation
        if kind not in by_kind:
            theirs = may_preempt(job, (*queue.running, *queue.pending), supply)
            by_kind[kind] = frozenset(each.job_id for each in theirs)
        awaited = {int(number) for number in _NUMBER.findall(job.dependency)}
        seen.setdefault(by_kind[kind] - awaited, []).append(job)
    seen.pop(frozenset(), None)
    found = []
    for gone, jobs in seen.items() if len(seen) <= MOST else ():
        left = tuple(each for each in queue.jobs if each.job_id not in gone)
        own = frozenset(each.job_id for each in jobs)
        found.append(View(own, replace(queue, jobs=left), supply_without(supply, queue, gone)))
    return tuple(found)
