"""Workload model of Hyper-Erlang distributions, and its fit to a trace, by three moments each.

The distributions have a common order and two phases. The fit is the simplest of four families. With
the reduced moments ``m_k = mu_k / (n (n+1) ... (n+k-1))`` a Hyper-Erlang distribution of order
``n`` has the moments ``mu_k`` if and only if the means ``1/lambda_i`` of its stages are a two-point
distribution with the moments ``m_k``. Such a distribution with positive points exists if and only
if ``m_2 > m_1^2`` and ``m_1 m_3 > m_2^2``; both conditions hold from some order on, unless the data
are degenerate.

M. A. Johnson, M. R. Taaffe, "Matching moments to phase distributions: mixtures of Erlang
distributions of common order", Communications in Statistics: Stochastic Models 5(4), 1989.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.errors import InputError
from optsched.fields import Integer
from optsched.numbers import counted
from optsched.registry import workloads
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.workloads.workload_model import (
    Jobs,
    SpecTable,
    Stream,
    WorkloadModel,
    keys_of,
    wrong_largest,
)

SLOWEST, FASTEST = 1e-50, 1e50
"""Range of the rates; the moments of others might overflow a float."""

LARGEST_ORDER = 1_000_000
"""Most stages; a larger number is taken for a mistake."""


@dataclass(frozen=True)
class HyperErlang:
    """Mixture of two Erlang distributions of the same order.

    The Laplace transform is the sum over both phases of ``p_i (rate_i / (s + rate_i))^order``.

    >>> times = HyperErlang(order=2, rates=(0.01, 0.5), p1=0.25)
    >>> times.family, times.mean
    ('hyper-Erlang', 53.0)
    """

    order: int  # number of exponential stages of each phase, from 1
    rates: tuple[float, float]  # rate of the stages in each phase, in 1/s, above 0
    p1: float = 1.0  # probability of the first phase, from 0 to 1

    def __post_init__(self) -> None:
        times, wanted = SpecTable(self.to_table()), f"a whole number from 1 to {LARGEST_ORDER}"
        times.read("order", Integer(1, LARGEST_ORDER, f"expected {wanted}"))
        for name in ("lambda1", "lambda2"):
            wanted = f"a rate per second, from {SLOWEST:g} to {FASTEST:g}"
            times.number(name, SLOWEST, FASTEST, wanted)
        times.number("p1", 0, 1, "a probability from 0 to 1")
        times.done()

    @classmethod
    def erlang(cls, order: int, rate: float) -> HyperErlang:
        """Return an Erlang distribution; order 1 gives the exponential distribution."""
        return cls(order, (rate, rate))

    @property
    def probabilities(self) -> tuple[float, float]:
        """Probability of each phase."""
        return self.p1, 1.0 - self.p1

    @property
    def family(self) -> str:
        """Name of the family: exponential, Erlang, hyper-exponential or hyper-Erlang."""
        single = self.p1 in (0, 1) or self.rates[0] == self.rates[1]
        if self.order == 1:
            return "exponential" if single else "hyper-exponential"
        return "Erlang" if single else "hyper-Erlang"

    @property
    def mean(self) -> float:
        """Expectation, in seconds."""
        return self.moment(1)

    def moment(self, k: int) -> float:
        """Return the noncentral moment ``E[t^k]``, in seconds to the power of `k` (from 1)."""
        rising = math.prod(range(self.order, self.order + k))
        return rising * sum(p / rate**k for p, rate in zip(self.probabilities, self.rates))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` independent times, in seconds."""
        rates = np.where(rng.random(size) < self.p1, *self.rates)
        return np.asarray(rng.standard_gamma(self.order, size) / rates)

    def to_table(self) -> dict[str, Any]:
        """Return the parameters under the names of a workload spec."""
        return dict(zip(TIMES_KEYS, (*self.rates, self.order, self.p1)))


HIGHEST_ORDER = 1000
"""Highest order; times that need a higher one are nearly constant."""

CLOSE = 1e-9
"""Relative difference below which two moments count as equal."""


class Fit(NamedTuple):
    """Fitted distribution, and the moments that it shares with the data."""

    distribution: HyperErlang  # the simplest distribution found
    matched: int  # number of matched moments, from the first on; at most three
    note: str  # reason for not matching all three moments, and the replacement; empty if all match


