"""``optsched slurm apply``, ``watch`` and ``reset``: Slurm follows plans."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from optsched.cli import BAD_INPUT, DONE, INTERRUPTED
from optsched.cli.options import Captured, Integer, Seconds
from optsched.cli.slurm_command import (
    BY_DEFAULT,
    SHOWN,
    Asked,
    planned,
    print_updates,
    situation_of,
)
from optsched.cli.terminal import print_line, say_error, say_note, warn
from optsched.errors import InputError
from optsched.numbers import counted, moment
from optsched.sites.slurm_files import captured_folder
from optsched.slurm.pins import Update, clearing, lowering, pinned
from optsched.slurm.plan import Ask, QueuePlan, carry_out, current_queue
from optsched.slurm.queue import SlurmQueue, read_queue

PATIENCE = 2
"""Cycles of `watch` in which Slurm may leave a pinned job waiting until its pin is cleared."""

LOOK = 5.0
"""Seconds between two looks of `watch` at the pins of a plan, and for which a job is raised."""

MOMENTS = 0.5  # seconds between two looks at jobs that are raised

Yes: TypeAlias = Annotated[
    bool, Parameter(help="Run the commands; by default they are only printed.", negative="")
]


def apply(*, source: Captured = None, asked: Asked = BY_DEFAULT, yes: Yes = False) -> int:
    """Plan, and pin the jobs to their nodes; pins of earlier plans are replaced.

    A job that has changed in the meantime is skipped.
    """
    _check_yes(source, yes)
    solved = planned(situation_of(source, asked.checked()), asked)
    if isinstance(solved, int):
        return solved
    for text, many in solved.plan.unseen.items():
        say_note(f"optsched: not known of {counted(many, 'job')}: {text}")
    return _follow_once(solved.plan.updates.updates, yes, solved.plan)


def reset(*, source: Captured = None, yes: Yes = False) -> int:
    """Remove all pins: required nodes and comments of pending jobs become what they were.

    Slurm does not clear the nodes of running jobs. Once one of them is requeued, reset again.
    """
    _check_yes(source, yes)
    queue = current_queue() if source is None else read_queue(captured_folder(source))
    code = _follow_once(clearing(queue), yes)
    _say_running(queue)
    return code


def watch(
    *,
    every: Seconds = 60.0,
    cycles: Integer | None = None,
    asked: Asked = BY_DEFAULT,
    yes: Yes = False,
) -> int:
    """Apply a new plan again and again; at the end, or on an interrupt, remove all pins.

    If Slurm does not answer the first time, the command ends; later failures are reported, and
    Slurm is asked again in the next cycle.

    Parameters
    ----------
    every
        Seconds from the start of a plan to that of the next one.
    cycles
        Number of plans; by default until an interrupt.
    """
    ask = asked.checked()
    if every <= 0:
        raise InputError(f"{every:g}; expected a number of seconds above 0", field="--every")
    if cycles is not None and cycles < 1:
        raise InputError(f"{cycles}; expected a number from 1", field="--cycles")
    code = done = 0
    waits: Counter[tuple[str, tuple[str, ...]]] = Counter()
    said: set[str] = set()
    try:
        while cycles is None or done < cycles:
            until = time.monotonic() + every
            try:
                code, plan = _cycle(asked, ask, yes, waits, said)
            except InputError as error:
                if not done:
                    raise
                say_error(error)  # and ask Slurm again, which may be restarting
                code, plan = BAD_INPUT, None
            done += 1
            _wait(plan if yes else None, until)
    except KeyboardInterrupt:
        warn("interrupted")
    if yes:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # take all pins back, whatever comes
        queue = current_queue()
        code = _follow(clearing(queue), yes)
        _say_running(queue)
    return code


def _cycle(
    asked: Asked, ask: Ask, yes: bool, waits: Counter[tuple[str, tuple[str, ...]]], said: set[str]
) -> tuple[int, QueuePlan | None]:
    """Apply a plan, and return the exit code and it; `waits` counts cycles with unmet pins."""
    situation = situation_of(None, ask)
    pins = {*pinned(situation.queue).items()}
    for pin in {*waits} - pins:
        del waits[pin]
    waits.update(pins)
    solved = planned(situation, asked, said)
    if isinstance(solved, int):
        return solved, None
    unmet = frozenset(label for (label, _), cycles in waits.items() if cycles >= PATIENCE)
    plan = replace(solved.plan, unmet=unmet)
    missed = f"did not start in {PATIENCE} cycles: its pin is cleared"
    warn(*(f"job {label} {missed}" for label in sorted(unmet)))
    jobs, rows = plan.totals["plan"]["jobs"], len(situation.posed.rows)
    met = len(pinned(situation.queue, running=True))
    text = f"of {counted(rows, 'job')} start now: {jobs:,}; run on their pins: {met:,}"
    print_line(f"{moment(time.time())}  {text}")
    return _follow(plan.updates.updates, yes, plan), plan


def _wait(plan: QueuePlan | None, until: float) -> None:
    """Wait until a time, and meanwhile take back the pins that a plan has lost."""
    try:
        while plan is not None and (left := until - time.monotonic()) > 0:
            time.sleep(min(LOOK, left))
            if not _give_up(plan):
                break
    except InputError as error:
        say_error(error)
    time.sleep(max(0.0, until - time.monotonic()))


def _give_up(plan: QueuePlan) -> bool:
    """Take back the pins that a plan has lost, and return whether there are others."""
    queue = current_queue()
    updates = plan.given_up(queue)
    for update in updates:
        warn(f"others run on nodes of job {update.label}: its pin is cleared")
    if updates:
        _follow(updates, yes=True)
    return len(pinned(queue)) > len(updates)


def _say_running(queue: SlurmQueue) -> None:
    """Say how many running jobs keep their pins."""
    if jobs := pinned(queue, running=True):
        names = f"{', '.join([*jobs][:SHOWN])}{', ...' if len(jobs) > SHOWN else ''}"
        text = f"{counted(len(jobs), 'job')} ({names}) started on a pin, and Slurm keeps it"
        warn(f"{text} while a job runs; if one is requeued, reset again")


def _check_yes(source: Path | None, yes: bool) -> None:
    if source is not None and yes:
        why = "the jobs may have changed since the capture"
        raise InputError(f"cannot be combined with --from: {why}", field="--yes")


def _follow(updates: Sequence[Update], yes: bool, plan: QueuePlan | None = None) -> int:
    """Carry updates, of a plan perhaps, out if `yes`, and print their lines."""
    if not yes:
        print_updates(updates, plan)
        warn(f"dry run of {counted(len(updates), 'update')}; --yes carries it out")
        return DONE
    updated = 0
    for update, reason in carry_out(updates, plan):
        if reason:
            warn(f"job {update.label} is skipped: {reason}")
        else:
            updated += 1
            print_line(update.line)
    warn(f"updated {updated:,} of {counted(len(updates), 'job')}")
    if plan is not None:
        _give_up(plan)
        _lower()
    return DONE


def _lower() -> None:
    """Set the nice of raised jobs back, once they have started or their time is over."""
    until = time.monotonic() + LOOK
    while raised := lowering(current_queue()):
        if time.monotonic() < until and any(each.job.state == "PENDING" for each in raised):
            time.sleep(MOMENTS)
            continue
        for update, reason in carry_out(raised):
            if reason:
                warn(f"the nice of job {update.label} is not set back: {reason}")
            else:
                print_line(update.line)
        return


def _follow_once(updates: Sequence[Update], yes: bool, plan: QueuePlan | None = None) -> int:
    """Carry updates out if `yes`; on an interrupt, say how to take pins back."""
    try:
        return _follow(updates, yes, plan)
    except KeyboardInterrupt:
        warn("interrupted; optsched slurm reset --yes removes all pins")
        return INTERRUPTED
