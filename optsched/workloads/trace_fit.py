"""Fit of the Hyper-Erlang class model to a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.workloads.hyper_erlang import HyperErlang, HyperErlangClasses, JobClass, fit_moments

Sizes = Literal["observed", "uniform"]
FEWEST = 30
"""Fewest jobs of a class; with fewer, the third moment is meaningless."""


@dataclass(frozen=True)
class FittedTimes:
    """Fit of the interarrival times, or of the run times, of one class."""

    distribution: HyperErlang
    matched: int  # number of matched moments, from the first on; at most three
    e4: float  # relative deviation of the fourth moment from that of the data, in percent

    def to_json(self) -> dict[str, Any]:
        """Return the parameters, the family, the number of matched moments and E4."""
        return {
            **self.distribution.to_table(),
            "family": self.distribution.family,
            "matched": self.matched,
            "e4": self.e4,
        }


@dataclass(frozen=True)
class FittedClass:
    """Fit of one class."""

    # Smallest and largest size of a job of the class
    smallest: int
    largest: int
    jobs: int  # number of jobs of the trace in the class
    share: float  # percentage of all fitted jobs
    # Fits of the interarrival times and of the run times
    interarrival: FittedTimes
    service: FittedTimes

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        times = {"interarrival": self.interarrival.to_json(), "service": self.service.to_json()}
        return vars(self) | times


@dataclass(frozen=True)
class WorkloadFit:
    """Workload model fitted to a trace, with the quality of the fit."""

    model: HyperErlangClasses
    classes: tuple[FittedClass, ...]  # quality of the fit of each class
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the fit as one JSON object."""
        return {
            "trace": self.model.title,
            "processors": self.model.processors,
            "classes": [one.to_json() for one in self.classes],
            "notes": list(self.notes),
        }


def fit_workload(
    trace: Trace | str | Path,
    *,
    boundaries: Sequence[int] | None = None,
    fewest: int = FEWEST,
    sizes: Sizes = "observed",
    processors: int | None = None,
) -> WorkloadFit:
    """Fit classes of jobs by size to a trace, by three moments of each time in each class.

    Parameters
    ----------
    trace : Trace, path or str
        The trace, its file or its name; a raw one is cleaned first.
    boundaries : sequence of int, optional
        Largest size of each class, ascending; all powers of two if left out.
    fewest : int
        Fewest jobs of a class. A class of fewer is joined with the next smaller one, the smallest
        class with the next larger one.
    sizes : {"observed", "uniform"}
        Sizes that the model draws in a class: those of the trace, as often as they occur, or all
        from the smallest to the largest, equally often.
    processors : int, optional
        Processors of the machine; larger jobs are left out. By default, those that the trace
        states (or its nodes), or else the size of its largest job.

    Raises
    ------
    InputError
        If an argument is out of range, jobs are larger than the last boundary, or a class has no
        times to fit.
    """
    trace = clean(trace if isinstance(trace, Trace) else read_trace(trace))
    _check(boundaries, fewest, sizes, processors)
    stated = trace.header.max_procs or trace.header.max_nodes
    machine = processors or stated or int(trace.processors.max())
    notes = []
    if not (processors or stated):
        notes.append(f"the trace states no machine; took {machine} processors, its largest job")
    if larger := int((trace.processors > machine).sum()):
        notes.append(f"{larger} jobs left out: larger than the machine of {machine} processors")
        trace = trace.select(trace.processors <= machine)
    if len(trace) < 2:
        raise InputError(f"{len(trace)} jobs that fit the machine; expected at least 2")
    ranges = _classes(trace.processors, boundaries, machine, fewest, notes)
    fitted, classes = [], []
    for smallest, largest in ranges:
        rows = (trace.processors >= smallest) & (trace.processors <= largest)
        place = _named(smallest, largest)
        gaps = np.diff(np.sort(trace.submit[rows])).astype(np.float64)
        interarrival = _fit(gaps, f"{place}, interarrival times", notes)
        service = _fit(trace.runtime[rows].astype(np.float64), f"{place}, run times", notes)
        jobs = int(rows.sum())
        share = 100 * jobs / len(trace)
        fitted.append(FittedClass(smallest, largest, jobs, share, interarrival, service))
        values, counts = np.unique(trace.processors[rows], return_counts=True)
        observed = sizes == "observed"
        classes.append(
            JobClass(
                smallest,
                largest,
                interarrival.distribution,
                service.distribution,
                round(share, 2),
                tuple(values.tolist()) if observed else (),
                tuple(counts.tolist()) if observed else (),
            )
        )
    description = f"Fitted to {len(trace)} jobs of {trace.name}"
    computer = dict(trace.header.facts).get("Computer", "")
    model = HyperErlangClasses(machine, tuple(classes), description, computer, trace.name)
    return WorkloadFit(model, tuple(fitted), tuple(notes))


