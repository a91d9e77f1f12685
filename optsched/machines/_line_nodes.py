"""Nodes that jobs hold on a line, compiled, where each gets the first free ones or chosen ones.

`Nodes.allocate`, `Nodes.claim` and `Nodes.release` are the reference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Ints
from optsched.by_reference import Record, by_reference, record
from optsched.compiled import kernel
from optsched.machines._ascending import delete, insert, position
from optsched.machines.texts import Texts, interval_text

COUNTS = record("slots runs done")
"""Free runs, runs of the jobs, entries of the log that are processed."""


@by_reference
class Held(NamedTuple):
    """The free runs of nodes, ascending, and those of the jobs."""

    free_start: Ints
    free_stop: Ints
    runs: Ints  # shape (runs, 2): runs[first[job]:last[job]] are the job's
    first: Ints
    last: Ints
    counts: Record


@by_reference
class Log(NamedTuple):
    """The number of each job that started, and ``~job`` of each that ended, in order."""

    entries: Ints
    number: Ints  # one entry: of these


def new_log(jobs: int) -> Log:
    """Return the log before the first event."""
    return Log(np.zeros(2 * jobs, dtype=np.int64), np.zeros(1, dtype=np.int64))


@kernel(allocates=False)
def note(log: Log, entry: int) -> None:
    """Add an entry."""
    log.entries[log.number[0]] = entry
    log.number[0] += 1


def new_held(jobs: int, size: int, runs: int) -> Held:
    """Return a line of free nodes, with room for the runs of all jobs."""
    free_start, free_stop = np.zeros((2, size + 1), dtype=np.int64)
    first, last = np.zeros((2, jobs), dtype=np.int64)
    counts = np.zeros(1, dtype=COUNTS)
    free_stop[0], counts["slots"] = size, 1
    return Held(free_start, free_stop, np.empty((runs, 2), dtype=np.int64), first, last, counts)


def nodes_of(log: Ints, processors: Ints, size: int) -> Texts:
    """Return the nodes that each job held by the entries of a log, as interval sets."""
    jobs = len(processors)
    held = new_held(jobs, size, 2 * jobs + size + 1)
    while not follow(held, log, processors):
        runs = np.concatenate((held.runs, np.empty_like(held.runs)))
        held = held._replace(runs=runs)
    return texts_of(held)


def texts_of(held: Held) -> Texts:
    """Return the nodes that each job held or holds, as interval sets."""
    return Texts(*interval_text(held.first, held.last, held.runs[: held.counts[0].runs]))


@kernel(allocates=False)
def follow(held: Held, log: Ints, processors: Ints) -> bool:
    """Process the log while there is room for the runs of all nodes; return whether it is over."""
    counts = held.counts[0]
    while counts.done < len(log):
        if counts.runs + len(held.free_start) > len(held.runs):
            return False
        job = log[counts.done]
        counts.done += 1
        if job >= 0:
            take_first(held, job, processors[job])
        else:
            give(held, ~job)
    return True


@kernel(allocates=False)
def take_first(held: Held, job: int, needed: int) -> None:
    """Give a job the first free nodes."""
    counts, runs = held.counts[0], held.runs
    held.first[job], emptied = counts.runs, 0
    while needed > 0:
        first, stop = held.free_start[emptied], held.free_stop[emptied]
        if stop - first > needed:
            stop = first + needed
            held.free_start[emptied] = stop
        else:
            emptied += 1
        runs[counts.runs, 0], runs[counts.runs, 1] = first, stop
        counts.runs += 1
        needed -= stop - first
    held.last[job] = counts.runs
    counts.slots -= emptied
    shift = np.uint64(emptied)
    if emptied:
        for slot in range(np.uint64(counts.slots)):
            held.free_start[slot] = held.free_start[slot + shift]
            held.free_stop[slot] = held.free_stop[slot + shift]


@kernel(allocates=False)
def take(held: Held, job: int, first: int, stop: int) -> None:
    """Give the job that is the last to get any free nodes of one slot; its runs stay in order."""
    counts, free_start, free_stop, runs = held.counts[0], held.free_start, held.free_stop, held.runs
    slot = position(free_start, counts.slots, first)
    end = free_stop[slot]
    free_stop[slot] = first
    if free_start[slot] == first:
        delete(free_start, counts.slots, slot)
        delete(free_stop, counts.slots, slot)
        counts.slots -= 1
        slot -= 1
    if stop < end:
        insert(free_start, counts.slots, slot + 1, stop)
        insert(free_stop, counts.slots, slot + 1, end)
        counts.slots += 1
    place = counts.runs
    while place > held.first[job] and runs[place - 1, 0] > first:
        runs[place, 0], runs[place, 1] = runs[place - 1, 0], runs[place - 1, 1]
        place -= 1
    runs[place, 0], runs[place, 1] = first, stop
    counts.runs += 1
    held.last[job] = counts.runs


@kernel(allocates=False)
def give(held: Held, job: int) -> None:
    """Free the nodes of a job, and merge them with adjacent free runs."""
    counts, start, stop = held.counts[0], held.free_start, held.free_stop
    for run in range(held.first[job], held.last[job]):
        first, last, slots = held.runs[run, 0], held.runs[run, 1], counts.slots
        after = position(start, slots, first) + 1
        touches_next = after < slots and start[after] == last
        if after > 0 and stop[after - 1] == first:
            stop[after - 1] = stop[after] if touches_next else last
            if touches_next:
                delete(start, slots, after)
                delete(stop, slots, after)
                counts.slots -= 1
        elif touches_next:
            start[after] = first
        else:
            insert(start, slots, after, first)
            insert(stop, slots, after, last)
            counts.slots += 1
