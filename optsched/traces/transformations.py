"""Transformations of a trace: another machine or load, shaken submissions, what papers add to jobs.

C. Ernemann, B. Song, R. Yahyapour, "Scaling of workload traces", JSSPP 2003. Of the methods
compared there, this one scales the sizes and keeps the number of jobs.
D. Tsafrir, K. Ouaknine, D. Feitelson, "Reducing performance evaluation sensitivity and variability
by input shaking", MASCOTS 2007.
F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009: bandwidth.
M. Gonthier et al., "Data-driven locality-aware batch scheduling", APDCM 2024, section V.B: input
files, evaluated jobs, pieces of jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.errors import InputError, brief
from optsched.numbers import LARGEST, LONGEST, MOST_CAPACITY, MOST_PROCESSORS, check_seed
from optsched.traces.cleaning import clean
from optsched.traces.rackham import AFTER, BEFORE, EVALUATED
from optsched.traces.trace import UNKNOWN, Header, Trace

LARGEST_LOAD = 1e6  # largest load factor; a larger one is taken for a mistake
INSTANTS = ("begin", "eligible")  # annotations that are instants


def stretched(trace: Trace, load: float) -> NDArray[Any]:
    """Return the submit times, stretched from the first one by ``1 / load``, in whole seconds."""
    check_load(load)
    known = trace.submit >= 0
    if load == 1 or not known.any():
        return trace.submit
    first = trace.submit[known].min()
    submit = np.rint(first + (trace.submit - first) / load)
    if submit.max() > LARGEST:
        raise InputError(f"{load!r}; submit times would be above 2^53 s", field="load")
    return np.where(known, submit, trace.submit).astype(np.int64)


def check_load(load: Any) -> None:
    """Refuse a factor of the load that is no number, or out of range."""
    if type(load) not in (int, float) or not 1 / LARGEST_LOAD <= load <= LARGEST_LOAD:
        expected = f"expected a factor from {1 / LARGEST_LOAD:g} to {LARGEST_LOAD:g}"
        raise InputError(f"{load!r}; {expected}", field="load")


def check_shake(seconds: Any) -> None:
    """Refuse a number of seconds to shake by that is not whole, or out of range."""
    if type(seconds) is not int or not 0 <= seconds <= LONGEST:
        expected = f"expected a whole number of seconds from 0 to {LONGEST:,}"
        raise InputError(f"{seconds!r}; {expected}", field="shake")


def shaken(trace: Trace, seconds: int, seed: int) -> NDArray[Any]:
    """Return the submit times, each put off by whole seconds from 0 to `seconds`, all as likely."""
    return trace.submit + np.random.default_rng(seed).integers(0, seconds + 1, len(trace))


def submitted(trace: Trace, submit: NDArray[Any]) -> tuple[Trace, Ints]:
    """Return the trace with other submit times, and the former row of each job.

    The jobs are in order of their submissions, those of an instant as they were. Recorded waits are
    left out, since they belong to the recorded submissions.
    """
    wait, held = np.full(len(trace), UNKNOWN), held_as_long(trace, submit)
    moved = trace.changed(submit=submit, wait=wait, annotations=held)
    order = np.argsort(submit, kind="stable")
    return moved.select(order), order


def held_as_long(trace: Trace, submit: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the annotations, with begin times at their distance from other submit times."""
    moved = {
        name: np.where(stated > UNKNOWN, stated + (submit - trace.submit), UNKNOWN)
        for name, stated in trace.annotations.items()
        if name in INSTANTS
    }
    return {**trace.annotations, **moved}


MACHINE = {"maxprocs", "maxnodes"}  # keys of the header that describe the original machine only


@dataclass(frozen=True)
class ScaledTrace:
    """Scaled trace, with a record of the changes."""

    trace: Trace  # the scaled trace; its header records the scaling
    processors: int  # processors of the original machine
    # Work (processors times run time) that rounding added, relative to exact scaling
    rounding: float
    # Deviations from exact scaling, each with a positive number of jobs
    changes: tuple[tuple[int, str], ...]


