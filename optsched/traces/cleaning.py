"""Which jobs of a trace count: cleaning by fixed rules, and ranges by numbers or by days."""

from __future__ import annotations

import operator
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, NamedTuple, SupportsIndex
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.numbers import parse_integer
from optsched.traces.trace import CleaningReport, Trace

WHOLE = (0, 1, 5)  # status of a line of a whole job in the Standard Workload Format


def clean(trace: Trace) -> Trace:
    """Return the valid jobs of `trace`, in the order (submit time, job number).

    The size of a job is its allocated processors if positive, else its requested ones. Jobs with a
    run time below 1 s, fewer than 1 processor or no submit time are dropped, and so are the parts
    of a checkpointed job of which another line is the whole. A requested time that
    is missing or shorter than the run time is set to the run time; where limits hold
    (`Trace.limits_hold`), only a missing one is. A cleaned trace is returned unchanged.
    """
    if trace.cleaning is not None:
        return trace
    from_request = (trace.processors <= 0) & (trace.requested_processors > 0)
    processors = _changed(trace.processors, from_request, trace.requested_processors)
    too_short = trace.runtime < 1
    too_small = ~too_short & (processors < 1)
    never_submitted = ~too_short & ~too_small & (trace.submit < 0)
    kept = ~(too_short | too_small | never_submitted)
    parts = _parts(trace, kept)
    kept &= ~parts
    reordered = 0
    selected = trace
    if not kept.all() or not _in_order(trace):
        rows = np.flatnonzero(kept)
        order = np.lexsort((trace.job_id[rows], trace.submit[rows]))
        reordered = int((order != np.arange(len(order))).sum())
        rows = rows[order]
        selected = trace.select(rows)
        processors, from_request = processors[rows], from_request[rows]
    requested, runtime = selected.requested_time, selected.runtime
    missing = requested <= 0
    raised = ~missing & (requested < runtime) & (not trace.limits_hold)
    report = CleaningReport(
        jobs_read=len(trace),
        dropped_runtime=int(too_short.sum()),
        dropped_processors=int(too_small.sum()),
        dropped_submit=int(never_submitted.sum()),
        dropped_parts=int(parts.sum()),
        processors_from_request=int(from_request.sum()),
        requested_time_missing=int(missing.sum()),
        requested_time_raised=int(raised.sum()),
        reordered=reordered,
    )
    if not len(selected):
        raise InputError(report.lost().rstrip("."), file=trace.path)
    return replace(
        selected,
        processors=processors,
        requested_time=_changed(requested, missing | raised, runtime),
        cleaning=report,
    )


def _parts(trace: Trace, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the kept lines that are parts of a job of which another kept line is the whole."""
    parts = kept & (trace.status >= 2) & (trace.status <= 4)
    if parts.any():
        whole = trace.job_id[kept & np.isin(trace.status, WHOLE)]
        parts &= np.isin(trace.job_id, whole)
    return parts


def _in_order(trace: Trace) -> bool:
    submit, job_id = trace.submit, trace.job_id
    later, same = submit[1:] > submit[:-1], submit[1:] == submit[:-1]
    return bool((later | (same & (job_id[1:] >= job_id[:-1]))).all())


def _changed(column: NDArray[Any], rows: NDArray[np.bool_], values: NDArray[Any]) -> NDArray[Any]:
    """Return a column with the values in some rows; without a copy if there are no such rows."""
    if rows.any():
        return np.where(rows, values, column)
    return column.astype(np.result_type(column, values), copy=False)


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Days(NamedTuple):
    """The first and the last day, ``2003-01-31`` for instance, both included; None for no limit."""

    first: str | None
    last: str | None


Span = tuple[int, int | None] | Days  # the first and the last job, counted from 1, or the days


def span_of(given: Any, field: str = "jobs") -> Span | None:
    """Return the range of jobs that an option states, None for all jobs.

    ``FROM:TO`` are numbers of jobs or days; one of them may be left out. A number alone is TO, a
    day alone that day.
    """
    if given is None or isinstance(given, Days):
        return given
    try:
        if isinstance(given, str):
            first, colon, last = given.rpartition(":")
            if _DAY.search(given):
                return Days(*map(_day, (first, last) if colon else (last, last)))
            return (
                parse_integer(first) if first else 1,
                parse_integer(last) if last or not colon else None,
            )
        if isinstance(given, SupportsIndex):
            return 1, operator.index(given)
        first, last = given
        return operator.index(first), None if last is None else operator.index(last)
    except (TypeError, ValueError):
        expected = "expected the first and the last job, (1, 5000) for instance"
        if isinstance(given, str):
            expected = "expected FROM:TO, 1:5000 or 2003-01-01:2003-06-30 for instance"
        raise InputError(f"{given!r}; {expected}", field=field) from None


def numbers_in(given: Any, trace: Trace, field: str = "jobs") -> tuple[int, int]:
    """Return the numbers of the first and the last job of a cleaned trace that an option states.

    For its forms, see `span_of`. Days begin at midnight in the time zone of the trace
    (``TimeZoneString`` of its header, or else UTC).
    """
    span = span_of(given, field) or (1, len(trace))
    if not isinstance(span, Days):
        first, last = span[0], len(trace) if span[1] is None else span[1]
        if not 1 <= first <= last <= len(trace):
            expected = f"expected FROM:TO with 1 <= FROM <= TO <= {len(trace)}"
            raise InputError(f"{field} {first}:{last}; {expected}", file=trace.path)
        return first, last
    origin = trace.header.unix_start_time
    if origin is None:
        said = f"trace {trace.name!r} does not say when it begins (UnixStartTime)"
        raise InputError(f"{said}; expected numbers of jobs", file=trace.path, field=field)
    zone = _zone(trace)
    ends = [
        np.searchsorted(trace.submit, _midnight(day, later, zone) - origin) if day else otherwise
        for day, later, otherwise in ((span.first, 0, 0), (span.last, 1, len(trace)))
    ]
    if ends[0] >= ends[1]:
        there = (
            datetime.fromtimestamp(origin + float(trace.submit[row]), zone).date()
            for row in (0, -1)
        )
        days = ":".join(day or "" for day in span)
        are = "no job is submitted then; submissions are from {} to {}".format(*there)
        raise InputError(f"{days}; {are}", file=trace.path, field=field)
    return int(ends[0]) + 1, int(ends[1])


def _day(text: str) -> str | None:
    if not text:
        return None
    if not _DAY.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text).isoformat()


def _midnight(day: str, later: int, zone: tzinfo) -> float:
    at = date.fromisoformat(day) + timedelta(days=later)
    return datetime(at.year, at.month, at.day, tzinfo=zone).timestamp()


def _zone(trace: Trace) -> tzinfo:
    stated = next(iter(trace.header.values("TimeZoneString")), "").strip()
    if not stated:
        return UTC
    try:
        return ZoneInfo(stated)
    except (ValueError, OSError, KeyError):
        expected = "expected a time zone that this machine knows, Europe/Paris for instance"
        wrong = f"{stated!r}; {expected}"
        raise InputError(wrong, file=trace.path, field="TimeZoneString") from None
