"""Annotations of a trace for papers: input files, bandwidth, evaluated jobs, pieces of jobs.

M. Gonthier et al., "Data-driven locality-aware batch scheduling", APDCM 2024, section V.B.
F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.numbers import LARGEST, MOST_CAPACITY, check_seed
from optsched.traces.cleaning import clean
from optsched.traces.rackham import AFTER, BEFORE, EVALUATED, LAST_FILE, RUNNING, differs
from optsched.traces.reading import mistake_in
from optsched.traces.trace import UNKNOWN, Trace

WINDOW = 800
"""Most seconds between two successive jobs of a file, as in the paper."""

PER_PROCESSOR = 6400
"""MB of a file for each processor of its jobs: 128 GB for the 20 cores of a node."""


Sharing = Literal["consecutive", "interleaved"]


def infer_files(
    # The trace; a raw one is cleaned first. Split jobs larger than a node before, with
    # `optsched.traces.annotations.split_jobs`.
    trace: Trace,
    *,
    window: int = WINDOW,  # most seconds between two successive jobs of a file
    per_processor: int = PER_PROCESSOR,  # size of a file, in MB for each processor of its jobs
    # Earlier job: ``consecutive``, the one submitted just before, so that a job of another
    # user or size ends a series, as in the authors' workload; ``interleaved``, the last one
    # of the same user and size, whatever comes between, as section V.B is written
    sharing: Sharing = "consecutive",
) -> Trace:
    """Return the trace with the annotations ``file`` and ``file_size``.

    A job uses the file of an earlier one if both have the same user and size and are submitted at
    most `window` seconds apart; otherwise a new file. Files are numbered from 1, in the order of
    their first jobs. A job whose user is unknown shares no file.

    The paper asks for the same user, the same cores and "an 800 seconds time frame" of two jobs. It
    does not exclude jobs of other users in between; in the authors' workload no job comes between.
    """
    trace = clean(trace)
    for name, value, lowest in (("window", window, 0), ("per processor", per_processor, 1)):
        if type(value) is not int or not lowest <= value <= LARGEST:
            raise InputError(f"{value!r}; expected a whole number from {lowest}", field=name)
    if (trace.user == UNKNOWN).all():
        raise InputError(
            "no job states its user, from which files are inferred", file=trace.path, field="user"
        )
    if int(trace.processors.max()) * per_processor > LARGEST:
        raise InputError("the largest job has a file of more than 2^53 MB", field="per processor")
    if sharing not in get_args(Sharing):
        raise InputError(
            f"{sharing!r}; expected one of {', '.join(get_args(Sharing))}", field="sharing"
        )
    order = np.arange(len(trace))
    if sharing == "interleaved":
        order = np.lexsort((trace.processors, trace.user))  # then in the order of submission
    user, processors, submit = trace.user[order], trace.processors[order], trace.submit[order]
    shared = (
        (user[1:] != UNKNOWN)
        & (np.diff(user) == 0)
        & (np.diff(processors) == 0)
        & (np.diff(submit) <= window)
    )
    series = np.empty(len(trace), dtype=np.int64)
    series[order] = np.cumsum(np.concatenate(([True], ~shared)))
    _, first, series = np.unique(series, return_index=True, return_inverse=True)
    file = 1 + first.argsort().argsort()[series]
    return trace.annotated(file=file, file_size=trace.processors * per_processor)


def evaluate(trace: Trace, first: float, last: float) -> Trace:
    """Return the trace with the annotation ``category``, by submit time.

    The category of a job is 0 if it is submitted before `first`, 1 (evaluated) from `first` until
    before `last`, and 2 from `last` on. Jobs that were running or waiting at the start keep their
    categories -2 and -1.

    `trace`: the trace, raw or cleaned; `first` and `last`: submit times, in seconds.
    """
    category = np.where(
        trace.submit < first, BEFORE, np.where(trace.submit < last, EVALUATED, AFTER)
    )
    if "category" in trace.annotations:
        known = trace.annotations["category"]
        category = np.where(known < BEFORE, known, category)
    if not (category == EVALUATED).any():
        expected = f"{trace.submit.min()} to {trace.submit.max()} s" if len(trace) else "no job"
        raise InputError(
            f"no job is submitted from {first} s to {last} s; submit times are {expected}",
            file=trace.path,
            field="evaluate",
        )
    return trace.annotated(category=category)


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
    as necessary". `optsched.traces.annotations` treats pieces as any jobs: those of whole nodes
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


LEVELS: Mapping[str, int] = {"high": 2000, "medium": 1000, "low": 500}
"""MB/s for each process. The paper's number for "high" is illegible; 2,000 is a choice."""

MIXES: Mapping[str, tuple[int, int, int]] = {
    "HIGH": (80, 10, 10),
    "MED": (50, 10, 40),
    "LOW": (10, 10, 80),
}
"""Percent of the jobs with high, medium and low demand."""