def scale_trace(
    trace: Trace, to: int, *, processors: int | None = None, unit: int = 1, load: float = 1.0
) -> ScaledTrace:
    """Scale the sizes of jobs to another machine, and the interarrival times to another load.

    Allocated and requested sizes are multiplied by ``to / processors`` and rounded up to a
    multiple of `unit`; a job that fits the original machine is cut to the whole units of the new
    one. Run times and requested times stay. Submit times are stretched from the first one by
    ``1 / load`` and rounded to whole seconds; begin times keep their distance from them. Recorded
    waits are left out, since they belong to the original machine.

    Parameters
    ----------
    trace : Trace
        The trace, raw or cleaned.
    to : int
        Processors of the machine to scale to.
    processors : int, optional
        Processors of the original machine, in the unit of the sizes; ``MaxProcs`` of the header
        if left out, or else ``MaxNodes``.
    unit : int
        Processors that are allocated together; scaled sizes are multiples of this number.
    load : float
        Divisor of the interarrival times, and so about the factor of the load.

    Raises
    ------
    InputError
        If a number is out of range, the size of the original machine is unknown, or a submit time
        leaves the range of a trace.
    """
    if not isinstance(trace, Trace):
        expected = "expected a trace; optsched.read_trace reads a file or a name"
        raise InputError(f"{brief(trace)}; {expected}", field="trace")
    if processors is None:
        processors = trace.header.max_procs or trace.header.max_nodes
    _check(trace, to, processors, unit, load)
    assert processors is not None
    columns: dict[str, Any] = {
        name: _scaled(getattr(trace, name), to, processors, unit)
        for name in ("processors", "requested_processors")
    }
    columns["wait"] = np.full(len(trace), UNKNOWN)
    columns["submit"] = stretched(trace, load)
    columns["annotations"] = held_as_long(trace, columns["submit"])
    scaled = trace.changed(**columns)
    sizes, before = _sizes(scaled), _sizes(trace)
    work = np.where(before > 0, np.maximum(trace.runtime, 0), 0).astype(np.float64)
    exact = float(work @ before) * to / processors
    rounding = round(float(work @ sizes) / exact - 1, 9) if exact else 0.0
    changes = _changes(trace, before, sizes, to, processors, unit)
    origin = f"{trace.name}, SHA-256 {trace.sha256}" if trace.sha256 else trace.name
    note = [
        f"Scaled by optsched, not as recorded. Original: {origin}.",
        f"Sizes times {to} / {processors}, rounded up to multiples of {unit}: "
        f"{rounding:+.2%} work by rounding.",
        f"Interarrival times divided by {load!r}.",
        *(f"{count} {what}." for count, what in changes),
    ]
    scaled = replace(scaled, header=_header(trace.header, to, note))
    return ScaledTrace(scaled, processors, rounding, changes)


def _check(trace: Trace, to: int, processors: int | None, unit: int, load: float) -> None:
    if processors is None:
        expected = "expected the processors of the original machine, with --from"
        wrong = f"the header states no MaxProcs and no MaxNodes; {expected}"
        raise InputError(wrong, file=trace.path)
    mistakes = [
        f"{name}: {value!r}; expected a whole number from 1 to {highest}"
        for name, value, highest in (
            ("to", to, MOST_PROCESSORS),
            ("from", processors, MOST_PROCESSORS),
            ("unit", unit, to if type(to) is int and to > 0 else MOST_PROCESSORS),
        )
        if type(value) is not int or not 1 <= value <= highest
    ]
    try:
        check_load(load)
    except InputError as error:
        mistakes += error.lines()
    largest = max(trace.processors.max(initial=0), trace.requested_processors.max(initial=0))
    if largest > MOST_PROCESSORS:
        mistakes.append(f"a job of {largest:,} processors; expected at most {MOST_PROCESSORS:,}")
    if mistakes:
        raise InputError(*mistakes)


