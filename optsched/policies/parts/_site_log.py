"""Nodes that each job of a site has held, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._interval_text import interval_text
from optsched.machines._site_nodes import Numbers
from optsched.machines.texts import Texts


@by_reference
class Log(NamedTuple):
    """Runs of contiguous nodes."""

    runs: Numbers  # shape (runs, 2): first node and end of each
    number: Numbers  # one entry: of these
    first: Numbers  # runs[first[job]:last[job]] are those of a job
    last: Numbers


def new_log(jobs: int) -> Log:
    """Return the log of a site on which no job has run."""
    first, last = np.zeros((2, jobs), dtype=np.int64)
    return Log(np.zeros((2 * jobs, 2), dtype=np.int64), np.zeros(1, dtype=np.int64), first, last)


def with_runs(log: Log, more: int) -> Log:
    """Return the same log with twice the space, and a number of further runs."""
    space = np.zeros((len(log.runs) + more, 2), dtype=np.int64)
    return log._replace(runs=np.concatenate((log.runs, space)))


def texts(log: Log) -> Texts:
    """Return the nodes that each job held, as interval sets."""
    return Texts(*interval_text(log.first, log.last, log.runs[: log.number[0]]))


@kernel(allocates=False)
def has_room(log: Log, nodes: int) -> bool:
    """Return whether there is room for jobs on so many nodes in all."""
    return bool(log.number[0] + nodes <= len(log.runs))


@kernel(allocates=False)
def note_start(log: Log, job: int) -> None:
    """Note that a job starts."""
    log.first[job] = log.last[job] = log.number[0]


@kernel(allocates=False)
def note_node(log: Log, job: int, node: int) -> None:
    """Note a node of the job that has just started, after those of lower number."""
    at, runs = log.number[0], log.runs
    if log.first[job] == at or runs[at - 1, 1] != node:
        runs[at, 0] = node
        log.number[0] = log.last[job] = at + 1
    runs[log.number[0] - 1, 1] = node + 1