def fit_moments(mu1: float, mu2: float, mu3: float) -> Fit:
    """Fit the first three noncentral moments of times.

    They are the means of the times, of their squares and of their cubes, in powers of seconds. The
    fit is the exponential or Erlang distribution with these moments (up to a relative 1e-9 in the
    second and third), else the Hyper-Erlang distribution of the least order, which is
    hyper-exponential at order 1. The first phase has the longer times.
    """
    moments = (mu1, mu2, mu3)
    if not all(math.isfinite(mu) and mu > 0 for mu in moments):
        raise InputError(f"moments {mu1}, {mu2}, {mu3}; expected finite numbers above 0")
    # moments of the times over their mean; by Cauchy and Schwarz square >= 1, cube >= square^2
    square, cube = mu2 / mu1 / mu1, mu3 / mu1 / mu1 / mu1
    if min(square, cube / square / square) < 1 - CLOSE or math.isinf(cube):
        raise InputError(f"no positive times have the moments {mu1}, {mu2}, {mu3}")
    order = max(1, min(round(1 / (square - 1)), HIGHEST_ORDER)) if square > 1 else HIGHEST_ORDER
    erlang = HyperErlang.erlang(order, order / mu1)
    if _matched(erlang, moments) == 3:
        return Fit(erlang, 3, "")
    fitted, note = erlang, ""
    if (least := _least_order(square, cube)) is not None:
        fitted = _three_moments(least, mu1, square, cube)
    elif (least := _least_order(square, math.inf)) is not None:
        fitted = _two_moments(least, mu1, square)
        note = (
            f"the third moment needs an order above {HIGHEST_ORDER}; "
            "matched the first two, each phase with half of the mean"
        )
    else:
        note = (
            f"nearly constant times: the moments need an order above {HIGHEST_ORDER}; "
            f"took an Erlang distribution of order {order} with the same mean"
        )
    return Fit(fitted, _matched(fitted, moments), note)


def _least_order(square: float, cube: float) -> int | None:
    """Return the least order that fulfills both conditions; None if above `HIGHEST_ORDER`."""
    reduced = ((order, *_reduced(order, square, cube)) for order in range(1, HIGHEST_ORDER + 1))
    return next((order for order, m2, m3 in reduced if m2 > 1 and m3 > m2 * m2), None)


def _reduced(order: int, square: float, cube: float) -> tuple[float, float]:
    """Return the second and third reduced moments, relative to the first."""
    m2 = square * order / (order + 1)
    return m2, cube * order * order / ((order + 1) * (order + 2))


def _three_moments(order: int, mu1: float, square: float, cube: float) -> HyperErlang:
    m2, m3 = _reduced(order, square, cube)
    variance = m2 - 1
    # around the mean the roots do not cancel: their product is minus the variance
    shift = (m3 - 3 * m2 + 2) / variance
    farther = (shift + math.copysign(math.hypot(shift, 2 * math.sqrt(variance)), shift)) / 2
    above, below = sorted((farther, -variance / farther), reverse=True)
    longer = 1 + above
    # near 0 the sum could round to 0; the quotient of the conditions stays positive
    shorter = 1 + below if below > -0.5 else (m3 - m2 * m2) / (variance * longer)
    p1 = -below / (above - below)
    return HyperErlang(order, (_rate(order, mu1, longer), _rate(order, mu1, shorter)), p1)


def _two_moments(order: int, mu1: float, square: float) -> HyperErlang:
    m2 = square * order / (order + 1)
    longer = m2 + math.sqrt(m2 * (m2 - 1))
    rates = _rate(order, mu1, longer), _rate(order, mu1, m2 / longer)
    return HyperErlang(order, rates, 1 / (2 * longer))


def _rate(order: int, mu1: float, point: float) -> float:
    return min(max(order / mu1 / point, SLOWEST), FASTEST)


def _matched(distribution: HyperErlang, moments: tuple[float, ...]) -> int:
    """Return the number of moments that a distribution matches, from the first on."""
    off = [abs(distribution.moment(k) - mu) > CLOSE * mu for k, mu in enumerate(moments, 1)]
    return [*off, True].index(True)


TIMES = "a table of lambda1, lambda2, order and p1"
TIMES_KEYS = ("lambda1", "lambda2", "order", "p1")
MOST_WEIGHT = 1e15
"""Largest weight of a size, so that sums of weights stay finite and sufficiently exact."""


@dataclass(frozen=True)
class JobClass:
    """Class of jobs in a range of sizes."""

    # Smallest and largest size of a job
    smallest: int
    largest: int
    # Distributions of the interarrival times and of the run times of the class, in seconds
    interarrival: HyperErlang
    service: HyperErlang
    # Percentage of jobs of this class in the data behind the model. For information only: the
    # interarrival times determine the share in a generated trace.
    share: float | None = None
    # Sizes that occur; if empty, all from the smallest to the largest, equally often
    sizes: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()  # relative frequency of each of the `sizes`

    def sizes_of(self, uniform: Floats) -> Ints:
        """Return a size for each random number in [0, 1)."""
        if not self.sizes:
            span = self.largest - self.smallest + 1
            return self.smallest + (uniform * span).astype(np.int64)
        cumulated = np.cumsum(self.weights)
        chosen = np.searchsorted(cumulated, uniform * cumulated[-1], "right")
        return np.asarray(np.array(self.sizes)[chosen])

    def to_table(self) -> dict[str, Any]:
        """Return the class as a table of a spec."""
        bounds = {"smallest": self.smallest, "largest": self.largest}
        share = {} if self.share is None else {"share": self.share}
        times = {name: getattr(self, name).to_table() for name in ("interarrival", "service")}
        drawn = {"sizes": list(self.sizes), "weights": list(self.weights)} if self.sizes else {}
        return {**bounds, **share, **times, **drawn}