def _scaled(sizes: Ints, to: int, processors: int, unit: int) -> Ints:
    units = -(-sizes * to // (processors * unit))
    units = np.where(sizes <= processors, np.minimum(units, to // unit), units)
    return np.where(sizes > 0, units * unit, sizes)


def _changes(
    trace: Trace, original: Ints, sizes: Ints, to: int, processors: int, unit: int
) -> tuple[tuple[int, str], ...]:
    known, exact = original > 0, original * to
    whole, most = f"a multiple of {unit:,}" if unit > 1 else "a whole number", to // unit * unit
    counts = (
        (known & (sizes * processors > exact), f"sizes rounded up to {whole}"),
        (known & (sizes * processors < exact), f"sizes cut to {most:,}, the whole machine"),
        (original > processors, "jobs larger than the original machine"),
        (trace.wait != UNKNOWN, "waits left out"),
    )
    return tuple((int(which.sum()), what) for which, what in counts if which.any())


def _sizes(trace: Trace) -> Ints:
    """Return the sizes of the jobs, chosen as in `optsched.traces.cleaning`."""
    return np.where(trace.processors > 0, trace.processors, trace.requested_processors)


def _header(header: Header, to: int, note: list[str]) -> Header:
    """Return the original header, with the lines about the machine turned into notes."""
    lines = [
        ("Note", f"originally {key}: {value}") if key.lower() in MACHINE else (key, value)
        for key, value in header.lines
    ]
    lines += [("MaxProcs", str(to)), ("Note", note[0]), *(("", f"  {line}") for line in note[1:])]
    return Header(tuple(lines))


WINDOW = 800  # most seconds between two successive jobs of a file, as in the paper

PER_PROCESSOR = 6400
"""MB of a file for each processor of its jobs: 128 GB for the 20 cores of a node."""


Sharing = Literal["consecutive", "interleaved"]


def infer_files(
    # The trace; a raw one is cleaned first. Split jobs larger than a node before, with
    # `split_jobs`.
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
    _check_whole("window", window, 0)
    _check_whole("per processor", per_processor, 1)
    if (trace.user == UNKNOWN).all():
        wrong = "no job states its user, from which files are inferred"
        raise InputError(wrong, file=trace.path, field="user")
    if int(trace.processors.max()) * per_processor > LARGEST:
        raise InputError("the largest job has a file of more than 2^53 MB", field="per processor")
    if sharing not in get_args(Sharing):
        expected = f"expected one of {', '.join(get_args(Sharing))}"
        raise InputError(f"{sharing!r}; {expected}", field="sharing")
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
    """
    category = np.where(
        trace.submit < first, BEFORE, np.where(trace.submit < last, EVALUATED, AFTER)
    )
    if "category" in trace.annotations:
        known = trace.annotations["category"]
        category = np.where(known < BEFORE, known, category)
    if not (category == EVALUATED).any():
        there = f"{trace.submit.min()} to {trace.submit.max()} s" if len(trace) else "no job"
        wrong = f"no job is submitted from {first} s to {last} s; submit times are {there}"
        raise InputError(wrong, file=trace.path, field="evaluate")
    return trace.annotated(category=category)


def _check_whole(name: str, value: Any, lowest: int) -> None:
    if type(value) is not int or not lowest <= value <= LARGEST:
        raise InputError(f"{value!r}; expected a whole number from {lowest}", field=name)


MOST_JOBS = 10**8  # most pieces; a larger number is taken for a mistake


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
    as necessary". `infer_files` treats pieces as any jobs: those of whole nodes
    share a file, and a smaller last piece has another.
    """
    _check_whole("cores", cores, 1)
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


def _amounts(levels: Mapping[str, int]) -> Ints:
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
