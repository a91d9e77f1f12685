"""Workload model of classes by size, each with Hyper-Erlang interarrival and run times.

References
----------
J. Jann, P. Pattnaik, H. Franke, F. Wang, J. Skovira, J. Riordan, "Modeling of workload in MPPs",
JSSPP 1997.

H. Franke, J. Jann, J. E. Moreira, P. Pattnaik, M. A. Jette, "An evaluation of parallel job
scheduling for ASCI Blue-Pacific", SC 1999.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.registry import workloads
from optsched.workloads.hyper_erlang import HyperErlang
from optsched.workloads.workload_model import Jobs, SpecTable, Stream, WorkloadModel

TIMES = "a table of lambda1, lambda2, order and p1"
MODEL_KEYS = ("model", "description", "source", "processors", "classes")
CLASS_KEYS = ("smallest", "largest", "share", "interarrival", "service", "sizes", "weights")
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

    def sizes_of(self, uniform: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return a size for each random number in [0, 1)."""
        if not self.sizes:
            span = self.largest - self.smallest + 1
            return self.smallest + (uniform * span).astype(np.int64)
        cumulated = np.cumsum(self.weights)
        chosen = np.searchsorted(cumulated, uniform * cumulated[-1], "right")
        sizes: NDArray[np.int64] = np.array(self.sizes)[chosen]
        return sizes

    def to_table(self) -> dict[str, Any]:
        """Return the class as a table of a spec."""
        table: dict[str, Any] = {"smallest": self.smallest, "largest": self.largest}
        if self.share is not None:
            table["share"] = self.share
        table["interarrival"] = self.interarrival.to_table()
        table["service"] = self.service.to_table()
        if self.sizes:
            table["sizes"] = list(self.sizes)
            table["weights"] = list(self.weights)
        return table


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
        spec.known(MODEL_KEYS)
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


def _superposed(
    gaps: list[Stream], rates: list[float], jobs: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
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


def _arrivals(gaps: Stream, rate: float, horizon: float, most: int) -> NDArray[np.float64]:
    """Return up to `most` arrival times of a process, until the horizon."""
    count = min(int(1.1 * rate * horizon) + 1, most)
    times = np.cumsum(gaps.first(count))
    while times[-1] <= horizon and count < most:
        count = min(2 * count, most)
        times = np.cumsum(gaps.first(count))
    return times[: np.searchsorted(times, horizon, "right")]


def _read_model(spec: SpecTable) -> tuple[int, tuple[JobClass, ...]]:
    """Return the processors and classes in a table; raise all mistakes at once."""
    for key in ("description", "source"):
        spec.text(key)
    processors = spec.whole("processors", expected="processors of the machine")
    classes = [_read_class(part, processors) for part in spec.parts("classes")]
    spec.done()
    return processors, tuple(one for one in classes if one)


def _read_class(spec: SpecTable, processors: int) -> JobClass | None:
    """Return the class that a table describes; None, with mistakes noted, if it has mistakes."""
    before = len(spec.mistakes)
    spec.known(CLASS_KEYS)
    smallest = spec.whole("smallest")
    largest = spec.whole("largest")
    if len(spec.mistakes) == before and not smallest <= largest <= processors:
        wanted = f"a whole number from {smallest} to {processors}, the processors of the machine"
        spec.note("largest", f"{largest}; expected {wanted}")
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

    before = len(spec.mistakes)
    sizes = spec.numbers(
        "sizes", are_sizes, f"a list of whole numbers from {smallest} to {largest}"
    )
    if len(spec.mistakes) > before:
        return (), ()
    wanted = f"{len(sizes)} numbers above 0 and at most {MOST_WEIGHT:g}, one per size"
    return sizes, spec.numbers("weights", are_weights, wanted, *[1] * len(sizes))