@workloads.register("hyper-erlang")
@dataclass(frozen=True)
class HyperErlangClasses(WorkloadModel):
    """Classes of jobs by size, with independent Hyper-Erlang interarrival and run times.

    The arrivals are the superposition of one renewal process per class, each from time 0.
    """

    processors: int  # processors of the machine
    classes: tuple[JobClass, ...]  # at least one class
    # See `WorkloadModel`
    description: str = ""
    source: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        _read_model(SpecTable(self.to_table()))

    @classmethod
    def from_table(cls, table: Mapping[str, Any], title: str = "") -> HyperErlangClasses:
        """Build a model from the table of a spec; see `WorkloadModel.from_table`."""
        spec = SpecTable(table)
        spec.known(["model", *keys_of(cls)])
        processors, classes = _read_model(spec)
        return cls(processors, classes, spec.text("description"), spec.text("source"), title)

    def to_table(self) -> dict[str, Any]:
        """Return the model as the table of a spec, which `from_table` reads back."""
        return self.table_head() | {"classes": [one.to_table() for one in self.classes]}

    def draw(self, jobs: int, seed: int, interarrival_factor: float, service_factor: float) -> Jobs:
        """Draw the first `jobs` of the superposed arrivals; see `WorkloadModel.draw`."""
        # one stream for each class and quantity, so that a change in one leaves the others alone
        seeds = [child.spawn(3) for child in np.random.SeedSequence(seed).spawn(len(self.classes))]
        streams = [
            (
                Stream(arrivals, one.interarrival.sample),
                Stream(services, one.service.sample),
                Stream(sizes, lambda rng, n: rng.random(n)),
            )
            for one, (arrivals, services, sizes) in zip(self.classes, seeds)
        ]
        rates = [1 / one.interarrival.mean for one in self.classes]
        times, classes = _superposed([arrivals for arrivals, _, _ in streams], rates, jobs)
        runtime, processors = np.empty(jobs), np.empty(jobs, dtype=np.int64)
        for number, (_, services, sizes) in enumerate(streams):
            rows = np.flatnonzero(classes == number)
            runtime[rows] = services.first(len(rows))
            processors[rows] = self.classes[number].sizes_of(sizes.first(len(rows)))
        return Jobs(times * interarrival_factor, runtime * service_factor, processors)


def _superposed(gaps: list[Stream], rates: list[float], jobs: int) -> tuple[Floats, Ints]:
    """Return the first arrival times of superposed renewal processes, and the process of each."""
    horizon = jobs / sum(rates)
    while True:
        arrivals = [_arrivals(*process, horizon, jobs) for process in zip(gaps, rates)]
        if sum(map(len, arrivals)) >= jobs:
            break
        horizon *= 1.5
    times = np.concatenate(arrivals)
    first = np.argsort(times, kind="stable")[:jobs]
    classes = np.repeat(np.arange(len(arrivals)), list(map(len, arrivals)))
    return times[first], classes[first]


def _arrivals(gaps: Stream, rate: float, horizon: float, most: int) -> Floats:
    """Return up to `most` arrival times of a process, until the horizon."""
    count = min(int(1.1 * rate * horizon) + 1, most)
    times = np.cumsum(gaps.first(count))
    while times[-1] <= horizon and count < most:
        count = min(2 * count, most)
        times = np.cumsum(gaps.first(count))
    return times[: np.searchsorted(times, horizon, "right")]


def _read_model(spec: SpecTable) -> tuple[int, tuple[JobClass, ...]]:
    for key in ("description", "source"):
        spec.text(key)
    processors = spec.whole("processors", expected="processors of the machine")
    classes = [_read_class(part, processors) for part in spec.parts("classes")]
    spec.done()
    return processors, tuple(filter(None, classes))


