"""Splitting of jobs of several nodes into jobs of one node, for a cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.errors import InputError
from optsched.numbers import LARGEST
from optsched.traces.cleaning import clean
from optsched.traces.trace import UNKNOWN, Trace

MOST_JOBS = 10**8
"""Most pieces; a larger number is taken for a mistake."""


@dataclass(frozen=True)
class SplitTrace:
    """Trace whose larger jobs were split into pieces."""

    trace: Trace  # the pieces, and the jobs that were not split
    jobs: int  # number of jobs that were split
    pieces: int  # number of pieces of these jobs


def split_jobs(trace: Trace, cores: int) -> SplitTrace:
    """Split each job of more than `cores` processors into pieces of at most `cores`.

    All pieces but the last have `cores` processors. Pieces have the times, the user and all other
    columns of their job, and follow each other in the trace. If any job is split, all jobs are
    renumbered in the same order: the last digits count the pieces, from 0. With up to ten pieces
    per job, job 12 becomes 120, 121, 122; a job 13 that is not split becomes 130.

    Gonthier et al. 2024, section V.B, replace a job of several nodes "by as many single-node jobs
    as necessary". `optsched.traces.input_files` treats pieces as any jobs: those of whole nodes
    share a file, and a smaller last piece has another.

    `trace`: the trace; a raw one is cleaned first; `cores`: cores of a node.
    """
    if type(cores) is not int or not 1 <= cores <= LARGEST:
        raise InputError(f"{cores!r}; expected a whole number from 1", field="cores")
    trace = clean(trace)
    pieces = -(-trace.processors // cores)
    if pieces.sum(dtype=float) > MOST_JOBS:
        raise InputError(f"more than {MOST_JOBS:,} pieces of jobs", field="cores")
    split = pieces > 1
    if not split.any():
        return SplitTrace(trace, 0, 0)
    rows = np.repeat(np.arange(len(trace)), pieces)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    numbers = 10 ** len(str(int(pieces.max()) - 1))
    if int(trace.job_id.max()) > LARGEST // numbers:
        raise InputError("the job numbers are too large to be extended", file=trace.path)
    repeated = trace.select(rows)
    processors = np.minimum(cores, repeated.processors - place * cores)
    requested = repeated.requested_processors
    preceding = repeated.preceding_job
    cut = repeated.changed(
        job_id=repeated.job_id * numbers + place,
        processors=processors,
        requested_processors=np.where(split[rows] & (requested > 0), processors, requested),
        preceding_job=np.where(preceding == UNKNOWN, UNKNOWN, preceding * numbers),
    )
    return SplitTrace(cut, int(split.sum()), int(pieces[split].sum()))