def drawn(
    trace: Trace,  # the trace; a raw one is cleaned first
    # The paper's mix of that name, or percent of the jobs with high, medium and low demand
    mix: str | tuple[int, int, int],
    seed: int = 0,  # seed of the random numbers
    # MB/s for each process at ``high``, ``medium`` and ``low``. A level that is left out is
    # that of `LEVELS`.
    levels: Mapping[str, int] = LEVELS,
) -> Trace:
    """Return the trace with the annotation ``bandwidth``, in MB/s for each process, int64.

    Each job draws one random number, in the order of the cleaned trace, and the shares of the mix
    turn that number into a high, medium or low demand. So with one seed, no job demands less in a
    mix of more pressure: the jobs with high demand in LOW have it in MED and HIGH too. A note in
    the header records the draw.
    """
    shares = _shares(mix)
    amounts = _amounts(levels)
    check_seed(seed)
    trace = clean(trace)
    number = np.random.default_rng(seed).random(len(trace))
    ends = np.array([shares[0], shares[0] + shares[1]]) / 100
    annotated = trace.annotated(bandwidth=amounts[np.searchsorted(ends, number, side="right")])
    parts = ", ".join(
        f"{amount:,} MB/s for each process of {share} % of the jobs"
        for amount, share in zip(amounts.tolist(), shares)
    )
    note = f"bandwidth drawn by optsched, seed {seed}: {parts}"
    return replace(annotated, header=trace.header.noted(note))


def _shares(mix: str | tuple[int, int, int]) -> tuple[int, int, int]:
    shares = MIXES.get(mix.upper(), ()) if isinstance(mix, str) else tuple(mix)
    whole = all(type(share) is int and share >= 0 for share in shares)
    if len(shares) != 3 or not whole or sum(shares) != 100:
        expected = (
            f"expected {', '.join(MIXES)} or the percent of the jobs with high, medium and low "
            "demand, 100 in all: 80:10:10 for instance"
        )
        shown = mix if isinstance(mix, str) else ":".join(map(str, mix))
        raise InputError(f"{shown!r}; {expected}", field="mix")
    high, medium, low = shares
    return high, medium, low


def _amounts(levels: Mapping[str, int]) -> NDArray[np.int64]:
    for name in levels:
        if name not in LEVELS:
            raise InputError(f"{name!r}; expected {', '.join(LEVELS)}", field="levels")
    known = {**LEVELS, **levels}
    for name, amount in known.items():
        if type(amount) is not int or not 0 <= amount <= MOST_CAPACITY:
            expected = f"expected a whole number from 0 to {MOST_CAPACITY:,}"
            raise InputError(f"{name}={amount}; {expected}", field="levels")
    amounts = list(known.values())
    if amounts != sorted(amounts, reverse=True):
        shown = ",".join(f"{name}={amount}" for name, amount in known.items())
        expected = f"expected {' >= '.join(LEVELS)}"
        raise InputError(f"{shown!r}; {expected}", field="levels")
    return np.array(amounts)


Check = tuple[str, NDArray[np.bool_], str]

HISTORY = ("history_start", "history_node")


def check_annotations(trace: Trace) -> None:
    """Check files, file sizes, categories, and the history of the jobs that run at the start.

    The trace has the annotation ``file``.
    """
    if "file_size" not in trace.annotations:
        _missing(trace, "file_size", "its files have no sizes; expected MB for each job")
    for name in ("file", "file_size", "category", *HISTORY):
        column = trace.annotations.get(name)
        if column is not None and column.dtype != np.int64:
            raise InputError("expected whole numbers", file=trace.path, field=name)
    for name, wrong, expected in _checks(trace):
        if wrong.any():
            job = int(np.flatnonzero(wrong)[0])
            column = trace.submit if name == "submit" else trace.annotations[name]
            raise mistake_in(trace, job, name, column[job], expected)


def _checks(trace: Trace) -> Iterator[Check]:
    """Yield the name of each column, a mask of the jobs with a wrong value, and what is allowed."""
    given = trace.annotations
    file, size = given["file"], given["file_size"]
    outside = (file < UNKNOWN) | (file > LAST_FILE)
    yield "file", outside, f"expected a number from 0 to {LAST_FILE:,}, or -1 for none"
    yield "file_size", size < 0, "expected MB from 0"
    yield "file_size", (file == UNKNOWN) & (size > 0), "expected 0 where there is no file"
    yield "file_size", differs(file, size), "expected the size that the file has in other jobs"
    if "category" not in given:
        return
    category = given["category"]
    wrong = (category < RUNNING) | (category > AFTER)
    yield "category", wrong, f"expected a whole number from {RUNNING} to {AFTER}"
    running, before = category == RUNNING, category == BEFORE
    if not running.any() or not before.any():
        return
    for name in HISTORY:
        if name not in given:
            expected = "expected for the jobs of category -2, which run at the start"
            _missing(trace, name, f"missing; {expected}")
        yield name, running & (given[name] < 0), "expected 0 or more for a job of category -2"
    opening = trace.submit[before].min()
    expected = f"expected a time before {opening} for a job of category -2, the start"
    yield "submit", running & (trace.submit >= opening), expected


def _missing(trace: Trace, name: str, text: str) -> None:
    raise InputError(f"trace {trace.name!r}: {text}", file=trace.path, field=name)
