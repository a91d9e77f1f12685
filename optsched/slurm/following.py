"""Updates of jobs in a running Slurm, each after a look at the job."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from optsched.models.node_placement.rules import Rule
from optsched.slurm.capture import capture, capture_queue
from optsched.slurm.commands import run_command
from optsched.slurm.pins import Update
from optsched.slurm.plan import Situation, read_situation
from optsched.slurm.queue import Queue, QueuedJob, read_queue

FRESH = 1.0
"""Age in seconds from which the queue is read again before an update."""

CHANGING = frozenset(
    (
        *("job_id", "array_tasks", "flags", "reason", "eligible", "start", "end"),
        *("priority", "planned_nodes", "allocations", "tres"),
    )
)
"""Fields that change while a job waits, or that tasks of one array do not share."""

OF_PIN = ("required", "comment")
"""The fields of a job that count when its pin is taken back."""


def current_situation(weigh: str, rules: Mapping[str, Rule] | None = None) -> Situation:
    """Return what the Slurm of this machine says, and the problem that it poses.

    Raises
    ------
    InputError
        If Slurm is not installed or does not answer, or what it says cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="optsched-") as folder:
        capture(Path(folder))
        return read_situation(Path(folder), weigh, rules)


def current_queue() -> Queue:
    """Return the queue of the Slurm of this machine.

    Raises
    ------
    InputError
        If Slurm is not installed or does not answer, or what it says cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="optsched-") as folder:
        capture_queue(Path(folder))
        return read_queue(folder)


def carry_out(updates: Iterable[Update]) -> Iterator[tuple[Update, str]]:
    """Carry updates out, and leave those jobs alone that changed since the updates were decided.

    If a pin is taken back, it alone counts: Slurm 22.05 changes the memory of waiting jobs.

    Yields
    ------
    update : Update
        The update.
    reason : str
        Why the job was left alone; empty if it was updated.

    Raises
    ------
    InputError
        If Slurm is not installed or does not answer.
    """
    jobs: Mapping[str, QueuedJob] = {}
    read_at = float("-inf")
    for update in updates:
        if time.monotonic() - read_at > FRESH:
            jobs = _by_label(current_queue())
            read_at = time.monotonic()
        reason = _changed(update, jobs.get(update.label))
        if not reason and (refusal := run_command(update.words).refusal):
            reason = f"Slurm refuses: {refusal}"
        yield update, reason


def _changed(update: Update, now: QueuedJob | None) -> str:
    """Return how the job of an update changed; an empty text if it did not."""
    before = update.job
    if now is None:
        return "it is no longer in the queue"
    if now.state != before.state:
        return f"it is {now.state} by now"
    names = [field.name for field in fields(QueuedJob) if field.name not in CHANGING]
    for name in names if update.what == "pin" else OF_PIN:
        if getattr(now, name) != getattr(before, name):
            return f"its {name.replace('_', ' ')} changed"
    return ""


def _by_label(queue: Queue) -> dict[str, QueuedJob]:
    """Return the jobs of a queue by label, each task of an array under its own."""
    found = {job.label: job for job in queue.jobs}
    for job in queue.jobs:
        found |= {f"{job.array_id}_{task}": job for task in job.array_tasks}
    return found
