"""Scaling of a trace to a machine of another size, and submissions at another load or shaken.

C. Ernemann, B. Song, R. Yahyapour, "Scaling of workload traces", JSSPP 2003. Of the methods
compared there, this one scales the sizes and keeps the number of jobs.
D. Tsafrir, K. Ouaknine, D. Feitelson, "Reducing performance evaluation sensitivity and variability
by input shaking", MASCOTS 2007.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.numbers import LARGEST, LONGEST, MOST_PROCESSORS
from optsched.traces.trace import UNKNOWN, Header, Trace

LARGEST_LOAD = 1e6
"""Largest load factor; a larger one is taken for a mistake."""

INSTANTS = ("begin", "eligible")
"""Annotations that are instants."""


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


def submitted(trace: Trace, submit: NDArray[Any]) -> tuple[Trace, NDArray[np.int64]]:
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


MACHINE = {"maxprocs", "maxnodes"}
"""Keys of the header that describe the original machine only."""


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
    sizes = _sizes(scaled)
    rounding = _rounding(trace, sizes, to, processors)
    changes = _changes(trace, sizes, to, processors, unit)
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
        raise InputError(
            "the header states no MaxProcs and no MaxNodes; expected the processors of the "
            "original machine, with --from",
            file=trace.path,
        )
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


def _scaled(sizes: NDArray[np.int64], to: int, processors: int, unit: int) -> NDArray[np.int64]:
    units = -(-sizes * to // (processors * unit))
    units = np.where(sizes <= processors, np.minimum(units, to // unit), units)
    return np.where(sizes > 0, units * unit, sizes)


def _changes(
    trace: Trace, sizes: NDArray[np.int64], to: int, processors: int, unit: int
) -> tuple[tuple[int, str], ...]:
    original = _sizes(trace)
    known, exact = original > 0, original * to
    whole = f"a multiple of {unit:,}" if unit > 1 else "a whole number"
    counts = (
        (known & (sizes * processors > exact), f"sizes rounded up to {whole}"),
        (
            known & (sizes * processors < exact),
            f"sizes cut to {to // unit * unit:,}, the whole machine",
        ),
        (original > processors, "jobs larger than the original machine"),
        (trace.wait != UNKNOWN, "waits left out"),
    )
    return tuple((int(which.sum()), what) for which, what in counts if which.any())


def _sizes(trace: Trace) -> NDArray[np.int64]:
    """Return the sizes of the jobs, chosen as in `optsched.traces.cleaning`."""
    return np.where(trace.processors > 0, trace.processors, trace.requested_processors)


def _rounding(trace: Trace, sizes: NDArray[np.int64], to: int, processors: int) -> float:
    original = _sizes(trace)
    work = np.where(original > 0, np.maximum(trace.runtime, 0), 0).astype(np.float64)
    exact = float(work @ original) * to / processors
    return round(float(work @ sizes) / exact - 1, 9) if exact else 0.0


def _header(header: Header, to: int, note: list[str]) -> Header:
    """Return the original header, with the lines about the machine turned into notes."""
    lines = [
        ("Note", f"originally {key}: {value}") if key.lower() in MACHINE else (key, value)
        for key, value in header.lines
    ]
    lines += [("MaxProcs", str(to)), ("Note", note[0]), *(("", f"  {line}") for line in note[1:])]
    return Header(tuple(lines))
