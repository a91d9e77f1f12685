"""Workload model of a machine for very large jobs: classes by size, at a given offered load.

The model comes from no paper. Sizes are log-uniform with a preference for powers of two, as in
Lublin and Feitelson (2003); run times are log-normal, arrivals Poisson, and requested times too
long by a random factor and rounded up to common limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.numbers import LONGEST
from optsched.registry import workloads
from optsched.workloads.workload_model import (
    Draw,
    Jobs,
    SpecTable,
    Stream,
    WorkloadModel,
    clock,
    keys_of,
    special_functions,
    wrong_largest,
)

HOURS = 24
MOST_RATE = 1e9

ROUNDING = 0.01
"""Largest deviation of the sum of the shares from 100, in percent."""


@dataclass(frozen=True)
class CapabilityClass:
    """Class of jobs in a range of sizes."""

    # Smallest and largest size of a job
    smallest: int
    largest: int
    share: float  # percentage of the jobs
    # Probability that the size is a power of two, with all those in the class equally likely;
    # the other jobs have log-uniform sizes
    powers_of_two: float = field(default=0.0, kw_only=True)
    # Median of the run time in seconds, and standard deviation of its natural logarithm
    median: float
    sigma: float
    longest: float  # longest run time and requested time, in seconds; longer ones are cut

    @property
    def powers(self) -> list[int]:
        """Powers of two among the sizes."""
        first = (self.smallest - 1).bit_length()
        return [2**k for k in range(first, self.largest.bit_length())]

    @property
    def mean_size(self) -> float:
        """Expected size of a job."""
        low, end = self.smallest, self.largest + 1
        # the mean of a log-uniform number from low to end, rounded down: sum of n log((n + 1) / n)
        total = end * math.log(end) - low * math.log(low) - math.lgamma(end + 1)
        spread = (total + math.lgamma(low + 1)) / math.log(end / low)
        powers = sum(self.powers) / max(len(self.powers), 1)
        return self.powers_of_two * powers + (1 - self.powers_of_two) * spread

    @property
    def mean_runtime(self) -> float:
        """Expected run time, in seconds."""
        ndtr = special_functions().ndtr
        limit = math.log(self.longest / self.median) / self.sigma
        uncut = self.median * math.exp(self.sigma**2 / 2) * ndtr(limit - self.sigma)
        return float(uncut + self.longest * ndtr(-limit))

    def sizes(self, kind: NDArray[np.float64], place: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return a size for each pair of independent random numbers in [0, 1)."""
        low, end = self.smallest, self.largest + 1
        spread = np.minimum((low * (end / low) ** place).astype(np.int64), self.largest)
        if not self.powers:
            return spread
        powers = np.array(self.powers)[(place * len(self.powers)).astype(np.int64)]
        return np.where(kind < self.powers_of_two, powers, spread)

    def run_times(self, quantile: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a run time for each random number in [0, 1)."""
        uncut = self.median * np.exp(self.sigma * special_functions().ndtri(quantile))
        return np.asarray(np.minimum(uncut, self.longest))


@workloads.register("capability-mix")
@dataclass(frozen=True)
class CapabilityMix(WorkloadModel):
    """Poisson arrivals of jobs of several classes, at the rate that gives the offered load.

    The class of a job, the size within the class, the run time and the accuracy of the request are
    independent of each other and of other jobs. The expected work of a job (processors times run
    time) is known in closed form, and the arrival rate is ``load * processors / work``.
    """

    processors: int  # processors of the machine
    load: float  # expected work that arrives in a second, over the processors of the machine
    classes: tuple[CapabilityClass, ...]  # at least one class; the shares add up to 100
    # Bounds of the uniform distribution of run time over requested time, before requests are
    # rounded up
    accuracy: tuple[float, float] = (1.0, 1.0)
    # Limits in seconds, ascending, to which requested times are rounded up; no rounding if
    # empty
    limits: tuple[int, ...] = ()
    # Arrival rate in each hour of the day, in any unit, from midnight, which is submit time
    # 0; constant if empty
    hourly: tuple[float, ...] = ()
    # See `WorkloadModel`
    description: str = ""
    source: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        _read_model(SpecTable(self.to_table()))

    @classmethod
    def from_table(cls, table: Mapping[str, Any], title: str = "") -> CapabilityMix:
        """Build a model from the table of a spec; see `WorkloadModel.from_table`."""
        return cls(**_read_model(SpecTable(table)), title=title)

    def to_table(self) -> dict[str, Any]:
        """Return the model as the table of a spec, which `from_table` reads back."""
        lowest, highest = self.accuracy
        return self.table_head() | {
            "load": self.load,
            "accuracy": {"lowest": lowest, "highest": highest},
            "limits": list(self.limits),
            "hourly": list(self.hourly),
            "classes": [asdict(one) for one in self.classes],
        }

    @property
    def mean_work(self) -> float:
        """Expected work of a job, in processor-seconds."""
        shares = self._probabilities()
        work = [one.mean_size * one.mean_runtime for one in self.classes]
        return float(np.dot(shares, work))

    @property
    def rate(self) -> float:
        """Average arrival rate, in jobs per second."""
        return self.load * self.processors / self.mean_work

    def draw(self, jobs: int, seed: int, interarrival_factor: float, service_factor: float) -> Jobs:
        """Draw the first `jobs`; see `WorkloadModel.draw`.

        The interarrival factor does not change the daily cycle; the service factor applies to
        requested times too.
        """
        random: Draw = np.random.Generator.random
        draws: tuple[Draw, ...] = (
            np.random.Generator.standard_exponential,
            random,
            lambda rng, count: rng.random((count, 2)),
            random,
            random,
        )
        arrivals, kinds, sizes, services, accuracies = (
            Stream(child, draw).first(jobs)
            for child, draw in zip(np.random.SeedSequence(seed).spawn(5), draws)
        )
        bounds = np.cumsum(self._probabilities())[:-1]
        chosen = np.searchsorted(bounds, kinds, "right")
        runtime, processors = np.empty(jobs), np.empty(jobs, dtype=np.int64)
        for number, one in enumerate(self.classes):
            rows = np.flatnonzero(chosen == number)
            processors[rows] = one.sizes(*sizes[rows].T)
            runtime[rows] = one.run_times(services[rows])
        longest = np.array([one.longest for one in self.classes])[chosen]
        submit = np.cumsum(arrivals) / self.rate * interarrival_factor
        if self.hourly:
            submit = clock(submit, np.array(self.hourly) / np.mean(self.hourly))
        return Jobs(
            submit,
            runtime * service_factor,
            processors,
            self._requests(runtime, longest, accuracies) * service_factor,
        )

    def _probabilities(self) -> NDArray[np.float64]:
        shares = np.array([one.share for one in self.classes])
        return np.asarray(shares / shares.sum())

    def _requests(
        self,
        runtime: NDArray[np.float64],
        longest: NDArray[np.float64],
        uniform: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return a requested time for each random number in [0, 1)."""
        lowest, highest = self.accuracy
        requests = np.minimum(runtime / (lowest + (highest - lowest) * uniform), longest)
        if not self.limits:
            return requests
        limits = np.array(self.limits, dtype=np.float64)
        return limits[np.searchsorted(limits, requests)]


def _read_model(spec: SpecTable) -> dict[str, Any]:
    spec.known(["model", *keys_of(CapabilityMix)])
    texts = {key: spec.text(key) for key in ("description", "source")}
    processors = spec.whole("processors", expected="processors of the machine")
    load = spec.number("load", 1e-9, 1e3, "work that arrives over the machine's, above 0")
    limits = spec.numbers("limits", _are_limits, "seconds as ascending whole numbers from 1")
    wanted = f"{HOURS} numbers above 0 and at most {MOST_RATE:g}, one for each hour of the day"
    hourly = spec.numbers("hourly", _are_rates, wanted)
    longest = limits[-1] if limits else LONGEST
    classes = [_read_class(part, processors, longest) for part in spec.parts("classes")]
    total = sum(one.share for one in classes if one)
    if all(classes) and classes and abs(total - 100) > ROUNDING:
        spec.note("classes", f"shares add up to {total:g}; expected 100")
    accuracy = _read_accuracy(spec)
    spec.done()
    model = {"processors": processors, "load": load, "classes": tuple(filter(None, classes))}
    return model | {"accuracy": accuracy, "limits": limits, "hourly": hourly} | texts


def _read_class(spec: SpecTable, processors: int, longest: float) -> CapabilityClass | None:
    """Return the class that a table describes; None, with mistakes noted, if it has mistakes."""
    before = len(spec.mistakes)
    spec.known(keys_of(CapabilityClass))
    deviation, probability = "a standard deviation of logarithms", "a probability from 0 to 1"
    one = CapabilityClass(
        smallest=spec.whole("smallest"),
        largest=spec.whole("largest"),
        share=spec.number("share", 1e-9, 100, "a percentage of the jobs, above 0"),
        median=spec.number("median", 1e-3, LONGEST, "seconds, above 0"),
        sigma=spec.number("sigma", 1e-3, 10, f"{deviation}, from 0.001 to 10"),
        longest=spec.number("longest", 1, longest, f"seconds, from 1 to {longest:g}"),
        powers_of_two=spec.number("powers_of_two", 0, 1, probability, default=0.0),
    )
    if len(spec.mistakes) > before:
        return None
    if not one.smallest <= one.largest <= processors:
        spec.note("largest", wrong_largest(one.smallest, one.largest, processors))
    elif one.powers_of_two and not one.powers:
        sizes = f"{one.smallest} to {one.largest}"
        spec.note("powers_of_two", f"no power of two from {sizes}; expected 0")
    if one.median > one.longest:
        spec.note("median", f"{one.median:g}; expected at most {one.longest:g}, the longest")
    return one if len(spec.mistakes) == before else None


def _read_accuracy(spec: SpecTable) -> tuple[float, float]:
    part = None
    if "accuracy" in spec.table:
        part = spec.part("accuracy", "a table of lowest and highest")
    if part is None:
        return 1.0, 1.0
    part.known(("lowest", "highest"))
    highest = part.number("highest", 1e-6, 1, "run time over requested time, above 0, at most 1")
    wanted = f"run time over requested time, above 0 and at most {highest:g}, the highest"
    return part.number("lowest", 1e-6, highest, wanted), highest


def _are_limits(limits: list[Any]) -> bool:
    whole = all(type(limit) is int and 1 <= limit <= LONGEST for limit in limits)
    return whole and limits == sorted(set(limits))


def _are_rates(hourly: list[Any]) -> bool:
    positive = all(type(rate) in (int, float) and 0 < rate <= MOST_RATE for rate in hourly)
    return positive and len(hourly) in (0, HOURS)