def _read_class(spec: SpecTable, processors: int) -> JobClass | None:
    """Return the class that a table describes; None, with mistakes noted, if it has mistakes."""
    before = len(spec.mistakes)
    spec.known(keys_of(JobClass))
    smallest, largest = spec.whole("smallest"), spec.whole("largest")
    if len(spec.mistakes) == before and not smallest <= largest <= processors:
        spec.note("largest", wrong_largest(smallest, largest, processors))
    share = None
    if "share" in spec.table:
        share = spec.number("share", 0, 100, "a percentage of the jobs")
    interarrival, service = _read_times(spec, "interarrival"), _read_times(spec, "service")
    sizes, weights = _read_sizes(spec, smallest, largest)
    if interarrival is None or service is None or len(spec.mistakes) > before:
        return None
    return JobClass(smallest, largest, interarrival, service, share, sizes, weights)


def _read_times(spec: SpecTable, key: str) -> HyperErlang | None:
    times = spec.part(key, TIMES)
    if times is None:
        return None
    times.known(TIMES_KEYS)
    missing = [name for name in TIMES_KEYS if name not in times.table]
    for name in missing:
        times.note(name, "missing")
    if missing:
        return None
    lambda1, lambda2, order, p1 = (times.table[name] for name in TIMES_KEYS)
    try:
        return HyperErlang(order, (lambda1, lambda2), p1)
    except InputError as error:
        times.mistakes += [f"{times.place}{mistake}" for mistake in error.mistakes]
        return None


def _read_sizes(
    spec: SpecTable, smallest: int, largest: int
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    def are_sizes(sizes: list[Any]) -> bool:
        return all(type(size) is int and smallest <= size <= largest for size in sizes)

    def are_weights(weights: list[Any]) -> bool:
        known = all(type(one) in (int, float) and 0 < one <= MOST_WEIGHT for one in weights)
        return known and len(weights) == len(sizes)

    before, wanted = len(spec.mistakes), f"a list of whole numbers from {smallest} to {largest}"
    sizes = spec.numbers("sizes", are_sizes, wanted)
    if len(spec.mistakes) > before:
        return (), ()
    wanted = f"{len(sizes)} numbers above 0 and at most {MOST_WEIGHT:g}, one per size"
    return sizes, spec.numbers("weights", are_weights, wanted, *[1] * len(sizes))


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
        quality = {"family": self.distribution.family, "matched": self.matched, "e4": self.e4}
        return self.distribution.to_table() | quality


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
        fitting = f"{counted(len(trace), 'job')} within {machine} processors; expected at least 2"
        raise InputError(fitting, file=trace.path)
    fitted, classes = [], []
    for smallest, largest in _classes(trace.processors, boundaries, machine, fewest, notes):
        rows = (trace.processors >= smallest) & (trace.processors <= largest)
        place = _named(smallest, largest)
        gaps = np.diff(np.sort(trace.submit[rows])).astype(np.float64)
        interarrival = _fit(gaps, f"{place}, interarrival times", notes)
        service = _fit(trace.runtime[rows].astype(np.float64), f"{place}, run times", notes)
        jobs = int(rows.sum())
        share = 100 * jobs / len(trace)
        fitted.append(FittedClass(smallest, largest, jobs, share, interarrival, service))
        values, counts = np.unique(trace.processors[rows], return_counts=True)
        drawn = (tuple(values.tolist()), tuple(counts.tolist())) if sizes == "observed" else ()
        times = interarrival.distribution, service.distribution
        classes.append(JobClass(smallest, largest, *times, round(share, 2), *drawn))
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
    processors: Ints, boundaries: Sequence[int] | None, machine: int, fewest: int, notes: list[str]
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
    for number in reversed(range(len(classes))):
        if classes[number][2] < fewest and len(classes) > 1:
            low = max(number - 1, 0)
            (smallest, _, few), (_, largest, more) = classes[low : low + 2]
            named = [f"{n} jobs of {_named(a, b)}" for a, b, n in classes[low : low + 2]]
            joined, other = named if number == low else reversed(named)
            notes.append(f"{joined} are fewer than {fewest}; joined with {other}")
            classes[low : low + 2] = [(smallest, largest, few + more)]
    return [(smallest, largest) for smallest, largest, _ in classes]


def _named(smallest: int, largest: int) -> str:
    sizes = str(largest) if smallest == largest else f"{smallest} to {largest}"
    return f"{sizes} processor{'s' if largest > 1 else ''}"


def _fit(times: Floats, place: str, notes: list[str]) -> FittedTimes:
    if not times.size or not times.max() > 0:
        raise InputError(f"{place}: all are 0; expected a class of jobs where some are not")
    mu1, mu2, mu3, mu4 = (float((times**k).mean()) for k in (1, 2, 3, 4))
    fit = fit_moments(mu1, mu2, mu3)
    if fit.note:
        notes.append(f"{place}: {fit.note}")
    e4 = 100 * abs(fit.distribution.moment(4) / mu4 - 1)
    return FittedTimes(fit.distribution, fit.matched, e4)