def _check(
    boundaries: Sequence[int] | None, fewest: int, sizes: str, processors: int | None
) -> None:
    mistakes = []
    if boundaries is not None:
        whole = all(type(boundary) is int for boundary in boundaries)
        if not (boundaries and whole and all(a < b for a, b in zip([0, *boundaries], boundaries))):
            shown = ",".join(map(str, boundaries))
            mistakes.append(f"boundaries: {shown!r}; expected ascending whole numbers from 1")
    if type(fewest) is not int or fewest < 2:
        mistakes.append(f"fewest: {fewest!r}; expected a whole number from 2")
    if sizes not in ("observed", "uniform"):
        mistakes.append(f"sizes: {sizes!r}; expected observed or uniform")
    if processors is not None and (type(processors) is not int or processors < 1):
        mistakes.append(f"processors: {processors!r}; expected a whole number from 1")
    if mistakes:
        raise InputError(*mistakes)


def _classes(
    processors: NDArray[np.int64],
    boundaries: Sequence[int] | None,
    machine: int,
    fewest: int,
    notes: list[str],
) -> list[tuple[int, int]]:
    """Return the smallest and largest size of each class that has jobs, in ascending order."""
    most = int(processors.max())
    if boundaries is None:
        boundaries = [2**k for k in range((most - 1).bit_length() + 1)]
    elif most > boundaries[-1]:
        larger = int((processors > boundaries[-1]).sum())
        reason = f"{larger} jobs are larger; expected a last boundary of at least {most}"
        raise InputError(f"boundaries: {boundaries[-1]}: {reason}")
    uppers = [min(boundary, machine) for boundary in boundaries]
    classes = [
        (below + 1, upper, int(((processors > below) & (processors <= upper)).sum()))
        for below, upper in zip([0, *uppers], uppers)
    ]
    classes = [one for one in classes if one[2]]
    number = len(classes) - 1
    while number >= 0:
        if classes[number][2] < fewest and len(classes) > 1:
            low = max(number - 1, 0)
            (smallest, _, few), (_, largest, more) = classes[low : low + 2]
            named = [f"{n} jobs of {_named(a, b)}" for a, b, n in classes[low : low + 2]]
            joined, other = named if number == low else reversed(named)
            notes.append(f"{joined} are fewer than {fewest}; joined with {other}")
            classes[low : low + 2] = [(smallest, largest, few + more)]
        number -= 1
    return [(smallest, largest) for smallest, largest, _ in classes]


def _named(smallest: int, largest: int) -> str:
    sizes = str(largest) if smallest == largest else f"{smallest} to {largest}"
    return f"{sizes} processor{'s' if largest > 1 else ''}"


def _fit(times: NDArray[np.float64], place: str, notes: list[str]) -> FittedTimes:
    if not times.size or not times.max() > 0:
        raise InputError(f"{place}: all are 0; expected a class of jobs where some are not")
    mu1, mu2, mu3, mu4 = (float((times**k).mean()) for k in (1, 2, 3, 4))
    fit = fit_moments(mu1, mu2, mu3)
    if fit.note:
        notes.append(f"{place}: {fit.note}")
    e4 = 100 * abs(fit.distribution.moment(4) / mu4 - 1)
    return FittedTimes(fit.distribution, fit.matched, e4)
